"""Claim: what plans, runs and finishes a set needs little more memory for 10,000 tasks than for 10 (aim 0).

Each line of a text is a task of its own, so that nothing but the tasks costs anything. Measured are `make`, by one
process and by two, `plan`, `work` of one rank of two, and `finish`. A run with `--size` below 100 has 1,000 tasks at
most, and decides no claim.
"""

from __future__ import annotations

import json
from pathlib import Path

from measure import Report, Settings, Usage, derivlang, spread

_TASKS = (10, 1_000, 10_000)
_MOST = 8.0  # kB for each task
_WORLD = 2


def benchmark(settings: Settings) -> Report:
    report = Report("many tasks of one line each", ("command", "tasks", "wall s", "CPU s", "ms a task", "peak MB"))
    whole = settings.size >= 100
    counts = _TASKS if whole else (10, 1_000) if settings.size >= 1 else (5, 10)
    peaks: dict[str, list[float]] = {}
    floors: dict[str, float] = {}
    for n in counts:
        for name, (tasks, usage) in _runs(n, settings.work / str(n), whole).items():
            floor = floors.setdefault(name, usage.cpu)
            each = f"{(usage.cpu - floor) / tasks * 1e3:.1f}" if n > counts[0] else ""
            report.row(name, f"{tasks:,}", f"{usage.wall:.1f}", f"{usage.cpu:.1f}", each, f"{usage.peak:.0f}")
            report.figure(f"{name}, {n} tasks: peak MB", spread([usage], lambda one: one.peak))
            peaks.setdefault(name, []).append(usage.peak)
    for name, (first, *_, last) in peaks.items():
        each = (last - first) * 1e3 / counts[-1]
        report.claim(
            f"{name}: at most {_MOST:.0f} kB a task",
            f"{each:.1f} kB, {last - first:.0f} MB",
            each <= _MOST if whole else None,
        )
    return report


def _runs(n: int, folder: Path, whole: bool) -> dict[str, tuple[int, Usage]]:
    """Run each command once on a text of n lines. Return the number of tasks that it had, and its cost, by its name."""
    folder.mkdir()
    source = folder / "train.tokens"
    source.write_text("".join(f" Line {i} has some words . \n" for i in range(n)), "utf-8")
    planned = ("--t", "trans,inv", source, "--shard-tokens", "1", "--json", "-o")
    found: dict[str, tuple[int, Usage]] = {
        "make": (n, derivlang("make", *planned, folder / "one")),
        "make --workers 2": (n, derivlang("make", *planned, folder / "two", "--workers", "2")),
    }
    out = folder / "out"
    usage = derivlang("plan", *planned, out)
    if (tasks := json.loads(usage.output)["tasks"]) != n:
        raise SystemExit(f"{tasks} tasks were planned, and not {n}")
    found["plan"] = n, usage
    usage = derivlang("work", out, "--rank", "0", "--world", str(_WORLD), "--json")
    found["work, one rank of two"] = json.loads(usage.output)["made"], usage
    for rank in range(1, _WORLD):
        derivlang("work", out, "--rank", str(rank), "--world", str(_WORLD))
    found["finish"] = n, derivlang("finish", out, "--json")
    return found
