"""Nodes: the lines of CoNLL-U that are not words, multiword tokens (`3-4`) and empty nodes (`8.1`).

A multiword token stays if its words are adjacent and in order; otherwise it is dissolved and counted. An empty node n.k
stays behind the word that was n.

Enhanced dependencies (DEPS) connect words and empty nodes: their numbers are mapped as heads are.

    2:nsubj|8.1:conj     two parts: the number 2 and what follows it, `:nsubj`; the empty node 8.1 and `:conj`
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int64, lengths_of, offsets_of, owners, positions
from derivlang.core.arrow import filled, list_array, scalar, string_array, to_arrow, to_numpy
from derivlang.core.errors import LayerError
from derivlang.core.layers.base import Realignment
from derivlang.core.layers.misc import are_ordered, moved_notes, moved_units
from derivlang.core.layers.words import Words, numbers_of
from derivlang.core.lexicon import Lexicon
from derivlang.core.trees import NO_HEAD, NODE_ID

NODE_FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
NODES = pa.list_(pa.struct([(field, pa.string()) for field in NODE_FIELDS]))
_WORDS = ("form", "lemma")
_NAMED = re.compile(r"(?:\A|(?<=\|))(\d+)(?=[.:|]|\Z)")  # in each part of DEPS: 8 of 8.1:conj
_RANGE, _EMPTY = "-", "."  # the marks in the ids of multiword tokens and of empty nodes


@dataclass(frozen=True, eq=False)
class Nodes:
    """The n lines that are not words: multiword tokens (`3-4`) or empty nodes (`8.1`).

    unit: int64[n]. first, last: int64[n], the first and the last word that the line covers, counted in the batch from
    0. For an empty node both are the word before it, -1 if it is before the first word. minor: int64[n], 1 of 8.1, 0 of
    a multiword token. fields: the ten columns, Arrow strings [n] each.

    unit 1, whose words are 5 to 9: the multiword token 3-4 has first 7 and last 8, the empty node 3.1 has 7 and 7
    """

    unit: Int64
    first: Int64
    last: Int64
    minor: Int64
    fields: Mapping[str, pa.Array]

    @classmethod
    def read(
        cls, column: pa.Array, unit_words: Int64, mark: str, where: Callable[[int], str | None] = lambda row: None
    ) -> Nodes:
        """Return the nodes of a column NODES[U].

        mark: "-" in the ids of multiword tokens, "." in the ids of empty nodes. where: returns the place of a unit.
        Raises LayerError node-id for a null, for an id that does not fit its unit, and for DEPS out of range.
        """
        unit = owners(offsets_of(to_numpy(filled(pc.list_value_length(column), 0)))).astype(np.int64)
        nodes = column.flatten()
        fields = dict(zip(NODE_FIELDS, nodes.flatten(), strict=True))  # unlike `field`, a value below a null is a null
        n_words = lengths_of(unit_words)[unit]
        ids = [NODE_ID.fullmatch(id or "") for id in fields["id"].to_pylist()]
        numbers = [(int(id[1]), int(id[3])) if id and id[2] == mark else (-1, -1) for id in ids]
        begin, end = np.array(numbers, np.int64).reshape(-1, 2).T
        low, high = (1, end) if mark == _RANGE else (0, begin)
        lacks = np.zeros(len(unit), bool)
        for field in fields.values():
            lacks |= to_numpy(field.is_null())
        wrong = np.flatnonzero(lacks | (begin < low) | (high < begin) | (high > n_words))
        if wrong.size:
            raise _wrong_node(fields, int(wrong[0]), mark, int(n_words[wrong[0]]), where(int(unit[wrong[0]])))
        check_references(Words.of("deps", fields["deps"]), n_words, lambda node: where(int(unit[node])))
        first = np.where(begin > 0, unit_words[unit] + begin - 1, -1)
        if mark == _RANGE:
            return cls(unit, first, unit_words[unit] + end - 1, np.zeros(len(unit), np.int64), fields)
        return cls(unit, first, first, end, fields)

    def numbers(self, units: Int64) -> Int64:
        """Return int64[n]: the number in the id of each empty node, 8 of 8.1. units: int64[U + 1], word offsets."""
        return np.where(self.first >= 0, self.first - units[self.unit] + 1, 0)

    def take(self, which: Int64, first: Int64, last: Int64, **fields: pa.Array) -> Nodes:
        """Return some nodes, int64[m], with other words, int64[m] each, and with some columns replaced."""
        taken = {name: fields.get(name, field.take(to_arrow(which))) for name, field in self.fields.items()}
        return Nodes(self.unit[which], first, last, self.minor[which], taken)

    def moved_misc(self, which: Int64, move: Realignment) -> pa.Array:
        """Return the MISC of some lines, int64[m], in the derived order."""
        misc = self.fields["misc"].take(to_arrow(which))
        mask = are_ordered(misc) & moved_units(move)[self.unit[which]]
        if not mask.any():
            return misc
        notes = moved_notes(misc.filter(to_arrow(mask)).to_pylist(), self.unit[which][mask], move, "misc")
        return pc.replace_with_mask(misc, to_arrow(mask), string_array(notes))

    def under(self, lexicon: Lexicon) -> Nodes:
        """Return the lines with their forms and lemmas mapped by a lexicon."""
        return replace(
            self, fields={**self.fields, **{name: lexicon.apply_to_labels(self.fields[name]) for name in _WORDS}}
        )

    def column(self, n_units: int) -> pa.Array:
        """Return the column NODES[U]; units without such lines have an empty list."""
        by = to_arrow(np.argsort(self.unit, kind="stable"))
        columns = [self.fields[name].take(by) for name in NODE_FIELDS]
        values = pa.StructArray.from_arrays(columns, fields=list(NODES.value_type))
        return list_array(offsets_of(np.bincount(self.unit, minlength=n_units)), values)


def _wrong_node(fields: Mapping[str, pa.Array], node: int, mark: str, n_words: int, where: str | None) -> LayerError:
    """Return the error for a node that lacks a value, or whose id does not fit its unit of n words."""
    lacking = next((name for name, field in fields.items() if not field[node].is_valid), None)
    what = "range" if mark == _RANGE else "empty node"
    return LayerError(
        f"{fields['id'][node].as_py()!r} is not a {what} of {n_words} words"
        if lacking is None
        else f"a multiword token or an empty node has no {lacking}",
        where=where,
        id="node-id",
    )


def check_references(deps: Words, n_words: Int64, where: Callable[[int], str | None]) -> None:
    """Raise LayerError head-range for DEPS with a reference to a word that its sentence lacks.

    n_words: int64[n], of the sentence of each. where: returns the place of each.
    """
    wrong = np.flatnonzero(numbers_of(deps, _highest) > n_words)
    if wrong.size:
        at = int(wrong[0])
        text = deps.values[deps.codes[at]].as_py()
        raise LayerError(
            f"the DEPS {text[:50]!r} name a word that the sentence of {n_words[at]} words lacks",
            where=where(at),
            fix="correct the tree, or leave out the sentence",
            id="head-range",
        )


def _highest(deps: str) -> int:
    """Return the highest number of a word that DEPS name, 10^9 for one of ten digits or more."""
    return max((int(number) if len(number) < 10 else 10**9 for number in _NAMED.findall(deps)), default=0)


def move_ranges(nodes: Nodes, move: Realignment) -> Nodes:
    """Return the multiword tokens whose words are still adjacent and in order, with new ids. Counts the others."""
    places = move.positions
    first, last = (places[edge].astype(np.int64) for edge in (nodes.first, nodes.last))
    # steps[i]: how many of the words up to i stand directly behind the word before. A deleted word has the place -1.
    steps = offsets_of(np.diff(places) == 1)
    length = nodes.last - nodes.first
    stays = (first >= 0) & (last >= 0) & (steps[nodes.last] - steps[nodes.first] == length)
    if not stays.all():
        gone = offsets_of(places < 0)  # int64[N + 1]: how many words are deleted before each
        deleted = gone[nodes.last + 1] > gone[nodes.first]
        if deleted.any():
            move.counts["mwt-deleted"] += int(deleted.sum())
        if (dissolved := ~stays & ~deleted).any():
            move.counts["mwt-dissolved"] += int(dissolved.sum())
    which = np.flatnonzero(stays)
    # CoNLL-U lists multiword tokens in the order of their first words.
    which = which[np.argsort(first[which], kind="stable")]
    number = first[which] - move.derived_units[nodes.unit[which]] + 1
    ids = _ids(number, number + length[which], _RANGE)
    return nodes.take(which, first[which], last[which], id=ids, misc=nodes.moved_misc(which, move))


def move_empty(nodes: Nodes, move: Realignment) -> tuple[Nodes, Int64]:
    """Return the empty nodes behind their words, and int64[m], which ones are left. Counts those dropped.

    3.1 of a word that moves to position 5 of its unit  ->  5.1; 0.1 stays first
    """
    places = move.positions
    # `first` is -1 for a node before the first word (0.1). The -1 that is appended can then be read in a batch without
    # words.
    at = np.where(nodes.first >= 0, np.append(places, -1)[nodes.first], -1).astype(np.int64)
    gone = (nodes.first >= 0) & (at < 0)
    if gone.any():
        move.counts["empty-nodes-dropped"] += int(gone.sum())
    which = np.flatnonzero(~gone)
    which = which[np.lexsort((at[which], nodes.unit[which]))]
    at = at[which]
    new = np.where(at >= 0, at - move.derived_units[nodes.unit[which]] + 1, 0)
    ids = _ids(new, nodes.minor[which], _EMPTY)
    return nodes.take(which, at, at, id=ids, misc=nodes.moved_misc(which, move)), which


def _ids(first: Int64, second: Int64, mark: str) -> pa.Array:
    """Return Arrow strings [n]: 3 and 4 as 3-4."""
    return pc.binary_join_element_wise(*(pc.cast(to_arrow(n), pa.string()) for n in (first, second)), scalar(mark))


_PART = re.compile(r"([0-9]+)(?:\.([0-9]+))?(:.*)", re.DOTALL)
_MINOR = re.compile(r"[1-9][0-9]{0,8}")
_UNKNOWN = -1  # the minor number of what cannot be the id of an empty node, such as 8.01


class EnhancedPart(NamedTuple):
    """A part of DEPS.

    number, minor: 8 and 1 of the empty node 8.1 that it names; minor is 0 for a word, both are 0 where it names
    neither. rest: what follows them, or the whole part.
    """

    number: int
    minor: int
    rest: str


_NONE = EnhancedPart(0, 0, "_")  # of words without DEPS
_numbered = lru_cache(1 << 16)(EnhancedPart)  # most are equal to others


@lru_cache(1 << 16)  # most words have one of few texts
def parts_of(text: str) -> tuple[EnhancedPart, ...]:
    """Return the parts of DEPS. `0:root`, `_` and what is not a reference name nothing."""
    parts = []
    for part in text.split("|"):
        found = _PART.fullmatch(part)
        number = int(found[1]) if found else 0
        minor = 0
        if found and found[2] is not None:
            minor = int(found[2]) if _MINOR.fullmatch(found[2]) else _UNKNOWN
        parts.append(EnhancedPart(number, minor, found[3]) if found and (number or minor) else EnhancedPart(0, 0, part))
    return tuple(parts)


@lru_cache(1 << 16)
def written(parts: tuple[EnhancedPart, ...]) -> str:
    """Return DEPS, sorted by the ids that the parts name, as CoNLL-U requires."""
    ordered = sorted(parts, key=lambda part: part[:2])
    names = (f"{part.number}.{part.minor}" if part.minor else str(part.number or "") for part in ordered)
    return "|".join(name + part.rest for name, part in zip(names, ordered, strict=True)) or _NONE.rest


@dataclass(frozen=True, eq=False)
class EnhancedGraph:
    """The enhanced dependencies of N words, then of E empty nodes.

    parts: of each. unit: the unit of each. number: the number in the id of each, 8 of 8 and of 8.1. begins: the first
    word of each unit. nodes: the nodes by unit, number and minor number.
    """

    parts: list[tuple[EnhancedPart, ...]]
    unit: list[int]
    number: list[int]
    begins: list[int]
    nodes: dict[tuple[int, int, int], int]

    @classmethod
    def of(cls, texts: Iterable[str], empty: Nodes | None, units: Int64) -> EnhancedGraph:
        """Return the graph of words and nodes. texts: the DEPS of both. units: int64[U + 1], word offsets."""
        unit, number, minor = owners(units).tolist(), (positions(units) + 1).tolist(), []
        n_words = len(unit)
        if empty is not None:
            unit += empty.unit.tolist()
            number += empty.numbers(units).tolist()
            minor = empty.minor.tolist()
        ids = zip(unit[n_words:], number[n_words:], minor, strict=True)
        nodes = {id: at for at, id in enumerate(ids, n_words)}
        return cls([parts_of(text) for text in texts], unit, number, units.tolist(), nodes)

    def above(self, at: int, part: EnhancedPart) -> int:
        """Return the word or node that a part of a word or node names, -1 for none."""
        if part.minor:
            return self.nodes.get((self.unit[at], part.number, part.minor), -1)
        return self.begins[self.unit[at]] + part.number - 1 if part.number else -1

    def reached(self) -> Bool:
        """Return bool[N + E]: which words and nodes a root reaches."""
        links = []
        found = np.zeros(len(self.parts), bool)
        for at, parts in enumerate(self.parts):
            for part in parts:
                above = self.above(at, part)
                if above >= 0:
                    links.append((at, above))
                elif part.rest.startswith("0:"):
                    found[at] = True
        below, parents = np.array(links, np.int64).reshape(-1, 2).T
        while (new := below[found[parents] & ~found[below]]).size:
            found[new] = True
        return found

    def texts(self) -> list[str]:
        """Return the DEPS of words and nodes."""
        return list(map(written, self.parts))

    def moved(self, came: list[int], derived: EnhancedGraph) -> EnhancedGraph:
        """Return the derived graph with the parts of this one under their derived numbers.

        came: the word or node of this graph that each derived one was, -1 for an inserted word, whose DEPS are `_`.
        Parts that name what was deleted are left out; if none is left, the DEPS are `_`.

        `4:nsubj|8.1:conj` with word 4 at position 6, word 8 at position 2  ->  `2.1:conj|6:nsubj`
        """
        number = [-1] * (len(self.parts) + 1)  # of each in the derived graph; the last is of what is not there
        for old, new in zip(came, derived.number, strict=True):
            if old >= 0:
                number[old] = new
        moved: list[tuple[EnhancedPart, ...]] = []
        for at in came:
            parts = []
            for part in self.parts[at] if at >= 0 else ():
                if part.number == part.minor == 0:
                    parts.append(part)
                elif (new := number[self.above(at, part)]) >= 0:
                    parts.append(_numbered(new, part.minor, part.rest))
            moved.append(tuple(parts))
        return replace(derived, parts=moved)

    def connected(self, source: EnhancedGraph, came: list[int], head: list[int], relation: list[str]) -> EnhancedGraph:
        """Return this derived graph, so that a root reaches all that it reached in the source.

        A word that no root reaches any more, as words or nodes between were deleted, gets its head and relation. Such
        an empty node depends on the root of the tree. An inserted word gets its head and relation, too, unless no word
        of its unit has DEPS. What no root reached in the source stays as it is. came: as of `moved`. head, relation: of
        the M derived words.

        1 `0:root`, 2 an inserted word with the head 1 and the relation dep   ->   2 `1:dep`
        """
        roots = {self.unit[at]: self.number[at] for at in reversed(range(len(head))) if head[at] == 0}

        def own(at: int) -> EnhancedPart:
            if at >= len(head):
                return EnhancedPart(roots.get(self.unit[at], NO_HEAD), 0, ":dep")
            return EnhancedPart(head[at], 0, f":{relation[at]}" if head[at] else f"0:{relation[at]}")

        given = {source.unit[at] for at in range(source.begins[-1]) if source.parts[at] != (_NONE,)}
        kept = source.reached()
        needed = [at for at, old in enumerate(came) if (kept[old] if old >= 0 else self.unit[at] in given)]
        graph = self
        for only_without in (True, False):
            reached, parts = graph.reached(), list(graph.parts)
            for at in [at for at in needed if not reached[at]]:
                named, new = [part for part in parts[at] if part != _NONE], own(at)
                is_led = new.number == NO_HEAD or any(part[:2] == new[:2] and part.number for part in named)
                if not is_led and not (only_without and named and new.number):
                    parts[at] = (*named, new)
            graph = replace(graph, parts=parts)
        return graph
