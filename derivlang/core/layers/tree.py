"""Tree: heads and relations, enhanced dependencies, multiword tokens and empty nodes of CoNLL-U.

    head'[j] = inverse[head[order[j]]]           the relation moves with its word

    She reads books .   head 2 0 2 2   --inv-->   books reads She .   head 2 0 2 2
    the old cat         head 3 3 0     --inv-->   cat old the         head 0 1 1

Heads in DEPS are mapped in the same way. A multiword token stays if its words are adjacent and in order; otherwise it
is dissolved and counted. An empty node n.k stays behind the word that was n. The dependents of a deleted word go to its
head. An inserted word depends on the word that it marks, with the relation `dep`. A treebank may lack heads (`_`) and
have several roots, unless a transform needs trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, Objects, expand_ranges, lengths_of
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.bare_batch import BareBatch
from derivlang.core.errors import LayerError
from derivlang.core.layers.base import Labels, Layer, Realignment, side_columns
from derivlang.core.layers.deps import NO_DEPS, Deps, EmptyNodes, Graph, connected, read_deps
from derivlang.core.layers.misc import Misc
from derivlang.core.layers.nodes import NODES, Nodes, move_empty, move_ranges, stray
from derivlang.core.layers.words import Words
from derivlang.core.policies import Policies
from derivlang.core.schema import BRACKET_RELATIONS, V1_RELATIONS, V2_RELATIONS, Field
from derivlang.core.trees import NO_HEAD, first_fault

UNKNOWN = "relations-unknown"  # the count of words with a relation that Universal Dependencies does not have

_KNOWN = V1_RELATIONS.union(V2_RELATIONS, BRACKET_RELATIONS)


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

    head: int32[N], 1-based in the unit, 0 = root, NO_HEAD. deprel: the relations. deps: the DEPS of each word
    (`2:nsubj|4:conj`), or None. mwt, empty: the multiword tokens and empty nodes, or None. lexical: a lexicon maps
    their forms and lemmas.
    """

    losses: ClassVar[Mapping[str, str]] = {
        UNKNOWN: "word[|s] [has|have] a relation that Universal Dependencies does not have",
        "mwt-dissolved": "multiword token[|s] [was|were] dissolved: [its|their] words are no longer adjacent and in "
        "order (--mwt atomic keeps [it|them])",
        "mwt-deleted": "multiword token[|s] [was|were] dissolved, since [its|their] words were deleted",
        "empty-nodes-dropped": "empty node[|s] [was|were] left out, since [its|their] word was deleted",
        **{name.format("misc"): what.format("misc") for name, what in Misc.losses.items()},  # MISC of these lines
    }

    relations: ClassVar[type[Words]] = Words

    head: Int32
    deprel: Words
    deps: Deps | None = None
    mwt: Nodes | None = None
    empty: Nodes | None = None
    lexical: bool = False

    @classmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the trees of a treebank, or of a derived set. Raises LayerError as `first_fault`, and head-range.

        Of a derived set only the range of heads is checked: undone heads may not form trees.
        """
        every = cls.relations.every_side
        heads, relations = _heads("head", labels, every_side=every), labels.strings("deprel", every_side=every)
        if labels.stored:
            check_range("head", heads, labels, lowest=0 if every else NO_HEAD)
        else:
            _check_trees(heads, relations, labels)
        units = labels.batch.unit_words
        mwt, empty = (
            Nodes.read(labels.typed(name, NODES), units, mark, labels.row) if name in labels else None
            for name, mark in (("mwt", "-"), ("empty_nodes", "."))
        )
        deprel = cls.relations.of("deprel", relations, "dep")
        deps = _read_deps(labels) if "deps" in labels else None
        if labels.whole_trees:
            _check_relations(deprel, labels)
        return cls(to_numpy(heads), deprel, deps, mwt, empty, lexical=field.lexical)

    def realign(self, move: Realignment) -> Self:
        """Return the trees in the derived order. Counts dissolved multiword tokens and dropped empty nodes."""
        head, deprel = self._moved(move)
        empty, went = (None, None) if self.empty is None else move_empty(self.empty, move)
        deps = None if self.deps is None else self.deps.moved(move.order.index, move.derived_unit_of, move, went)
        mwt = None if self.mwt is None else move_ranges(self.mwt, move)
        if self.deps is not None and deps is not None and not move.order.is_permutation:
            places = None if self.empty is None else self.empty.positions(move.source.unit_words)
            source = _graph(self.deps, self.empty, places)
            relation = deprel.values.take(to_arrow(deprel.codes))
            deps, of_nodes = connected(source, _graph(deps, empty, went), move, head, relation)
            texts = of_nodes.strings().dictionary_decode()
            empty = empty and replace(empty, fields={**empty.fields, "deps": texts})
        if self.lexical and move.labels.steps:
            empty, mwt = (None if nodes is None else nodes.under(move.labels) for nodes in (empty, mwt))
        return replace(self, head=head, deprel=deprel, deps=deps, mwt=mwt, empty=empty)

    def _moved(self, move: Realignment) -> tuple[Int32, Words]:
        """Return the heads and the relations in the derived order."""
        head, deprel, index = _moved_heads(self.head, move), self.deprel.realign(move), move.order.index
        if move.order.n_deleted:
            became = (head == 0) & ((index < 0) | (self.head[np.where(index < 0, 0, index)] != 0))
            became = _one_root(head, became, move, move.derived_unit_of)
            # The relation of a source's root is left as it is.
            deprel = _root_relations(deprel, became)
        return head, deprel

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return the columns head, deprel and, if the set has them, deps, mwt and empty_nodes."""
        out = side_columns("head", batch, to_arrow(self.head)) | self.deprel.columns(batch)
        if self.deps is not None:
            out |= side_columns("deps", batch, self.deps.strings())
        rows = to_arrow(batch.records[:, 0])
        for name, nodes in (("mwt", self.mwt), ("empty_nodes", self.empty)):
            if nodes is not None:
                out[name] = nodes.column(batch.n_units).take(rows)
        return out

    def group(self, batch: BareBatch, policies: Policies, inside: Bool) -> None:
        """Set `inside` for each word of a multiword token but its first, under `atomic`."""
        if policies.mwt == "atomic" and self.mwt is not None:
            inside[expand_ranges(self.mwt.first + 1, self.mwt.last - self.mwt.first)] = True


