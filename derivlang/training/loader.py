"""The masked rows of each step, as a pure function of the streams, the settings and the step.

    step s, row b  ->  position s * B + b of an endless list: the rows of the stream, permuted anew for every epoch

    streams ──▶ numbers of the step's rows ──▶ rows ──Objective.mask──▶ Step of each process

Every objective gets the same rows of a stream in the same steps. There is no generator state, so a run can resume at
any step and on any number of processes. Several steps of a small model are made together, which reduces the cost of a
step to almost nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from derivlang.core.arrays import Bool, Int64, Ints, lengths_of, offsets_of, owners, positions
from derivlang.core.errors import UsageError
from derivlang.training.batch import LANGUAGE, SENTENCES, TOKENS, Step, SubwordRows, Totals
from derivlang.training.masking import Keys
from derivlang.training.objectives.base import Context, Objective
from derivlang.training.prepare import Prepared
from derivlang.training.streams.base import RowSource, Stream

if TYPE_CHECKING:
    import torch

Item = TypeVar("Item")
_SUBWORDS = 1 << 15  # number of sub-words made at once
_AHEAD = 4  # maximum number of steps that are ready before the device needs them


@dataclass(frozen=True, slots=True, eq=False)
class OpenStream:
    """A stream with its rows.

    size: number of rows in a step, perhaps on average. first: maximum number of rows of the streams before it.
    """

    stream: Stream
    source: RowSource
    size: int | Fraction
    first: int

    def rows_before(self, begin: int, end: int) -> Int64:
        """Return int64[end - begin]: the number of rows before each of the steps begin … end - 1.

        size 2.4, steps 0 … 5  ->  [0, 2, 4, 7, 9, 12]
        """
        size = Fraction(self.size)
        return np.arange(begin, end) * size.numerator // size.denominator


def open_streams(objective: Objective, prepared: Prepared) -> tuple[OpenStream, ...]:
    """Open the streams of an objective. Raise DerivlangError if one lacks something."""
    opened: list[OpenStream] = []
    for stream in objective.streams():
        first = sum(ceil(one.size) for one in opened)
        opened.append(OpenStream(stream, stream.open(prepared), stream.n_rows(prepared.settings), first))
    return tuple(opened)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The masked rows of a stream in some steps, made and counted together.

    steps: n. offsets: int64[n + 1], where the rows of each begin. views: the rows by view. totals: by view, n each.
    counts: of the first view, n.
    """

    steps: range
    offsets: Int64
    views: dict[str, SubwordRows]
    totals: dict[str, list[Totals]]
    counts: list[dict[str, int]]

    def part(self, at: int, which: int, parts: int) -> dict[str, SubwordRows]:
        """Return the which-th of `parts` micro-batches of the at-th step, by view."""
        begin, end = self.offsets[at : at + 2].tolist()
        first, last = (begin + (end - begin) * i // parts for i in (which, which + 1))
        return {name: rows.take(first, last, self.totals[name][at]) for name, rows in self.views.items()}


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

    @property
    def steps_per_epoch(self) -> float:
        """The number of steps in which the first stream gives each of its rows once."""
        one = self.streams[0]
        return float(one.source.n / one.size)

    @property
    def subwords_per_step(self) -> float:
        """The average number of sub-words in a step, of all streams, without padding."""
        return sum(one.source.mean_subwords * float(one.size) for one in self.streams)

    def steps(self, first: int, last: int) -> Iterator[list[Step]]:
        """Yield the micro-batches of this process for the steps first … last - 1."""
        per_step = sum(ceil(one.size) * one.source.length * one.stream.views for one in self.streams)
        at_once = max(1, _SUBWORDS // per_step)
        for begin in range(first, last, at_once):
            steps = range(begin, min(begin + at_once, last))
            blocks = [self._block(one, steps) for one in self.streams]
            for step in steps:
                yield self._step(step, blocks)

    def on_device(self, first: int, last: int, device: torch.device) -> Iterator[list[Step]]:
        """Yield `steps` on a device. A thread makes and sends them while an accelerator works."""
        sent = self._sent(first, last, device)
        return sent if device.type == "cpu" else ahead(sent, _AHEAD)

    def _sent(self, first: int, last: int, device: torch.device) -> Iterator[list[Step]]:
        if device.type != "cpu" and device.index is not None:  # page-locked memory belongs to the thread's accelerator
            import torch

            torch.accelerator.set_device_index(device.index)
        for micros in self.steps(first, last):
            yield [micro.to(device) for micro in micros]

    def _block(self, one: OpenStream, steps: range) -> Block:
        offsets = self._offsets(one, steps)[1]
        views = self._masked(one, *self._rows(one, steps))
        totals = {name: _totals(rows, offsets) for name, rows in views.items()}
        return Block(
            steps,
            offsets,
            views,
            totals,
            _counts(one.stream, views[one.stream.name], offsets, len(self.context.vocabulary.own)),
        )

    def _rows(self, one: OpenStream, steps: range) -> tuple[SubwordRows, Keys]:
        begin, offsets = self._offsets(one, steps)
        numbers = one.source.numbers(one.stream.name, self.seed, steps, begin, offsets)
        keys = Keys.of(self.seed, np.asarray(steps)[owners(offsets)], positions(offsets) + one.first)
        return one.source.rows(numbers, keys), keys

    @staticmethod
    def _offsets(one: OpenStream, steps: range) -> tuple[int, Int64]:
        """Return where the rows of n steps begin in the endless list of a stream: the first, int64[n + 1] from it."""
        cuts = one.rows_before(steps[0], steps[-1] + 2)
        return int(cuts[0]), cuts - cuts[0]

    def _masked(self, one: OpenStream, rows: SubwordRows, keys: Keys) -> dict[str, SubwordRows]:
        """Return the masked rows of a stream by view."""
        if not one.stream.masked:
            return dict.fromkeys(one.stream.names(), rows.predicting(np.zeros(0, np.int64)))
        by_name = {}
        for view, name in enumerate(one.stream.names(), 1):
            masked = self.objective.mask(one.stream.name, rows, keys.of_view(view), self.context)
            if not isinstance(masked, SubwordRows) or masked.targets is None:
                raise UsageError(
                    f"the objective {self.objective.name!r} masks rows without saying what is to be predicted",
                    fix="let its `mask` return rows.predicting(targets, input_ids)",
                    id="plug-in",
                )
            if masked.language is not rows.language:
                changed = masked.language != rows.language
                masked = replace(masked, translated=changed if rows.translated is None else rows.translated | changed)
            by_name[name] = masked
        return by_name

    def _step(self, number: int, blocks: list[Block]) -> list[Step]:
        """Return the micro-batches of this process for a step. blocks: of the streams."""
        here = [(block, block.steps.index(number)) for block in blocks]
        counts: Counter[str] = Counter()
        for block, at in here:
            counts.update(block.counts[at])
        parts, first = self.accumulate * self.world, self.rank * self.accumulate
        micros = []
        for which in range(first, first + self.accumulate):
            batches: dict[str, SubwordRows] = {}
            for block, at in here:
                batches |= block.part(at, which, parts)
            micros.append(Step(number, 1 / parts, batches, counts))
        return micros


def ahead(items: Iterator[Item], most: int) -> Iterator[Item]:
    """Yield the items, made by a thread that is at most `most` of them ahead. An error in it is raised here."""
    thread, end = ThreadPoolExecutor(1), object()
    try:
        made: deque[Any] = deque(thread.submit(next, items, end) for _ in range(most))
        while (item := made.popleft().result()) is not end:
            made.append(thread.submit(next, items, end))
            yield item
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


def _counts(stream: Stream, rows: SubwordRows, offsets: Int64, n_languages: int) -> list[dict[str, int]]:
    """Return the counts of a stream in each of n steps. offsets: int64[n + 1], where the rows of each begin.

    Parts of sentences that are rows of their own count each, a pair counts once.
    """
    n_sentences = rows.sentence_ids.max(axis=1) + 1
    counts: dict[str, list[int]] = {}
    for kind, some in stream.kinds(rows).items():
        counted = np.zeros(len(rows.lengths), bool)
        counted[some] = True
        counts[kind + TOKENS] = _sums(rows.lengths * counted, offsets)
        counts[kind + SENTENCES] = _sums(n_sentences * counted, offsets)
    # positions whose input or label is a translation
    other = rows.label_language != rows.language.ravel()[rows.targets]
    if rows.translated is not None:
        other |= rows.translated.ravel()[rows.targets]
    cuts = np.searchsorted(rows.targets, offsets * rows.shape[1])
    counts["masked"], counts["translated"] = lengths_of(cuts).tolist(), _sums(other, cuts)
    if n_languages > 2:
        spoken = np.where(np.arange(rows.shape[1]) < rows.lengths[:, None], rows.language, n_languages)
        keys = spoken + (n_languages + 1) * owners(offsets)[:, None].astype(np.int64)
        numbers = np.bincount(keys.ravel(), minlength=(n_languages + 1) * (len(offsets) - 1))
        by_language = numbers.reshape(-1, n_languages + 1).T[:n_languages]
        counts |= {f"{LANGUAGE}{number}": of.tolist() for number, of in enumerate(by_language)}
    return [{name: of[at] for name, of in counts.items()} for at in range(len(offsets) - 1)]


def _totals(rows: SubwordRows, offsets: Int64) -> list[Totals]:
    """Return the numbers of each step. offsets: int64[n + 1], where the rows of each of n steps begin."""
    begins = offsets * rows.shape[1]
    cuts = np.searchsorted(rows.targets, begins)
    by_language = zip(*(_sums((rows.label_language > 0) == other, cuts) for other in (False, True)), strict=True)
    links = linked = [0] * (len(offsets) - 1)
    if rows.links is not None:
        has_link = np.zeros(rows.clean_ids.size, bool)
        has_link[rows.links[0]] = True
        links = lengths_of(np.searchsorted(rows.links[0], begins)).tolist()
        linked = _sums(has_link[rows.targets], cuts)
    numbers = lengths_of(offsets).tolist(), lengths_of(cuts).tolist(), by_language, links, linked
    return [Totals(*of_step) for of_step in zip(*numbers, strict=True)]


def _sums(values: Ints | Bool, cuts: Int64) -> list[int]:
    """Return the sum of each part of some values.

    values [5, 1, 2], cuts [0, 2, 2, 3]  ->  [6, 0, 2]
    """
    sums: list[int] = lengths_of(offsets_of(values)[cuts]).tolist()
    return sums
