"""Enhanced dependencies (DEPS of CoNLL-U): their numbers are mapped as heads are.

    2:nsubj|8.1:conj     two parts: the number 2 and what follows it, `:nsubj`; the empty node 8.1 and `:conj`

Most words have one of few texts, so a text is parsed once for all its words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import (
    Bool,
    Int32,
    Int64,
    Ints,
    expand_ranges,
    first_true,
    lengths_of,
    offsets_of,
    owners,
    segment_any,
)
from derivlang.core.arrow import filled, list_array, scalar, string_array, to_arrow, to_numpy
from derivlang.core.layers.base import Realignment

_NAME = r"^(?P<name>\p{Nd}+)(?:[.:]|$)"
_PART = r"^[0-9]+(?:\.(?P<minor>[0-9]+))?(?P<rest>:(?s:.*))$"
_MINOR = r"^([1-9][0-9]{0,8})?$"
_NO_WORD = "_"
_DIGITS, _MOST = 9, 10**9  # of numbers: a sentence has fewer words, and `int` refuses 5,000 digits
_UNKNOWN = -1  # the minor number of what cannot be the id of an empty node, such as 8.01


class EmptyNodes(NamedTuple):
    """Where n empty nodes went, int64[n] each.

    unit: of the node. number, minor: the 8 and the 1 of the id 8.1. new: what the number becomes.
    """

    unit: Int64
    number: Int64
    minor: Int64
    new: Int64


@dataclass(frozen=True, eq=False)
class Deps:
    """The DEPS of N words.

    codes: int32[N], into V texts. offsets: int64[V + 1], the parts of each text. number: int64[P], of the word that a
    part names, 0 for the root and where it names none. minor: int64[P], 1 of the empty node 8.1, 0 elsewhere. rest:
    int64[P], codes into rests (Arrow strings): what follows the number, or the whole part if it names none. texts:
    Arrow strings [V], None if they have not been written.
    """

    codes: Int32
    offsets: Int64
    number: Int64
    minor: Int64
    rest: Int64
    rests: pa.Array
    texts: pa.Array | None = None

    def strings(self) -> pa.DictionaryArray:
        """Return the DEPS of each word, Arrow strings [N] as codes into a dictionary."""
        texts = self._written() if self.texts is None else self.texts
        return texts.take(to_arrow(self.codes)).dictionary_encode()

    def _written(self) -> pa.Array:
        """Return Arrow strings [V]."""
        rests = self.rests.take(to_arrow(self.rest))
        names = pc.cast(to_arrow(self.number), pa.string())
        if (at := np.flatnonzero(self.minor)).size:
            minors = pc.cast(to_arrow(self.minor[at]), pa.string())
            ids = pc.binary_join_element_wise(names.take(to_arrow(at)), minors, scalar("."))
            names = pc.replace_with_mask(names, to_arrow(self.minor != 0), ids)
        named = pc.binary_join_element_wise(names, rests, scalar(""))
        parts = pc.if_else(to_arrow((self.number > 0) | (self.minor != 0)), named, rests)
        joined = pc.binary_join(list_array(self.offsets, parts), scalar("|"))
        return pc.if_else(pc.equal(joined, scalar("")), scalar(_NO_WORD), joined)

    def moved(self, words: Int32, unit: Int32, move: Realignment, nodes: EmptyNodes | None) -> Deps:
        """Return the DEPS of M of these words with derived numbers, sorted by them as CoNLL-U requires.

        words: int32[M], -1 for an inserted word, whose DEPS are `_`. unit: int32[M], of each. nodes: where empty nodes
        went. Parts that name what was deleted are left out; if none is left, the DEPS are `_`.

        `4:nsubj|8.1:conj` with word 4 at position 6, word 8 at position 2  ->  `2.1:conj|6:nsubj`
        """
        first = np.where(words < 0, 0, self.offsets[np.append(self.codes, 0)[words]])
        sizes = np.where(words < 0, 1, np.append(lengths_of(self.offsets)[self.codes], 1)[words])
        part, owner = expand_ranges(first, sizes), owners(offsets_of(sizes))
        number, minor, rest = (np.append(array, 0)[part] for array in (self.number, self.minor, self.rest))
        stays = (words[owner] >= 0) & (minor != _UNKNOWN)
        at = np.flatnonzero(stays & (number > 0) & (minor == 0))
        place = move.positions[move.source.unit_words[unit[owner[at]]] + number[at] - 1]
        number[at] = place - move.derived_units[unit[owner[at]]] + 1
        stays[at] = place >= 0
        at = np.flatnonzero(stays & (minor > 0))
        if at.size:
            number[at] = _new_numbers(nodes, move.source.unit_words, unit[owner[at]], number[at], minor[at])
            stays[at] = number[at] >= 0
        # Where no part stays, the first one becomes `_`.
        begin = offsets_of(sizes)[:-1]
        empty = begin[np.bincount(owner[stays], minlength=len(words)) == 0]
        number[empty] = minor[empty] = 0
        rest[empty], stays[empty] = len(self.rests), True
        found = _Parts(owner[stays], number[stays], minor[stays], rest[stays])
        return _of_parts(found, len(words), pa.concat_arrays([self.rests, string_array([_NO_WORD])]))

    def given(self) -> Bool:
        """Return bool[N]: whether a word has DEPS."""
        texts = self._written() if self.texts is None else self.texts
        return np.asarray(to_numpy(pc.not_equal(texts, scalar(_NO_WORD)))[self.codes])

    def parts(self) -> _Parts:
        """Return the parts of all words."""
        sizes = lengths_of(self.offsets)[self.codes]
        part = expand_ranges(self.offsets[self.codes], sizes)
        return _Parts(
            np.repeat(np.arange(len(self.codes)), sizes), self.number[part], self.minor[part], self.rest[part]
        )


class _Parts(NamedTuple):
    """The parts of the DEPS of some words, int64[Q] each. owner: the word, ascending."""

    owner: Ints
    number: Int64
    minor: Int64
    rest: Int64


def read_deps(values: pa.Array, n_words: Int64) -> Deps | int:
    """Return the DEPS of N words, or the index of the first with a reference to a word that its sentence lacks.

    values: Arrow strings [N], or codes into a dictionary, without nulls. n_words: int64[N], of the sentence of each.
    `_` and references without a number are left as they are.
    """
    encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    texts = encoded.dictionary.cast(pa.string())
    codes = to_numpy(encoded.indices).astype(np.int32)
    lists = pc.split_pattern(texts, "|")
    offsets = offsets_of(to_numpy(pc.list_value_length(lists)))
    parts = lists.flatten().dictionary_encode()
    part = to_numpy(parts.indices).astype(np.int64)
    named = _whole_numbers(pc.struct_field(pc.extract_regex(parts.dictionary, _NAME), "name"))
    if len(texts):
        stray = np.maximum.reduceat(named[part], offsets[:-1])[codes] > n_words
        if stray.any():
            return first_true(stray)
    found = pc.extract_regex(parts.dictionary, _PART)
    is_reference = to_numpy(pc.is_valid(found))
    minors = pc.struct_field(found, "minor")
    minor = _whole_numbers(minors)
    minor[~to_numpy(filled(pc.match_substring_regex(minors, _MINOR), True))] = _UNKNOWN
    names_one = is_reference & ((named > 0) | (minor != 0))
    rests = pc.if_else(to_arrow(names_one), pc.struct_field(found, "rest"), parts.dictionary).dictionary_encode()
    rest = to_numpy(rests.indices).astype(np.int64)
    number = np.where(names_one, named, 0)
    return Deps(codes, offsets, number[part], minor[part], rest[part], rests.dictionary, texts)


class Graph(NamedTuple):
    """The DEPS of the words and of the E empty nodes of a batch, and where these nodes are."""

    words: Deps
    nodes: Deps
    places: EmptyNodes


def connected(source: Graph, derived: Graph, move: Realignment, head: Int32, relation: pa.Array) -> tuple[Deps, Deps]:
    """Return the DEPS of M derived words and E empty nodes, so that a root reaches all that it reached in the source.

    A word that no root reaches any more, as words or nodes between were deleted, gets its head and relation. Such an
    empty node depends on the root of the tree. An inserted word gets its head and relation, too, unless no word of its
    unit has DEPS. What no root reached in the source stays as it is. head: int32[M]. relation: Arrow strings [M].

    1 `0:root`, 2 an inserted word with the head 1 and the relation dep   ->   2 `1:dep`
    """
    unit, units, went = move.derived_unit_of, move.derived_units, derived.places
    n, n_nodes = len(unit), len(went.new)
    roots = np.zeros(len(units) - 1, np.int64)
    at = np.flatnonzero(head == 0)[::-1]
    roots[unit[at]] = at - units[unit[at]] + 1
    begin = scalar("0:"), scalar(":")
    own = pc.binary_join_element_wise(pc.if_else(to_arrow(head == 0), *begin), relation, scalar(""))
    parts, rests = _joined(derived)
    table = pa.concat_arrays([rests, own, string_array([":dep"] * n_nodes)]).dictionary_encode()
    code, rests = to_numpy(table.indices).astype(np.int64), table.dictionary
    extra = _Parts(
        np.arange(n + n_nodes),
        np.concatenate([head, roots[went.unit]]),
        np.zeros(n + n_nodes, np.int64),
        code[len(code) - n - n_nodes :],
    )
    parts = parts._replace(rest=code[parts.rest])
    needed = _needed(source, move, went) & np.concatenate([head >= 0, roots[went.unit] > 0])
    is_none = to_numpy(pc.equal(rests, scalar(_NO_WORD)))
    for only_without in (True, False):
        above, reached = _reached(parts, rests, went, unit, units)
        leads = (above >= 0) & (parts.minor == 0) & (parts.number == extra.number[parts.owner])
        led = np.bincount(parts.owner[leads], minlength=n + n_nodes) > 0  # by the head that it would get
        lost = needed & ~reached & ~led
        if only_without:
            without = np.ones(n + n_nodes, bool)
            without[parts.owner[~is_none[parts.rest] | (above >= 0)]] = False
            lost &= without | (extra.number == 0)
        stays = ~(lost[parts.owner] & is_none[parts.rest] & (above < 0))
        rows = [np.concatenate([old[stays], new[lost]]) for old, new in zip(parts, extra, strict=True)]
        by = np.argsort(rows[0], kind="stable")
        parts = _Parts(*(row[by] for row in rows))
    split = int(np.searchsorted(parts.owner, n))
    ours = _Parts(parts.owner[:split], parts.number[:split], parts.minor[:split], parts.rest[:split])
    theirs = _Parts(parts.owner[split:] - n, parts.number[split:], parts.minor[split:], parts.rest[split:])
    return _of_parts(ours, n, rests), _of_parts(theirs, n_nodes, rests)


def _needed(source: Graph, move: Realignment, went: EmptyNodes) -> Bool:
    """Return bool[M + E]: the derived words and nodes that a root must reach. went: where the nodes went."""
    units, index = move.source.unit_words, move.order.index
    parts, rests = _joined(source)
    _, reached = _reached(parts, rests, source.places, move.source_unit_of, units)
    words = segment_any(source.words.given(), units)[move.derived_unit_of]  # inserted ones
    words[index >= 0] = reached[index[index >= 0]]
    places = source.places._replace(new=len(move.source_unit_of) + np.arange(len(source.places.new)))
    return np.concatenate([words, reached[_new_numbers(places, units, went.unit, went.number, went.minor)]])


def _joined(graph: Graph) -> tuple[_Parts, pa.Array]:
    """Return the parts of N words and, as owners N, N + 1 …, of the empty nodes; and the rests of both."""
    first, second = graph.words.parts(), graph.nodes.parts()
    second = second._replace(owner=len(graph.words.codes) + second.owner, rest=len(graph.words.rests) + second.rest)
    owner, number, minor, rest = (np.concatenate(rows) for rows in zip(first, second, strict=True))
    parts = _Parts(owner, number.astype(np.int64), minor.astype(np.int64), rest.astype(np.int64))
    return parts, pa.concat_arrays([graph.words.rests, graph.nodes.rests])


def _reached(parts: _Parts, rests: pa.Array, places: EmptyNodes, unit: Int32, units: Int64) -> tuple[Int64, Bool]:
    """Return the word or node that each part names, int64[P], -1 for none; and bool[N + E], whether a root reaches it.

    rests: Arrow strings, into which the parts have codes. places: where the nodes are. unit: int32[N], of each word.
    units: int64[U + 1], word offsets.
    """
    n = len(unit)
    of = np.concatenate([unit, places.unit])
    indices = EmptyNodes(places.unit, places.new, places.minor, n + np.arange(len(places.new)))
    above = np.where(parts.number > 0, units[of[parts.owner]] + parts.number - 1, -1)
    at = np.flatnonzero(parts.minor)
    above[at] = _new_numbers(indices, units, of[parts.owner[at]], parts.number[at], parts.minor[at])
    reached = np.zeros(len(of), bool)
    new = parts.owner[(above < 0) & to_numpy(pc.starts_with(rests, "0:"))[parts.rest]]
    while len(new):
        reached[new] = True
        new = parts.owner[(above >= 0) & reached[above] & ~reached[parts.owner]]
    return above, reached


def _whole_numbers(texts: pa.Array) -> Int64:
    """Return int64[n]: strings of digits as numbers, _MOST for long ones, 0 for null and the empty string."""
    return np.array(
        [0 if not text else int(text) if len(text) <= _DIGITS else _MOST for text in texts.to_pylist()], np.int64
    )


def _new_numbers(nodes: EmptyNodes | None, units: Int64, unit: Ints, number: Int64, minor: Int64) -> Int64:
    """Return int64[n]: the new number of each reference to an empty node, -1 if no node has this id.

    units: int64[U + 1], word offsets. Unit u of n words has the numbers 0 … n, so the words before it, plus u, plus the
    number are different for all units and numbers.
    """
    if nodes is None or not len(nodes.new):
        return np.full(len(number), -1)
    known, wanted = (
        (units[u] + u + n) * np.int64(_MOST) + m
        for u, n, m in ((nodes.unit, nodes.number, nodes.minor), (unit, number, minor))
    )
    by = np.argsort(known, kind="stable")
    at = by[np.maximum(np.searchsorted(known[by], wanted, "right") - 1, 0)]
    return np.where(known[at] == wanted, nodes.new[at], -1)


def _of_parts(parts: _Parts, n: int, rests: pa.Array) -> Deps:
    """Return the DEPS of n words, each of which has a part, sorted by the ids that the parts name."""
    by = np.lexsort((parts.minor, parts.number, parts.owner))
    offsets = offsets_of(np.bincount(parts.owner, minlength=n))
    return Deps(np.arange(n, dtype=np.int32), offsets, parts.number[by], parts.minor[by], parts.rest[by], rests)


NO_DEPS = Deps(np.zeros(0, np.int32), np.zeros(1, np.int64), *(np.zeros(0, np.int64),) * 3, string_array([]))
