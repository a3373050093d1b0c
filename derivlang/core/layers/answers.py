"""Answers: character spans of SQuAD-style sets, kept as runs of words.

An answer is widened to whole words when it is read (and the original kept). Under an order its words are
followed: still together, they are the new answer; else `split` keeps the longest run (the first of equals),
`drop` takes the answer away, `atomic` kept them together beforehand. Always:

    context[start:start + len(text)] == text
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int64, owners, spread
from derivlang.core.arrow import list_array, to_arrow, to_numpy
from derivlang.core.batch import Batch, Move, Policies
from derivlang.core.errors import LayerError
from derivlang.core.order import contiguous_runs

ANSWERS = pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(pa.int32()))])


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """name: the column. offsets: int64[R + 1] into the A answers. side: the side that they lie in.

    start, end: int64[A], word range in the batch. An answer that was dropped is not there.
    given: the column as it was read, before answers were widened; None once they have moved.
    """

    name: str
    offsets: Int64
    start: Int64
    end: Int64
    side: int
    given: pa.Array | None = None

    @classmethod
    def read(cls, name: str, column: pa.Array, batch: Batch, side: int, counts: Counter[str]) -> Answers:
        """From structs of `text` and `answer_start` (code points) in the texts of `batch`, gaps included.

        An answer that does not begin and end at word edges is widened, and counted as `answers-widened`.
        """
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
        members = spread(self.start, sizes)
        answer, start, end, whole = contiguous_runs(move.order, owner, members, move.places)
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

    def columns(self, batch: Batch) -> dict[str, pa.Array]:
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

    def group(self, batch: Batch, policies: Policies, inside: Bool) -> None:
        if policies.answers == "atomic":  # overlapping answers become one group
            inside[spread(self.start + 1, self.end - self.start - 1)] = True
