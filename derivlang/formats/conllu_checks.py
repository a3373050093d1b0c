"""Checks of a CoNLL-U sentence: ids are in order, and heads make a tree with one root, or parts of trees.

ids 1 2-3 2 3 3.1 4  are in order;  heads [2, 0, 2] are a tree, [2, 1, 0] hold a cycle
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, first_true, owners, positions
from derivlang.core.arrow import scalar, string_array, to_arrow, to_numpy
from derivlang.core.errors import DataError, LayerError
from derivlang.core.trees import NO_HEAD, NODE_ID, first_fault


@dataclass(frozen=True, slots=True)
class WordLines:
    """The lines of N words in R sentences.

    names: ids of the sentences, "" for none. offsets: int64[R + 1], word offsets. lines: int32[N].
    """

    path: Path
    names: list[str]
    offsets: Int64
    lines: Int32

    def where(self, row: int, line: int) -> str:
        """Return `file:line`, with the sentence's id if it has one."""
        return f"{self.path}:{line}" + (f" (sent_id {self.names[row]})" if self.names[row] else "")

    def of_word(self, word: int) -> tuple[str, int, int]:
        """Return `file:line` of a word, its 1-based id, and the number of words of its sentence."""
        row = int(np.searchsorted(self.offsets, word, "right")) - 1
        start, stop = self.offsets[row : row + 2].tolist()
        return self.where(row, int(self.lines[word])), word - start + 1, stop - start


def check_ids(at: WordLines, ids: list[str], is_word: Bool, node_offsets: Int64, node_lines: Int32) -> None:
    """Raise DataError conllu-ids if words are not numbered 1..n, or another node is out of place.

    ids, is_word, node_lines: of all M lines; node_offsets: int64[R + 1].
    """
    fix = "number the words of a sentence 1, 2, 3 …, and end it with an empty line"
    for row in np.unique(owners(node_offsets)[~is_word]).tolist():
        start, stop = node_offsets[row : row + 2].tolist()
        fault = _misplaced_node(ids[start:stop])
        if fault:
            place, what = fault
            where = at.where(row, int(node_lines[start + place]))
            raise DataError(f"the id {ids[start + place]} {what}", where=where, fix=fix, id="conllu-ids")
    word_ids = string_array(ids).filter(to_arrow(is_word))
    expected = to_arrow(positions(at.offsets) + 1).cast(pa.string())
    if not word_ids.equals(expected):
        word = first_true(to_numpy(pc.not_equal(word_ids, expected)))
        where, id, _ = at.of_word(word)
        raise DataError(f"the word has the id {word_ids[word]}, expected {id}", where=where, fix=fix, id="conllu-ids")


def checked_heads(at: WordLines, texts: pa.Array, *, whole: bool) -> pa.Array:
    """Return the heads as numbers, int32[N], NO_HEAD for `_`. whole: as of `first_fault`.

    Raises LayerError: head-range (not a number, or outside the sentence), head-cycle, head-root.
    """
    heads = _numbers(at, texts)
    fault = first_fault(heads, at.offsets, whole=whole)
    if fault is not None:
        raise _fault(at, *fault)
    return to_arrow(heads)


def _misplaced_node(ids: list[str]) -> tuple[int, str] | None:
    """Return index and fault of the first multiword token or empty node that is out of place, or None."""
    n_words = sum(map(str.isdecimal, ids))
    if n_words == 0:
        return 0, "stands in a sentence without words"
    words = empties = covered = 0  # words so far, empty nodes since, last word of a multiword token so far
    in_range = False  # whether the line before is a multiword token
    for i, id in enumerate(ids):
        match = NODE_ID.fullmatch(id)
        if id.isdecimal():
            words, empties, in_range = words + 1, 0, False
        elif match is None:
            return i, "is not an id (3 is a word, 3-4 a multiword token, 3.1 an empty node)"
        elif match[2] == ".":
            empties += 1
            if in_range or id != f"{words}.{empties}":
                return i, f"is out of its place, expected {words}.{empties} right after word {words}"
        else:
            first, last = int(match[1]), int(match[3])
            if not 1 <= first <= last <= n_words:
                return i, f"is not a range within the {n_words} words of the sentence"
            if first <= covered:
                return i, "overlaps the multiword token before it"
            if first != words + 1:
                return i, f"is out of its place, expected right before word {first}"
            covered, in_range = last, True
    return None


def _numbers(at: WordLines, texts: pa.Array) -> Int32:
    """Return int32[N], NO_HEAD for `_`."""
    is_number = to_numpy(pc.match_substring_regex(texts, "^(0|[1-9][0-9]{0,8}|_)$"))
    if not is_number.all():
        word = first_true(~is_number)
        raise _fault(at, word, f"head {str(texts[word])!r}, which is not the number of a word", "head-range")
    if pc.any(pc.equal(texts, scalar("_"))).as_py():
        texts = pc.replace_substring(texts, "_", str(NO_HEAD))
    return np.asarray(to_numpy(texts.cast(pa.int32())))


def _fault(at: WordLines, word: int, what: str, id: str) -> LayerError:
    where, number, _ = at.of_word(word)
    fix = "correct the tree, or leave out the sentence"
    return LayerError(f"word {number} has {what}", where=where, fix=fix, id=id)
