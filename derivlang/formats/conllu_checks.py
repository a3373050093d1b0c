"""What a CoNLL-U sentence must fulfil: ids in order, and heads that make a tree with one root.

ids 1 2-3 2 3 3.1 4  are in order;  heads [2, 0, 2] are a tree, [2, 1, 0] hold a cycle
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, owners, places
from derivlang.core.arrow import to_arrow, to_numpy
from derivlang.core.errors import DataError, LayerError
from derivlang.core.trees import first_fault

NODE_ID = re.compile(r"(0|[1-9][0-9]*)([-.])([1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class Places:
    """Where words stand: sentence r holds the words offsets[r]:offsets[r + 1] (int64[R + 1]), word i stands
    on line lines[i] (int32[N]); names: the R sentences' ids, "" where there is none.
    """

    path: Path
    names: list[str]
    offsets: Int64
    lines: Int32

    def where(self, row: int, line: int) -> str:
        """`file:line`, and the sentence's id if it has one."""
        return f"{self.path}:{line}" + (f" (sent_id {self.names[row]})" if self.names[row] else "")

    def of_word(self, word: int) -> tuple[str, int, int]:
        """`file:line` of a word, its 1-based id, and the number of words of its sentence."""
        row = int(np.searchsorted(self.offsets, word, "right")) - 1
        start, stop = self.offsets[row : row + 2].tolist()
        return self.where(row, int(self.lines[word])), word - start + 1, stop - start


def check_ids(at: Places, ids: list[str], is_word: Bool, node_offsets: Int64, node_lines: Int32) -> None:
    """The words are 1..n, multiword tokens and empty nodes stand in their places.

    ids, is_word, node_lines: of all M lines; node_offsets: int64[R + 1]. Raises DataError conllu-ids.
    """
    fix = "number the words of a sentence 1, 2, 3 …, and end it with an empty line"
    for row in np.unique(owners(node_offsets)[~is_word]).tolist():
        start, stop = node_offsets[row : row + 2].tolist()
        fault = _misplaced_node(ids[start:stop])
        if fault:
            place, what = fault
            where = at.where(row, int(node_lines[start + place]))
            raise DataError(f"the id {ids[start + place]} {what}", where=where, fix=fix, id="conllu-ids")
    found = pa.array(ids, pa.string()).filter(to_arrow(is_word))
    expected = to_arrow(places(at.offsets) + 1).cast(pa.string())
    if not found.equals(expected):
        word = _first(to_numpy(pc.not_equal(found, expected)))
        where, id, _ = at.of_word(word)
        raise DataError(f"the word has the id {found[word]}, expected {id}", where=where, fix=fix, id="conllu-ids")


def checked_heads(at: Places, texts: pa.Array) -> pa.Array:
    """int32[N]: the heads as numbers, each sentence a tree with one root.

    Raises LayerError: head-range (no number, or no word of the sentence), head-cycle, head-root.
    """
    heads = _numbers(at, texts)
    fault = first_fault(heads, at.offsets)
    if fault is not None:
        raise _fault(at, *fault)
    return to_arrow(heads)


def _misplaced_node(ids: list[str]) -> tuple[int, str] | None:
    """Place and fault of the first id in a sentence that is neither a word's nor in its place."""
    n_words = sum(map(str.isdecimal, ids))
    if n_words == 0:
        return 0, "stands in a sentence without words"
    words = empties = covered = 0  # words so far, empty nodes since, last word of a multiword token so far
    in_range = False  # is the line before a multiword token
    for i, id in enumerate(ids):
        found = NODE_ID.fullmatch(id)
        if id.isdecimal():
            words, empties, in_range = words + 1, 0, False
        elif found is None:
            return i, "is no id: 3 for a word, 3-4 for a multiword token, 3.1 for an empty node"
        elif found[2] == ".":
            empties += 1
            if in_range or id != f"{words}.{empties}":
                return i, f"is out of its place, expected {words}.{empties} right after word {words}"
        else:
            first, last = int(found[1]), int(found[3])
            if not 1 <= first <= last <= n_words:
                return i, f"is no range within the {n_words} words of the sentence"
            if first <= covered:
                return i, "overlaps the multiword token before it"
            if first != words + 1:
                return i, f"is out of its place, it belongs right before word {first}"
            covered, in_range = last, True
    return None


def _numbers(at: Places, texts: pa.Array) -> Int32:
    try:
        heads = texts.cast(pa.int32())
        if heads.cast(pa.string()).equals(texts):  # not so for 03
            return np.asarray(to_numpy(heads))
    except pa.ArrowInvalid:
        pass
    is_number = to_numpy(pc.match_substring_regex(texts, r"^(0|-?[1-9][0-9]{0,8})$"))
    word = _first(~is_number)
    raise _fault(at, word, f"head {str(texts[word])!r}, which is no word's number", "head-range")


def _first(flags: Bool) -> int:
    return int(np.flatnonzero(flags)[0])


def _fault(at: Places, word: int, what: str, id: str) -> LayerError:
    where, number, _ = at.of_word(word)
    fix = "correct the tree, or leave the sentence out"
    return LayerError(f"word {number} has {what}", where=where, fix=fix, id=id)
