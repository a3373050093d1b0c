"""Scores: what neighbours and pairs of members add to the score of an order, from a weighted mixture of models.

    left[a, b]   = PRE + BFR     a before b, both before the head          (the head itself: only PRE)
    right[a, b]  = PRE + AFT     a before b, both after it
    across[a, b] = PRE + BTW     the head between them
    next[a, b]   = BI            b follows a; BOS before the first, EOS after the last

each summed over the views and over the models, times weight / temperature. `Local` holds the scores of some families of
one size, families last: what follows is elementwise over families, so no result depends on which families are computed
together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from derivlang.core.arrays import Int32, Int64
from derivlang.grammar.enumerate_orders import MOST_WITH_HI, Local, Sequences, flat, indicators, to_members
from derivlang.grammar.families import NONE, as_in_trees, candidates, head_class, is_head
from derivlang.grammar.weights import BOS, EOS, PAIRS, Float, Weights, views

_PRE, _BFR, _AFT, _BTW, _BI = range(len(PAIRS))


@dataclass(frozen=True, slots=True)
class Component:
    """One model of a mixture.

    labels: the label version to map to (None: labels as they are). own: the trees are of the model's own language, so
    that a relation without a subtype is one that it has so named (`families`).
    """

    share: float
    weights: Weights
    labels: str | None
    own: bool = False


class SameSize(NamedTuple):
    """b families of n members: label numbers int32[n, b], position of each head int64[b], its class int32[b]."""

    labels: Int32
    heads: Int64
    classes: Int32

    def take(self, which: Int64) -> SameSize:
        """Return some of the families."""
        return SameSize(self.labels[:, which], self.heads[which], self.classes[which])


class Scores:
    """The scores of one mixture. It numbers labels in the order in which they come; 0 is BOS, 1 EOS.

    Labels that the models cannot distinguish (relations that none of them knows) share a number.
    """

    def __init__(self, classes: dict[str, tuple[Component, ...]], temperature: float) -> None:
        self.classes = classes
        self.class_names = tuple(classes)
        self._scale = 1.0 / temperature
        self._numbers: dict[str, int] = {}
        self._of_codes: dict[tuple[str | tuple[int, ...], ...], int] = {}  # number by `_codes`
        self._rows: list[Int64] = []  # of each class int64[labels, columns]: its `_codes`
        # Of each class, for each component and view, what a pair adds to its cell.
        self._cells = [
            [_cells_of(weights, one.share * self._scale) for one in classes[name] for weights in one.weights.pairs]
            for name in self.class_names
        ]
        self._sequences = [[Sequences(one.weights.sequences) for one in classes[name]] for name in self.class_names]
        self.numbers((BOS, EOS))

    def __len__(self) -> int:
        return len(self._of_codes)

    def numbers(self, tokens: tuple[str, ...]) -> tuple[Int32, Int32]:
        """Return (label number, class number of a head; -1: no model) of each token, int32[T]; new labels are added."""
        n_labels = len(self)
        for token in tokens:
            if token not in self._numbers:
                self._numbers[token] = self._of_codes.setdefault(self._codes(token), len(self))
        if len(self) > n_labels:
            _, *of_classes = zip(*self._of_codes, strict=True)
            self._rows = [np.array(codes, np.int64) for codes in of_classes]
        numbers = np.array([self._numbers[token] for token in tokens], np.int32)
        known = {name: i for i, name in enumerate(self.class_names)}
        classes = np.array([known.get(head_class(t), -1) if is_head(t) else -1 for t in tokens], np.int32)
        return numbers, classes

    def local(self, families: SameSize) -> Local:
        """Return the scores of some families."""
        labels, heads, classes = families
        n, b = labels.shape
        d = n - 1
        # dependent i is member i before the head, member i + 1 after it: head at 1 of 3 -> dependents 0, 2
        index = np.arange(d)[:, None]
        dependents = labels[index + (index >= heads), np.arange(b)]
        ends = np.repeat([[0], [1]], b, axis=1)  # BOS and EOS
        members = np.concatenate([dependents, labels[None, heads, np.arange(b)], ends])
        pairs = np.empty((n + 2, n + 2, b, 4))
        for c in np.unique(classes).tolist():
            at = np.flatnonzero(classes == c)
            pairs[:, :, at] = self._pairs(c, members[:, at])
        left, right, across, following = np.ascontiguousarray(np.moveaxis(pairs, -1, 0))
        return Local(left[:d, :d], right[:d, :d], across[:d, :d], left[:d, d], left[d, :d], following)

    def _pairs(self, class_number: int, members: Int64) -> Float:
        """Return float64[m, m, b, 4]: left, right, across and next of all pairs of labels int64[m, b]."""
        rows = self._rows[class_number][members]
        out = np.zeros((len(members), *members.shape, 4))
        for view, cells in enumerate(self._cells[class_number]):
            row = rows[..., view]
            out += cells.take(row[:, None] * math.isqrt(len(cells)) + row, axis=0)
        return out

    def needs_all_orders(self, families: SameSize) -> bool:
        """Return whether a model of their classes has HI features that these families can have."""
        return len(families.labels) <= MOST_WITH_HI and any(
            component.weights.sequences
            for c in np.unique(families.classes).tolist()
            for component in self.classes[self.class_names[c]]
        )

    def of_all_orders(self, local: Local, families: SameSize) -> Float:
        """Return float64[b, n!]: the scores of all orders of b families, HI included. local: their scores.

        The orders are as in `all_orders`; their members are the dependents, and the head as the last member.
        """
        rows, heads, classes = families
        n = len(rows)
        out = flat(local).T @ indicators(n)
        for c in np.unique(classes).tolist():
            at = np.flatnonzero(classes == c)
            heads_last = to_members(np.arange(n, dtype=np.int8)[None], heads[at]).T.astype(np.int64)
            out[at] += self._sequence_scores(c, rows[heads_last, at])
        return np.asarray(out)

    def _sequence_scores(self, class_number: int, rows: Int32) -> Float:
        """Return float64[b, n!]: what HI adds to all orders of b families of one class; rows: int32[n, b]."""
        out: Float | float = 0.0
        codes = self._rows[class_number][:, len(self._cells[class_number]) :]
        for at, component in enumerate(self.classes[self.class_names[class_number]]):
            table = self._sequences[class_number][at]
            out = out + component.share * self._scale * table.score(codes[rows, at].T)
        return np.asarray(out)

    def _codes(self, token: str) -> tuple[str | tuple[int, ...], ...]:
        """Return all that the models see of a label, for each class: its row in each view, and its HI codes.

        BOS, EOS and heads of different classes always differ.
        """
        out: list[str | tuple[int, ...]] = [
            token if token in (BOS, EOS) else head_class(token) if is_head(token) else ""
        ]
        for name, sequences in zip(self.class_names, self._sequences, strict=True):
            rows, hi = [], []
            for component, table in zip(self.classes[name], sequences, strict=True):
                mapped, tables = _mapped(token, name, component), component.weights.codes
                seen = zip(tables, views(mapped, len(tables)), strict=True)
                rows += [codes.get(label, len(codes)) for codes, label in seen]
                hi.append(table.codes.get(mapped, -1))
            out.append((*rows, *hi))
        return tuple(out)


def _cells_of(weights: Float, factor: float) -> Float:
    """Return float64[rows², 4]: left, right, across and next of each pair. weights: float64[5, rows, rows]."""
    cells = weights[[_BFR, _AFT, _BTW, _BI]]
    cells[:3] += weights[_PRE]
    cells *= factor
    return np.ascontiguousarray(cells.reshape(4, -1).T)


def _mapped(token: str, name: str, component: Component) -> str:
    """Return the name of a label in a component."""
    if token in (BOS, EOS):
        return token
    if component.labels is None:
        return as_in_trees(token)
    if component.own and component.weights.knows(no_subtype := f"{token}:{NONE}"):
        return no_subtype
    return component.weights.choose(candidates(token, name, component.labels))
