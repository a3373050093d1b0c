"""Claims: `make --t trans,inv` with one worker peaks below 400 MB, the same for 100 as for 540 MB of text; each
further worker adds at most 350 MB; the cost is linear in the size of the text.

The texts are the `grown` ones, whose vocabulary grows as a real text's does (`corpus.py`). Cost is compared by CPU
a word at 25, 100 and 540 MB (`--size` scales all three), the smallest size's start-up included.
"""

from __future__ import annotations

from functools import partial

from corpus import corpus, warm
from measure import Report, Settings, Usage, alternate, make, ratio, spread, tokens

_PEAK, _WORKER = 400, 350
_SHARES = (0.25, 1.0, 5.4)
_WORKERS = 2


def benchmark(settings: Settings) -> Report:
    sizes = [settings.size * share for share in _SHARES]
    folders = [corpus(size, "grown", settings.cache, settings.data) for size in sizes]
    out = settings.work / "out"
    report = Report(
        "make --t trans,inv by size of the text, one worker", ("text", "M words", "CPU s", "ns CPU / word", "peak MB")
    )
    for folder in folders:
        warm(folder)
    by_size = alternate(settings.repeat, *(partial(make, "trans,inv", folder, out) for folder in folders))
    for size, runs in zip(sizes, by_size, strict=True):
        words = tokens(runs[0])
        cpu = report.figure(f"{size:g} MB: CPU s", spread(runs))
        each = report.figure(f"{size:g} MB: ns CPU a word", spread(runs, _nanoseconds))
        peak = report.figure(f"{size:g} MB: peak MB", spread(runs, lambda usage: usage.peak))
        report.row(f"{size:g} MB", f"{words / 1e6:.1f}", cpu.text(), each.text(0), peak.text(0))
    full = settings.size >= 100
    for size, runs in zip(sizes[1:], by_size[1:], strict=True):
        peak = spread(runs, lambda usage: usage.peak)
        report.claim(f"peak below {_PEAK} MB at {size:g} MB", f"{peak.text(0)} MB", _if(full, max(peak.values) < _PEAK))
    grows = ratio(by_size[2], by_size[1], lambda usage: usage.peak)
    report.figure("peak, third / second size", grows)
    report.notes.append(f"the peak grows by {grows.text()} with 2.1 times the types (127,500 to 267,500 at full size)")
    a_word = ratio(by_size[2], by_size[1], _nanoseconds)
    report.figure("CPU a word, third / second size", a_word)
    report.claim("linear: CPU a word grows by at most 10 %", a_word.text(), _if(full, a_word.median <= 1.1))
    _workers(settings, report)
    return report


def _if(decided: bool, holds: bool) -> bool | None:
    return holds if decided else None


def _nanoseconds(usage: Usage) -> float:
    return usage.cpu / tokens(usage) * 1e9


def _workers(settings: Settings, report: Report) -> None:
    """Two workers on the largest text, in shards of the usual size (of a small text, in four)."""
    size = settings.size * _SHARES[-1]
    folder = corpus(size, "grown", settings.cache, settings.data)
    shard = max(1, min(20_000_000, round(size * 1e6 / 5.3 / 4)))
    options = ("--workers", str(_WORKERS), "--shard-tokens", str(shard))
    (runs,) = alternate(
        min(settings.repeat, 3), lambda: make("trans,inv", folder, settings.work / "out", *options, watch=True)
    )
    main = report.figure("2 workers: main process, peak MB", spread(runs, lambda usage: usage.peak))
    worker = report.figure("2 workers: largest worker, peak MB", spread(runs, lambda usage: usage.workers[0]))
    report.notes.append(
        f"{_WORKERS} workers: main process {main.text(0)} MB, largest worker {worker.text(0)} MB (VmHWM, polled; "
        "pages shared with the fork server included)"
    )
    holds = _if(settings.size >= 100, max(worker.values) <= _WORKER)
    report.claim(f"a further worker at most {_WORKER} MB", f"{worker.text(0)} MB", holds)
