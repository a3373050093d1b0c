"""What a larger corpus needs, from what `stages` measured on this machine: `python benchmarks/scale.py --tokens 1e11`.

    --tokens 1e11 --ranks 1000 --price-core-hour 0.04 --price-gb-month 0.02 --price-1000-requests 0.005
    --deaths 0.05 --stragglers 0.05 --slowdown 3 --seed 1

Two tables. The first computes cores, hours, disk, requests and money; prices are the reader's. The second simulates
ranks with a static share (rank R of N takes tasks R, R + N, …). Its assumptions:

- Tasks take the median time that was measured, scaled to their size, times a factor drawn from the measured times of
  tasks. A rank is slower by --slowdown with the probability --stragglers.
- A rank dies at a constant rate, --deaths an hour, and loses the task that it runs. Nobody notices before the whole
  array has ended. Then the array is submitted again, until nothing is left: as it was, or with one rank less, so that
  the tasks of a dead rank fall to several.
- Each start of a rank costs the measured start-up. Queues, the network and the store cost no time.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import table

RATES = Path(__file__).with_name("stages.json")
SHARD_TOKENS = 20_000_000  # the default of --shard-tokens
_TASK_REQUESTS, _FINISH_REQUESTS = 4, 1  # of a rank for each task, of `finish` for each task: tests/test_many_tasks.py
_COUNT_REQUESTS = 3  # for each task that is counted, with what plans
_RECORD_LIST, _REMOVED = 1000, 1000  # names in one answer of a list, and in one request that removes


@dataclass(frozen=True, slots=True)
class Rates:
    """What was measured of a kind of source, in CPU seconds for a word; start: of a rank.

    plan: in one process. count, fit: of ranks under --defer, and of the one that plans. spread: the times of tasks,
    divided by their median.
    """

    hash: float
    plan: float
    count: float
    fit: float
    work: float
    finish: float
    start: float
    read: float  # bytes a word
    written: float
    spread: tuple[float, ...]

    @classmethod
    def of(cls, path: Path, kind: str) -> Rates:
        figures: dict[str, Any] = json.loads(path.read_text("utf-8"))["benchmarks"]["stages"]["figures"]
        stage = {
            name: figures[f"{kind}, {name}: CPU s for 1 M words"]["median"] / 1e6
            for name in ("hash", "plan", "count", "fit", "work", "finish")
        }
        times = figures[f"{kind}: seconds of each task"]["runs"]
        middle = statistics.median(times)
        sizes = {name: figures[f"{kind}: bytes a word {name}"]["median"] for name in ("read", "written")}
        start = figures["floors: CPU s"]["work"]
        return cls(**stage, start=start, **sizes, spread=tuple(time / middle for time in times))


@dataclass(frozen=True, slots=True)
class Prices:
    """What the reader pays, in one currency."""

    core_hour: float
    gb_month: float
    requests: float  # for 1,000


def needs(rates: Rates, tokens: float, ranks: int, prices: Prices, shard: float) -> list[tuple[str, str]]:
    """What a set of some tokens needs, as rows of a table."""
    tasks = max(1, math.ceil(tokens / shard))
    used = min(ranks, tasks)
    hours = {
        "plan, only the hash": tokens * rates.hash / 3600,
        "plan, hash and count": tokens * rates.plan / 3600,
        "work --stage count, after plan --defer": (tokens * rates.count + used * rates.start) / 3600,
        "the plan that follows, in one rank": tokens * rates.fit / 3600,
        "work": (tokens * rates.work + used * rates.start) / 3600,
        "finish": tokens * rates.finish / 3600,
    }
    each = math.ceil(tasks / used) * shard if tasks > 1 else tokens
    wall = each * rates.work / 3600 + rates.start / 3600
    counting = each * rates.count / 3600 + rates.start / 3600 + hours["the plan that follows, in one rank"]
    cores = hours["plan, hash and count"] + hours["work"] + hours["finish"]
    requests = tasks * (_TASK_REQUESTS + _FINISH_REQUESTS) + 2 * tasks / _RECORD_LIST + tasks / _REMOVED + used * 3
    disk = tokens * rates.written / 1e9
    return [
        ("tasks", f"{tasks:,}"),
        ("ranks with work", f"{used:,}"),
        *((f"core hours, {name}", f"{value:,.2f}") for name, value in hours.items()),
        ("hours, work on these ranks", f"{wall:,.2f}"),
        ("hours in all, plan in one process", f"{hours['plan, hash and count'] + wall + hours['finish']:,.2f}"),
        ("hours in all, plan --defer", f"{counting + wall + hours['finish']:,.2f}"),
        ("GB read", f"{tokens * rates.read / 1e9:,.1f}"),
        ("GB written", f"{disk:,.1f}"),
        ("requests that write or ask, without those that read the source", f"{requests:,.0f}"),
        ("money: cores", f"{cores * prices.core_hour:,.2f}"),
        ("money: a month of the disk", f"{disk * prices.gb_month:,.2f}"),
        ("money: requests", f"{requests / 1000 * prices.requests:,.2f}"),
    ]


@dataclass(frozen=True, slots=True)
class Failures:
    """What goes wrong in a simulation. deaths: of a rank, an hour. stragglers: their share. slowdown: of theirs."""

    deaths: float
    stragglers: float
    slowdown: float


@dataclass(frozen=True, slots=True)
class Simulated:
    """hours: until all tasks are done. core_hours: of all ranks while they ran. lost: those of tasks that died.
    arrays: how often the array was submitted."""

    hours: float
    core_hours: float
    lost: float
    arrays: int


def simulate(
    task: float,
    tasks: int,
    ranks: int,
    start: float,
    spread: tuple[float, ...],
    bad: Failures,
    rng: random.Random,
    less: int,
) -> Simulated:
    """Run tasks of some hours by ranks, and submit the array until all are done, with `less` ranks fewer each time."""
    left = set(range(tasks))
    hours = core_hours = lost = 0.0
    arrays = 0
    while left:
        world = max(1, ranks - less * arrays)
        arrays += 1
        longest = 0.0
        done: set[int] = set()
        for rank in range(world):
            mine = [number for number in range(rank, tasks, world) if number in left]
            slow = bad.slowdown if rng.random() < bad.stragglers else 1.0
            end = rng.expovariate(bad.deaths) if bad.deaths else math.inf
            now = start
            for number in mine:
                takes = task * rng.choice(spread) * slow
                if now + takes > end:
                    lost += max(0.0, end - now)
                    now = max(now, end)
                    break
                now += takes
                done.add(number)
            core_hours += now
            longest = max(longest, now)
        left -= done
        hours += longest
    return Simulated(hours, core_hours, lost, arrays)


def simulations(
    rates: Rates, tokens: float, ranks: int, shard: float, bad: Failures, seed: int
) -> list[tuple[str, ...]]:
    """Rows of the second table: nothing goes wrong, stragglers, deaths, both; the array as it was, and smaller."""
    tasks = max(1, math.ceil(tokens / shard))
    task, start = tokens / tasks * rates.work / 3600, rates.start / 3600
    calm = Failures(0, 0, 1)
    cases = {
        "nothing goes wrong": (calm, 0),
        "stragglers": (Failures(0, bad.stragglers, bad.slowdown), 0),
        "deaths, the same array again": (Failures(bad.deaths, 0, 1), 0),
        "deaths, one rank less each time": (Failures(bad.deaths, 0, 1), 1),
        "both, the same array again": (bad, 0),
        "both, one rank less each time": (bad, 1),
    }
    rows = []
    for name, (failures, less) in cases.items():
        runs = [
            simulate(task, tasks, ranks, start, rates.spread, failures, random.Random(seed + i), less)
            for i in range(20)
        ]
        figures = [
            statistics.median(getattr(run, key) for run in runs) for key in ("hours", "core_hours", "lost", "arrays")
        ]
        hours, core_hours, lost, arrays = figures
        rows.append((name, f"{hours:.2f}", f"{core_hours:,.1f}", f"{lost:,.2f}", f"{arrays:.0f}"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=float, default=1e11, help="words of the corpus (default 1e11)")
    parser.add_argument("--source", choices=("text", "jsonl", "parquet"), default="jsonl")
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument(
        "--shard-tokens", type=float, default=SHARD_TOKENS, help="words of a task (default that of make)"
    )
    parser.add_argument("--price-core-hour", type=float, default=0.0)
    parser.add_argument("--price-gb-month", type=float, default=0.0)
    parser.add_argument("--price-1000-requests", type=float, default=0.0)
    parser.add_argument("--deaths", type=float, default=0.05, help="of a rank, an hour (default 0.05)")
    parser.add_argument("--stragglers", type=float, default=0.05, help="share of slow ranks (default 0.05)")
    parser.add_argument("--slowdown", type=float, default=3.0, help="how much slower they are (default 3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rates", type=Path, default=RATES, help="what `run.py stages --json` wrote")
    given = parser.parse_args()
    rates = Rates.of(given.rates, given.source)
    prices = Prices(given.price_core_hour, given.price_gb_month, given.price_1000_requests)
    print(f"{given.tokens:.0e} tokens of {given.source}, {given.ranks:,} ranks")
    print(table(("what", "how much"), needs(rates, given.tokens, given.ranks, prices, given.shard_tokens)))
    bad = Failures(given.deaths, given.stragglers, given.slowdown)
    print(f"\n{given.ranks:,} ranks, simulated; medians of 20 runs (work only)")
    rows = simulations(rates, given.tokens, given.ranks, given.shard_tokens, bad, given.seed)
    print(table(("what", "hours", "core hours", "lost", "arrays"), rows))


if __name__ == "__main__":
    main()
