"""Memo: families seen before, and the intervals of [0, 1) whose order is known.

Inverse sampling gives one order for every u in an interval. The memo keeps the intervals drawn so far of each label
sequence as a chain; a draw that falls into one needs no distribution. The memo holds only what a computation gave, so
it changes no result. Labels are compared, not only their hash. When it is full it starts again, so memory is bounded.

    first of the family  ->  interval 0  [.10, .55)  order A        u = .60 is not in interval 0, but in interval 2:
    next of interval 0   ->  interval 2  [.55, .80)  order B        order B

Without intervals, `make --t syn:fr` from the 2 M parsed words of WikiText-2 takes 1.07 times the CPU (1.06 to 1.24, 3
runs), the draws by themselves 1.10 times (1.09 to 1.27): `python benchmarks/run.py grammar_draws`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Bool, Int32, Int64, UInt64, ranks_in_runs
from derivlang.grammar.weights import Float

LONGEST_CHAIN = 32  # intervals kept of a family; most draws fall into the first two


class Memo:
    """Families and their intervals. limit: most of each that are kept; some 60 bytes each."""

    def __init__(self, limit: int = 1 << 20) -> None:
        self._limit = limit
        self.clear()

    def clear(self) -> None:
        """Drop everything."""
        self._slots = np.full(1 << 12, -1, np.int32)
        self._n_families = self._n_intervals = self._n_labels = 0
        self._hash = np.zeros(0, np.uint64)
        self._start = np.zeros(0, np.int64)  # of a family's labels, in _labels
        self._labels = np.zeros(0, np.int32)
        self._first = np.zeros(0, np.int32)  # interval of a family's chain, -1 without one
        self._last = np.zeros(0, np.int32)
        self._length = np.zeros(0, np.int32)
        self._row = np.zeros(0, np.int32)  # of a family, in the tables of its size
        self._low = np.zeros(0)
        self._high = np.zeros(0)
        self._order = np.zeros(0, np.uint64)
        self._next = np.zeros(0, np.int32)

    @property
    def n_bytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in vars(self).values() if isinstance(array, np.ndarray))

    def find(self, hashes: UInt64) -> Int32:
        """Return int32[F]: the number of the family with each hash, -1 where there is none.

        Open addressing: a hash is looked for at its last bits, then at the slots that follow, up to a free one.
        """
        mask = np.uint64(len(self._slots) - 1)
        at = (hashes & mask).astype(np.int64)
        families = self._slots.take(at)
        if self._n_families == 0:
            return families
        # mode="clip": a family of -1 (a free slot) reads family 0, and `families >= 0` drops it.
        wrong = self._hash.take(families, mode="clip") != hashes
        wrong &= families >= 0
        todo = np.flatnonzero(wrong)
        while todo.size:
            at[todo] = (at[todo] + 1) & np.int64(mask)
            next_ = self._slots.take(at[todo])
            families[todo] = next_
            bad = (next_ >= 0) & (self._hash.take(next_, mode="clip") != hashes[todo])
            todo = todo[bad]
        return families

    def same(self, families: Int32, numbers: Int32, offsets: Int64, owner: Int64) -> Bool:
        """Return bool[F]: whether the labels match the families of `find`. numbers: int32[M]. owner: int64[M].

        Two families [7 8] [5 6 9] at offsets [0, 2, 5], whose kept labels start at 10 and 4: shift [10, 2], so the
        kept labels are gathered at [10 11] [4 5 6].
        """
        if self._n_families == 0:
            return np.zeros(len(families), bool)
        shift = self._start.take(families, mode="clip") - offsets[:-1]
        index = shift.take(owner)
        index += np.arange(len(numbers))
        kept = self._labels.take(index, mode="clip")
        out = families >= 0
        unequal = np.flatnonzero(kept != numbers)
        out[owner.take(unequal)] = False
        return out

    def orders(self, families: Int32, u: Float) -> tuple[UInt64, Bool]:
        """Return (packed orders uint64[K], bool[K] whether each is known). families: int32[K]; u: float64[K]."""
        entry = self._first.take(families)
        hit = (u >= self._low.take(entry)) & (u < self._high.take(entry))
        todo = np.flatnonzero(~hit)
        while todo.size:
            following = self._next.take(entry[todo])
            more = following >= 0
            todo, following = todo[more], following[more]
            entry[todo] = following
            inside = (u[todo] >= self._low.take(following)) & (u[todo] < self._high.take(following))
            hit[todo[inside]] = True
            todo = todo[~inside]
        return self._order.take(entry), hit

    @property
    def is_full(self) -> bool:
        """The limit of families is reached."""
        return self._n_families >= self._limit

    def rows(self, families: Int32) -> Int32:
        """Return int32[K]: the row of each family in the tables of its size."""
        return self._row.take(families)

    def add_families(self, hashes: UInt64, labels: NDArray[np.int32], rows: Int32) -> None:
        """Add new families with rows in tables. hashes: uint64[K], all different. labels: int32[K, n]."""
        families = self._new_families(hashes, labels)
        self._row[families] = rows

    def add(self, hashes: UInt64, labels: NDArray[np.int32], orders: UInt64, low: Float, high: Float) -> None:
        """Add intervals [low, high) with packed orders. hashes: uint64[K], may repeat. labels: int32[K, n]."""
        if self._n_intervals + len(hashes) > self._limit:
            self.clear()
            hashes, labels = hashes[: self._limit], labels[: self._limit]
        unique, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        known = self.find(unique)
        new = np.flatnonzero(known < 0)
        known[new] = self._new_families(unique[new], labels[first[new]])
        family = known[inverse]
        # one interval per family in each round, so that chains grow by one link: families [4, 4, 6] -> [4, 6], then [4]
        rank = _rank(family)
        for turn in range(int(rank.max(initial=-1)) + 1):
            at = np.flatnonzero((rank == turn) & (self._length[family] < LONGEST_CHAIN))
            self._link(family[at], orders[at], low[at], high[at])

    def _new_families(self, hashes: UInt64, labels: NDArray[np.int32]) -> Int32:
        n, width = labels.shape
        begin, end = self._n_families, self._n_families + n
        numbers = np.arange(begin, end, dtype=np.int32)
        self._hash = _room(self._hash, end)
        self._start = _room(self._start, end)
        self._first, self._last = _room(self._first, end), _room(self._last, end)
        self._length = _room(self._length, end)
        self._row = _room(self._row, end)
        self._labels = _room(self._labels, self._n_labels + n * width)
        self._hash[begin:end] = hashes
        self._start[begin:end] = self._n_labels + np.arange(n) * width
        self._labels[self._n_labels : self._n_labels + n * width] = labels.reshape(-1)
        self._first[begin:end] = self._last[begin:end] = -1
        self._length[begin:end] = 0
        self._row[begin:end] = -1
        self._n_labels += n * width
        self._n_families = end
        # At most a third of the slots are taken, so that searches stay short.
        if 3 * end > len(self._slots):
            self._slots = np.full(1 << (4 * end).bit_length(), -1, np.int32)
            self._place(np.arange(end, dtype=np.int32))
        else:
            self._place(numbers)
        return numbers

    def _place(self, families: Int32) -> None:
        mask = np.int64(len(self._slots) - 1)
        at = (self._hash[families] & np.uint64(mask)).astype(np.int64)
        while families.size:
            free = np.flatnonzero(self._slots[at] < 0)
            self._slots[at[free]] = families[free]  # several may want one slot: the last one gets it
            lost = self._slots[at] != families
            families, at = families[lost], (at[lost] + 1) & mask

    def _link(self, family: Int32, orders: UInt64, low: Float, high: Float) -> None:
        begin, end = self._n_intervals, self._n_intervals + len(family)
        self._low, self._high = _room(self._low, end), _room(self._high, end)
        self._order, self._next = _room(self._order, end), _room(self._next, end)
        self._low[begin:end], self._high[begin:end], self._order[begin:end] = low, high, orders
        self._next[begin:end] = -1
        numbers = np.arange(begin, end, dtype=np.int32)
        last = self._last[family]
        fresh = last < 0
        self._first[family[fresh]] = numbers[fresh]
        # No family occurs twice in a call (`add` takes one interval of each), so this writes each link once.
        self._next[last[~fresh]] = numbers[~fresh]
        self._last[family] = numbers
        self._length[family] += 1
        self._n_intervals = end


def _room(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the array with room for `size`, grown by a quarter at least, so that growing costs little in total."""
    if size > len(array):
        # In place: the system moves a large array without a copy. No view of it outlives a call.
        array.resize(max(size, len(array) * 5 // 4, 1024), refcheck=False)
    return array


def _rank(values: Int32) -> Int64:
    """Return int64[n]: how many equal values come before each, [4, 4, 6, 4] -> [0, 1, 0, 2]."""
    order = np.argsort(values, kind="stable")
    out = np.empty(len(values), np.int64)
    out[order] = ranks_in_runs(values[order])
    return out
