"""Scores of predicted labels, computed from counts that add up over sentences.

A metric has `counts`, int64[S, k], with k numbers for each of S sentences, and a formula (`formulas.py`), which makes a
percentage of their sum. So a run keeps counts, from which every interval is computed.

    accuracy      right / all                                        POS: of words; XNLI, PAWS-X: of pairs
    uas, las      right / all, of words: with the right head, and with the right head and relation
    macro_f1      the mean of the tags' F1, over the UPOS tags that occur in gold or predicted (scikit-learn's default)
    seqeval_f1    the published POS "F1": micro F1 of seqeval 1.2.2 over runs of a tag. seqeval takes the first
                  character as a position mark, so `SCONJ` for `CCONJ` is right, and one wrong tag loses a whole run
    em, f1        QA: answers that are right as a whole; mean F1 of their bags of words, kept in millionths
    f1            NER: micro F1 of whole entities in seqeval's strict IOB2; also `precision` and `recall`
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.errors import DataError
from derivlang.evaluation.columns import Column
from derivlang.parsing.base import UPOS

Labels: TypeAlias = Sequence[Sequence[Any]]
Spans: TypeAlias = set[tuple[str, int, int, int]]  # type, begin, end, and the sentence in which it ends

_MILLION = 1_000_000
_DROPPED = {ord(mark): None for mark in string.punctuation}
_ARTICLES = re.compile(r"\b(a|an|the)\b")


@dataclass(frozen=True, kw_only=True)
class Metric(Column):
    """A score of predicted labels. count: gold and predicted labels of sentences -> int64[S, k], for the formula."""

    count: Callable[[Labels, Labels], Int64]

    def counts(self, gold: Labels, predicted: Labels) -> Int64:
        """Return int64[S, k]. Raise DataError if the numbers of sentences or their lengths differ."""
        _check(gold, predicted)
        return self.count(gold, predicted)


def right_counts(gold: Labels, predicted: Labels) -> Int64:
    """Return int64[S, 2]: right, all."""
    return np.array(
        [(sum(g == p for g, p in zip(a, b, strict=True)), len(a)) for a, b in zip(gold, predicted, strict=True)],
        np.int64,
    ).reshape(len(gold), 2)


def head_counts(gold: Labels, predicted: Labels) -> Int64:
    """Return int64[S, 2]: words with the right head, all. A label is (head, relation)."""
    return right_counts(*([[head for head, _ in words] for words in labels] for labels in (gold, predicted)))


def exact_counts(gold: Labels, predicted: Labels) -> Int64:
    """Return int64[S, 2]: 1 if the answer is one of the gold answers, and 1; 0 and 0 without a gold answer."""
    return np.array(
        [(int(b[0] in a), 1) if a else (0, 0) for a, b in zip(gold, predicted, strict=True)], np.int64
    ).reshape(-1, 2)


def overlap_counts(gold: Labels, predicted: Labels) -> Int64:
    """Return int64[S, 2]: the best F1 of the answer's bag of words with a gold answer's, and 1, in millionths."""
    best = [max((_overlap(one, b[0]) for one in a), default=-1.0) for a, b in zip(gold, predicted, strict=True)]
    return np.array([(round(_MILLION * f), _MILLION) if f >= 0 else (0, 0) for f in best], np.int64).reshape(-1, 2)


def squad_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in the normal form of SQuAD's script."""
    return tuple(_ARTICLES.sub(" ", text.lower().translate(_DROPPED)).split())


def _overlap(gold: Sequence[Any], predicted: Sequence[Any]) -> float:
    """Return the F1 of two bags of words; of an empty one whether both are empty, as SQuAD 2.0's script does."""
    if not gold or not predicted:
        return float(gold == predicted)
    return 2 * (Counter(gold) & Counter(predicted)).total() / (len(gold) + len(predicted))


