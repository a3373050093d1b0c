"""Claims: `make` of JSON lines, CSV and Parquet costs at most 2.2 × the CPU of the same lines as text (aim 2),
1.4 × for raw text; 2,000 small files cost at most 1.5 × one file.

The lines are of WikiText-2, repeated up to a third of `--size`, with a number as the label of each. A format has
one file, and the small files are of text. All sets must have the same words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from corpus import corpus, text_file
from measure import Report, Settings, Usage, alternate, make, ratio, spread, tokens

_TABLES = ("jsonl", "csv", "parquet")
_LIMITS = {"space": 2.2, "spacy": 1.4}  # aims: 2 and 1.4
_FILES = 2_000
_MANY = 1.5


def benchmark(settings: Settings) -> Report:
    size = settings.size / 3
    data = corpus(size, "repeated", settings.cache, settings.data)
    lines = [line.strip() for line in text_file(data).read_text("utf-8").split("\n") if line.strip()]
    folder = settings.work / "in"
    sources = {"txt": _written(folder / "text.txt", lines), **{kind: _table(folder, kind, lines) for kind in _TABLES}}
    per_file = max(1, -(-len(lines) // _FILES))
    cuts = range(0, len(lines), per_file)
    for i in cuts:
        _written(folder / "many" / f"{i:08d}.txt", lines[i : i + per_file])
    report = Report(
        f"make --t trans,inv by format, {size:.0f} MB in {len(lines):,} lines",
        ("words", "source", "CPU s", "wall s", "× text"),
    )
    for words, limit in _LIMITS.items():
        named = {**sources, f"{len(cuts):,} files": folder / "many"}
        jobs = {name: partial(_make, settings, source, words) for name, source in named.items()}
        runs = dict(zip(jobs, alternate(settings.repeat, *jobs.values()), strict=True))
        counts = {tokens(found[0]) for found in runs.values()}
        report.claim(f"the same words, --words {words}", f"{max(counts):,} words", len(counts) == 1)
        for name, found in runs.items():
            cpu, wall = spread(found), spread(found, lambda usage: usage.wall)
            over = ratio(found, runs["txt"])
            report.row(words, name, cpu.text(), wall.text(), over.text())
            report.figure(f"{name}, {words}: CPU s", cpu)
            if name == "txt":
                continue
            report.figure(f"{name} / txt, {words}, CPU", over)
            most = limit if name in _TABLES else _MANY
            holds = over.median <= most if settings.size >= 100 else None
            report.claim(f"{name}: at most {most} x the CPU of text, --words {words}", over.text(), holds)
    return report


def _make(settings: Settings, source: Path, words: str) -> Usage:
    out = settings.work / f"out-{source.name}-{words}"
    return make("trans,inv", settings.data, out, "--words", words, source=str(source))


def _written(path: Path, lines: Sequence[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def _table(folder: Path, kind: str, lines: Sequence[str]) -> Path:
    path = folder / f"{kind}.{kind}"
    if kind == "jsonl":
        rows = [json.dumps({"text": line, "label": i}, ensure_ascii=False) for i, line in enumerate(lines)]
        return _written(path, rows)
    if kind == "csv":
        rows = [f'"{line.replace(chr(34), chr(34) * 2)}",{i}' for i, line in enumerate(lines)]
        return _written(path, ["text,label", *rows])
    pq.write_table(pa.table({"text": list(lines), "label": range(len(lines))}), path)
    return path
