"""Scores: what neighbours and pairs of members add to the score of an order, from a weighted mixture of models.

    left[a, b]   = PRE + BFR     a before b, both before the head          (the head itself: only PRE)
    right[a, b]  = PRE + AFT     a before b, both after it
    across[a, b] = PRE + BTW     the head between them
    next[a, b]   = BI            b follows a; BOS before the first, EOS after the last

each summed over the views and over the models, times weight / temperature. `Scores` keeps these tables for the labels
seen so far, the scores of a class for the labels seen in its families. `Local` holds the scores of some families of one
size, families last: what follows is elementwise over families, so no result depends on which families are computed
together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain

import numpy as np

from derivlang.core.arrays import Int32, Int64
from derivlang.grammar.enumerate_orders import Local, flat, indicators, to_members
from derivlang.grammar.families import NONE, as_in_trees, head_class, is_head
from derivlang.grammar.labels import candidates
from derivlang.grammar.sequences import MOST_MEMBERS, Sequences
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


class Scores:
    """The tables of one mixture. It numbers labels in the order in which they come; 0 is BOS, 1 EOS.

    Labels that the models cannot distinguish (relations that none of them knows) share a number, so the models bound
    the size of the tables, not the labels of a corpus.
    """

    def __init__(self, classes: dict[str, tuple[Component, ...]], temperature: float) -> None:
        self.classes = classes
        self.class_names = tuple(classes)
        self._scale = 1.0 / temperature
        self._numbers: dict[str, int] = {}
        self._of_codes: dict[tuple[str | int, ...], int] = {}  # number by `_codes`
        self._rows = [
            [[np.zeros(0, np.int64) for _ in component.weights.codes] for component in classes[name]]
            for name in self.class_names
        ]  # of each class, component and view: label number -> row of the component's table
        self._sequences = [
            [(Sequences(component.weights.sequences), np.zeros(0, np.int32)) for component in classes[name]]
            for name in self.class_names
        ]  # with the code of each label number
        # Cells of four numbers side by side: left, right, across and next of a pair. The table of class c begins with
        # cell _begins[c] and has _widths[c] rows and columns; label `number` has row _places[c, number] of it, -1 if
        # none.
        self._flat = np.zeros(0)
        self._n_cells = 0
        self._begins, self._widths = np.zeros((2, len(classes)), np.int64)
        self._places = np.full((len(classes), 0), -1, np.int32)
        self._labels = [np.zeros(0, np.int64) for _ in classes]  # the numbers of each class's rows
        self._class_cells: list[list[Float]] = [[] for _ in classes]  # of `_cells`
        self._known: tuple[tuple[str, ...], Int32, Int32] = ((), np.zeros(0, np.int32), np.zeros(0, np.int32))
        self.numbers((BOS, EOS))

    def __len__(self) -> int:
        return len(self._of_codes)

    def numbers(self, tokens: tuple[str, ...]) -> tuple[Int32, Int32]:
        """Return (label number, class number of a head; -1: no model) of each token, int32[T]; new labels are added."""
        if tokens is self._known[0] or tokens == self._known[0]:
            return self._known[1:]
        new = [token for token in tokens if token not in self._numbers]
        if new:
            self._extend(new)
        numbers = np.array([self._numbers[token] for token in tokens], np.int32)
        known = {name: i for i, name in enumerate(self.class_names)}
        classes = np.array([known.get(head_class(t), -1) if is_head(t) else -1 for t in tokens], np.int32)
        self._known = (tokens, numbers, classes)
        return numbers, classes

    def local(self, numbers: Int32, head_places: Int64, classes: Int32) -> Local:
        """Return the scores of b families of n members.

        numbers: label numbers int32[n, b]. head_places: int64[b], position of the head. classes: int32[b].
        """
        n, b = numbers.shape
        member_rows = self._rows_of(numbers, classes)
        head = member_rows[head_places, np.arange(b)]
        # dependent i is member i before the head, member i + 1 after it: head at 1 of 3 -> dependents 0, 2
        index = np.arange(n - 1)[:, None]
        rows = member_rows[index + (index >= head_places), np.arange(b)]
        # Cell [a, b] of a class begins at base + a · c + b · 4 in the flat tables. A view that begins 1, 2 or 3 numbers
        # later reads the other numbers of a cell at the same index.
        c, base = 4 * self._widths[classes], 4 * self._begins[classes]
        left, right, across, following = (self._flat[at:] for at in range(4))
        below, columns, its_column = base + rows * c, 4 * rows, 4 * head
        pairs = below[:, None] + columns
        under_head = base + head * c
        to_head, from_head = below + its_column, under_head + columns
        return Local(
            left.take(pairs),
            right.take(pairs),
            across.take(pairs),
            following.take(pairs),
            left.take(to_head),
            left.take(from_head),
            following.take(base + columns),  # BOS has row 0
            # EOS has row 1.
            following.take(below + 4),
            following.take(to_head),
            following.take(from_head),
            np.stack([following.take(base + its_column), following.take(under_head + 4)]),
        )

    def add(self, numbers: Int32, classes: Int32) -> None:
        """Add labels to the tables of their classes; many in one call cost less.

        numbers, classes: int32[M], the label numbers[i] is added to the table of classes[i].
        """
        new = np.flatnonzero(self._places[classes, numbers] < 0)
        for c in np.unique(classes[new]).tolist():
            self._add(c, np.unique(numbers[new[classes[new] == c]]))

    def _rows_of(self, numbers: Int32, classes: Int32) -> Int64:
        """Return int64[n, b]: the rows of labels in the tables of their classes; new ones are added."""
        rows = self._places[classes, numbers]
        if (rows < 0).any():
            self.add(numbers.reshape(-1), np.tile(classes, len(numbers)))
            rows = self._places[classes, numbers]
        return rows.astype(np.int64)

    def needs_all_orders(self, n: int, classes: Int32) -> bool:
        """Return whether a model of these classes (int32[b]) has HI features that families of n members can have."""
        return n <= MOST_MEMBERS and any(
            component.weights.sequences
            for c in np.unique(classes).tolist()
            for component in self.classes[self.class_names[c]]
        )

    def of_all_orders(self, local: Local, rows: Int32, heads: Int64, classes: Int32) -> Float:
        """Return float64[b, n!]: the scores of all orders of b families, HI included.

        local: their scores. rows: label numbers int32[n, b]. heads: int64[b], position of each head. The orders are
        as in `all_orders`; their members are the dependents, and the head as the last member.
        """
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
        for at, component in enumerate(self.classes[self.class_names[class_number]]):
            table, codes = self._sequences[class_number][at]
            out = out + component.share * self._scale * table.score(codes[rows].T)
        return np.asarray(out)

    def _codes(self, token: str) -> tuple[str | int, ...]:
        """Return all that the models see of a label: its row in each view of each component, and its HI code.

        BOS, EOS and heads of different classes always differ.
        """
        out: list[str | int] = [token if token in (BOS, EOS) else head_class(token) if is_head(token) else ""]
        for at, name in enumerate(self.class_names):
            for i, component in enumerate(self.classes[name]):
                mapped = _mapped(token, name, component)
                tables = component.weights.codes
                seen = views(mapped, len(tables))
                out += [codes.get(seen[view], len(codes)) for view, codes in enumerate(tables)]
                out.append(self._sequences[at][i][0].codes.get(mapped, -1))
        return tuple(out)

    def _extend(self, tokens: list[str]) -> None:
        token_codes = [self._codes(token) for token in tokens]
        begin, new_codes = len(self), [codes for codes in dict.fromkeys(token_codes) if codes not in self._of_codes]
        self._of_codes.update((codes, begin + i) for i, codes in enumerate(new_codes))
        self._numbers.update((token, self._of_codes[codes]) for token, codes in zip(tokens, token_codes, strict=True))
        if not new_codes:
            return
        more = np.full((len(self.class_names), len(new_codes)), -1, np.int32)
        self._places = np.concatenate([self._places, more], axis=1)
        columns = iter(np.array([codes[1:] for codes in new_codes], np.int64).T)
        for at in range(len(self.class_names)):
            for i, rows in enumerate(self._rows[at]):
                for view in range(len(rows)):
                    rows[view] = np.append(rows[view], next(columns))
                table, known = self._sequences[at][i]
                self._sequences[at][i] = (table, np.append(known, next(columns)).astype(np.int32))
        if begin == 0:  # BOS and EOS, the first labels, have the first rows of all tables
            for at in range(len(self.class_names)):
                self._add(at, np.arange(2))

    def _add(self, at: int, numbers: Int64) -> None:
        """Add labels, by number, to the tables of one class."""
        begin = len(self._labels[at])
        labels = self._labels[at] = np.concatenate([self._labels[at], numbers])
        self._places[at, numbers] = np.arange(begin, len(labels))
        if len(labels) > self._widths[at]:
            self._widen(at, max(len(labels) + 32, int(self._widths[at]) * 3 // 2))
        # A table of old (o) and new (n) labels: the first call fills the rows n × (o and n), the second the cells o ×
        # n.
        self._fill(at, slice(begin, len(labels)), slice(0, len(labels)))
        self._fill(at, slice(0, begin), slice(begin, len(labels)))

    def _widen(self, at: int, width: int) -> None:
        """Move the table of a class behind all others, with more room."""
        begin, old = self._n_cells, int(self._widths[at])
        self._n_cells += width * width
        # In place: the system moves a large array without a copy, and fills it with zeros. No view outlives a call.
        self._flat.resize(4 * self._n_cells, refcheck=False)
        table = self._table(at)
        self._begins[at], self._widths[at] = begin, width
        self._table(at)[:old, :old] = table

    def _table(self, at: int) -> Float:
        """Return float64[width, width, 4], a view: the table of one class."""
        begin, width = 4 * int(self._begins[at]), int(self._widths[at])
        return self._flat[begin : begin + 4 * width * width].reshape(width, width, 4)

    def _fill(self, at: int, firsts: slice, seconds: slice) -> None:
        first, second = self._labels[at][firsts, None], self._labels[at][seconds]
        table = self._table(at)[firsts, seconds]
        for cells, row in zip(self._cells(at), chain.from_iterable(self._rows[at]), strict=True):
            # A view of the flat tables: adding in place changes them.
            table += cells.take(row[first] * math.isqrt(len(cells)) + row[second], axis=0)

    def _cells(self, at: int) -> list[Float]:
        """Return for each component and view of a class float64[rows², 4]: what a pair adds to its cell.

        They are computed when the first labels are added, and kept.
        """
        if not self._class_cells[at]:
            self._class_cells[at] = [
                _cells_of(weights, component.share * self._scale)
                for component in self.classes[self.class_names[at]]
                for weights in component.weights.pairs
            ]
        return self._class_cells[at]


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
