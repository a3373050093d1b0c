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

from derivlang.core.arrays import Int64, owners, positions
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
            made = [(one.stream, *self._masked(one, steps)) for one in self.streams]
            for at, step in enumerate(steps):
                here = [(stream, views, offsets[at], offsets[at + 1]) for stream, views, offsets in made]
                yield self._step(step, here)

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

    def _rows(self, one: OpenStream, steps: range) -> tuple[SubwordRows, Keys, list[int]]:
        """Return the rows of a stream in n steps, their keys, and where the rows of each step begin, n + 1 numbers."""
        cuts = one.rows_before(steps[0], steps[-1] + 2)
        offsets = cuts - cuts[0]
        numbers = one.source.numbers(one.stream.name, self.seed, steps, int(cuts[0]), offsets)
        keys = Keys.of(self.seed, np.asarray(steps)[owners(offsets)], positions(offsets) + one.first)
        return one.source.rows(numbers, keys), keys, offsets.tolist()

    def _masked(self, one: OpenStream, steps: range) -> tuple[dict[str, SubwordRows], list[int]]:
        """Return the masked rows of a stream in some steps, by view, and where the rows of each step begin."""
        rows, keys, offsets = self._rows(one, steps)
        if not one.stream.masked:
            return dict.fromkeys(one.stream.names(), rows.predicting(np.zeros(0, np.int64))), offsets
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
        return by_name, offsets

    def _step(self, number: int, made: list[tuple[Stream, dict[str, SubwordRows], int, int]]) -> list[Step]:
        """Return the micro-batches of this process for a step.

        made: of each stream, its rows by view, and which of them are of the step, the first and the last + 1.
        """
        counts: Counter[str] = Counter()
        rows: dict[str, SubwordRows] = {}
        for stream, views, begin, end in made:
            here = {name: view.take(begin, end) for name, view in views.items()}
            counts.update(_counts(stream, here[stream.name], len(self.context.vocabulary.own)))
            rows |= {name: replace(view, totals=_totals(view)) for name, view in here.items()}
        parts, first = self.accumulate * self.world, self.rank * self.accumulate
        return [
            Step(number, 1 / parts, {name: view.part(which, parts) for name, view in rows.items()}, counts)
            for which in range(first, first + self.accumulate)
        ]


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


def _counts(stream: Stream, rows: SubwordRows, n_languages: int) -> dict[str, int]:
    """Return the counts of a stream in a step.

    Parts of sentences that are rows of their own count each, a pair counts once.
    """
    n_sentences = rows.sentence_ids.max(axis=1) + 1
    counts: dict[str, int] = {}
    for kind, some in stream.kinds(rows).items():
        counts[kind + TOKENS] = int(rows.lengths[some].sum())
        counts[kind + SENTENCES] = int(n_sentences[some].sum())
    # positions whose input or label is a translation
    other = rows.label_language != rows.language.ravel()[rows.targets]
    if rows.translated is not None:
        other |= rows.translated.ravel()[rows.targets]
    counts["masked"], counts["translated"] = len(other), int(other.sum())
    if n_languages > 2:
        numbers = np.bincount(rows.language[rows.attention], minlength=n_languages).tolist()
        counts |= {f"{LANGUAGE}{number}": of for number, of in enumerate(numbers)}
    return counts


def _totals(rows: SubwordRows) -> Totals:
    """Return the numbers of the rows of a step."""
    masked, others = len(rows.targets), int((rows.label_language > 0).sum())
    linked = 0 if rows.links is None else int(np.isin(rows.targets, rows.links[0]).sum())
    links = 0 if rows.links is None else rows.links.shape[1]
    return Totals(len(rows.lengths), masked, (masked - others, others), links, linked)
