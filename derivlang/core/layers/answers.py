"""Answers: character spans of SQuAD-style sets, as runs of words.

A question whose answers are empty or blank has none, wherever they are said to start, as in SQuAD's script. An answer
is widened to whole words when it is read, and the column as given is kept. If its words are still adjacent in the
derived order, they are the new answer. If they are separated, `split` keeps the longest run (of equal ones the first)
and `drop` removes the answer; `atomic` prevents this, as the order then treats the answer as one word. In every
output row:

    context[start:start + len(text)] == text

Under `atomic`, the groups of a context come from the answers to all its questions, which are successive rows with the
same words. A single row does not know the answers of the others, so the groups are stored (column `context_groups`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int64, expand_ranges, lengths_of, offsets_of, owners
from derivlang.core.arrow import filled, list_array, scalar, string_array, to_arrow, to_numpy
from derivlang.core.bare_batch import BareBatch
from derivlang.core.errors import LayerError
from derivlang.core.layers.base import Labels, Layer, Realignment
from derivlang.core.order import runs_of_ranges
from derivlang.core.policies import Policies
from derivlang.core.schema import Field, answers_side

ANSWERS = pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(pa.int32()))])
_FORM = 'write {"text": ["…"], "answer_start": [0]}, lists of equal length; another name keeps a column as it is'


@dataclass(frozen=True, slots=True, eq=False)
class Answers(Layer):
    """A answers of R rows.

    name: the column. offsets: int64[R + 1], the answers of each row; dropped ones are not included. start, end:
    int64[A], the words start … end - 1 of each answer, counted in the batch. side: the side that they lie in.
    given: the column as it was read, before answers were widened; None once an order has moved them.
    """

    changes = "always"  # they may have been widened when they were read
    losses: ClassVar[Mapping[str, str]] = {
        "{}-cut": "answer[|s] of {} [was|were] cut to [its|their] longest run of words, since the reordering splits "
        "[it|them] (--answers atomic keeps [it|them] whole, drop leaves [it|them] out)",
        "{}-dropped": "answer[|s] of {} [was|were] left out, since the reordering splits [it|them] "
        "(--answers atomic keeps [it|them] whole)",
        "{}-deleted": "answer[|s] of {} lost all [its|their] words and [was|were] left out",
        "{}-shortened": "answer[|s] of {} lost some of [its|their] words",
        "{}-widened": "answer[|s] of {} [was|were] widened to whole words",
        "{}-fields-dropped": "row[|s] of {} [has|have] fields beside text and answer_start, which were left out",
    }

    name: str
    offsets: Int64
    start: Int64
    end: Int64
    side: int
    given: pa.Array | None = None

    @classmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the answers of a column. Raises as `typed_answers`, `of`, and `check_texts` for a labelled table."""
        column, side = typed_answers(field.column, labels), answers_side(labels.batch.sides)
        if not labels.stored:
            check_texts(column, labels, side)
            if more := _rows_with_more(labels[field.column]):
                labels.counts[f"{field.column}-fields-dropped"] += more
        return cls.of(field.column, column, labels.batch, side, labels.counts, labels.row)

    @classmethod
    def of(
        cls,
        name: str,
        column: pa.Array,
        batch: BareBatch,
        side: int,
        counts: Counter[str],
        where: Callable[[int], str | None] = lambda row: None,
    ) -> Self:
        """Return the answers of a column ANSWERS[R] in the texts of a batch; `answer_start` counts code points.

        side: the side whose texts they lie in. Blank answers are none. An answer that does not begin and end at word
        edges is widened to whole words and counted as `<name>-widened`. where: returns the place of a row. Raises
        LayerError for an answer that covers no word.

            "in New York ." with an answer "ew Yor" at 4  ->  words 1 and 2: start 1, end 3
        """
        texts, begins = column.flatten()
        told = to_numpy(pc.not_equal(pc.utf8_trim_whitespace(texts.flatten()), scalar("")))  # others are blank
        # Answers 0, 1, 2 of rows at offsets [0, 2, 3], of which 1 is blank: sums [0, 1, 1, 2], new offsets [0, 1, 2].
        offsets = offsets_of(told)[offsets_of(_lengths(begins))]
        begin = to_numpy(begins.flatten()).astype(np.int64)[told]
        stop = begin + to_numpy(pc.utf8_length(texts.flatten()))[told]
        unit = batch.records[owners(offsets), side]
        word_start = batch.word_starts()
        word_end = word_start + batch.word_lengths()
        # Unit number in the upper 32 bits, code points in the lower ones: ascending over all units, so that one
        # search finds the words of all answers.
        scale = owners(batch.unit_words).astype(np.int64) << 32
        # first: the first word that ends after `begin`. last: behind the last word that begins before `stop`.
        first = np.searchsorted(scale + word_end, (unit.astype(np.int64) << 32) + begin, "right")
        last = np.searchsorted(scale + word_start, (unit.astype(np.int64) << 32) + stop, "left")
        empty = (first >= batch.unit_words[unit + 1]) | (last <= first)
        if empty.any():
            row = int(np.searchsorted(offsets, np.flatnonzero(empty)[0], "right")) - 1
            raise LayerError(f"an answer of row {row} covers no word", where=where(row), id="answer-words")
        covered = (word_start[first] == begin) & (word_end[last - 1] == stop)
        if not covered.all():
            counts[f"{name}-widened"] += int((~covered).sum())
        return cls(name, offsets, first, last, side, column)

    def realign(self, move: Realignment) -> Answers:
        """Return the answers in the derived order, under the policy `answers`, and count what they lose."""
        if move.order.n_deleted:
            stay = offsets_of(move.positions >= 0)  # int64[N + 1]: how many words stay before each
            left, length = stay[self.end] - stay[self.start], self.end - self.start
            if (deleted := left == 0).any():
                move.counts[f"{self.name}-deleted"] += int(deleted.sum())
            if (shortened := (left > 0) & (left < length)).any():
                move.counts[f"{self.name}-shortened"] += int(shortened.sum())
        answer, start, end, whole = runs_of_ranges(move.order, self.start, self.end, move.positions)
        broken = len(np.unique(answer[~whole]))
        if broken:
            how = "dropped" if move.policies.answers == "drop" else "cut"
            move.counts[f"{self.name}-{how}"] += broken
        if move.policies.answers == "drop":
            answer, start, end = answer[whole], start[whole], end[whole]
        kept_before = np.append(0, np.cumsum(move.order.index >= 0))  # inserted words do not count as length
        by = np.lexsort((start, kept_before[start] - kept_before[end], answer))  # longest run first, then the earliest
        answer, start, end = answer[by], start[by], end[by]
        best = np.ones(len(answer), bool)
        best[1:] = answer[1:] != answer[:-1]
        answer, start, end = answer[best], start[best], end[best]
        kept = np.zeros(len(self.start) + 1, np.int64)
        # Answers 0, 1, 2 at offsets [0, 2, 3]; 0 and 2 are left: kept [0, 1, 0, 1], sums [0, 1, 1, 2], new
        # offsets [0, 1, 2].
        kept[answer + 1] = 1
        return Answers(self.name, np.cumsum(kept)[self.offsets], start, end, self.side)

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return the column of ANSWERS: as given, or the texts of the runs and their starts in code points."""
        if self.given is not None:
            return {self.name: self.given}
        texts = batch.texts().to_pylist()
        word_start = batch.word_starts()
        begin = word_start[self.start] if len(self.start) else self.start
        stop = word_start[self.end - 1] + batch.word_lengths()[self.end - 1] if len(self.end) else self.end
        unit = batch.records[owners(self.offsets), self.side]
        answer_texts = [texts[u][b:s] for u, b, s in zip(unit, begin, stop, strict=True)]
        lists = [
            list_array(self.offsets, string_array(answer_texts)),
            list_array(self.offsets, to_arrow(np.asarray(begin, np.int32))),
        ]
        return {self.name: pa.StructArray.from_arrays(lists, fields=list(ANSWERS))}

    def group(self, batch: BareBatch, policies: Policies, inside: Bool) -> None:
        """Set `inside` under `atomic`: the groups of the batch if they are settled, else the groups of the answers.

        Overlapping answers become one group, and so do those to several questions of a context.
        """
        if policies.answers != "atomic":
            return
        if batch.grouped is not None:
            inside[:-1] |= batch.grouped
            return
        own = np.zeros(batch.n_words, bool)
        own[expand_ranges(self.start + 1, self.end - self.start - 1)] = True
        # Units with the same words in successive rows are one context. A word gets one place in all units of its
        # context: two units of "a b c", then one of "d e"  ->  places 0 1 2, 0 1 2, 3 4.
        units = batch.records[:, self.side]
        starts, sizes, keys = batch.unit_words[units], lengths_of(batch.unit_words)[units], batch.unit_keys[units]
        new = np.ones(len(units), bool)
        new[1:] = (keys[1:] != keys[:-1]) | (sizes[1:] != sizes[:-1])
        first = np.cumsum(np.where(new, sizes, 0)) - sizes
        words, place = expand_ranges(starts, sizes), expand_ranges(first, sizes)
        any_of = np.zeros(int(sizes[new].sum()), bool)
        any_of[place[own[words]]] = True
        inside[words] |= any_of[place]


def typed_answers(name: str, labels: Labels) -> pa.Array:
    """Return a column as ANSWERS[R]. A null, in place of both or of one row's answers, stands for no answers.

    Raise LayerError answer-types for another type, for a null inside a list, and for lists of different lengths.
    """
    column = labels.typed(name, ANSWERS, fix=_FORM, id="answer-types")
    texts, begins = column.flatten()
    unlike = _lengths(texts) != _lengths(begins)
    if unlike.any():
        row = int(np.flatnonzero(unlike)[0])
        mismatch = f"{_lengths(texts)[row]} texts but {_lengths(begins)[row]} starts in {name}"
        raise LayerError(mismatch, where=labels.row(row), fix=_FORM, id="answer-types")
    for values in (texts, begins):
        flat = values.flatten()
        if flat.null_count:
            at = int(np.flatnonzero(to_numpy(flat.is_null()))[0])
            row = int(owners(offsets_of(_lengths(values)))[at])
            raise LayerError(f"{name} holds null in a list", where=labels.row(row), fix=_FORM, id="answer-types")
    return column


def check_texts(column: pa.Array, labels: Labels, side: int) -> None:
    """Raise LayerError answer-offset for a text that is not at its offset, unless it is blank. column: ANSWERS[R]."""
    contexts = labels.batch.texts().to_pylist()
    texts, begins = column.flatten()
    row = owners(offsets_of(_lengths(begins)))
    unit = labels.batch.records[row, side].tolist()
    for at, (text, start) in enumerate(zip(texts.flatten().to_pylist(), begins.flatten().to_pylist(), strict=True)):
        context = contexts[unit[at]]
        actual = context[start : start + len(text)] if start >= 0 else ""
        if actual != text and text and not text.isspace():
            raise LayerError(
                f"the answer {text[:50]!r} is not at offset {start} of its context, which has {actual[:50]!r} there",
                where=labels.row(int(row[at])),
                fix="count answer_start in code points from 0, or leave out the question",
                id="answer-offset",
            )


def _rows_with_more(column: pa.Array) -> int:
    """Return the number of rows that have a field that ANSWERS lacks."""
    if not pa.types.is_struct(column.type):
        return 0
    fields = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
    more = [values.is_valid() for name, values in fields.items() if ANSWERS.get_field_index(name) < 0]
    return int(np.logical_or.reduce([to_numpy(valid) for valid in more]).sum()) if more else 0


def _lengths(lists: pa.Array) -> Int64:
    """Return int64[R]: the number of values of each row, 0 for null."""
    return to_numpy(filled(pc.list_value_length(lists), 0)).astype(np.int64)
