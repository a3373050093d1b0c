"""pcfg: sentences of a probabilistic context-free grammar, with their constituents in the column `parse`.

    source:pcfg=toy.pcfg     big Ann sleeps     (S (NP big (NP Ann)) (VP sleeps))

`formats/pcfg_file.py` describes the file. Each node of a tree has a key, which follows from the row and the way from
the root, and chooses its rule. `switch=110010` reverses the right sides of the rules that the file numbers 1, 2 and 5,
as the transform `switch:110010:rules=FILE:final=move` does on the trees. It changes no draw, so all 64 languages of
White and Cotterell (2021) are the same trees in other orders, as in Kuribayashi et al. (2024). A grammar has no heads,
so there are no dependency trees.

A grammar is refused if its sentences have no finite mean length: M[A, B] is the expected number of B in a rule of A,
and the sum of its powers is finite if no eigenvalue of M reaches 1 (Booth and Thompson 1973).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Float64, Int64, UInt64, expand_ranges, lengths_of, offsets_of, positions
from derivlang.core.arrow import list_array, string_array
from derivlang.core.brackets import escaped
from derivlang.core.errors import DataError, UsageError
from derivlang.core.keys import GOLDEN, Draws, fractions, mix
from derivlang.core.layers.constituents import PARSE
from derivlang.core.schema import Field
from derivlang.core.spec import Named, param
from derivlang.formats.pcfg_file import Rule, check_switches, grammar_path, grammars, read_rules
from derivlang.sources.generated.base import Generator, Made, rows_of, rows_param, seed_param

_MOST_NODES = 100_000  # of a mean sentence: a row is made as a whole
_MOST_LEFT = 1000  # left sides: eigenvalues of so large a matrix take seconds, of 2,000 half a minute


@dataclass(frozen=True, kw_only=True)
class Pcfg(Generator):
    """Sentences of a probabilistic grammar in a file, with their constituents."""

    name: ClassVar[str] = "pcfg"
    fields: ClassVar[tuple[Field, ...]] = (Field(PARSE, "constituents"),)
    citation: ClassVar[str] = (
        "White, Cotterell (2021): Examining the Inductive Bias of Neural Language Models with Artificial Languages. "
        "ACL 2021."
    )

    file: str = param(
        "", "file of the grammar, as of nltk, or six-switches", positional=True, draws=False, file=Named(grammars)
    )
    switch: str = param(
        "", "for each numbered rule 0, or 1 to reverse its right side, e.g. 110010", draws=False, file=False
    )
    n: int = rows_param()
    seed: int = seed_param()

    def opened(self, folders: Sequence[Path]) -> Made:
        """Return the grammar of the file."""
        if not self.file:
            raise UsageError("pcfg: the file of the grammar is missing", fix="source:pcfg=FILE", id="bad-value")
        rules, text = read_rules(grammar_path(self.file))
        if self.switch:
            check_switches("pcfg: switch", self.switch, rules, self.file)
        on = {number for number, digit in enumerate(self.switch, 1) if digit == "1"}
        grammar = PhraseGrammar.of(rules, on, self.file)
        rows, words, nodes = rows_of(self.n), grammar.words_a_row, grammar.nodes_a_row
        return self.made(grammar.columns, rows, words, nodes, text.encode())


class _Level(NamedTuple):
    """The n nodes of all trees at one depth. first_child: int64[n + 1] into the next level, sorted by parent.

    symbol: int64[n]. is_switched: bool[n], whether a switch reverses the rule of the node.
    """

    symbol: Int64
    first_child: Int64
    is_switched: Bool


@dataclass(frozen=True, slots=True)
class PhraseGrammar:
    """A grammar as arrays; it makes rows. Symbols are numbered: K left sides, the first of them the start, then words.

    right: symbols of all right sides; offsets: int64[R + 1]. is_switched: bool[R], whether a switch reverses the rule.
    edges: float64[R]: for rule r of left side A, A plus the sum of the probabilities of A's rules up to r. last:
    int64[K], the last rule of each left side. names: of all symbols. words_a_row, nodes_a_row: the expected
    number of words and nodes of a tree.
    """

    n_left: int
    right: Int64
    offsets: Int64
    is_switched: Bool
    edges: Float64
    last: Int64
    names: tuple[str, ...]
    words_a_row: float
    nodes_a_row: float

    @classmethod
    def of(cls, rules: list[Rule], on: set[int], file: str) -> PhraseGrammar:
        """Return the grammar of rules. on: the switches that reverse theirs. DataError pcfg-endless, too-large."""
        left = {name: number for number, name in enumerate(dict.fromkeys(rule.left for rule in rules))}
        if len(left) > _MOST_LEFT:
            raise DataError(
                f"the grammar has {len(left):,} symbols on left sides; at most {_MOST_LEFT:,} are possible",
                where=file,
                fix="leave out rules, or join symbols",
                id="too-large",
            )
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
        expected = np.zeros((len(left), len(left) + 1))  # of each left side, and of words
        for of, probability, right in zip(owner, probabilities, symbols, strict=True):
            np.add.at(expected[of], np.minimum(right, len(left)), probability)
        return cls(
            len(left),
            np.array([symbol for right in symbols for symbol in right]),
            offsets_of(np.array(list(map(len, symbols)))),
            np.array([rule.switch in on for rule in rules]),
            edges,
            last,
            (*left, *words),
            *_mean_sizes(expected, list(left), rules, file),
        )

    def columns(self, draws: Draws, split: str, rows: Int64) -> dict[str, pa.Array]:
        """Return words and constituents of some rows."""
        names = [*self.names[: self.n_left], *escaped(string_array(self.names[self.n_left :])).to_pylist()]
        words, trees = list[str](), list[str]()  # of the nodes of a level; words hold no space
        for level in reversed(self._levels(draws.draw(rows.astype(np.uint64), np.zeros_like(rows)))):
            below = words, trees
            words, trees = [], []
            bounds = pairwise(level.first_child.tolist())
            for symbol, (begin, end), switched in zip(
                level.symbol.tolist(), bounds, level.is_switched.tolist(), strict=True
            ):
                parts = [some[begin:end][:: -1 if switched else 1] for some in below]
                words.append(" ".join(parts[0]) or self.names[symbol])
                trees.append(f"({names[symbol]} {' '.join(parts[1])})" if begin < end else names[symbol])
        lists = [text.split(" ") for text in words]
        offsets = offsets_of(np.array(list(map(len, lists))))
        return {
            "tokens": list_array(offsets, string_array(chain.from_iterable(lists))),
            PARSE: string_array(trees),
        }

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
            is_switched = np.zeros(len(symbol), bool)
            is_switched[inner] = self.is_switched[rule]
            levels.append(_Level(symbol, offsets_of(n_children), is_switched))
            symbol = self.right[expand_ranges(self.offsets[rule], sizes)]
            keys = mix(np.repeat(keys[inner], sizes) + (positions(offsets_of(sizes)) + 1).astype(np.uint64) * GOLDEN)
        return levels


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
