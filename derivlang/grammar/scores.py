"""Scores: what neighbours and pairs of members add to the score of an order, from a weighted mixture of models.

    left[a, b]   = PRE + BFR     a before b, both before the head          (the head itself: PRE alone)
    right[a, b]  = PRE + AFT     a before b, both after it
    across[a, b] = PRE + BTW     the head between them
    next[a, b]   = BI            b follows a; BOS before the first, EOS after the last

each summed over the views and over the models, times weight / temperature. `Scores` keeps these tables
for the labels met so far; `Local` holds those of some families of one size, families last, so that all that
follows is elementwise over families: nothing depends on which families are together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Int32, Int64
from derivlang.grammar.families import head_class, is_head
from derivlang.grammar.labels import candidates
from derivlang.grammar.local import Local
from derivlang.grammar.sequences import Sequences
from derivlang.grammar.weights import BOS, EOS, PAIRS, Float, Weights, views

_PRE, _BFR, _AFT, _BTW, _BI = range(len(PAIRS))


@dataclass(frozen=True, slots=True)
class Component:
    """One model of a mixture: its share, weights, and the label version to map to (None: labels as they are)."""

    share: float
    weights: Weights
    labels: str | None


class Scores:
    """The tables of one mixture. Label numbers are its own, in the order of meeting; 0 is BOS, 1 EOS."""

    def __init__(self, classes: dict[str, tuple[Component, ...]], temperature: float) -> None:
        self.classes = classes
        self.class_names = tuple(classes)
        self._scale = 1.0 / temperature
        self._numbers: dict[str, int] = {}
        self._rows = [
            [[np.zeros(0, np.int64) for _ in component.weights.codes] for component in classes[name]]
            for name in self.class_names
        ]  # of each class, component and view: label number -> row of the component's table
        self._sequences = [
            [(Sequences(component.weights.sequences), np.zeros(0, np.int32)) for component in classes[name]]
            for name in self.class_names
        ]  # with the code of each label number
        self._capacity = 0
        self._tables = np.zeros((4, len(classes), 0, 0))
        self._known: tuple[tuple[str, ...], Int32, Int32] = ((), np.zeros(0, np.int32), np.zeros(0, np.int32))
        self.numbers((BOS, EOS))

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, tokens: tuple[str, ...]) -> tuple[Int32, Int32]:
        """(label number, class number of a head; -1: no model) of each token, int32[T]. New labels get tables."""
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
        """Of b families of n members: label numbers int32[n, b], place of the head int64[b], class number int32[b]."""
        n, b = numbers.shape
        head = numbers[head_places, np.arange(b)].astype(np.int64)
        # dependent i stands at place i before the head, at i + 1 after it
        index = np.arange(n - 1)[:, None]
        rows = numbers[index + (index >= head_places), np.arange(b)].astype(np.int64)
        c = self._capacity
        base = classes.astype(np.int64) * (c * c)
        left, right, across, following = (table.reshape(-1) for table in self._tables)
        pairs = base + rows[:, None] * c + rows[None, :]
        to_head, from_head = base + rows * c + head, base + head * c + rows
        return Local(
            left.take(pairs),
            right.take(pairs),
            across.take(pairs),
            following.take(pairs),
            left.take(to_head),
            left.take(from_head),
            following.take(base + rows),  # BOS is number 0
            following.take(base + rows * c + 1),
            following.take(to_head),
            following.take(from_head),
            np.stack([following.take(base + head), following.take(base + head * c + 1)]),
        )

    def has_sequences(self, classes: Int32) -> bool:
        """Does a model of these classes (int32[b]) have HI features?"""
        return any(
            component.weights.sequences
            for c in np.unique(classes).tolist()
            for component in self.classes[self.class_names[c]]
        )

    def sequences(self, class_number: int, rows: Int32) -> Float:
        """float64[b, n!]: what HI adds to all orders of b families of one class; rows: label numbers int32[n, b]."""
        out: Float | float = 0.0
        for at, component in enumerate(self.classes[self.class_names[class_number]]):
            table, codes = self._sequences[class_number][at]
            out = out + component.share * self._scale * table.score(codes[rows].T)
        return np.asarray(out)

    def _extend(self, tokens: list[str]) -> None:
        begin, end = len(self._numbers), len(self._numbers) + len(tokens)
        self._numbers.update((token, begin + i) for i, token in enumerate(tokens))
        if end > self._capacity:
            self._capacity = max(end + 32, self._capacity * 3 // 2)
            tables = np.zeros((4, len(self.class_names), self._capacity, self._capacity))
            tables[:, :, :begin, :begin] = self._tables[:, :, :begin, :begin]
            self._tables = tables
        for at, name in enumerate(self.class_names):
            for i, (component, rows) in enumerate(zip(self.classes[name], self._rows[at], strict=True)):
                mapped = [_mapped(token, name, component) for token in tokens]
                for view, codes in enumerate(component.weights.codes):
                    added = [codes.get(views(token, len(rows))[view], len(codes)) for token in mapped]
                    rows[view] = np.append(rows[view], added).astype(np.int64)
                table, known = self._sequences[at][i]
                added = [table.codes.get(token, -1) for token in mapped]
                self._sequences[at][i] = (table, np.append(known, added).astype(np.int32))
            new, all_ = slice(begin, end), slice(0, end)
            self._fill(at, name, new, all_)
            self._fill(at, name, slice(0, begin), new)

    def _fill(self, at: int, name: str, firsts: slice, seconds: slice) -> None:
        tables = self._tables[:, at, firsts, seconds]
        tables[:] = 0
        for component, rows in zip(self.classes[name], self._rows[at], strict=True):
            for view in range(len(rows)):
                weights = component.weights.pairs[view]
                four = weights[[_BFR, _AFT, _BTW, _BI]]
                four[:3] += weights[_PRE]
                four *= component.share * self._scale
                tables += four.take(rows[view][firsts], axis=1).take(rows[view][seconds], axis=2)


def _mapped(token: str, name: str, component: Component) -> str:
    """What a label is called in a component."""
    if component.labels is None or token in (BOS, EOS):
        return token
    return component.weights.choose(candidates(token, name, component.labels))
