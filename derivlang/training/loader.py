"""The rows of each step, hidden and ready: a pure function of data, settings and step.

    step s, row b  ->  place s * B + b of an endless list: both languages' instances, permuted anew for every epoch

Every objective gets the same rows in the same steps; one that needs pairs gets pair rows beside them. Nothing is drawn
from a generator, so that a run goes on where it stopped, on any number of processes. Steps of a small model are made
many at a time: then making them costs next to nothing.
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
from derivlang.training.data import Data, Rows
from derivlang.training.masking import Keys, Masked
from derivlang.training.objectives.base import Context, Objective
from derivlang.training.pairs import PairData

_SUBWORDS = 1 << 15  # made at once
_AHEAD = 4  # steps that wait for a device


@dataclass(frozen=True, slots=True, eq=False)
class HiddenRows:
    """Rows of a micro-batch, as arrays. total: hidden positions of the whole step. positions: None for 0 … H - 1."""

    masked: Masked
    attention: Bool
    positions: Int64 | None
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class Micro:
    """A micro-batch of one process. share: of the step's rows. subwords: in the two corpora's rows of the whole step,
    without padding."""

    rows: HiddenRows
    pairs: HiddenRows | None
    share: float
    subwords: int


@dataclass(frozen=True, slots=True, eq=False)
class Loader:
    """B = batch_size rows a step, in `accumulate` micro-batches on each of `world` processes; this one is `rank`."""

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
        """Pair rows in a step, at least one a micro-batch."""
        wanted = round(self.batch_size * self.objective.pair_rows)
        return 0 if self.pairs is None else max(self.accumulate * self.world, wanted)

    @property
    def steps_per_epoch(self) -> float:
        return 2 * self.data.n_instances / self.batch_size

    def steps(self, first: int, last: int) -> Iterator[list[Micro]]:
        """The micro-batches of this process, for the steps first … last - 1."""
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
        """`steps`, made by a thread while the device works."""
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

    def rows(self, begin: int, end: int) -> Rows:
        """The rows of some steps, in their order: instances of either corpus."""
        found = _places("rows", self.seed, 2 * self.data.n_instances, begin * self.batch_size, end * self.batch_size)
        return self.data.rows(found % self.data.n_instances, found // self.data.n_instances)

    def pair_rows(self, begin: int, end: int) -> Rows:
        """The pair rows of some steps."""
        assert self.pairs is not None
        n = self.n_pair_rows
        return self.pairs.rows(_places("pairs", self.seed, self.pairs.n_instances, begin * n, end * n))

    def _hidden(self, rows: Rows, begin: int, end: int, size: int, offset: int, *, reset: bool = False) -> _Chunk:
        step, place = np.divmod(np.arange((end - begin) * size), size)
        keys = Keys.of(self.seed, step + begin, place + offset)
        masked = self.objective.mask(rows, keys, self.context)
        width = rows.shape[1]
        cuts = np.searchsorted(masked.targets, np.arange(0, (end - begin) * size + 1) * width)
        return _Chunk(rows, masked, cuts, size, reset)

    def _micro(self, rows: _Chunk, pairs: _Chunk | None, step: int, part: int) -> Micro:
        parts = self.accumulate * self.world
        which = self.rank * self.accumulate + part
        found, subwords = rows.take(step, which, parts)
        beside = None if pairs is None else pairs.take(step, which, parts)[0]
        return Micro(found, beside, 1 / parts, subwords)


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """Hidden rows of several steps, `size` a step. cuts: int64[rows + 1], targets before each row."""

    rows: Rows
    masked: Masked
    cuts: Int64
    size: int
    reset: bool

    def take(self, step: int, which: int, parts: int) -> tuple[HiddenRows, int]:
        """A step's micro-batch, the which-th of `parts`; the step's sub-words."""
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
    """int64[end - begin]: items of an endless list of 0 … n - 1, permuted anew in every epoch."""
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
