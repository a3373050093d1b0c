"""The masked rows of each step, as a pure function of data, settings and step.

    step s, row b  ->  position s * B + b of an endless list: both languages' instances, permuted anew for every epoch

Every objective gets the same rows in the same steps. An objective that needs pairs gets pair rows in addition. There is
no generator state, so a run can resume at any step and on any number of processes. Several steps of a small model are
made together, which reduces the cost of a step to almost nothing.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from derivlang.core.arrays import Bool, Int64
from derivlang.core.keys import draw, text_key
from derivlang.training.data import Data, SubwordRows
from derivlang.training.masking import Keys, Masked
from derivlang.training.objectives.base import Context, Objective
from derivlang.training.pairs import PairData

_SUBWORDS = 1 << 15  # number of sub-words made at once
_AHEAD = 4  # maximum number of steps that are ready before the device needs them


@dataclass(frozen=True, slots=True, eq=False)
class HiddenRows:
    """Masked rows of a micro-batch as arrays.

    total: number of masked positions in the whole step. positions: int64[B, H], or None for 0 … H - 1.
    """

    masked: Masked
    attention: Bool
    positions: Int64 | None
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class Micro:
    """A micro-batch of one process.

    share: its share of the step's rows. subwords: number in the whole step without padding and pair rows.
    """

    rows: HiddenRows
    pairs: HiddenRows | None
    share: float
    subwords: int


@dataclass(frozen=True, slots=True, eq=False)
class Loader:
    """A loader of B = batch_size rows a step, in `accumulate` micro-batches on each of `world` processes.

    rank: number of this process.
    """

    data: Data
    objective: Objective
    context: Context
    seed: int
    batch_size: int
    pairs: PairData | None = None
    accumulate: int = 1
    rank: int = 0
    world: int = 1

    @property
    def n_pair_rows(self) -> int:
        """The number of pair rows in a step, at least one a micro-batch."""
        wanted = round(self.batch_size * self.objective.pair_rows)
        return 0 if self.pairs is None else max(self.accumulate * self.world, wanted)

    @property
    def steps_per_epoch(self) -> float:
        return 2 * self.data.n_instances / self.batch_size

    def steps(self, first: int, last: int) -> Iterator[list[Micro]]:
        """Yield the micro-batches of this process for the steps first … last - 1."""
        at_once = max(1, _SUBWORDS // (self.batch_size * self.data.seq_len))
        for begin in range(first, last, at_once):
            end = min(begin + at_once, last)
            rows = self._hidden(self.rows(begin, end), begin, end, self.batch_size, 0)
            pairs = None
            if self.pairs is not None:
                found = self.pair_rows(begin, end)
                pairs = self._hidden(found, begin, end, self.n_pair_rows, self.batch_size, reset=self.pairs.reset)
            for step in range(end - begin):
                yield [self._micro(rows, pairs, step, part) for part in range(self.accumulate)]

    def ahead(self, first: int, last: int) -> Iterator[list[Micro]]:
        """Yield `steps`, made by a thread while the device works."""
        out: queue.Queue[list[Micro] | BaseException | None] = queue.Queue(_AHEAD)
        ended = threading.Event()

        def put(item: list[Micro] | BaseException | None) -> bool:
            while not ended.is_set():
                try:
                    out.put(item, timeout=0.1)
                    return True
                except queue.Full:
                    continue
            return False

        def work() -> None:
            try:
                for step in self.steps(first, last):
                    if not put(step):
                        return
                put(None)
            except BaseException as error:  # noqa: BLE001 (handed to the caller's thread)
                put(error)

        threading.Thread(target=work, daemon=True).start()
        try:
            while (item := out.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            ended.set()

    def rows(self, begin: int, end: int) -> SubwordRows:
        """Return the rows of the steps begin … end - 1, instances of both languages."""
        found = _places("rows", self.seed, 2 * self.data.n_instances, begin * self.batch_size, end * self.batch_size)
        return self.data.rows(found % self.data.n_instances, found // self.data.n_instances)

    def pair_rows(self, begin: int, end: int) -> SubwordRows:
        """Return the pair rows of the steps begin … end - 1."""
        assert self.pairs is not None
        n = self.n_pair_rows
        return self.pairs.rows(_places("pairs", self.seed, self.pairs.n_instances, begin * n, end * n))

    def _hidden(
        self, rows: SubwordRows, begin: int, end: int, size: int, offset: int, *, reset: bool = False
    ) -> _MaskedRows:
        step, place = np.divmod(np.arange((end - begin) * size), size)
        keys = Keys.of(self.seed, step + begin, place + offset)
        masked = self.objective.mask(rows, keys, self.context)
        width = rows.shape[1]
        cuts = np.searchsorted(masked.targets, np.arange(0, (end - begin) * size + 1) * width)
        return _MaskedRows(rows, masked, cuts, size, reset)

    def _micro(self, rows: _MaskedRows, pairs: _MaskedRows | None, step: int, part: int) -> Micro:
        parts = self.accumulate * self.world
        which = self.rank * self.accumulate + part
        found, subwords = rows.take(step, which, parts)
        beside = None if pairs is None else pairs.take(step, which, parts)[0]
        return Micro(found, beside, 1 / parts, subwords)


@dataclass(frozen=True, slots=True, eq=False)
class _MaskedRows:
    """Masked rows of several steps, `size` a step. cuts: int64[rows + 1], number of targets before each row."""

    rows: SubwordRows
    masked: Masked
    cuts: Int64
    size: int
    reset: bool

    def take(self, step: int, which: int, parts: int) -> tuple[HiddenRows, int]:
        """Return (the which-th of `parts` micro-batches of a step, number of sub-words of the step)."""
        first, last = (step * self.size + self.size * i // parts for i in (which, which + 1))
        here, width = slice(first, last), self.rows.shape[1]
        some = slice(self.cuts[first], self.cuts[last])
        masked = Masked(
            self.masked.inputs[here],
            self.masked.language[here],
            self.masked.targets[some] - first * width,
            self.masked.labels[some],
            self.masked.label_language[some],
        )
        attention = np.arange(width) < self.rows.lengths[here, None]
        total = int(self.cuts[(step + 1) * self.size] - self.cuts[step * self.size])
        positions = self.rows.positions[here].astype(np.int64) if self.reset else None
        subwords = int(self.rows.lengths[step * self.size : (step + 1) * self.size].sum())
        return HiddenRows(masked, attention, positions, total), subwords


def _places(what: str, seed: int, n: int, begin: int, end: int) -> Int64:
    """Return int64[end - begin]: part of an endless list of 0 … n - 1, permuted anew in every epoch.

    n 3, permutations [2 0 1], [1 2 0]: the list is 2 0 1 1 2 0 …, and positions 2 … 4 are [1, 1, 2]
    """
    at = np.arange(begin, end)
    out = np.empty(len(at), np.int64)
    for epoch in range(begin // n, (end - 1) // n + 1):
        here = at // n == epoch
        out[here] = _permutation(what, seed, n, epoch)[at[here] % n]
    return out


@lru_cache(maxsize=4)
def _permutation(what: str, seed: int, n: int, epoch: int) -> Int64:
    draws = draw(text_key(f"{what}|seed={seed}"), np.full(n, epoch, np.uint64), np.arange(n))
    return np.argsort(draws, kind="stable")
