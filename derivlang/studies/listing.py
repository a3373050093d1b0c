"""The studies that come with the package, by paper, as `derivlang study --list` shows them.

All that is shown stands in the studies' files: paper, title, table and scales in [study], and the cells. The time is
computed: of the first scale, on two cores that train `RATE` sub-words per second each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from derivlang.studies.estimate import SHARED, cost, is_narrow, total_seconds
from derivlang.studies.file import read, scales, shipped

RATE = 20_000.0  # sub-words per second of `tiny` on one core: 20 runs of 10,500 steps in 88 minutes, rounded down
CORES = 2
OPEN = "Questions that the papers leave open"


def listing() -> list[dict[str, Any]]:
    """Return a record of each shipped study, sorted by paper; studies without a paper come last.

    Each has paper, name, title, table, runs, scales, and seconds on two cores, None for a model that needs an
    accelerator.
    """
    return sorted(_records(), key=lambda one: (not one["paper"], one["paper"], one["name"]))


def _records() -> Iterator[dict[str, Any]]:
    for name in shipped():
        study = read(name, check=False)
        narrow = all(map(is_narrow, study.cells))
        costs = [cost(cell, RATE) for cell in study.cells] if narrow else []
        yield {
            "paper": study.paper,
            "name": name,
            "title": study.title,
            "table": study.table,
            "runs": len(study.cells),
            "seconds": round(total_seconds(costs, (SHARED, 0.0), CORES)) if narrow else None,
            "scales": scales(name),
        }


def lines_of(found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a listing for a person."""
    width, last = max(len(one["name"]) for one in found), None
    for one in found:
        if (paper := one["paper"] or OPEN) != last:
            yield paper if last is None else f"\n{paper}"
            last = paper
        told = f"{one['title']} ({one['table']})" if one["table"] else one["title"]
        took = f"{_duration(one['seconds']):>7}" if one["seconds"] else ""
        yield f"  {one['name']:<{width}}  {one['runs']:>3} runs {took}  {'/'.join(one['scales'])}  {told}"
    yield (
        f"\nRuns and times are of the first scale. Times are computed, not measured: on {CORES} cores, at {RATE:,.0f} "
        "sub-words per second each."
    )


def _duration(seconds: float) -> str:
    """5400 -> "1.5 h", 1500 -> "25 min"."""
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"
