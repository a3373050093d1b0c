"""Scores and their intervals, held to seqeval, to plain references, and to what resampling means."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from derivlang.core.errors import DataError
from derivlang.evaluation.metrics import UPOS, Metric
from derivlang.evaluation.resample import bootstrap, by_document, difference, replicates, summary
from derivlang.evaluation.tasks.registry import find_task, tuned_tasks

seqeval = pytest.importorskip("seqeval.metrics")

METRIC = {(task, metric.name): metric for task in ("pos", "ner", "xnli") for metric in find_task(task).metrics}
EVERY = [metric for task in tuned_tasks().values() for metric in task.metrics]
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
        both = metric.score(np.stack([counts.sum(axis=0), counts[0]]))
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
    uas, las = (metric for metric in find_task("dep").metrics)
    gold = [[(2, "nsubj"), (0, "root"), (2, "obj")], [(0, "root")]]
    predicted = [[(2, "obj"), (0, "root"), (1, "obj")], [(0, "root")]]
    assert uas.counts(gold, predicted).tolist() == [[2, 3], [1, 1]]
    assert las.counts(gold, predicted).tolist() == [[1, 3], [1, 1]]
    assert (uas.value(uas.counts(gold, predicted)), las.value(las.counts(gold, predicted))) == (75, 50)


def test_answers_are_scored_by_the_best_gold_answer() -> None:
    found, em = (metric for metric in find_task("qa").metrics)
    gold = [[(1, 2), (1, 2, 3)], [(4,)], [(5, 5, 6)], [()], [()], []]
    predicted = [[(1, 2, 3)] * 2, [(7,)], [(5, 6, 6)], [()], [(1,)], []]
    assert em.counts(gold, predicted).tolist() == [[1, 1], [0, 1], [0, 1], [1, 1], [0, 1], [0, 0]]
    counts = found.counts(gold, predicted)
    # two bags 5 5 6 and 5 6 6 have 5 6 in common: 2 * 2 / (3 + 3)
    assert counts[:, 0].tolist() == [1_000_000, 0, 666_667, 1_000_000, 0, 0]
    assert counts[:, 1].tolist() == [1_000_000] * 5 + [0]
    assert found.value(counts) == pytest.approx(100 * (2 + 2 / 3) / 5, abs=1e-4)


# intervals


def accuracies(seed: int, n: int, rate: float) -> np.ndarray:
    """int64[n, 2]: sentences of 1 to 20 words, right at a rate."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 21, n)
    return np.stack([rng.binomial(sizes, rate), sizes], axis=1)


SHARE = METRIC["pos", "accuracy"].score


def test_an_interval_holds_the_score_and_has_the_width_that_theory_gives() -> None:
    counts = accuracies(1, 2000, 0.8)
    low, high = bootstrap([counts], SHARE)
    found = METRIC["pos", "accuracy"].value(counts)
    right, sizes = counts.T
    deviation = 100 * np.std(right - right.sum() / sizes.sum() * sizes) / sizes.mean() / np.sqrt(len(counts))
    assert low < found < high
    assert high - low == pytest.approx(2 * 1.96 * deviation, rel=0.12)


def test_an_interval_is_what_resampling_one_by_one_gives() -> None:
    counts = [accuracies(seed, 50, 0.7) for seed in (1, 2)]
    rng = np.random.default_rng(0)
    values = []
    for _ in range(4000):
        chosen = rng.integers(0, 50, 50)
        values.append(np.mean([SHARE(one[chosen].sum(axis=0)) for one in counts]))
    assert bootstrap(counts, SHARE, samples=4000) == pytest.approx(tuple(np.percentile(values, [2.5, 97.5])), abs=0.5)


def test_intervals_are_a_function_of_counts_and_seed() -> None:
    counts = [accuracies(1, 3000, 0.7)]
    counts[0].flags.writeable = False
    assert bootstrap(counts, SHARE) == bootstrap(counts, SHARE)
    assert bootstrap(counts, SHARE) != bootstrap(counts, SHARE, seed=2)
    assert bootstrap(counts * 3, SHARE) == pytest.approx(bootstrap(counts, SHARE))


def test_sentences_that_are_paired_make_differences_sure() -> None:
    a = accuracies(1, 1000, 0.8)
    b = a.copy()
    b[::50, 0] = np.maximum(b[::50, 0] - 1, 0)
    found = difference([a], [b], SHARE)
    assert 0 < found["low"] < found["mean"] < found["high"]
    apart = [bootstrap([side], SHARE) for side in (a, b)]
    assert apart[0][0] < apart[1][1]
    same = difference([a], [a], SHARE)
    assert (same["mean"], same["low"], same["high"]) == (0, 0, 0)
    turned = difference([b], [a], SHARE)
    assert turned["mean"] == -found["mean"]
    assert (turned["low"], turned["high"]) == pytest.approx((-found["high"], -found["low"]))


def test_documents_are_drawn_whole() -> None:
    """Ten copies of a sentence in one document say no more than one."""
    counts = accuracies(1, 100, 0.7)
    tenfold, documents = np.repeat(counts, 10, axis=0), np.repeat(np.arange(100), 10)
    whole = by_document(tenfold, documents)
    assert (whole == 10 * counts).all()
    assert replicates([whole], SHARE) == pytest.approx(replicates([counts], SHARE))
    assert replicates([tenfold], SHARE).std() < 0.4 * replicates([whole], SHARE).std()
    assert by_document(counts, None) is counts
    scattered = np.array([1, 0, 1, 2])
    assert by_document(counts[:4], scattered).tolist() == [
        counts[1].tolist(),
        (counts[0] + counts[2]).tolist(),
        counts[3].tolist(),
    ]


def test_summaries() -> None:
    sup, zs = ([accuracies(seed, 200, rate) for seed in seeds] for seeds, rate in (((1, 2, 3), 0.9), ((4, 5, 6), 0.6)))
    one, other, delta = summary(sup, SHARE), summary(zs, SHARE), difference(sup, zs, SHARE)
    for found in (one, other, delta):
        assert set(found) == {"mean", "deviation", "low", "high", "seeds"}
        assert found["mean"] == pytest.approx(np.mean(found["seeds"]))
        assert found["deviation"] == pytest.approx(np.std(found["seeds"], ddof=1))
        assert found["low"] < found["mean"] < found["high"]
    assert delta["seeds"] == pytest.approx(np.subtract(one["seeds"], other["seeds"]))
    assert summary(sup[:1], SHARE)["deviation"] is None


def test_sentences_that_cannot_be_paired() -> None:
    with pytest.raises(DataError, match="scores of 5, 6 documents"):
        difference([accuracies(1, 5, 0.5)], [accuracies(1, 6, 0.5)], SHARE)
    with pytest.raises(DataError, match="counts of 5 rows, but documents of 6"):
        by_document(accuracies(1, 5, 0.5), np.arange(6))
    for counts in ([], [np.zeros((0, 2), np.int64)]):
        with pytest.raises(DataError, match="cannot be resampled"):
            bootstrap(counts, SHARE)


def test_resamples_are_scored_together() -> None:
    """A call for each seed, not for each of its 1,000 resamples."""
    calls = []
    bootstrap([accuracies(seed, 1000, 0.5) for seed in range(3)], lambda totals: calls.append(0) or SHARE(totals))
    assert len(calls) == 3
