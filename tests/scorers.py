"""Reference scores of labels, in percent: by scikit-learn, by seqeval, and by plain counting.

gold, predicted: the labels of each row, one for each word or one of a pair of sentences.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import seqeval.metrics
import sklearn.metrics
from seqeval.scheme import IOB2

Labels = Sequence[Sequence[Any]]
Scorer = Callable[[Labels, Labels], dict[str, float]]


def of_pos(gold: Labels, predicted: Labels) -> dict[str, float]:
    both = list(chain(*gold)), list(chain(*predicted))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a part of speech is no tag of an entity
        published = seqeval.metrics.f1_score(gold, predicted)
    return {
        "accuracy": 100 * sklearn.metrics.accuracy_score(*both),
        "macro_f1": 100 * sklearn.metrics.f1_score(*both, average="macro"),
        "seqeval_f1": 100 * published,
    }


def of_ner(gold: Labels, predicted: Labels) -> dict[str, float]:
    rules = {
        "f1": seqeval.metrics.f1_score,
        "precision": seqeval.metrics.precision_score,
        "recall": seqeval.metrics.recall_score,
    }
    return {
        name: 100 * float(rule(gold, predicted, mode="strict", scheme=IOB2, zero_division=0))
        for name, rule in rules.items()
    }


def of_dep(gold: Labels, predicted: Labels) -> dict[str, float]:
    """Labels are pairs (head, relation)."""
    pairs = list(zip(chain(*gold), chain(*predicted), strict=True))
    heads, both = sum(a[0] == b[0] for a, b in pairs), sum(a == b for a, b in pairs)
    return {"uas": 100 * heads / len(pairs), "las": 100 * both / len(pairs)}


def of_pairs(gold: Labels, predicted: Labels) -> dict[str, float]:
    return {"accuracy": 100 * sklearn.metrics.accuracy_score(list(chain(*gold)), list(chain(*predicted)))}
