"""Claim: `plan --defer` takes at most 1 % of the CPU time of `work`. What each stage of a set made by ranks costs.

The sources are text, JSON lines and Parquet. The spec is `trans:overlap=30,inv`, which is fitted on the words of the
corpus: `plan` hashes the corpus, then counts its words. Under `plan --defer` two ranks count the same number of pieces
each, and the second one plans: what it takes more than the first is the plan. Start-up (the command on a text of one
line) is subtracted, and stated. Hashing and `plan --defer` are too quick for that, and are taken in this process.
`scale.py` computes from these figures what larger corpora need:

    python benchmarks/run.py stages --size 30 --json benchmarks/stages.json
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from corpus import corpus, text_file
from measure import Report, Settings, Spread, Usage, derivlang, spread

import derivlang as package

SPEC = "trans:overlap=30,inv"
_TASKS = 6
_BYTES_A_WORD = 5.3
_SHARE = 1.0  # per cent of the CPU time of `work` that `plan --defer` may take


def benchmark(settings: Settings) -> Report:
    data = corpus(settings.size, "grown", settings.cache, settings.data)
    lines = [line.strip() for line in text_file(data).read_text("utf-8").split("\n") if line.strip()]
    report = Report("stages of a set made by ranks", ("source", "stage", "M words / CPU s", "peak MB"))
    one = _Run(settings.work / "floor", "text", lines[:1])
    floors = {stage: one.cost(stage).cpu for stage in ("plan", "count", "work", "finish")}
    for kind in ("text", "jsonl", "parquet"):
        runs = [_Run(settings.work / f"{kind}-{i}", kind, lines) for i in range(settings.repeat)]
        for stage in floors:
            found = [run.cost(stage) for run in runs]
            words = runs[0].words / (2 if stage == "count" else 1)  # one of two ranks
            costs = Spread(tuple(max(1e-3, usage.cpu - floors[stage]) * 1e6 / words for usage in found))
            report.figure(f"{kind}, {stage}: CPU s for 1 M words", costs)
            peak = report.figure(f"{kind}, {stage}: peak MB", spread(found, lambda usage: usage.peak))
            report.row(kind, _TOLD[stage], f"{1 / costs.median:.2f}", peak.text(0))
        run = runs[0]
        planning = [(run.cost("count, plan").cpu - run.cost("count").cpu) * 1e6 / run.words for run in runs]
        fitting = report.figure(f"{kind}, fit: CPU s for 1 M words", Spread(tuple(max(1e-3, one) for one in planning)))
        report.row(kind, "plan, counted", f"{1 / fitting.median:.1f}", "")
        work = run.cost("work").cpu - floors["work"]
        share = report.figure(f"{kind}, plan --defer: % of work", Spread((_deferred(run.source) / work * 100,)))
        limit = f"{kind}: plan --defer at most {_SHARE:.0f} % of work"
        report.claim(limit, f"{share.median:.2f} %", share.median <= _SHARE)
        cost = _hash(run.source, 0.5 if settings.repeat > 1 else 0) * 1e6 / run.words
        hashing = report.figure(f"{kind}, hash: CPU s for 1 M words", Spread((cost,)))
        report.row(kind, "hash", f"{1 / hashing.median:.0f}", "")
        report.figure(f"{kind}: bytes a word read", Spread((run.source.stat().st_size / run.words,)))
        report.figure(f"{kind}: bytes a word written", Spread((run.written / run.words,)))
        report.figure(f"{kind}: seconds of each task", Spread(tuple(run.seconds)))
    report.figures["floors: CPU s"] = floors
    report.notes.append(f"start-up: {', '.join(f'{_TOLD[name]} {cost:.2f} CPU s' for name, cost in floors.items())}")
    report.notes.append(f"{runs[0].words:,} words, {len(runs[0].seconds) + 1} tasks")
    return report


_TOLD = {"plan": "plan (hash, count)", "count": "work --stage count", "work": "work", "finish": "finish"}


class _Run:
    """One set from plan to end. words: of it. written: its bytes. seconds: of each task but the first."""

    def __init__(self, folder: Path, kind: str, lines: list[str]):
        folder.mkdir()
        self.source = _SOURCES[kind](folder, lines)
        shard = str(max(1, int(self.source.stat().st_size / _BYTES_A_WORD / _TASKS)))
        out, options = folder / "out", ("--shard-tokens", shard, "--words", "space", "--json", "-o")
        self._costs = {
            "plan": derivlang("plan", "--t", SPEC, self.source, *options, out),
            "work": derivlang("work", out, "--rank", "0", "--world", "1", "--json"),
        }
        later, count = folder / "later", ("--world", "2", "--stage", "count", "--json")
        derivlang("plan", "--t", SPEC, self.source, *options, later, "--defer")
        self._costs["count"] = derivlang("work", later, "--rank", "0", *count)
        self._costs["count, plan"] = derivlang("work", later, "--rank", "1", *count)
        self.words: int = json.loads(self._costs["work"].output)["words"]
        times = sorted(file.stat().st_mtime for file in (out / ".derivlang").glob("*/*.record"))
        self.seconds = [b - a for a, b in pairwise(times)] or [0.0]
        self._costs["finish"] = derivlang("finish", out, "--json")
        self.written = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())

    def cost(self, stage: str) -> Usage:
        return self._costs[stage]


def _deferred(source: Path) -> float:
    """CPU seconds of `plan --defer` in a process that has done it before."""
    times = []
    for number in range(4):
        began = time.process_time()
        package.plan(source, SPEC, source.parent / f"deferred-{number}", words="space", defer=True)
        times.append(time.process_time() - began)
    return min(times[1:])


def _hash(path: Path, least: float) -> float:
    """CPU seconds of the SHA-256 of a file, as `plan` takes it: a mean of at least so many seconds of them."""
    began, n = time.process_time(), 0
    while n == 0 or time.process_time() - began < least:
        with path.open("rb") as file:
            hashlib.file_digest(file, "sha256")
        n += 1
    return (time.process_time() - began) / n


def _text(folder: Path, lines: list[str]) -> Path:
    path = folder / "train.txt"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def _jsonl(folder: Path, lines: list[str]) -> Path:
    path = folder / "train.jsonl"
    path.write_text("".join(json.dumps({"text": line}, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return path


def _parquet(folder: Path, lines: list[str]) -> Path:
    path = folder / "train.parquet"
    pq.write_table(pa.table({"text": lines}), path, row_group_size=max(1, len(lines) // (4 * _TASKS)))
    return path


_SOURCES: dict[str, Callable[[Path, list[str]], Path]] = {"text": _text, "jsonl": _jsonl, "parquet": _parquet}
