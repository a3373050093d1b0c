"""Answers: character spans of SQuAD-style sets, kept as runs of words.

An answer is widened to whole words when it is read (and the original kept). Under an order its words are
followed: still together, they are the new answer; else `split` keeps the longest run (the first of equals),
`drop` takes the answer away, `atomic` kept them together beforehand. Always:

    context[start:start + len(text)] == text

The groups of `atomic` are those of the answers to all questions of a context: of rows that follow each other, with the
same words. They are stored (column `context_groups`), as one row does not tell them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int64, expand_ranges, lengths_of, owners
from derivlang.core.arrow import list_array, to_arrow, to_numpy
from derivlang.core.bare_batch import BareBatch
from derivlang.core.errors import LayerError
from derivlang.core.layers.base import Layer, Move
from derivlang.core.layers.labels import Labels
from derivlang.core.order import contiguous_runs
from derivlang.core.policies import Policies
from derivlang.core.schema import Field, answers_side

ANSWERS = pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(pa.int32()))])


@dataclass(frozen=True, slots=True, eq=False)
class Answers(Layer):
    """name: the column. offsets: int64[R + 1] into the A answers. side: the side that they lie in.

    start, end: int64[A], word range in the batch. An answer that was dropped is not there.
    given: the column as it was read, before answers were widened; None once they have moved.
    """

    losses: ClassVar[Mapping[str, str]] = {
        "{}-cut": "answer[|s] of {} [was|were] cut to [its|their] longest run of words, since the reordering splits "
        "[it|them] (--answers atomic keeps [it|them] whole, drop leaves [it|them] out)",
        "{}-dropped": "answer[|s] of {} [was|were] left out, since the reordering splits [it|them] "
        "(--answers atomic keeps [it|them] whole)",
        "{}-widened": "answer[|s] of {} [was|were] widened to whole words",
    }

    name: str
    offsets: Int64
    start: Int64
    end: Int64
    side: int
    given: pa.Array | None = None

    @classmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        side = answers_side(labels.batch.sides)
        return cls.of(field.column, labels[field.column], labels.batch, side, labels.counts)

    @classmethod
    def of(cls, name: str, column: pa.Array, batch: BareBatch, side: int, counts: Counter[str]) -> Self:
        """Return the answers of structs of `text` and `answer_start` (code points) in the texts of a batch.

        An answer that does not begin and end at word edges is widened, and counted as `answers-widened`.
        """
        column = _typed(column)
        texts, begins = column.field("text"), column.field("answer_start")
        lengths = to_numpy(pc.list_value_length(begins).fill_null(0))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        begin = to_numpy(begins.flatten()).astype(np.int64)
        stop = begin + to_numpy(pc.utf8_length(texts.flatten()))
        unit = batch.records[owners(offsets), side]
        word_start = batch.word_starts()
        word_end = word_start + batch.word_lengths()
        # One ascending scale for all units: unit number in the high part, code points in the low one.
        scale = owners(batch.unit_words).astype(np.int64) << 32
        first = np.searchsorted(scale + word_end, (unit.astype(np.int64) << 32) + begin, "right")
        last = np.searchsorted(scale + word_start, (unit.astype(np.int64) << 32) + stop, "left")
        last = np.maximum(last, first + (first < batch.unit_words[unit + 1]))
        empty = first >= batch.unit_words[unit + 1]
        if empty.any():
            row = int(np.searchsorted(offsets, np.flatnonzero(empty)[0], "right")) - 1
            raise LayerError(f"an answer of row {row} covers no word", id="answer-words")
        covered = (word_start[first] == begin) & (word_end[last - 1] == stop)
        if not covered.all():
            counts[f"{name}-widened"] += int((~covered).sum())
        return cls(name, offsets, first, last, side, column)

    def realign(self, move: Move) -> Answers:
        sizes = self.end - self.start
        owner = np.repeat(np.arange(len(sizes)), sizes)
        members = expand_ranges(self.start, sizes)
        answer, start, end, whole = contiguous_runs(move.order, owner, members, move.positions)
        broken = len(np.unique(answer[~whole]))
        if broken:
            how = "dropped" if move.policies.answers == "drop" else "cut"
            move.counts[f"{self.name}-{how}"] += broken
        if move.policies.answers == "drop":
            answer, start, end = answer[whole], start[whole], end[whole]
        kept_before = np.append(0, np.cumsum(move.order.index >= 0))  # inserted words make no run longer
        by = np.lexsort((start, kept_before[start] - kept_before[end], answer))  # longest run, the first of equals
        answer, start, end = answer[by], start[by], end[by]
        best = np.ones(len(answer), bool)
        best[1:] = answer[1:] != answer[:-1]
        answer, start, end = answer[best], start[best], end[best]
        kept = np.zeros(len(sizes) + 1, np.int64)
        kept[answer + 1] = 1
        return Answers(self.name, np.cumsum(kept)[self.offsets], start, end, self.side)

    def may_change(self, *, has_order: bool, exact: bool) -> bool:
        return True  # they may have been widened when they were read

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        if self.given is not None:
            return {self.name: self.given}
        texts = batch.texts().to_pylist()
        word_start = batch.word_starts()
        begin = word_start[self.start] if len(self.start) else self.start
        stop = word_start[self.end - 1] + batch.word_lengths()[self.end - 1] if len(self.end) else self.end
        unit = batch.records[owners(self.offsets), self.side]
        found = [texts[u][b:s] for u, b, s in zip(unit, begin, stop, strict=True)]
        lists = [
            list_array(self.offsets, pa.array(found, pa.string())),
            list_array(self.offsets, to_arrow(np.asarray(begin, np.int32))),
        ]
        return {self.name: pa.StructArray.from_arrays(lists, fields=list(ANSWERS))}

    def group(self, batch: BareBatch, policies: Policies, inside: Bool) -> None:
        if policies.answers != "atomic":
            return
        if batch.grouped is not None:
            inside[:-1] |= batch.grouped
            return
        own = np.zeros(batch.n_words, bool)
        own[expand_ranges(self.start + 1, self.end - self.start - 1)] = True  # overlapping answers become one group
        # The same place in all units of a context has one number.
        units = batch.records[:, self.side]
        starts, sizes, keys = batch.unit_words[units], lengths_of(batch.unit_words)[units], batch.unit_keys[units]
        new = np.ones(len(units), bool)
        new[1:] = (keys[1:] != keys[:-1]) | (sizes[1:] != sizes[:-1])
        first = np.cumsum(np.where(new, sizes, 0)) - sizes
        words, place = expand_ranges(starts, sizes), expand_ranges(first, sizes)
        any_of = np.zeros(int(sizes[new].sum()), bool)
        any_of[place[own[words]]] = True
        inside[words] |= any_of[place]


def _typed(column: pa.Array) -> pa.Array:
    """The column with the types of `ANSWERS`: other sets have other integers, or large strings."""
    try:
        lists = [column.field(field.name).cast(field.type) for field in ANSWERS]
    except pa.ArrowInvalid as error:
        raise LayerError(f"answers are no texts and places: {error}", id="answer-types") from error
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(lists, fields=list(ANSWERS), mask=mask)
