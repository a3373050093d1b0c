"""What all benchmarks share: fresh processes and what they cost, medians and ratios, tables, the machine.

CPU is user + system time of a child process and of everything that it started, start-up included. Workers that
outlive their parent (a fork server does) are adopted and counted too: the benchmark makes itself the "subreaper"
of its children, which only Linux offers. Peak memory is the most that a process ever held resident
(`ru_maxrss`; of workers `VmHWM`, polled every 5 ms), memory that it shares with others included.

The benchmarks themselves import neither numpy nor pyarrow: on Linux `ru_maxrss` of a child begins at the size of
the process that started it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import platform
import runpy
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).resolve().parent
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)


@dataclass(frozen=True, slots=True)
class Settings:
    """repeat: runs of each command. size: MB of text. cache: folder of made texts. data: of the corpora.
    work: an empty folder for output."""

    repeat: int
    size: float
    cache: Path
    data: Path
    work: Path


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run cost. Seconds; peak: MB of the largest process; workers: MB of each process further down, largest
    first (only where they were watched)."""

    wall: float
    user: float
    system: float
    peak: float
    output: str
    workers: tuple[float, ...] = ()

    @property
    def cpu(self) -> float:
        return self.user + self.system


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure of several runs."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def text(self, digits: int = 2) -> str:
        """median (min to max)."""
        low, high = min(self.values), max(self.values)
        return f"{self.median:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"

    def as_json(self) -> dict[str, Any]:
        return {"median": self.median, "min": min(self.values), "max": max(self.values), "runs": list(self.values)}


@dataclass(slots=True)
class Report:
    """What a benchmark found. claims: (text, figure, does it hold; None where the run does not decide it)."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    claims: list[tuple[str, str, bool | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def row(self, name: str, *cells: str) -> None:
        self.rows.append((name, *cells))

    def figure(self, name: str, spread: Spread) -> Spread:
        """Keep a figure for `--json`."""
        self.figures[name] = spread.as_json()
        return spread

    def claim(self, text: str, figure: str, holds: bool | None) -> None:
        self.claims.append((text, figure, holds))

    def print(self) -> None:
        print(f"\n{self.title}")
        print(table(self.header, self.rows))
        for note in self.notes:
            print(f"  {note}")
        for text, figure, holds in self.claims:
            verdict = {True: "holds", False: "DOES NOT HOLD", None: "not decided at this size"}[holds]
            print(f"  claim: {text}: {figure} -> {verdict}")

    def as_json(self) -> dict[str, Any]:
        claims = [{"claim": text, "figure": figure, "holds": holds} for text, figure, holds in self.claims]
        shown = {"title": self.title, "header": self.header, "rows": self.rows, "notes": self.notes}
        return {**shown, "figures": self.figures, "claims": claims}


Benchmark = Callable[[Settings], Report]


def spread(runs: Sequence[Usage], figure: Callable[[Usage], float] = lambda usage: usage.cpu) -> Spread:
    return Spread(tuple(figure(usage) for usage in runs))


def ratio(
    above: Sequence[Usage], below: Sequence[Usage], figure: Callable[[Usage], float] = lambda usage: usage.cpu
) -> Spread:
    """The ratio of two commands, run by run: absolute times vary from minute to minute on a shared machine."""
    return Spread(tuple(figure(a) / figure(b) for a, b in zip(above, below, strict=True)))


def alternate(repeat: int, *commands: Callable[[], Usage]) -> list[list[Usage]]:
    """The runs of each command, taken in turns."""
    runs: list[list[Usage]] = [[] for _ in commands]
    for _ in range(repeat):
        for command, found in zip(commands, runs, strict=True):
            found.append(command())
    return runs


def rates(runs: Sequence[Sequence[Usage]], starts: Sequence[Sequence[Usage]], words: int) -> list[Spread]:
    """Return M words per CPU second of each command, without start-up: what the same command costs on one row.

    starts: the runs on one row, taken in turns with the others. words: of a run.
    """
    return [
        Spread(tuple(words / 1e6 / max(1e-3, run.cpu - start.cpu) for run, start in zip(*pair, strict=True)))
        for pair in zip(runs, starts, strict=True)
    ]


def beyond_identity(
    report: Report,
    names: Sequence[str],
    runs: Sequence[Sequence[Usage]],
    words: int,
    per: float,
    speeds: Sequence[Spread] | None = None,
) -> tuple[float, float]:
    """Add a row for each command, of which the first is `make --t identity`. Return (seconds, MB) of the worst one.

    Seconds are CPU seconds beyond `identity`'s for `per` million words: computing an order, gathering and writing what
    it moves. words: of a run. speeds: `rates`, for a column of them.
    """
    worst, largest = 0.0, 0.0
    for at, (name, found) in enumerate(zip(names, runs, strict=True)):
        more = sorted((a.cpu - b.cpu) * per * 1e6 / words for a, b in zip(found, runs[0], strict=True))
        middle, peak = more[len(more) // 2], spread(found, lambda usage: usage.peak)
        worst, largest = max(worst, middle), max(largest, peak.median)
        times = report.figure(f"{name}: x identity", ratio(found, runs[0]))
        cells = [spread(found).text(), times.text(), f"{middle:.2f}", peak.text(0)]
        if speeds is not None:
            cells.append(report.figure(f"{name}: M words / CPU s, start-up off", speeds[at]).text())
        report.row(name, *cells)
    return worst, largest


def derivlang(*arguments: str | Path, watch: bool = False) -> Usage:
    """A run of derivlang's command line."""
    return run([sys.executable, "-m", "derivlang", *map(str, arguments)], watch=watch)


