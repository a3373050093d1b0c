"""Tree: heads and relations, enhanced dependencies, multiword tokens and empty nodes of CoNLL-U.

    head'[j] = inverse[head[order[j]]]           the relation moves with its word

    She reads books .   head 2 0 2 2   --inv-->   books reads She .   head 2 0 2 2
    the old cat         head 3 3 0     --inv-->   cat old the         head 0 1 1

Heads in DEPS are mapped in the same way. A multiword token stays if its words are adjacent and in order; otherwise it
is dissolved and counted. An empty node n.k stays behind the word that was n. The dependents of a deleted word go to its
head. An inserted word depends on the word that it marks, with the relation `dep`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, Objects, expand_ranges, lengths_of, offsets_of
from derivlang.core.arrow import list_array, string_array, to_arrow, to_numpy
from derivlang.core.bare_batch import BareBatch
from derivlang.core.errors import LayerError
from derivlang.core.layers.base import Layer, Realignment, record_lists
from derivlang.core.layers.deps import map_deps, moved_deps
from derivlang.core.layers.labels import Labels
from derivlang.core.layers.words import Words
from derivlang.core.lexicon import Lexicon
from derivlang.core.policies import Policies
from derivlang.core.schema import Field
from derivlang.core.trees import NODE_ID, first_fault, first_stray

NODE_FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
NODES = pa.list_(pa.struct([(field, pa.string()) for field in NODE_FIELDS]))
_WORDS = ("form", "lemma")


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """The n lines that are not words: multiword tokens (`3-4`) or empty nodes (`8.1`).

    unit: int64[n]. first, last: int64[n], the first and the last word that the line covers, counted in the batch from
    0. For an empty node both are the word before it, -1 if it is before the first word. fields: the ten columns.

    unit 1, whose words are 5 to 9: the multiword token 3-4 has first 7 and last 8, the empty node 3.1 has 7 and 7
    """

    unit: Int64
    first: Int64
    last: Int64
    fields: tuple[dict[str, str], ...]

    @classmethod
    def read(
        cls, column: pa.Array, unit_words: Int64, mark: str, where: Callable[[int], str | None] = lambda row: None
    ) -> Nodes:
        """Return the nodes of a column NODES[U].

        mark: "-" in the ids of multiword tokens, "." in the ids of empty nodes. where: returns the place of a unit.
        Raises LayerError node-id for a null, for an id that does not fit its unit, and for DEPS out of range.
        """
        unit: list[int] = []
        first: list[int] = []
        last: list[int] = []
        fields = []
        for u, nodes in enumerate(column.to_pylist()):
            start, n_words = int(unit_words[u]), int(unit_words[u + 1] - unit_words[u])
            for node in nodes or ():
                if node is None or None in node.values():
                    name = next((name for name, value in (node or {}).items() if value is None), "id")
                    raise LayerError(f"a multiword token or an empty node has no {name}", where=where(u), id="node-id")
                match = NODE_ID.fullmatch(node["id"])
                begin, end = (int(match[1]), int(match[3])) if match and match[2] == mark else (-1, -1)
                if not (1 <= begin <= end <= n_words if mark == "-" else 0 <= begin <= n_words):
                    what = "range" if mark == "-" else "empty node"
                    raise LayerError(f"{node['id']!r} is not a {what} of {n_words} words", where=where(u), id="node-id")
                unit.append(u)
                first.append(start + begin - 1 if begin else -1)
                last.append(start + end - 1 if mark == "-" else first[-1])
                fields.append(node)
        arrays = [np.array(values, np.int64) for values in (unit, first, last)]
        n_words_of = lengths_of(unit_words)[arrays[0]]
        stray = first_stray(string_array(node["deps"] for node in fields), n_words_of)
        if stray is not None:
            raise _stray(fields[stray]["deps"], int(n_words_of[stray]), where(unit[stray]))
        return cls(arrays[0], arrays[1], arrays[2], tuple(fields))

    def under(self, lexicon: Lexicon) -> Nodes:
        """Return the lines with their forms and lemmas mapped by a lexicon."""
        words = string_array([node[field] for node in self.fields for field in _WORDS])
        image = iter(lexicon.apply_to_labels(words).to_pylist())
        return replace(self, fields=tuple({**node, **{field: next(image) for field in _WORDS}} for node in self.fields))

    def column(self, n_units: int) -> pa.Array:
        """Return the column NODES[U]; units without such lines have an empty list."""
        nodes = [self.fields[i] for i in np.argsort(self.unit, kind="stable").tolist()]
        columns = [string_array([node[name] for node in nodes]) for name in NODE_FIELDS]
        values = pa.StructArray.from_arrays(columns, fields=list(NODES.value_type))
        return list_array(offsets_of(np.bincount(np.asarray(self.unit, np.int64), minlength=n_units)), values)


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """The trees of a batch, as `Batch.trees` gives them.

    parent: int64[N], the governor of each word, counted in the batch from 0, -1 for a root. relation: object[N], the
    relation of each word to its governor (`nsubj`).
    """

    parent: Int64
    relation: Objects


def parents(head: Int32, units: Int64) -> Int64:
    """Return int64[N]: the governor of each word, counted in the batch, -1 for a root.

    head: int32[N], 1-based in the unit, 0 = root. units: word offsets [0, 2, 4], heads 2 0 0 1  ->  1 -1 -1 2
    """
    parent = np.repeat(units[:-1], lengths_of(units)) + head - 1
    parent[head <= 0] = -1
    return np.asarray(parent)


@dataclass(frozen=True, slots=True, eq=False)
class Tree(Layer):
    """The trees of N words. A gold tree spans its unit.

    head: int32[N], 1-based in the unit, 0 = root. deprel: the relations. deps: strings [N], the DEPS of each word
    (`2:nsubj|4:conj`), or None. mwt, empty: the multiword tokens and empty nodes, or None. lexical: a lexicon maps
    their forms and lemmas.
    """

    losses: ClassVar[Mapping[str, str]] = {
        "mwt-dissolved": "multiword token[|s] [was|were] dissolved: [its|their] words are no longer adjacent and in "
        "order (--mwt atomic keeps [it|them])",
        "mwt-deleted": "multiword token[|s] [was|were] dissolved, since [its|their] words were deleted",
        "empty-nodes-dropped": "empty node[|s] [was|were] left out, since [its|their] word was deleted",
    }

    head: Int32
    deprel: Words
    deps: pa.Array | None = None
    mwt: Nodes | None = None
    empty: Nodes | None = None
    lexical: bool = False

    @classmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the trees of a treebank. Raises LayerError for a missing head, and as `first_fault` describes."""
        fault = first_fault(to_numpy(_heads("head", labels)), labels.batch.unit_words)
        if fault is not None:
            word, what, id = fault
            raise LayerError(f"the word has {what}", where=labels.word(word), fix="correct the tree", id=id)
        return cls._of(field, labels)

    @classmethod
    def restore(cls, field: Field, labels: Labels) -> Self:
        """Return the trees of a derived set. Only the range of heads is checked: undone heads may not form trees."""
        check_range("head", _heads("head", labels), labels)
        return cls._of(field, labels)

    @classmethod
    def _of(cls, field: Field, labels: Labels) -> Self:
        units = labels.batch.unit_words
        mwt, empty = (
            Nodes.read(labels.typed(name, NODES), units, mark, labels.row) if name in labels else None
            for name, mark in (("mwt", "-"), ("empty_nodes", "."))
        )
        deprel = Words.of("deprel", labels.strings("deprel"), "dep")
        deps = labels.strings("deps").cast(pa.string()) if "deps" in labels else None
        if deps is not None:
            n_words = np.repeat(lengths_of(units), lengths_of(units))
            stray = first_stray(deps, n_words)
            if stray is not None:
                raise _stray(deps[stray].as_py(), int(n_words[stray]), labels.word(stray))
        return cls(to_numpy(_heads("head", labels)), deprel, deps, mwt, empty, lexical=field.lexical)

    def realign(self, move: Realignment) -> Self:
        """Return the trees in the derived order. Counts dissolved multiword tokens and dropped empty nodes."""
        heads = _governors(self.head, move)
        index = move.order.index
        kept = index >= 0
        # Index -1 would read the last word, so an inserted word reads word 0 here and gets its governor below.
        governor = heads[np.where(kept, index, 0)]
        if move.order.n_inserted:
            anchors = move.order.anchors
            assert anchors is not None
            # An inserted word depends on the word that it marks, or on that word's governor if the word was deleted.
            governor[~kept] = np.where(move.positions[anchors] >= 0, anchors, heads[anchors])
        unit = move.derived_unit_of
        # np.where computes both branches: for roots positions[-1] is read, too, and dropped.
        head = np.where(governor >= 0, move.positions[governor] - move.derived_units[unit] + 1, 0)
        head = _one_root(head.astype(np.int32), move, unit)
        deprel = self.deprel.realign(move)
        if move.order.n_deleted:
            # Only words that were not roots before: the relation of a source's root is left as it is.
            became = (head == 0) & (~kept | (self.head[np.where(kept, index, 0)] != 0))
            deprel = _root_relations(deprel, became)
        empty, numbers = (None, {}) if self.empty is None else _move_empty(self.empty, move)
        deps = None if self.deps is None else moved_deps(self.deps, move, numbers, unit)
        mwt = None if self.mwt is None else _move_ranges(self.mwt, move)
        if self.lexical:
            empty, mwt = (None if nodes is None else nodes.under(move.labels) for nodes in (empty, mwt))
        return replace(self, head=head, deprel=deprel, deps=deps, mwt=mwt, empty=empty)

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return the columns head, deprel and, if the set has them, deps, mwt and empty_nodes."""
        out = {"head": record_lists(batch, to_arrow(self.head)), **self.deprel.columns(batch)}
        if self.deps is not None:
            out["deps"] = record_lists(batch, self.deps)
        rows = to_arrow(batch.records[:, 0])
        for name, nodes in (("mwt", self.mwt), ("empty_nodes", self.empty)):
            if nodes is not None:
                out[name] = nodes.column(batch.n_units).take(rows)
        return out

    def group(self, batch: BareBatch, policies: Policies, inside: Bool) -> None:
        """Set `inside` for each word of a multiword token but its first, under `atomic`."""
        if policies.mwt == "atomic" and self.mwt is not None:
            inside[expand_ranges(self.mwt.first + 1, self.mwt.last - self.mwt.first)] = True


def _heads(name: str, labels: Labels, side: int | None = None) -> pa.Array:
    """Return the heads of a column, int32[N]. Raise LayerError head-range for a null."""
    flat = labels.per_word(name, pa.int32(), side=side)
    if flat.null_count:
        at = int(np.flatnonzero(to_numpy(flat.is_null()))[0])
        raise LayerError("a head must be the number of a word, 0 for the root", where=labels.word(at), id="head-range")
    return flat


def _stray(deps: str, n_words: int, where: str | None) -> LayerError:
    """Return the error for DEPS of a sentence of n words with a reference to another one."""
    return LayerError(
        f"the DEPS {deps[:50]!r} name a word that the sentence of {n_words} words lacks",
        where=where,
        fix="correct the tree, or leave out the sentence",
        id="head-range",
    )


def check_range(name: str, heads: pa.Array, labels: Labels, side: int = 0) -> None:
    """Raise LayerError if a head of a derived set is not 0 or the number of a word of its row. heads: Arrow [N]."""
    if heads.null_count or not pa.types.is_integer(heads.type):
        raise LayerError(f"{name} does not hold a number for each word", id="head-range")
    numbers = to_numpy(heads)
    words = lengths_of(labels.batch.unit_words)[labels.batch.records[:, side]]
    if (numbers < 0).any() or (numbers > np.repeat(words, words)).any():
        raise LayerError(f"{name} contains a number that is not a word of its row", id="head-range")


def _governors(head: Int32, move: Realignment) -> Int64:
    """Return int64[N]: the governor of each source word, counted in the batch, -1 for a root.

    If a governor was deleted, its own governor takes its place, and so on up to a word that was kept, or to the root.
    Raises LayerError if no head is left because the deleted words form a cycle.
    """
    up = parents(head, move.source.unit_words)
    if move.order.n_deleted:
        gone = move.positions < 0
        governor = up.copy()
        for _ in range(int(np.diff(move.source.unit_words).max(initial=0)) + 1):  # no path is longer than its unit
            lost = np.flatnonzero((governor >= 0) & gone[governor])
            if not len(lost):
                return governor
            governor[lost] = up[governor[lost]]
        raise LayerError("the heads of deleted words form a cycle", id="tree")
    return up


def _one_root(head: Int32, move: Realignment, unit: Int32) -> Int32:
    """Return heads with one root per unit: if a deleted root left several, the others depend on the first.

    head: int32[M], changed in place. [0, 1, 0] in one unit  ->  [0, 1, 1]
    """
    if not move.order.n_deleted:
        return head
    roots = np.flatnonzero(head == 0)
    first = np.ones(len(roots), bool)
    first[1:] = unit[roots[1:]] != unit[roots[:-1]]
    other = roots[~first]
    # Roots of units [0, 0, 1, 1]: first [T, F, T, F], its sum [1, 1, 2, 2]. So the others, roots 1 and 3, get the first
    # roots of their units, roots 0 and 2.
    keeper = roots[first][np.cumsum(first)[~first] - 1]
    head[other] = keeper - move.derived_units[unit[other]] + 1
    return head


def _root_relations(deprel: Words, became: Bool) -> Words:
    """Return the relations with `root` for the words that became roots, bool[M]."""
    values = deprel.values.to_pylist()
    if "root" not in values:
        values.append("root")
    codes = np.where(became, np.int32(values.index("root")), deprel.codes)
    return replace(deprel, codes=codes, values=string_array(values))


def _move_ranges(nodes: Nodes, move: Realignment) -> Nodes:
    """Return the multiword tokens whose words are still adjacent and in order, with new ids. Counts the others."""
    places = move.positions
    first, last = places[nodes.first], places[nodes.last]
    length = nodes.last - nodes.first
    # Every step must be +1: this also fails where a word in the middle was deleted, as its position is -1.
    stays = np.array(
        [
            first[i] >= 0 and bool((np.diff(places[a : b + 1]) == 1).all())
            for i, (a, b) in enumerate(zip(nodes.first, nodes.last, strict=True))
        ],
        bool,
    )
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
    base = move.derived_units[nodes.unit]
    fields = tuple(
        {**nodes.fields[i], "id": f"{first[i] - base[i] + 1}-{first[i] - base[i] + 1 + length[i]}"} for i in which
    )
    return Nodes(nodes.unit[which], first[which].astype(np.int64), last[which].astype(np.int64), fields)


def _move_empty(nodes: Nodes, move: Realignment) -> tuple[Nodes, dict[tuple[int, str], str]]:
    """Return the empty nodes behind their words, and their new ids by (unit, old id). Counts those dropped.

    3.1 of a word that moves to position 5 of its unit  ->  5.1; 0.1 stays first
    """
    places = move.positions
    # `first` is -1 for a node before the first word (0.1). The -1 that is appended can then be read in a batch without
    # words.
    at = np.where(nodes.first >= 0, np.append(places, -1)[nodes.first], -1)
    gone = (nodes.first >= 0) & (at < 0)
    if gone.any():
        move.counts["empty-nodes-dropped"] += int(gone.sum())
    which = np.flatnonzero(~gone)
    which = which[np.lexsort((at[which], nodes.unit[which]))]
    numbers, fields = {}, []
    for i in which:
        old = nodes.fields[i]["id"]
        base = int(move.derived_units[nodes.unit[i]])
        new = f"{int(at[i]) - base + 1 if nodes.first[i] >= 0 else 0}.{old.partition('.')[2]}"
        numbers[int(nodes.unit[i]), old] = new
        fields.append({**nodes.fields[i], "id": new})
    # A second pass, because the DEPS of a node may name any other empty node by its new id.
    for i, row in zip(which, range(len(fields)), strict=True):
        fields[row]["deps"] = map_deps(fields[row]["deps"], int(nodes.unit[i]), move, numbers)
    kept = Nodes(nodes.unit[which], at[which].astype(np.int64), at[which].astype(np.int64), tuple(fields))
    return kept, numbers
