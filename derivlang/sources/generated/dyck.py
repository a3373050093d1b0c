"""dyck: rows of brackets that match, of k pairs: the Dyck language, or (cross=yes) brackets that need not nest.

    source:dyck=2:length=6             (1 (2 2) 1) (2 2)      heads 0 1 2 1 1 5
    source:dyck=2:length=6:cross=yes   (1 (2 1) (1 2) 1)      heads 0 1 1 1 2 4

At each place a bracket is opened with probability p, and else closed: the one that was opened last, or under `cross`
any open one, all equally likely. A bracket is opened where none is open, and closed where the rest of the row only has
room for what is open; so each row is balanced and has `length` words. Papadimitriou and Jurafsky (2020; 2023) use
p=0.49 and rows of 512; their crossing brackets draw the distance to the closing bracket from a file instead.

The tree: the head of a closing bracket is its opening bracket (`close`); an opening bracket depends on the bracket that
encloses it (`nested`), else, and always under `cross`, on the first word (`next`), which is the root. The tag of all
words is X: transforms of trees want tags.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64, offsets_of
from derivlang.core.arrow import list_array, string_array, to_arrow
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws, fractions
from derivlang.core.schema import UPOS, Field
from derivlang.core.spec import param
from derivlang.sources.generated.base import RowGenerator, numbered, rows_param, seed_param, word_lists
from derivlang.sources.generated.words import CITATION, choose, frequencies

_RELATIONS = string_array(["root", "nested", "next", "close"])
_TAGS = string_array(["X"])
_ROOT, _NESTED, _NEXT, _CLOSE = range(4)


@dataclass(frozen=True, kw_only=True)
class Dyck(RowGenerator):
    """Brackets that match, nested or crossing, with trees."""

    name: ClassVar[str] = "dyck"
    fields: ClassVar[tuple[Field, ...]] = (Field("upos", "tags", UPOS), Field("head", "tree"))
    citation: ClassVar[str] = CITATION

    pairs: int = param(250, "kinds of brackets", positional=True, low=1, high=500_000)
    p: float = param(0.49, "probability to open a bracket where both are possible", low=0, high=1)
    length: int = param(512, "words of a row, an even number", low=2, high=10_000)
    cross: bool = param(False, "close any open bracket, not the last one")
    a: float = param(0.0, "exponent of the frequencies of the kinds; 0: all are equally frequent", low=0)
    n: int = rows_param()
    seed: int = seed_param()

    def validate(self) -> None:
        """Raise UsageError for an odd length."""
        if self.length % 2:
            raise UsageError(f"dyck: length={self.length} must be even, as brackets come in pairs", id="bad-value")

    def columns(self, draws: Draws, split: str, rows: Int64) -> dict[str, pa.Array]:
        """Return words, heads and relations of some rows.

        Draw i of a row decides whether word i opens; draw `length` + i which kind it opens, or which bracket it closes.
        """
        n, length = len(rows), self.length
        every = np.full(n, 2 * length)
        drawn = fractions(numbered(draws, rows, every, np.tile(np.arange(2 * length), n)))
        chance, which = np.ascontiguousarray(drawn.reshape(n, 2, length).transpose(1, 2, 0))  # float64[length, n] each
        kinds = choose(frequencies(self.pairs, self.a), which.ravel()).reshape(length, n)
        opens, governor, relation = self._governors(chance, which)
        # word 2k opens kind k, word 2k + 1 closes it
        closed = np.take_along_axis(kinds, np.maximum(governor, 0), axis=0)
        words = 2 * np.where(opens, kinds, closed) + ~opens
        offsets = offsets_of(np.full(n, length))
        return {
            "tokens": word_lists(offsets, words.T.ravel(), _names(self.pairs)),
            "upos": word_lists(offsets, np.zeros(n * length, np.int64), _TAGS),
            "head": list_array(offsets, to_arrow((governor + 1).T.ravel().astype(np.int32))),
            "deprel": word_lists(offsets, relation.T.ravel(), _RELATIONS),
        }

    def _governors(self, chance: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return whether each word opens, the place of its governor (-1: root) and its relation, all [length, n].

        chance, which: draws, float64[length, n]. Place after place, for all rows at once.
        """
        length, n = chance.shape
        opens, relation = np.empty((length, n), bool), np.empty((length, n), np.int8)
        governor = np.empty((length, n), np.int32)
        every, depth = np.arange(n), np.zeros(n, np.int64)
        stack = np.zeros((n, length // 2 + 1), np.int32)  # the places of the open brackets, the last one at depth - 1
        for place in range(length):
            opens[place] = opening = (depth == 0) | ((chance[place] < self.p) & (depth < length - place))
            closing = ~opening
            last = closed = stack[every, depth - 1]
            if self.cross:
                any_open = (which[place] * depth).astype(np.int64)
                closed = stack[every, any_open]
                stack[every[closing], any_open[closing]] = last[closing]
            nested = opening & (depth > 0) & (not self.cross)
            governor[place] = np.where(closing, closed, np.where(nested, last, 0))
            relation[place] = np.where(closing, _CLOSE, np.where(nested, _NESTED, _NEXT))
            stack[every[opening], depth[opening]] = place
            depth += np.where(opening, 1, -1)
        governor[0], relation[0] = -1, _ROOT
        return opens, governor, relation


@cache
def _names(pairs: int) -> pa.Array:
    return string_array(word for kind in range(1, pairs + 1) for word in (f"({kind}", f"{kind})"))