def make(spec: str, data: Path, out: Path, *options: str, source: str = "wikitext103", watch: bool = False) -> Usage:
    """`derivlang make` into a folder that is not there yet."""
    shutil.rmtree(out, ignore_errors=True)
    return derivlang(
        "make", "--t", spec, source, "--data-dir", data, "-o", out, "--force", "--json", *options, watch=watch
    )


def tokens(usage: Usage) -> int:
    """The words that a run of `make` read."""
    return sum(entry["tokens"] for entry in json.loads(usage.output)["splits"].values())


def script(name: str, *arguments: str | Path) -> Usage:
    """A run of another file of this folder."""
    return run([sys.executable, str(HERE / name), *map(str, arguments)])


def run(command: Sequence[str], *, watch: bool = False) -> Usage:
    """A command in a fresh process; SystemExit with its messages where it fails. watch: poll its workers' memory."""
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        "TQDM_DISABLE": "1",
    }
    _adopt_orphans()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as messages:
        began = time.perf_counter()
        start = Forked if forks and command[1] != "-c" else subprocess.Popen
        process = start(command, stdout=out, stderr=messages, env=environment)
        wall, status, user, system, peak = 0.0, 0, 0.0, 0.0, 0.0
        peaks: dict[int, float] = {}
        while True:
            if watch:
                _watch(process.pid, peaks)
            try:
                pid, code, used = os.wait4(-1, os.WNOHANG if watch else 0)
            except ChildProcessError:
                break
            if pid == 0:
                time.sleep(0.005)
                continue
            user += used.ru_utime
            system += used.ru_stime
            if pid == process.pid:
                wall, status = time.perf_counter() - began, os.waitstatus_to_exitcode(code)
                peak = used.ru_maxrss / 1024
                process.returncode = status
        out.seek(0)
        messages.seek(0)
        output = out.read().decode()
        if status:
            raise SystemExit(f"{' '.join(command)}\n{output}{messages.read().decode()}")
    return Usage(wall, user, system, peak, output, tuple(sorted(peaks.values(), reverse=True)))


class Forked:
    """A Python command in a copy of this process, which has its packages loaded: quick, but it measures nothing."""

    def __init__(self, command: Sequence[str], stdout: IO[bytes], stderr: IO[bytes], env: Mapping[str, str]) -> None:
        _load()
        sys.stdout.flush()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.dup2(stdout.fileno(), 1)
                os.dup2(stderr.fileno(), 2)
                os.environ.update(env)
                _, first, *rest = command
                module = rest.pop(0) if first == "-m" else ""
                sys.argv = [module or first, *rest]
                runpy.run_module(module, run_name="__main__") if module else runpy.run_path(first, run_name="__main__")
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            except BaseException:  # noqa: BLE001 - shown as Python shows it
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)


_LOADED = (
    "derivlang.api",
    "derivlang.engine.make",
    "derivlang.align.align",
    "derivlang.lexical.train",
    "derivlang.parsing.bundled",
    "derivlang.store.export",
    "derivlang.store.verify",
    "pyarrow.parquet",
    "pandas",
    "spacy",
    "torch",
    "accelerate",
    "transformers.trainer",
    "transformers.models.modernbert.modeling_modernbert",
    "derivlang.training.run",
    "derivlang.evaluation.evaluate",
)


@cache
def _load() -> None:
    """Load what commands use, once; no copy of this process looks through it for garbage."""
    for name in _LOADED:
        with suppress(ImportError):
            import_module(name)
    gc.collect()
    gc.freeze()


forks = False  # whether commands are `Forked`


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


def _watch(main: int, peaks: dict[int, float]) -> None:
    """Update the peak, in MB, of every process below `main`; a process once seen is followed on."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
    for pid in parents:
        above, steps = pid, 0
        while above not in (main, 0, 1) and above not in peaks and steps < 8:
            above, steps = parents.get(above, 0), steps + 1
        if pid != main and (above == main or above in peaks):
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            held = [line for line in status.splitlines() if line.startswith("VmHWM:")]
            if held:
                peaks[pid] = max(peaks.get(pid, 0.0), int(held[0].split()[1]) / 1024)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text: the first flush left, the others flush right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = []
    for row in (header, ["-" * width for width in widths], *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """What the figures depend on; no name of a host, no path."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    packages = ("numpy", "pyarrow", "datasets", "spacy")
    return {
        "cores": cores,
        "processor": f"{platform.machine()} {_processor()}".strip(),
        "system": platform.system(),
        "commit": _commit(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def _commit() -> str:
    """The commit that is measured, with a + if files were changed since; "" outside of a checkout."""
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty=+", "--exclude", "*"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
