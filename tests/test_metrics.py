"""Scores of labels against those of other programs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from derivlang.core.errors import DataError
from derivlang.evaluation.formulas import formula_of
from derivlang.evaluation.metrics import UPOS, Metric, begins_span, ends_span
from derivlang.evaluation.tasks.registry import tuned_tasks
from tests import scorers

METRIC = {(task, metric.name): metric for task, kind in tuned_tasks().items() for metric in kind.columns}
IOB2 = ["O", *(f"{mark}-{kind}" for kind in ("PER", "LOC", "ORG") for mark in "BI")]


def sentences(inventory: Sequence[Any], seed: int, *, n: int = 60, right: float = 0.6) -> tuple[list[list[Any]], ...]:
    """Gold and predicted labels, well formed or not; some sentences of one word."""
    rng = random.Random(seed)
    gold = [[rng.choice(inventory) for _ in range(rng.choice([1, 2, 5, 13]))] for _ in range(n)]
    return gold, [[tag if rng.random() < right else rng.choice(inventory) for tag in tags] for tags in gold]


HEADS = [(head, relation) for head in range(4) for relation in ("nsubj", "obj", "root")]
CASES: list[tuple[str, Sequence[Any], scorers.Scorer]] = [
    ("pos", UPOS, scorers.of_pos),
    ("ner", IOB2, scorers.of_ner),
    ("dep", HEADS, scorers.of_dep),
    ("xnli", ("entailment", "neutral", "contradiction"), scorers.of_pairs),
]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("task", "inventory", "scorer"), CASES, ids=[name for name, *_ in CASES])
def test_counts_sum_to_the_scores_of_other_programs(
    task: str, inventory: Sequence[Any], scorer: scorers.Scorer, seed: int
) -> None:
    for labels in (inventory, inventory[-3:]):
        gold, predicted = sentences(labels, seed, n=1 if seed == 4 else 60)
        expected = scorer(gold, predicted)
        assert set(expected) == {name for kind, name in METRIC if kind == task}
        for name, value in expected.items():
            metric = METRIC[task, name]
            counts = metric.counts(gold, predicted)
            assert counts.dtype == np.int64
            assert len(counts) == len(gold)
            assert metric.value(counts) == pytest.approx(value, abs=1e-9)
            both = formula_of(metric.formula)[0](np.stack([counts.sum(axis=0), counts[0]]))
            assert both.tolist() == [metric.value(counts), metric.value(counts[:1])]


@pytest.mark.parametrize("metric", METRIC.values(), ids=map("-".join, METRIC))
def test_nothing_is_zero(metric: Metric) -> None:
    assert metric.value(metric.counts([], [])) == 0
    assert metric.value(metric.counts([[]], [[]])) == 0


def test_labels_that_do_not_fit() -> None:
    metric = METRIC["pos", "accuracy"]
    with pytest.raises(DataError, match="1 predicted sentences for 2"):
        metric.counts([["X"], ["X"]], [["X"]])
    with pytest.raises(DataError, match="sentence 2 has 1 words, but 2 predicted"):
        metric.counts([["X"], ["X"]], [["X"], ["X", "X"]])
    with pytest.raises(DataError, match="'NN' is not one of the universal POS tags"):
        METRIC["pos", "macro_f1"].counts([["NN"]], [["X"]])


def test_answers_are_scored_by_the_best_gold_answer() -> None:
    found, em = (metric for metric in tuned_tasks()["qa"].columns)
    gold = [[(1, 2), (1, 2, 3)], [(4,)], [(5, 5, 6)], [()], [()], []]
    predicted = [[(1, 2, 3)] * 2, [(7,)], [(5, 6, 6)], [()], [(1,)], []]
    assert em.counts(gold, predicted).tolist() == [[1, 1], [0, 1], [0, 1], [1, 1], [0, 1], [0, 0]]
    counts = found.counts(gold, predicted)
    # two bags 5 5 6 and 5 6 6 have 5 6 in common: 2 * 2 / (3 + 3)
    assert counts[:, 0].tolist() == [1_000_000, 0, 666_667, 1_000_000, 0, 0]
    assert counts[:, 1].tolist() == [1_000_000] * 5 + [0]
    assert found.value(counts) == pytest.approx(100 * (2 + 2 / 3) / 5, abs=1e-4)


def test_spans_begin_and_end_where_seqeval_says() -> None:
    theirs = pytest.importorskip("seqeval.metrics.sequence_labeling")
    labels = list(product("BIESO.AX", ("x", "y")))
    for before, label in product(labels, labels):
        asked = before[0], label[0], before[1], label[1]
        assert begins_span(before, label) == theirs.start_of_chunk(*asked)
        assert ends_span(before, label) == theirs.end_of_chunk(*asked)
