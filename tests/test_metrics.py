"""Scores of labels, held to seqeval and to plain references."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from derivlang.core.errors import DataError
from derivlang.evaluation.formulas import formula_of
from derivlang.evaluation.metrics import UPOS, Metric
from derivlang.evaluation.tasks.registry import tuned_tasks

seqeval = pytest.importorskip("seqeval.metrics")

METRIC = {(task, metric.name): metric for task in ("pos", "ner", "xnli") for metric in tuned_tasks()[task].columns}
EVERY = [metric for task in tuned_tasks().values() for metric in task.columns]
IOB2 = ["O", *(f"{mark}-{kind}" for kind in ("PER", "LOC", "ORG") for mark in "BI")]


def sentences(inventory: Sequence[str], seed: int, *, n: int = 60, right: float = 0.6) -> tuple[list[list[str]], ...]:
    """Gold and predicted labels, well formed or not; some sentences of one word."""
    rng = random.Random(seed)
    gold = [[rng.choice(inventory) for _ in range(rng.choice([1, 2, 5, 13]))] for _ in range(n)]
    return gold, [[tag if rng.random() < right else rng.choice(inventory) for tag in tags] for tags in gold]


def reference(task: str, name: str, gold: list[list[str]], predicted: list[list[str]]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if task == "ner":
            from seqeval.scheme import IOB2 as SCHEME

            score = getattr(seqeval, f"{name}_score")
            return 100 * float(score(gold, predicted, mode="strict", scheme=SCHEME))
        if name == "seqeval_f1":
            return 100 * float(seqeval.f1_score(gold, predicted))
    pairs = [(g, p) for a, b in zip(gold, predicted, strict=True) for g, p in zip(a, b, strict=True)]
    if name == "accuracy":
        return 100 * sum(g == p for g, p in pairs) / len(pairs)
    scores = []
    for tag in {tag for pair in pairs for tag in pair}:
        right = sum(pair == (tag, tag) for pair in pairs)
        found, wanted = (sum(pair[side] == tag for pair in pairs) for side in (1, 0))
        scores.append(Fraction(2 * right, found + wanted))
    return float(100 * sum(scores) / len(scores))


def inventory(task: str) -> Sequence[str]:
    return {"pos": UPOS, "ner": IOB2, "xnli": ("entailment", "neutral", "contradiction")}[task]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("task", "name"), METRIC, ids="-".join)
def test_counts_sum_to_the_reference(task: str, name: str, seed: int) -> None:
    metric = METRIC[task, name]
    for labels in (inventory(task), inventory(task)[-3:]):
        gold, predicted = sentences(labels, seed, n=1 if seed == 4 else 60)
        counts = metric.counts(gold, predicted)
        assert counts.dtype == np.int64
        assert len(counts) == len(gold)
        assert metric.value(counts) == pytest.approx(reference(task, name, gold, predicted), abs=1e-9)
        both = formula_of(metric.formula)[0](np.stack([counts.sum(axis=0), counts[0]]))
        assert both[0] == metric.value(counts)
        assert both[1] == metric.value(counts[:1])


def test_the_published_f1_is_kind_to_conjunctions_and_hard_on_runs() -> None:
    def scores(gold: str, predicted: str) -> list[float]:
        metrics = [METRIC["pos", name] for name in ("seqeval_f1", "accuracy")]
        return [metric.value(metric.counts([gold.split()], [predicted.split()])) for metric in metrics]

    assert scores("NOUN SCONJ VERB", "NOUN CCONJ VERB") == [100, pytest.approx(200 / 3)]
    assert scores("NOUN NOUN NOUN VERB", "ADJ NOUN NOUN VERB") == [40, 75]


def test_entities_are_whole_and_begin_with_b() -> None:
    metric = METRIC["ner", "f1"]
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["O"]]
    assert metric.counts(gold, [["B-PER", "O", "O", "B-LOC"], ["O"]]).tolist() == [[1, 2, 2], [0, 0, 0]]
    assert metric.counts(gold, [["I-PER", "I-PER", "O", "B-LOC"], ["I-LOC"]]).tolist() == [[1, 1, 2], [0, 0, 0]]


@pytest.mark.parametrize("metric", EVERY, ids=lambda m: m.name)
def test_nothing_is_zero(metric: Metric) -> None:
    assert metric.value(metric.counts([], [])) == 0
    assert metric.value(metric.counts([[]], [[]])) == 0


def test_labels_that_do_not_fit() -> None:
    metric = METRIC["pos", "accuracy"]
    with pytest.raises(DataError, match="1 predicted sentences for 2"):
        metric.counts([["X"], ["X"]], [["X"]])
    with pytest.raises(DataError, match="sentence 2 has 1 words, but 2 predicted"):
        metric.counts([["X"], ["X"]], [["X"], ["X", "X"]])
    with pytest.raises(DataError, match="'NN' is not one of the 17 universal POS tags"):
        METRIC["pos", "macro_f1"].counts([["NN"]], [["X"]])


def test_heads_and_relations() -> None:
    uas, las = (metric for metric in tuned_tasks()["dep"].columns)
    gold = [[(2, "nsubj"), (0, "root"), (2, "obj")], [(0, "root")]]
    predicted = [[(2, "obj"), (0, "root"), (1, "obj")], [(0, "root")]]
    assert uas.counts(gold, predicted).tolist() == [[2, 3], [1, 1]]
    assert las.counts(gold, predicted).tolist() == [[1, 3], [1, 1]]
    assert (uas.value(uas.counts(gold, predicted)), las.value(las.counts(gold, predicted))) == (75, 50)


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
