"""pcfg: sentences of a probabilistic context-free grammar, with their constituents in the column `parse`.

    source:pcfg=toy.pcfg     big Ann sleeps     (S (NP big (NP Ann)) (VP sleeps))

`pcfg_file.py` describes the file. Each node of a tree has a key, which follows from the row and the way from the root,
and chooses its rule. `switch=110010` reverses the right sides of the rules that the file numbers 1, 2 and 5. It changes
no draw, so all 64 languages of White and Cotterell (2021) are the same trees in other orders, as in Kuribayashi et al.
(2024). A grammar has no heads, so there are no dependency trees.

A grammar is refused if its sentences have no finite mean length: M[A, B] is the expected number of B in a rule of A,
and the sum of its powers is finite if no eigenvalue of M reaches 1 (Booth and Thompson 1973).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Float64, Int64, UInt64, expand_ranges, lengths_of, offsets_of, positions
from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, UsageError
from derivlang.core.keys import GOLDEN, Draws, fractions, mix, string_buffers, strings_from
from derivlang.core.schema import Field
from derivlang.core.spec import param
from derivlang.core.spec_files import Named
from derivlang.sources.generated.base import Generator, Made, rows_of, rows_param, seed_param, word_lists
from derivlang.sources.generated.pcfg_file import Rule, read_rules

_MOST_NODES = 100_000  # of a mean sentence: a row is made as a whole


@dataclass(frozen=True, kw_only=True)
class Pcfg(Generator):
    """Sentences of a probabilistic grammar in a file, with their constituents."""

    name: ClassVar[str] = "pcfg"
    fields: ClassVar[tuple[Field, ...]] = (Field("parse", "value"),)
    citation: ClassVar[str] = (
        "White, Cotterell (2021): Examining the Inductive Bias of Neural Language Models with Artificial Languages. "
        "ACL 2021."
    )

    file: str = param("", "file of the grammar, as of nltk", positional=True, draws=False, file=Named())
    switch: str = param(
        "", "for each numbered rule 0, or 1 to reverse its right side, e.g. 110010", draws=False, file=False
    )
    n: int = rows_param()
    seed: int = seed_param()

    def opened(self, folders: Sequence[Path]) -> Made:
        """Return the grammar of the file."""
        if not self.file:
            raise UsageError("pcfg: the file of the grammar is missing", fix="source:pcfg=FILE", id="bad-value")
        rules, text = read_rules(Path(self.file))
        if not set(self.switch) <= {"0", "1"}:
            raise UsageError(f"pcfg: switch={self.switch} must be zeros and ones", id="bad-value")
        highest = max(rule.switch for rule in rules)
        if self.switch and len(self.switch) < highest:
            raise UsageError(
                f"pcfg: switch={self.switch} has {len(self.switch)} digits, but {self.file} has a switch {highest}",
                fix="give a digit for each switch",
                id="bad-value",
            )
        on = {number for number, digit in enumerate(self.switch, 1) if digit == "1"}
        return self.made(PhraseGrammar.of(rules, on, self.file), rows_of(self.n), text.encode())


class _Level(NamedTuple):
    """The n nodes of all trees at one depth. first_child: int64[n + 1] into the next level, sorted by parent."""

    symbol: Int64
    first_child: Int64


@dataclass(frozen=True, slots=True)
class PhraseGrammar:
    """A grammar as arrays; it makes rows. Symbols are numbered: K left sides, the first of them the start, then words.

    right: symbols of all right sides, reversed where a switch is on; offsets: int64[R + 1]. is_reversed: bool[R].
    edges: float64[R]: for rule r of left side A, A plus the sum of the probabilities of A's rules up to r. last:
    int64[K], the last rule of each left side. names: of all symbols. words_a_row, nodes_a_row: the expected
    number of words and nodes of a tree.
    """

    n_left: int
    right: Int64
    offsets: Int64
    is_reversed: Bool
    edges: Float64
    last: Int64
    names: tuple[str, ...]
    words_a_row: float
    nodes_a_row: float

    @classmethod
    def of(cls, rules: list[Rule], on: set[int], file: str) -> PhraseGrammar:
        """Return the grammar of rules. on: the switches that reverse theirs. DataError pcfg-endless."""
        left = {name: number for number, name in enumerate(dict.fromkeys(rule.left for rule in rules))}
        words = {name: len(left) + n for n, name in enumerate(dict.fromkeys(
            name for rule in rules for name, is_word in rule.right if is_word))}  # fmt: skip
        rules = sorted(rules, key=lambda rule: left[rule.left])  # stable: the rules of a left side are together
        owner = np.array([left[rule.left] for rule in rules])
        weights = np.array([rule.probability for rule in rules])
        probabilities = weights / np.bincount(owner, weights)[owner]
        last = np.append(np.flatnonzero(np.diff(owner)), len(owner) - 1)
        sums = np.cumsum(probabilities)
        before = np.concatenate([[0.0], sums[last[:-1]]])[owner]
        symbols = [[words[name] if is_word else left[name] for name, is_word in rule.right] for rule in rules]
        edges = owner + (sums - before)
        edges[last] = owner[last] + 1  # exactly: a sum that is rounded up would reach into the next left side
        is_reversed = np.array([rule.switch in on for rule in rules])
        expected = np.zeros((len(left), len(left) + 1))  # of each left side, and of words
        for of, probability, right in zip(owner, probabilities, symbols, strict=True):
            np.add.at(expected[of], np.minimum(right, len(left)), probability)
        return cls(
            len(left),
            np.array(
                [s for right, back in zip(symbols, is_reversed, strict=True) for s in right[:: -1 if back else 1]]
            ),
            offsets_of(np.array(list(map(len, symbols)))),
            is_reversed,
            edges,
            last,
            (*left, *words),
            *_mean_sizes(expected, list(left), rules, file),
        )

    def columns(self, draws: Draws, split: str, rows: Int64) -> dict[str, pa.Array]:
        """Return words and constituents of some rows."""
        levels = self._levels(draws.draw(rows.astype(np.uint64), np.zeros_like(rows)))
        is_word = np.arange(len(self.names)) >= self.n_left
        n_words, begins = _layout(levels, is_word.astype(np.int64), np.zeros(len(self.names), np.int64), 0)
        words = np.empty(int(n_words[0].sum()), np.int64)
        for level, begin in zip(levels, begins, strict=True):
            leaf = is_word[level.symbol]
            words[begin[leaf]] = level.symbol[leaf] - self.n_left
        types = string_array(self.names[self.n_left :])
        return {"tokens": word_lists(offsets_of(n_words[0]), words, types), "parse": self._brackets(levels)}

    def _levels(self, keys: UInt64) -> list[_Level]:
        """Return the trees of some rows, level by level. keys: of the roots, uint64[n]."""
        levels, symbol = [], np.zeros(len(keys), np.int64)
        while len(symbol):
            inner = np.flatnonzero(symbol < self.n_left)
            of = symbol[inner]
            # A float may be rounded up to the next left side.
            rule = np.minimum(np.searchsorted(self.edges, of + fractions(keys[inner]), side="right"), self.last[of])
            n_children = np.zeros(len(symbol), np.int64)
            n_children[inner] = sizes = lengths_of(self.offsets)[rule]
            levels.append(_Level(symbol, offsets_of(n_children)))
            symbol = self.right[expand_ranges(self.offsets[rule], sizes)]
            # The place of a child among the children as the file writes them, so that a switch changes no draw.
            at = positions(offsets_of(sizes)).astype(np.int64)
            at = np.where(np.repeat(self.is_reversed[rule], sizes), np.repeat(sizes, sizes) - 1 - at, at)
            keys = mix(np.repeat(keys[inner], sizes) + (at + 1).astype(np.uint64) * GOLDEN)
        return levels

    def _brackets(self, levels: list[_Level]) -> pa.Array:
        """Return Arrow strings: the trees in brackets, `(NP big (NP Ann))`. Brackets in words become -LRB-, -RRB-."""
        shown = [
            f"({name}" if number < self.n_left else name.replace("(", "-LRB-").replace(")", "-RRB-")
            for number, name in enumerate(self.names)
        ]
        letters, offsets = string_buffers(string_array(shown))
        size = lengths_of(offsets)
        inner = np.arange(len(shown)) < self.n_left
        lengths, begins = _layout(levels, size + inner, size, 1)
        out = np.full(int(lengths[0].sum()), ord(" "), np.uint8)
        for level, begin, length in zip(levels, begins, lengths, strict=True):
            own = size[level.symbol]
            out[expand_ranges(begin, own)] = letters[expand_ranges(offsets[level.symbol], own)]
            closed = inner[level.symbol]
            out[begin[closed] + length[closed] - 1] = ord(")")
        return strings_from(out, offsets_of(lengths[0]))


def _layout(levels: list[_Level], own: Int64, head: Int64, gap: int) -> tuple[list[Int64], list[Int64]]:
    """Return the size of each node and the place where it begins, level by level, in a row of all trees.

    own, head: what a node of each symbol takes itself, and how much of it precedes its children. gap: before a child.
    """
    sizes: list[Int64] = []
    below = np.zeros(1, np.int64)  # running sums of the sizes of the next level, with gaps
    for level in reversed(levels):
        sizes.append(own[level.symbol] + np.diff(below[level.first_child]))
        below = offsets_of(sizes[-1] + gap)
    sizes.reverse()
    begins = [offsets_of(sizes[0])[:-1]]
    for level, size in zip(levels, sizes[1:], strict=False):
        before = offsets_of(size + gap)[:-1]
        first = level.first_child[:-1]
        shift = begins[-1] + head[level.symbol] + gap - np.append(before, 0)[first]
        begins.append(before + np.repeat(shift, np.diff(level.first_child)))
    return sizes, begins


def _mean_sizes(expected: Float64, left: list[str], rules: list[Rule], file: str) -> tuple[float, float]:
    """Return the expected number of words and of nodes of a tree. Raises DataError pcfg-endless if it is not finite.

    expected: float64[K, K + 1], the expected number of each left side, and of words, in one rule of each left side.
    """
    n = len(left)
    found = np.zeros(n, bool)
    found[0] = True
    while (more := found | (expected[found, :n] > 0).any(axis=0)).sum() > found.sum():
        found = more
    at = np.flatnonzero(found)  # symbols that no sentence holds may do as they like
    among = expected[np.ix_(at, at)]
    growth, vectors = np.linalg.eig(among.T)
    largest = int(np.argmax(abs(growth)))
    if abs(growth[largest]) >= 1 - 1e-9:
        name = left[at[int(np.argmax(abs(vectors[:, largest])))]]
        raise DataError(
            f"the sentences have no finite mean length: {name} and what it becomes make {abs(growth[largest]):.4g} "
            "times as many symbols at each step (the spectral radius of the expected rules), which must be below 1",
            where=f"{file}:{next(rule.line for rule in rules if rule.left == name)}",
            fix=f"give the rules that repeat {name} less probability",
            id="pcfg-endless",
        )
    words = expected[at, n]
    n_words, n_nodes = np.linalg.solve(np.eye(len(at)) - among, np.stack([words, 1 + words], axis=1))[0]
    if n_nodes > _MOST_NODES:
        raise DataError(
            f"a sentence has {n_words:,.0f} words and {n_nodes - n_words:,.0f} constituents on average; "
            f"at most {_MOST_NODES:,} are possible",
            where=file,
            fix="give rules that repeat a symbol less probability",
            id="pcfg-endless",
        )
    return float(n_words), float(n_nodes)
