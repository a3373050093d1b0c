"""Claims: two workers write the same bytes as one and cost at most 1.3 times the CPU; the gain in time is reported.

The text is cut into some eight shards, and so are its lines as JSON lines. Compared are the SHA-256 of every shard, the
manifest and the card.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path

from corpus import corpus, text_file, warm
from measure import Report, Settings, alternate, make, ratio, spread, tokens

_LIMIT = 1.3
_SHARDS = 8
_BYTES_A_WORD = 5.3


def benchmark(settings: Settings) -> Report:
    data = corpus(settings.size, "repeated", settings.cache, settings.data)
    warm(data)
    json_lines = _json_lines(data, settings.work / "lines-train.jsonl")
    report = Report("make --t trans,inv by workers", ("source", "workers", "CPU s", "wall s"))
    for name, source, words in (("text", "wikitext103", ()), ("jsonl", str(json_lines), ("--words", "space"))):
        shard = str(max(1, round(settings.size * 1e6 / _BYTES_A_WORD / _SHARDS)))
        folders = [settings.work / name / "one", settings.work / name / "two"]
        one, two = alternate(
            settings.repeat,
            *(
                partial(
                    make, "trans,inv", data, out, "--workers", workers, "--shard-tokens", shard, *words, source=source
                )
                for workers, out in zip(("1", "2"), folders, strict=True)
            ),
        )
        for workers, runs in (("1", one), ("2", two)):
            cpu, wall = spread(runs), spread(runs, lambda usage: usage.wall)
            report.row(name, workers, cpu.text(), wall.text())
            report.figure(f"{name}, {workers} workers: CPU s", cpu)
            report.figure(f"{name}, {workers} workers: wall s", wall)
        hashes = [_hashes(folder) for folder in folders]
        shards = sum(file.endswith(".parquet") for file in hashes[0])
        told = f"{tokens(one[0]) / 1e6:.1f} M words, {shards} shards, {len(hashes[0])} files in all, by SHA-256"
        report.claim(f"{name}: the same bytes", told, hashes[0] == hashes[1])
        over = report.figure(f"{name}: CPU, 2 / 1 workers", ratio(two, one))
        decided = settings.size >= 100
        report.claim(f"{name}: at most {_LIMIT} x the CPU", over.text(), over.median <= _LIMIT if decided else None)
        gain = report.figure(f"{name}: wall, 1 / 2 workers", ratio(one, two, lambda usage: usage.wall))
        report.notes.append(f"{name}: two workers take {gain.text()} times less wall-clock time")
    return report


def _json_lines(data: Path, out: Path) -> Path:
    """The lines of a text that are not blank, as a file of JSON lines."""
    with text_file(data).open(encoding="utf-8") as lines, out.open("w", encoding="utf-8") as file:
        for number, line in enumerate(filter(str.strip, lines)):
            file.write(json.dumps({"text": line.strip(), "label": number}, ensure_ascii=False) + "\n")
    return out


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): _sha256(path) for path in files}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