@dataclass(frozen=True, slots=True, eq=False)
class Heads(Layer):
    """Numbers of other words, without relations, such as heads or antecedents.

    name: the column. head: int32[N], 1-based in the unit, 0 = none or the root, NO_HEAD.
    """

    name: str
    head: Int32

    @classmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the numbers of a list column. Raises LayerError head-range."""
        heads = _heads(field.column, labels)
        check_range(field.column, heads, labels, lowest=NO_HEAD)
        return cls(field.column, to_numpy(heads))

    def realign(self, move: Realignment) -> Self:
        """Return the numbers that the same words have in the derived order; see Tree for deleted and inserted words."""
        return replace(self, head=_moved_heads(self.head, move))

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return the list column."""
        return side_columns(self.name, batch, to_arrow(self.head))


def _graph(deps: Deps, empty: Nodes | None, places: EmptyNodes | None) -> Graph:
    """Return the DEPS of words and of empty nodes, if there are any."""
    none = np.zeros(0, np.int64)
    return Graph(deps, NO_DEPS if empty is None else empty.deps, places or EmptyNodes(none, none, none, none))


def _read_deps(labels: Labels) -> Deps:
    """Return the column deps. Raise LayerError head-range for a reference to a word that the sentence lacks."""
    values, lengths = labels.strings("deps"), lengths_of(labels.batch.unit_words)
    n_words = np.repeat(lengths, lengths)
    deps = read_deps(values, n_words)
    if isinstance(deps, int):
        raise stray(values[deps].as_py(), int(n_words[deps]), labels.word(deps))
    return deps


def _heads(name: str, labels: Labels, *, every_side: bool = False) -> pa.Array:
    """Return the heads of a column, int32[N]. Raise LayerError head-range for a null."""
    flat = labels.per_word(name, pa.int32(), every_side=every_side)
    if flat.null_count:
        at = int(np.flatnonzero(to_numpy(flat.is_null()))[0])
        what = "a head must be the number of a word, 0 for the root, or -1 for none"
        raise LayerError(what, where=labels.word(at), id="head-range")
    return flat


def _check_trees(heads: pa.Array, relations: pa.Array, labels: Labels) -> None:
    """Raise LayerError if the heads of a treebank are not trees, or if a root has no head."""
    head = to_numpy(heads)
    without = np.flatnonzero(head == NO_HEAD)
    names = relations.take(to_arrow(without)).to_pylist() if len(without) else []
    root = next((at for at, name in zip(without, names, strict=True) if name.lower() == "root"), None)
    if root is not None:
        raise LayerError(
            "the word has the relation root, but the head -1, which stands for none",
            where=labels.word(int(root)),
            fix="write 0 for the root; if heads count the words from 0, add 1 to each",
            id="head-range",
        )
    fault = first_fault(head, labels.batch.unit_words, whole=labels.whole_trees)
    if fault is not None:
        word, what, id = fault
        raise LayerError(
            f"the word has {what}",
            where=labels.word(word),
            fix="correct the tree, or leave out the sentence",
            id=id,
        )


