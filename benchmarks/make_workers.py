"""Claims: two workers write the same bytes as one and cost at most 1.3 times the CPU; the gain in time is reported.

Compared are the SHA-256 of every shard, the manifest and the card. The text is cut into some eight shards.
"""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

from corpus import corpus, warm
from measure import Report, Settings, alternate, make, ratio, spread, tokens

_LIMIT = 1.3
_SHARDS = 8
_BYTES_A_WORD = 5.3


def benchmark(settings: Settings) -> Report:
    data = corpus(settings.size, "repeated", settings.cache, settings.data)
    warm(data)
    shard = str(max(1, round(settings.size * 1e6 / _BYTES_A_WORD / _SHARDS)))
    folders = [settings.work / "one", settings.work / "two"]
    one, two = alternate(
        settings.repeat,
        *(
            partial(make, "trans,inv", data, out, "--workers", workers, "--shard-tokens", shard)
            for workers, out in zip(("1", "2"), folders, strict=True)
        ),
    )
    report = Report(
        f"make --t trans,inv by workers, {tokens(one[0]) / 1e6:.1f} M words", ("workers", "CPU s", "wall s")
    )
    for name, runs in (("1", one), ("2", two)):
        cpu, wall = spread(runs), spread(runs, lambda usage: usage.wall)
        report.row(name, cpu.text(), wall.text())
        report.figure(f"{name} workers: CPU s", cpu)
        report.figure(f"{name} workers: wall s", wall)
    hashes = [_hashes(folder) for folder in folders]
    shards = sum(name.endswith(".parquet") for name in hashes[0])
    report.claim(
        "the same bytes", f"{shards} shards, {len(hashes[0])} files in all, by SHA-256", hashes[0] == hashes[1]
    )
    over = report.figure("CPU, 2 / 1 workers", ratio(two, one))
    decided = settings.size >= 100
    report.claim(f"at most {_LIMIT} x the CPU", over.text(), over.median <= _LIMIT if decided else None)
    gain = report.figure("wall, 1 / 2 workers", ratio(one, two, lambda usage: usage.wall))
    report.notes.append(f"two workers take {gain.text()} times less wall-clock time")
    return report


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): _sha256(path) for path in files}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
