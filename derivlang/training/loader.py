"""The masked rows of each step, as a pure function of the streams, the settings and the step.

    step s, row b  ->  position s * B + b of an endless list: the rows of the stream, permuted anew for every epoch

    streams ──▶ numbers of the step's rows ──▶ rows ──Objective.mask──▶ Step of each process

Every objective gets the same rows of a stream in the same steps. There is no generator state, so a run can resume at
any step and on any number of processes. Several steps of a small model are made together, which reduces the cost of a
step to almost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from derivlang.core.arrays import Int64, owners, positions
from derivlang.core.errors import UsageError
from derivlang.core.keys import draw, text_key
from derivlang.training.ahead import ahead
from derivlang.training.batch import Step, StepCounts, SubwordRows, Totals
from derivlang.training.masking import Keys
from derivlang.training.objectives.base import Context, Objective
from derivlang.training.streams.base import RowSource, Stream, StreamInputs

if TYPE_CHECKING:
    import torch

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

    def __post_init__(self) -> None:
        assert self.source.n > 0

    def rows_before(self, begin: int, end: int) -> Int64:
        """Return int64[end - begin]: the number of rows before the k-th step that has rows, begin ≤ k < end.

        size 2.4, steps 0 … 5  ->  [0, 2, 4, 7, 9, 12]
        """
        size = Fraction(self.size)
        return np.arange(begin, end) * size.numerator // size.denominator


def open_streams(objective: Objective, material: StreamInputs) -> tuple[OpenStream, ...]:
    """Open the streams of an objective. Raise DerivlangError if one lacks something."""
    opened: list[OpenStream] = []
    for stream in objective.streams():
        first = sum(ceil(one.size) for one in opened)
        opened.append(OpenStream(stream, stream.open(material), stream.n_rows(material.settings), first))
    return tuple(opened)


# A stream, some steps that have rows of it, and the masked rows of these steps by view: made together.
Block: TypeAlias = tuple[OpenStream, range, dict[str, SubwordRows]]


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
        streams = (replace(one, size=ceil(one.size * Fraction(rows, of))) for one in self.streams)
        return replace(self, streams=tuple(streams), accumulate=1)

    @property
    def steps_per_epoch(self) -> float:
        """The number of steps in which the first stream gives each of its rows once."""
        one = self.streams[0]
        return float(one.source.n * one.stream.every / one.size)

    @property
    def subwords_per_step(self) -> float:
        """The average number of sub-words in a step, of all streams, without padding."""
        return sum(one.source.mean_subwords * float(one.size) / one.stream.every for one in self.streams)

    def steps(self, first: int, last: int) -> Iterator[list[Step]]:
        """Yield the micro-batches of this process for the steps first … last - 1."""
        per_step = sum(ceil(one.size) * one.source.length * one.stream.views for one in self.streams)
        at_once = max(1, _SUBWORDS // per_step)
        for begin in range(first, last, at_once):
            end = min(begin + at_once, last)
            blocks = [
                (one, steps, self._masked(one, steps))
                for one in self.streams
                if (steps := one.stream.steps(begin, end))
            ]
            for step in range(begin, end):
                yield self._step(step, [block for block in blocks if step in block[1]])

    def on_device(self, first: int, last: int, device: torch.device) -> Iterator[list[Step]]:
        """Yield `steps` on a device. A thread makes and sends them while an accelerator works."""
        sent = self._sent(first, last, device)
        return sent if device.type == "cpu" else ahead(sent, _AHEAD)

    def _sent(self, first: int, last: int, device: torch.device) -> Iterator[list[Step]]:
        if device.index is not None:  # page-locked memory belongs to the accelerator of the thread
            import torch

            torch.accelerator.set_device_index(device.index)
        for micros in self.steps(first, last):
            yield [micro.to(device) for micro in micros]

    def _rows(self, one: OpenStream, steps: range) -> tuple[SubwordRows, Keys]:
        cuts = self._cuts(one, steps)
        numbers = _numbers(one.stream.name, self.seed, one.source.n, int(cuts[0]), int(cuts[-1]))
        offsets = cuts - cuts[0]
        keys = Keys.of(self.seed, np.asarray(steps)[owners(offsets)], positions(offsets) + one.first)
        return one.source.rows(numbers, keys), keys

    @staticmethod
    def _cuts(one: OpenStream, steps: range) -> Int64:
        """Return int64[steps + 1]: where the rows of these steps begin in the endless list of a stream."""
        k = steps[0] // one.stream.every
        return one.rows_before(k, k + len(steps) + 1)

    def _masked(self, one: OpenStream, steps: range) -> dict[str, SubwordRows]:
        """Return the masked rows of a stream in these steps, by view."""
        rows, keys = self._rows(one, steps)
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
        """Return the micro-batches of this process for a step. blocks: of the streams that have rows in it."""
        whole: dict[str, SubwordRows] = {}
        for one, steps, views in blocks:
            cuts, at = self._cuts(one, steps), steps.index(number)
            first, last = (int(cut - cuts[0]) for cut in cuts[at : at + 2])
            whole |= {name: rows.take(first, last) for name, rows in views.items()}
        counts = _counts([(one.stream, whole[one.stream.name]) for one, _, _ in blocks])
        totals = {name: _totals(rows) for name, rows in whole.items()}
        parts, first = self.accumulate * self.world, self.rank * self.accumulate
        micros = []
        for which in range(first, first + self.accumulate):
            batches = {name: _part(rows, which, parts, totals[name]) for name, rows in whole.items()}
            micros.append(Step(number, 1 / parts, batches, counts))
        return micros


def _part(rows: SubwordRows, which: int, parts: int, totals: Totals) -> SubwordRows:
    """Return the which-th of `parts` micro-batches of a step's rows."""
    first, last = (len(rows.lengths) * i // parts for i in (which, which + 1))
    return rows.take(first, last, totals)


def _counts(first_views: list[tuple[Stream, SubwordRows]]) -> StepCounts:
    """Return the counts of a step. Parts of sentences that are rows of their own count each, a pair counts once."""
    subwords, sentences = {}, {}
    for stream, rows in first_views:
        n_sentences = rows.sentence_ids.max(axis=1) + 1
        for kind, some in stream.kinds(rows).items():
            subwords[kind], sentences[kind] = int(rows.lengths[some].sum()), int(n_sentences[some].sum())
    every = [rows for _, rows in first_views]
    return StepCounts(subwords, sentences, sum(len(rows.targets) for rows in every), sum(map(_translated, every)))


def _translated(rows: SubwordRows) -> int:
    """Return the number of positions to predict whose input or label is a translation."""
    other = rows.label_language != rows.language.ravel()[rows.targets]
    if rows.translated is not None:
        other |= rows.translated.ravel()[rows.targets]
    return int(other.sum())


def _totals(rows: SubwordRows) -> Totals:
    """Return the numbers of a step's rows."""
    source, derived = np.bincount(rows.label_language, minlength=2).tolist()
    links = linked = 0
    if rows.links is not None:
        begins = np.zeros(rows.clean_ids.size, bool)
        begins[rows.links[0]] = True
        links, linked = rows.links.shape[1], int(begins[rows.targets].sum())
    return Totals(len(rows.lengths), len(rows.targets), (source, derived), links, linked)


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