def _check_relations(deprel: Words, labels: Labels) -> None:
    """Count the words whose relation is not one of Universal Dependencies. Raise LayerError if all are."""
    names = [(name or "_").partition(":")[0] for name in deprel.values.to_pylist()]
    unknown = np.array([name not in _KNOWN for name in names], bool)[deprel.codes]
    if len(unknown) and unknown.all():
        raise LayerError(
            f"{names[deprel.codes[0]]!r} is not a relation of Universal Dependencies, nor is any other here",
            where=labels.word(0),
            fix="an order of trees reads nsubj, obj, obl …, in small letters: convert the relations, or parse the text",
            id="unknown-relation",
        )
    if unknown.any():
        labels.counts[UNKNOWN] += int(unknown.sum())


def check_range(name: str, heads: pa.Array, labels: Labels, lowest: int) -> None:
    """Raise LayerError if a head, Arrow [N], is not from `lowest` to the number of words of its row."""
    numbers, words = to_numpy(heads), labels.row_lengths
    wrong = (numbers < lowest) | (numbers > np.repeat(words, words))
    if wrong.any():
        at = labels.word(int(np.argmax(wrong)))
        raise LayerError(f"{name} contains a number that is not a word of its row", where=at, id="head-range")


def _governors(head: Int32, move: Realignment) -> Int64:
    """Return int64[N]: the governor of each source word, counted in the batch, -1 for a root, -2 for NO_HEAD.

    If a governor was deleted, its own governor takes its place, and so on up to a word that was kept, or to the root.
    Raises LayerError if no head is left because the deleted words form a cycle.
    """
    up = parents(head, move.source.unit_words)
    up[head == NO_HEAD] = NO_HEAD - 1
    if move.order.n_deleted:
        gone = move.positions < 0
        governor = up.copy()
        for _ in range(int(np.diff(move.source.unit_words).max(initial=0)) + 1):  # no path is longer than its unit
            lost = np.flatnonzero((governor >= 0) & gone[np.maximum(governor, 0)])
            if not len(lost):
                return governor
            governor[lost] = up[governor[lost]]
        raise LayerError("the heads of deleted words form a cycle", id="tree")
    return up


def _moved_heads(head: Int32, move: Realignment) -> Int32:
    """Return int32[M]: the heads of the derived words, 1-based in the unit, 0 = root, NO_HEAD."""
    heads = _governors(head, move)
    index = move.order.index
    kept = index >= 0
    # Index -1 would read the last word, so an inserted word reads word 0 here and gets its governor below.
    governor = heads[np.where(kept, index, 0)]
    if move.order.n_inserted:
        anchors = move.order.anchors
        assert anchors is not None
        # An inserted word depends on the word that it marks, or on that word's governor if the word was deleted.
        governor[~kept] = np.where(move.positions[anchors] >= 0, anchors, heads[anchors])
    # np.where computes both branches: for roots positions[0] is read, too, and dropped.
    place = move.positions[np.maximum(governor, 0)] - move.derived_units[move.derived_unit_of] + 1
    return np.where(governor >= 0, place, governor + 1).astype(np.int32)


def _one_root(head: Int32, became: Bool, move: Realignment, unit: Int32) -> Bool:
    """Return bool[M]: the words that are new roots. Other words that became roots depend on the first root of the unit.

    head: int32[M], changed in place. became: bool[M], words that became roots as they lost all their governors. A root
    of the source comes before these, and stays if there are several.

    [0, 1, 0] in one unit, all of which became roots  ->  [0, 1, 1]
    """
    roots = np.flatnonzero(head == 0)
    roots = roots[np.lexsort((became[roots], unit[roots]))]
    first = np.ones(len(roots), bool)
    first[1:] = unit[roots[1:]] != unit[roots[:-1]]
    # Roots of units [0, 0, 1, 1]: first [T, F, T, F], its sum [1, 1, 2, 2]. So the others, roots 1 and 3, get the first
    # roots of their units, roots 0 and 2.
    keeper = roots[first][np.cumsum(first) - 1]
    joins = ~first & became[roots]
    head[roots[joins]] = keeper[joins] - move.derived_units[unit[roots[joins]]] + 1
    return np.asarray(became & (head == 0))


def _root_relations(deprel: Words, became: Bool) -> Words:
    """Return the relations with `root` for the words that became roots, bool[M]."""
    values = deprel.values.to_pylist()
    if "root" not in values:
        values.append("root")
    codes = np.where(became, np.int32(values.index("root")), deprel.codes)
    return replace(deprel, codes=codes, values=string_array(values))
