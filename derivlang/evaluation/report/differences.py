"""Differences between two objectives under one language: runs of the same pre-training seed, the same test documents.

    ZS    score of the first - score of the second, both fine-tuned on the source
    Δ     Δ of the first - Δ of the second: below zero, the first transfers better

A seed that only one of the two has is left out, of the mean as of the interval. MLM comes first: the differences
between it and every other objective are a table, and those between all other pairs are another. The p-values of a table
are corrected for their number (Holm).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from derivlang.evaluation.report.columns import Column
from derivlang.evaluation.report.estimates import difference_of
from derivlang.evaluation.report.runs import Run
from derivlang.evaluation.report.settings import Entry, Setting
from derivlang.evaluation.statistics import Estimate, holm

BASE = "mlm"
REGIMES = ("zs", "delta")


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """`entry` minus `base` in points. by_seed: by pre-training seed. alone: seeds that only one of the two has.

    found: the mean over seeds, None if there are none in common. p: corrected in its table; None if it is in none, or
    without an interval.
    """

    entry: Entry
    base: Entry
    column: Column
    regime: str
    by_seed: dict[int, float]
    alone: tuple[int, ...]
    found: Estimate | None
    p: float | None = None

    @property
    def from_base(self) -> bool:
        """Whether it is a difference from plain MLM."""
        return _is_base(self.base)

    @property
    def runs(self) -> tuple[Run, ...]:
        return (*self.entry.runs, *self.base.runs)


def differences_of(setting: Setting) -> list[Difference]:
    """Return the differences of any two rows of a language, in every metric and regime that both have."""
    pairs = list(_pairs(setting.entries))
    found = [
        one
        for entry, base in pairs
        for column in setting.columns
        for regime in REGIMES
        if (one := _difference(entry, base, column, regime)) is not None
    ]
    shown = [one.column in setting.headline for one in found]
    tables = [[at for at, one in enumerate(found) if shown[at] and one.from_base is base] for base in (True, False)]
    for table in tables:
        tested = [(at, mean.p) for at in table if (mean := found[at].found) is not None and mean.p is not None]
        for (at, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
            found[at] = replace(found[at], p=p)
    return found


def _pairs(entries: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Yield (entry, base): those with plain MLM first. Rows that differ in what no name says are not compared."""
    named = [entry for entry in entries if not entry.more]
    for base in filter(_is_base, named):
        yield from ((entry, base) for entry in entries if entry is not base and _comparable(entry, base))
    others = [entry for entry in named if not _is_base(entry)]
    for at, base in enumerate(others):
        yield from ((entry, base) for entry in others[at + 1 :] if _comparable(entry, base))


def _difference(entry: Entry, base: Entry, column: Column, regime: str) -> Difference | None:
    ours, theirs = ({run.seed: run for run, _ in side.scores(column, regime)} for side in (entry, base))
    if not ours or not theirs:
        return None
    pairs = {seed: (ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())}
    alone = tuple(sorted(ours.keys() ^ theirs.keys()))
    values = {seed: _value(pair, column, regime) for seed, pair in pairs.items()}
    found = difference_of(list(pairs.values()), column, regime) if pairs else None
    return Difference(entry, base, column, regime, values, alone, found)


def _value(pair: Iterable[Run], column: Column, regime: str) -> float:
    first, second = (score.mean for run in pair if (score := run.score(column, regime)) is not None)
    return first - second


def _is_base(entry: Entry) -> bool:
    variant = entry.variant
    return variant.objective == BASE and not variant.parameters and not entry.more


def _comparable(entry: Entry, base: Entry) -> bool:
    """Return whether two rows are of one language, of the same settings, and of the same levels that either one names.

    Under the factor dict-coverage, MLM's rows name their level; those of ALIGN-MLM have it in their variant instead.
    """
    if (entry.language, entry.told.settings) != (base.language, base.told.settings):
        return False
    levels, others = entry.runs[0].levels, base.runs[0].levels
    return all(levels.get(name) == others.get(name) for name in {*entry.told.factors, *base.told.factors})
