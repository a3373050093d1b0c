"""Scores of predicted labels, each from counts that sum over sentences.

A metric has `counts`, int64[S, k], k figures of each of S sentences, and `score`, which makes their sum a percentage.
So a resample of the sentences is a sum of rows (`resample.py`), and a run keeps counts, not predictions.

    accuracy      right / all                                        POS: of words; XNLI: of pairs
    macro_f1      the mean of the tags' F1, over the UPOS tags that occur in gold or predicted (scikit-learn's default)
    seqeval_f1    the published POS "F1": micro F1 of seqeval 1.2.2 over runs of a tag, whose first character is taken
                  as a position mark: `SCONJ` for `CCONJ` is right, one wrong tag in a run loses the run
    f1            NER: micro F1 of whole entities, seqeval's strict IOB2; `precision` and `recall` beside it

Nothing divided by nothing is 0, as in seqeval.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int64, offsets_of
from derivlang.core.errors import DataError

Float64: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = Sequence[Sequence[str]]
Spans: TypeAlias = set[tuple[Any, ...]]

UPOS = tuple("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split())


@dataclass(frozen=True, slots=True)
class Metric:
    """count: labels of sentences, gold and predicted -> int64[S, k]. score: sums [..., k] -> [...], in percent."""

    name: str
    count: Callable[[Labels, Labels], Int64]
    score: Callable[[Int64 | Float64], Float64]

    def counts(self, gold: Labels, predicted: Labels) -> Int64:
        """int64[S, k]; DataError where the two do not have the same sentences of the same lengths."""
        _check(gold, predicted)
        return self.count(gold, predicted)

    def value(self, counts: Int64) -> float:
        """The score of all sentences together, in percent."""
        return float(self.score(counts.sum(axis=0)))


def right_counts(gold: Labels, predicted: Labels) -> Int64:
    """int64[S, 2]: right, all."""
    return np.array(
        [(sum(g == p for g, p in zip(a, b, strict=True)), len(a)) for a, b in zip(gold, predicted, strict=True)],
        np.int64,
    ).reshape(len(gold), 2)


def tag_counts(gold: Labels, predicted: Labels) -> Int64:
    """int64[S, 3 * 17]: for each of UPOS, right, predicted, gold. DataError for a tag that is none of them."""
    counts = np.zeros((len(gold), 3, len(UPOS)), np.int64)
    rows = np.repeat(np.arange(len(gold)), np.array([len(tags) for tags in gold], np.int64))
    wanted, found = _codes(gold), _codes(predicted)
    same = wanted == found
    for at, where, codes in ((0, rows[same], wanted[same]), (1, rows, found), (2, rows, wanted)):
        np.add.at(counts[:, at], (where, codes), 1)
    return counts.reshape(len(gold), 3 * len(UPOS))


def run_counts(gold: Labels, predicted: Labels) -> Int64:
    """int64[S, 3]: right, predicted, gold spans, as seqeval 1.2.2 finds them by default, in all sentences as one.

    A span counts for the sentence that it ends in: after one that ends in `X` seqeval may let a span begin too early.
    """
    from seqeval.metrics.sequence_labeling import get_entities

    ends = offsets_of(np.array([len(tags) + 1 for tags in gold], np.int64))[1:]  # seqeval puts an O after each sentence

    def spans(labels: Labels) -> Spans:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "seems not to be NE tag", for every word
            return set(get_entities([list(tags) for tags in labels]))

    def by_sentence(found: Spans) -> Int64:
        return np.bincount(np.searchsorted(ends, [end for _, _, end in found], "right"), minlength=len(gold))

    wanted, found = spans(gold), spans(predicted)
    return np.stack([by_sentence(s) for s in (wanted & found, found, wanted)], axis=1).astype(np.int64)


def entity_counts(gold: Labels, predicted: Labels) -> Int64:
    """int64[S, 3]: right, predicted, gold entities by seqeval's strict IOB2: from a B- over the I- of its type."""
    rows = [(_entities(tuple(a)), _entities(tuple(b))) for a, b in zip(gold, predicted, strict=True)]
    return np.array([(len(a & b), len(b), len(a)) for a, b in rows], np.int64).reshape(len(gold), 3)


@lru_cache(maxsize=1 << 16)  # few sequences of tags are new, and seqeval takes 0.1 ms for each
def _entities(tags: tuple[str, ...]) -> frozenset[tuple[Any, ...]]:
    from seqeval.scheme import IOB2, Tokens

    return frozenset(entity.to_tuple() for entity in Tokens(list(tags), IOB2).entities)


def share(totals: Int64 | Float64) -> Float64:
    """[..., 2], right and all -> percent."""
    return _ratio(totals[..., 0], totals[..., 1])


def f1(totals: Int64 | Float64) -> Float64:
    """[..., 3], right, predicted, gold -> F1 in percent."""
    return _ratio(2 * totals[..., 0], totals[..., 1] + totals[..., 2])


def macro_f1(totals: Int64 | Float64) -> Float64:
    """[..., 3 * T], by tag right, predicted, gold -> the mean F1 of the tags that are predicted or gold, in percent."""
    right, found, wanted = np.moveaxis(totals.reshape(*totals.shape[:-1], 3, totals.shape[-1] // 3), -2, 0)
    there = found + wanted > 0
    return _ratio(_ratio(2 * right, found + wanted).sum(axis=-1), 100 * there.sum(axis=-1))


METRICS: dict[str, tuple[Metric, ...]] = {
    "pos": (
        Metric("accuracy", right_counts, share),
        Metric("macro_f1", tag_counts, macro_f1),
        Metric("seqeval_f1", run_counts, f1),
    ),
    "ner": (
        Metric("f1", entity_counts, f1),
        Metric("precision", entity_counts, lambda totals: _ratio(totals[..., 0], totals[..., 1])),
        Metric("recall", entity_counts, lambda totals: _ratio(totals[..., 0], totals[..., 2])),
    ),
    "xnli": (Metric("accuracy", right_counts, share),),  # a pair is a sentence with one label
}


def _ratio(part: Int64 | Float64, whole: Int64 | Float64) -> Float64:
    """In percent; 0 where the whole is."""
    return np.asarray(100.0 * part / np.maximum(whole, 1), np.float64)


def _codes(labels: Labels) -> Int64:
    try:
        return np.fromiter((_NUMBERS[tag] for tags in labels for tag in tags), np.int64)
    except KeyError as error:
        raise DataError(
            f"{error.args[0]!r} is not one of the {len(UPOS)} universal POS tags",
            fix="evaluate POS on a treebank of Universal Dependencies",
            id="unknown-tag",
        ) from None


def _check(gold: Labels, predicted: Labels) -> None:
    if len(gold) != len(predicted):
        raise DataError(f"{len(predicted):,} predicted sentences for {len(gold):,}", id="lengths")
    for number, (a, b) in enumerate(zip(gold, predicted, strict=True), 1):
        if len(a) != len(b):
            raise DataError(f"sentence {number} has {len(a)} words, but {len(b)} predicted labels", id="lengths")


_NUMBERS = {tag: number for number, tag in enumerate(UPOS)}