def tag_counts(gold: Labels, predicted: Labels) -> Int64:
    """Return int64[S, 3 * 17]: for each of UPOS, right, predicted, gold. Raise DataError for any other tag."""
    counts = np.zeros((len(gold), 3, len(UPOS)), np.int64)
    rows = np.repeat(np.arange(len(gold)), np.array([len(tags) for tags in gold], np.int64))
    wanted, predicted_codes = _codes(gold), _codes(predicted)
    same = wanted == predicted_codes
    for at, where, codes in ((0, rows[same], wanted[same]), (1, rows, predicted_codes), (2, rows, wanted)):
        np.add.at(counts[:, at], (where, codes), 1)
    return counts.reshape(len(gold), 3 * len(UPOS))


def run_counts(gold: Labels, predicted: Labels) -> Int64:
    """Return int64[S, 3]: right, predicted, gold spans as seqeval 1.2.2 finds them by default in all joined sentences.

    The begin and the end of a span depend on two neighbouring labels. A span counts for the sentence in which it ends,
    as it may begin before: after a sentence that ends in `X`.
    """
    return _by_sentence(_runs(gold), _runs(predicted), len(gold))


def _runs(labels: Labels) -> Spans:
    """Return the spans of seqeval's default mode. An O follows every sentence."""
    spans, begin, last = set(), 0, 0
    before = "O", "_"
    tags = ((number, tag) for number, some in enumerate((*labels, ())) for tag in (*some, "O"))
    for at, (number, tag) in enumerate(tags):
        label = tag[0], tag[1:].split("-", maxsplit=1)[-1] or "_"
        if ends_span(before, label):
            spans.add((before[1], begin, at, last))
        if begins_span(before, label):
            begin = at
        before, last = label, number
    return spans


def begins_span(before: tuple[str, str], label: tuple[str, str]) -> bool:
    """Return whether a span of seqeval begins at a label. Both are (first letter, kind).

    B and S begin one; so do E and I after E, S or O, and any letter but O and `.` where the kind changes.
    """
    (old, old_kind), (new, kind) = before, label
    return new in "BS" or (new in "EI" and old in "ESO") or (new not in "O." and old_kind != kind)


def ends_span(before: tuple[str, str], label: tuple[str, str]) -> bool:
    """Return whether a span of seqeval ends before a label, which follows `before`. Both are (first letter, kind).

    E and S end one; so do B and I before B, S or O, and any letter but O and `.` where the kind changes.
    """
    (old, old_kind), (new, kind) = before, label
    return old in "ES" or (old in "BI" and new in "BSO") or (old not in "O." and old_kind != kind)


def entity_counts(gold: Labels, predicted: Labels) -> Int64:
    """Return int64[S, 3]: right, predicted, gold entities in seqeval's strict IOB2: a B- and the I- of its type."""
    return _by_sentence(_entities(gold), _entities(predicted), len(gold))


def _entities(labels: Labels) -> Spans:
    """Return the entities of strict IOB2."""
    spans: Spans = set()
    for number, tags in enumerate(labels):
        kind = begin = None
        for at, tag in enumerate((*tags, "O")):
            if begin is not None and (tag[:2] not in ("I", "I-") or tag[2:] != kind):
                spans.add((str(kind), begin, at, number))
                begin = None
            if tag[:2] in ("B", "B-"):
                kind, begin = tag[2:], at
    return spans


def _by_sentence(gold: Spans, predicted: Spans, n: int) -> Int64:
    """Return int64[n, 3]: right, predicted, gold spans of each of n sentences."""
    counts = np.zeros((n, 3), np.int64)
    for column, spans in enumerate((gold & predicted, predicted, gold)):
        np.add.at(counts[:, column], [span[-1] for span in spans], 1)
    return counts


def _codes(labels: Labels) -> Int64:
    try:
        return np.fromiter((_NUMBERS[tag] for tags in labels for tag in tags), np.int64)
    except KeyError as error:
        raise DataError(
            f"{error.args[0]!r} is not one of the universal POS tags",
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
