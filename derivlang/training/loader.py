"""The masked rows of each step, as a pure function of the streams, the settings and the step.

    step s, row b  ->  position s * B + b of an endless list: the rows of the stream, permuted anew for every epoch

    streams ──▶ numbers of the step's rows ──▶ rows ──Objective.mask──▶ Step of each process

Every objective gets the same rows of a stream in the same steps. There is no generator state, so a run can resume at
any step and on any number of processes. Several steps of a small model are made together, which reduces the cost of a
step to almost nothing.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from derivlang.core.arrays import Bool, Int64
from derivlang.core.keys import draw, text_key
from derivlang.training.batch import Step, StepCounts, TokenBatch, Totals
from derivlang.training.data import SubwordRows
from derivlang.training.masking import Keys, Masked, unmasked
from derivlang.training.objectives.base import Context, Objective
from derivlang.training.streams.base import Material, RowSource, Stream

_SUBWORDS = 1 << 15  # number of sub-words made at once
_AHEAD = 4  # maximum number of steps that are ready before the device needs them


@dataclass(frozen=True, slots=True, eq=False)
class OpenStream:
    """A stream with its rows. size: number of rows in a step; first: number of rows of the streams before it."""

    stream: Stream
    source: RowSource
    size: int
    first: int

    def __post_init__(self) -> None:
        assert self.source.n > 0


def open_streams(objective: Objective, material: Material) -> tuple[OpenStream, ...]:
    """Open the streams of an objective. Raise DerivlangError if one lacks something."""
    found: list[OpenStream] = []
    for stream in objective.streams():
        first = sum(one.size for one in found)
        found.append(OpenStream(stream, stream.open(material), stream.n_rows(material.settings), first))
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Loader:
    """The loader of an objective's streams, in `accumulate` micro-batches on each of `world` processes.

    rank: number of this process.
    """

    streams: tuple[OpenStream, ...]
    objective: Objective
    context: Context
    seed: int
    accumulate: int = 1
    rank: int = 0
    world: int = 1

    def of_process(self, rank: int, world: int) -> Loader:
        """Return the loader of one of several processes."""
        return replace(self, rank=rank, world=world)

    def with_rows(self, rows: int, of: int) -> Loader:
        """Return the loader of a smaller step, in one micro-batch. rows: kept of the step's `of` rows.

        3 of 8 rows, streams of 8 and of 2 rows  ->  streams of 3 and of 1
        """
        streams = (replace(one, size=-(-one.size * rows // of)) for one in self.streams)  # rounded up
        return replace(self, streams=tuple(streams), accumulate=1)

    @property
    def steps_per_epoch(self) -> float:
        """The number of steps in which the first stream gives each of its rows once."""
        one = self.streams[0]
        return one.source.n * one.stream.every / one.size

    @property
    def subwords_per_step(self) -> float:
        """The average number of sub-words in a step, of all streams, without padding."""
        return sum(one.source.mean_subwords * one.size / one.stream.every for one in self.streams)

    def steps(self, first: int, last: int) -> Iterator[list[Step]]:
        """Yield the micro-batches of this process for the steps first … last - 1."""
        at_once = max(1, _SUBWORDS // sum(one.size * one.source.length * one.stream.views for one in self.streams))
        for begin in range(first, last, at_once):
            end = min(begin + at_once, last)
            blocks = {name: block for one in self.streams for name, block in self._blocks(one, begin, end)}
            for step in range(begin, end):
                yield [self._micro(blocks, step, part) for part in range(self.accumulate)]

    def ahead(self, first: int, last: int) -> Iterator[list[Step]]:
        """Yield `steps`, made by a thread while the device works."""
        out: queue.Queue[list[Step] | BaseException | None] = queue.Queue(_AHEAD)
        ended = threading.Event()

        def put(item: list[Step] | BaseException | None) -> bool:
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

    def rows(self, name: str, begin: int, end: int) -> tuple[SubwordRows, Keys]:
        """Return the rows of a stream in the steps begin … end - 1, before they are masked, and their keys."""
        (one,) = (one for one in self.streams if one.stream.name == name)
        return self._rows(one, one.stream.steps(begin, end))

    def _rows(self, one: OpenStream, steps: range) -> tuple[SubwordRows, Keys]:
        # The k-th step with rows of this stream has the rows k * size … of the endless list.
        begin = steps[0] // one.stream.every * one.size
        numbers = _numbers(one.stream.name, self.seed, one.source.n, begin, begin + len(steps) * one.size)
        number, place = np.divmod(np.arange(len(numbers)), one.size)
        keys = Keys.of(self.seed, np.asarray(steps)[number], place + one.first)
        return one.source.rows(numbers, keys), keys

    def _blocks(self, one: OpenStream, begin: int, end: int) -> Iterator[tuple[str, _Block]]:
        """Yield each view of a stream in these steps, with its name."""
        steps = one.stream.steps(begin, end)
        if not steps:
            return
        rows, keys = self._rows(one, steps)
        for view, name in enumerate(one.stream.names(), 1):
            masked = unmasked(rows)
            if one.stream.masked:
                masked = self.objective.mask(one.stream.name, rows, keys.of_view(view), self.context)
            width = rows.shape[1]
            cuts = np.searchsorted(masked.targets, np.arange(0, len(steps) * one.size + 1) * width)
            yield name, _Block(one.stream.name, rows, masked, cuts, _linked(rows, masked), one.size, steps)

    def _micro(self, blocks: dict[str, _Block], step: int, part: int) -> Step:
        parts = self.accumulate * self.world
        which = self.rank * self.accumulate + part
        here = {name: block for name, block in blocks.items() if step in block.steps}
        first_views = [block for name, block in here.items() if name == block.stream]
        counts = StepCounts(
            {block.stream: block.subwords(step) for block in first_views},
            {block.stream: block.sentences(step) for block in first_views},
            sum(block.totals(step).masked for block in first_views),
            sum(block.translated(step) for block in first_views),
        )
        batches = {name: block.take(step, which, parts) for name, block in here.items()}
        return Step(step, 1 / parts, batches, counts)


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Masked rows of several steps, `size` a step.

    cuts: int64[rows + 1], number of targets before each row. linked: bool[n], targets that have a link.
    """

    stream: str
    rows: SubwordRows
    masked: Masked
    cuts: Int64
    linked: Bool
    size: int
    steps: range

    def _range(self, step: int) -> tuple[int, int]:
        first = self.steps.index(step) * self.size
        return first, first + self.size

    def subwords(self, step: int) -> int:
        """Return the number of sub-words of a step, without padding."""
        first, last = self._range(step)
        return int(self.rows.lengths[first:last].sum())

    def sentences(self, step: int) -> int:
        """Return the number of sentences of a step: parts that are rows of their own count each, a pair counts once."""
        first, last = self._range(step)
        return int((self.rows.sentence_ids[first:last].max(axis=1) + 1).sum())

    def translated(self, step: int) -> int:
        """Return the number of masked positions whose input or label is a translation."""
        first, last = self._range(step)
        some = slice(self.cuts[first], self.cuts[last])
        at = self.masked.targets[some]
        own = self.rows.language.ravel()[at]
        other = (self.masked.language.ravel()[at] != own) | (self.masked.label_language[some] != own)
        if self.rows.translated is not None:
            other |= self.rows.translated.ravel()[at]
        return int(other.sum())

    def totals(self, step: int) -> Totals:
        first, last = self._range(step)
        languages = np.bincount(self.masked.label_language[self.cuts[first] : self.cuts[last]], minlength=2)
        links = linked = 0
        if self.rows.links is not None:
            begin, end = np.searchsorted(self.rows.links[:, 0], (first, last))
            links, linked = int(end - begin), int(self.linked[self.cuts[first] : self.cuts[last]].sum())
        return Totals(self.size, int(languages.sum()), (int(languages[0]), int(languages[1])), links, linked)

    def take(self, step: int, which: int, parts: int) -> TokenBatch:
        """Return the which-th of `parts` micro-batches of a step."""
        begin, _ = self._range(step)
        first, last = (begin + self.size * i // parts for i in (which, which + 1))
        rows, width = self.rows.take(first, last), self.rows.shape[1]
        some = slice(self.cuts[first], self.cuts[last])
        links = rows.links
        return TokenBatch(
            input_ids=self.masked.input_ids[first:last],
            clean_ids=rows.clean_ids,
            attention=np.arange(width) < rows.lengths[:, None],
            language=self.masked.language[first:last],
            side=rows.side,
            positions=rows.positions,
            word_ids=rows.word_ids,
            sentence_ids=rows.sentence_ids,
            targets=self.masked.targets[some] - first * width,
            labels=self.masked.labels[some],
            label_language=self.masked.label_language[some],
            links=None if links is None else (links[:, :1].astype(np.int64) * width + links[:, 1:]).T,
            totals=self.totals(step),
        )


def _linked(rows: SubwordRows, masked: Masked) -> Bool:
    """Return bool[n]: whether a link begins at each target; none does in rows without links."""
    if rows.links is None:
        return np.zeros(len(masked.targets), bool)
    begins = np.zeros(rows.clean_ids.size, bool)
    begins[rows.links[:, 0].astype(np.int64) * rows.shape[1] + rows.links[:, 1]] = True
    return begins[masked.targets]


def _numbers(what: str, seed: int, n: int, begin: int, end: int) -> Int64:
    """Return int64[end - begin]: part of an endless list of 0 … n - 1, permuted anew in every epoch.

    n 3, permutations [2 0 1], [1 2 0]: the list is 2 0 1 1 2 0 …, and positions 2 … 4 are [1, 1, 2]
    """
    at = np.arange(begin, end)
    out = np.empty(len(at), np.int64)
    for epoch in range(begin // n, (end - 1) // n + 1):
        here = at // n == epoch
        out[here] = _permutation(what, seed, n, epoch)[at[here] % n]
    return out


@lru_cache(maxsize=8)
def _permutation(what: str, seed: int, n: int, epoch: int) -> Int64:
    draws = draw(text_key(f"{what}|seed={seed}"), np.full(n, epoch, np.uint64), np.arange(n))
    return np.argsort(draws, kind="stable")
