"""Claims: `make` of one row of JSON lines with 10,000 keys takes at most 0.9 CPU seconds more than of a row with one
key (aim 0.5), and the cost is linear in the number of keys.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from measure import Report, Settings, Spread, Usage, alternate, make, ratio, spread

_KEYS = 10_000  # of 100 MB; fewer of less
_LIMIT, _AIM = 0.9, 0.5
_LINEAR = 2.6  # for twice the keys


def benchmark(settings: Settings) -> Report:
    keys = max(4, min(_KEYS, round(_KEYS * settings.size / 100)))
    counts = (1, keys // 2, keys)
    rows = {count: _row(settings.work / f"{count}.jsonl", count) for count in counts}
    runs = alternate(settings.repeat, *(partial(_make, settings, row) for row in rows.values()))
    report = Report("make --t trans,inv of one row of JSON lines", ("keys", "CPU s", "× one key", "CPU s more"))
    more = {}
    for count, found in zip(counts, runs, strict=True):
        cpu = report.figure(f"{count} keys: CPU s", spread(found))
        more[count] = Spread(tuple(a.cpu - b.cpu for a, b in zip(found, runs[0], strict=True)))
        report.row(f"{count:,}", cpu.text(), ratio(found, runs[0]).text(), more[count].text())
    whole = keys == _KEYS
    most = report.figure(f"{keys} keys: CPU s more than one key", more[keys])
    holds = most.median <= _LIMIT if whole else None
    report.claim(f"{keys:,} keys: at most {_LIMIT} CPU s more (aim {_AIM})", most.text(), holds)
    growth = more[keys].median / max(1e-3, more[keys // 2].median)
    report.claim(f"twice the keys cost at most {_LINEAR} ×", f"{growth:.2f}", growth <= _LINEAR if whole else None)
    return report


def _row(file: Path, keys: int) -> Path:
    row = {"text": "One row of text .", **{f"key {i}": i for i in range(1, keys)}}
    file.write_text(json.dumps(row) + "\n", "utf-8")
    return file


def _make(settings: Settings, row: Path) -> Usage:
    return make("trans,inv", settings.data, settings.work / "out", "--words", "space", source=str(row))
