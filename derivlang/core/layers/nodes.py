"""Nodes: the lines of CoNLL-U that are not words, multiword tokens (`3-4`) and empty nodes (`8.1`).

A multiword token stays if its words are adjacent and in order; otherwise it is dissolved and counted. An empty node n.k
stays behind the word that was n.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64, lengths_of, offsets_of, owners
from derivlang.core.arrow import filled, list_array, scalar, string_array, to_arrow, to_numpy
from derivlang.core.errors import LayerError
from derivlang.core.layers.base import Realignment
from derivlang.core.layers.deps import Deps, EmptyNodes, read_deps
from derivlang.core.layers.misc import are_ordered, moved_notes, moved_units
from derivlang.core.lexicon import Lexicon
from derivlang.core.trees import NODE_ID

NODE_FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
NODES = pa.list_(pa.struct([(field, pa.string()) for field in NODE_FIELDS]))
_WORDS = ("form", "lemma")
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
        deps = read_deps(fields["deps"], n_words)
        if isinstance(deps, int):
            raise stray(fields["deps"][deps].as_py(), int(n_words[deps]), where(int(unit[deps])))
        first = np.where(begin > 0, unit_words[unit] + begin - 1, -1)
        if mark == _RANGE:
            return cls(unit, first, unit_words[unit] + end - 1, np.zeros(len(unit), np.int64), fields)
        return cls(unit, first, first, end, fields)

    @cached_property
    def deps(self) -> Deps:
        """The DEPS of the lines. `read` has checked which words they name."""
        deps = read_deps(self.fields["deps"], np.full(len(self.unit), np.iinfo(np.int64).max))
        assert not isinstance(deps, int)
        return deps

    def positions(self, units: Int64) -> EmptyNodes:
        """Return where empty nodes are. units: int64[U + 1], word offsets."""
        number = np.where(self.first >= 0, self.first - units[self.unit] + 1, 0)
        return EmptyNodes(self.unit, number, self.minor, number)

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


def stray(deps: str, n_words: int, where: str | None) -> LayerError:
    """Return the error for DEPS of a sentence of n words with a reference to another one."""
    return LayerError(
        f"the DEPS {deps[:50]!r} name a word that the sentence of {n_words} words lacks",
        where=where,
        fix="correct the tree, or leave out the sentence",
        id="head-range",
    )


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


def move_empty(nodes: Nodes, move: Realignment) -> tuple[Nodes, EmptyNodes]:
    """Return the empty nodes behind their words, and where they went. Counts those dropped.

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
    unit, at = nodes.unit[which], at[which]
    new = np.where(at >= 0, at - move.derived_units[unit] + 1, 0)
    went = EmptyNodes(unit, nodes.positions(move.source.unit_words).number[which], nodes.minor[which], new)
    # After all new ids are known, because the DEPS of a node may name any other empty node.
    moved = nodes.deps.moved(which.astype(np.int32), unit.astype(np.int32), move, went).strings().dictionary_decode()
    ids, misc = _ids(new, went.minor, _EMPTY), nodes.moved_misc(which, move)
    return nodes.take(which, at, at, id=ids, deps=moved, misc=misc), went


def _ids(first: Int64, second: Int64, mark: str) -> pa.Array:
    """Return Arrow strings [n]: 3 and 4 as 3-4."""
    return pc.binary_join_element_wise(*(pc.cast(to_arrow(n), pa.string()) for n in (first, second)), scalar(mark))
