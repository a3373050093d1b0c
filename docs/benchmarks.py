"""Write docs/last-run.md and its picture, the last run of the benchmarks, from benchmarks/results.json.

python benchmarks/run.py all --json benchmarks/results.json && python docs/benchmarks.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "last-run.md"
PICTURE = PAGE.with_suffix(".svg")

HEAD = """# The last run

{date}, commit {commit}: the median of {repeat} runs, with minimum and maximum in brackets, on {size_mb:g} MB of text.
{cores} cores of {processor}, {system}, Python {python}, {versions}. A claim about a size is not decided below it.

![The ratios of this run, as dots, with minimum and maximum](last-run.svg)

`python docs/benchmarks.py` writes this page from `benchmarks/results.json`.
"""


def page(results: dict[str, Any]) -> str:
    """The text of the page."""
    machine = dict(results["machine"])
    facts = {name: machine.pop(name) for name in ("cores", "processor", "system", "commit", "python")}
    versions = ", ".join(f"{name} {version}" for name, version in machine.items())
    asked = {name: results[name] for name in ("date", "repeat", "size_mb")}
    parts = [HEAD.format(**asked, **facts, versions=versions)]
    for name, one in results["benchmarks"].items():
        parts += [f"\n## {one['title']}\n\n`python benchmarks/run.py {name}`\n\n", _row(one["header"])]
        parts += [_row(["---", *["--:"] * (len(one["header"]) - 1)]), *map(_row, one["rows"]), "\n"]
        parts += [f"- {note}\n" for note in one["notes"]]
        for claim in one["claims"]:
            verdict = {True: "holds", False: "**does not hold**", None: "not decided at this size"}[claim["holds"]]
            parts.append(f"- {claim['claim']}: {claim['figure']}; {verdict}\n")
    return "".join(parts)


def picture(results: dict[str, Any], out: Path) -> None:
    """Draw every figure that is a ratio: a dot for the median, a line from minimum to maximum."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    ratios = [
        (f"{name}: {figure}", spread)
        for name, one in results["benchmarks"].items()
        for figure, spread in one["figures"].items()
        if re.search("ratio|times| / ", figure) and "CPU s" not in figure
    ]
    with mpl.rc_context({"svg.hashsalt": "derivlang", "svg.fonttype": "none"}):
        drawn = Figure(figsize=(8, 0.6 + 0.3 * len(ratios)), layout="constrained")
        axes = drawn.subplots()
        for i, (_, spread) in enumerate(reversed(ratios)):
            axes.plot([spread["min"], spread["max"]], [i, i], color="#0072b2")
            axes.plot(spread["median"], i, "o", color="#0072b2")
        axes.set_yticks(range(len(ratios)), [label for label, _ in reversed(ratios)])
        axes.axvline(1, color="#888888", linewidth=0.8)
        axes.set_xlim(left=0)
        axes.set_xlabel("ratio")
        drawn.savefig(out, metadata={"Date": None})


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


if __name__ == "__main__":
    found = json.loads(RESULTS.read_text("utf-8"))
    PAGE.write_text(page(found), "utf-8")
    picture(found, PICTURE)
