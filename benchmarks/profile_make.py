"""No claim: where the CPU time of `make --t trans,inv` goes, by stage.

`make` runs in one process through its Python function; the package's own functions are wrapped, and the CPU time
of each is its own, without the time of wrapped functions which it calls. What no wrapper sees is "the rest".

    python profile_make.py DATA OUT     one run, JSON
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from corpus import corpus, warm
from measure import Report, Settings, Spread, Usage, alternate, script

# Stage, module, name in it (a name is wrapped where it is called from).
_STAGES = (
    ("source hash, plan", "derivlang.engine.build", "source_files"),
    ("source hash, plan", "derivlang.engine.build", "make_plan"),
    ("read, lines", "derivlang.engine.job", "read_task"),
    ("words and gaps", "derivlang.formats.pieces", "Splitting.texts"),
    ("words and gaps", "derivlang.sources.read", "joined"),
    ("gaps", "derivlang.core.gaps", "Gaps.recut"),
    ("gaps", "derivlang.core.gaps", "Gaps.column"),
    ("sentence scan", "derivlang.pipeline", "split_sentences"),
    ("keys", "derivlang.core.batch", "sequence_keys"),
    ("order", "derivlang.pipeline", "Pipeline.order"),
    ("lexicon", "derivlang.core.lexicon", "Lexicon.apply"),
    ("gather", "derivlang.pipeline", "realign"),
    ("columns", "derivlang.engine.job", "to_table"),
    ("write Parquet", "derivlang.store.shards", "ShardWriter.write"),
    ("hash, flush of shards", "derivlang.store.shards", "ShardWriter.finish"),
    ("vocabulary counts", "derivlang.engine.vocabulary", "TypeCounts.add"),
    ("vocabulary counts", "derivlang.engine.vocabulary", "TypeCounts.result"),
    ("vocabulary counts", "derivlang.engine.build", "shares"),
)
_START, _REST = "start, imports", "the rest"


class Clock:
    """CPU seconds by stage: the innermost wrapped function that runs has the time."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._stack: list[str] = [_REST]
        self._since = 0.0

    def start(self) -> None:
        """What the process has used so far is the start."""
        self._since = time.process_time()
        self.seconds[_START] = self._since

    def stop(self) -> None:
        self._charge()

    def enter(self, stage: str) -> None:
        self._charge()
        self._stack.append(stage)

    def leave(self) -> None:
        self._charge()
        self._stack.pop()

    def _charge(self) -> None:
        now = time.process_time()
        self.seconds[self._stack[-1]] = self.seconds.get(self._stack[-1], 0.0) + now - self._since
        self._since = now

    def wrap(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            self.enter(stage)
            try:
                result = function(*args, **kwargs)
            finally:
                self.leave()
            return self._steps(stage, result) if isinstance(result, Iterator) else result

        return timed

    def _steps(self, stage: str, steps: Iterator[Any]) -> Iterator[Any]:
        while True:
            self.enter(stage)
            try:
                step = next(steps)
            except StopIteration:
                return
            finally:
                self.leave()
            yield step


def _wrap_all(clock: Clock) -> None:
    """Wrap every stage."""
    for stage, module, name in _STAGES:
        *path, last = name.split(".")
        holder: Any = import_module(module)
        for part in path:
            holder = getattr(holder, part)
        setattr(holder, last, clock.wrap(stage, getattr(holder, last)))


def profile(data: Path, out: Path) -> None:
    """One run in this process."""
    from derivlang.engine.make import make
    from derivlang.engine.options import MakeOptions
    from derivlang.pipeline import Pipeline
    from derivlang.sources.request import SourceRequest

    clock = Clock()
    _wrap_all(clock)
    clock.start()
    result = make(
        Pipeline.parse("trans,inv"), SourceRequest("wikitext103", data_dir=data), MakeOptions(out, force=True)
    )
    clock.stop()
    words = sum(entry["tokens"] for entry in result["splits"].values())
    unused = [stage for stage, _, _ in _STAGES if stage not in clock.seconds]
    if unused:  # their functions are called from other modules today, so their time would be in another stage
        raise SystemExit(f"never called: {', '.join(dict.fromkeys(unused))}")
    print(json.dumps({"seconds": clock.seconds, "words": words}))


def benchmark(settings: Settings) -> Report:
    data = corpus(settings.size, "repeated", settings.cache, settings.data)
    warm(data)

    def run() -> Usage:
        return script("profile_make.py", data, settings.work / "out")

    (runs,) = alternate(settings.repeat, run)
    found = [json.loads(usage.output) for usage in runs]
    words = found[0]["words"]
    report = Report(
        f"Where the CPU of make --t trans,inv goes, {words / 1e6:.1f} M words", ("stage", "CPU s", "%", "ns / word")
    )
    totals = Spread(tuple(sum(one["seconds"].values()) for one in found))
    stages = list(dict.fromkeys((_START, *(stage for stage, _, _ in _STAGES), _REST)))
    for stage in stages:
        cost = report.figure(stage, Spread(tuple(one["seconds"].get(stage, 0.0) for one in found)))
        share = 100 * cost.median / totals.median
        report.row(stage, cost.text(3), f"{share:.1f}", f"{cost.median / words * 1e9:.1f}")
    report.row("all", totals.text(3), "100.0", f"{totals.median / words * 1e9:.1f}")
    report.figure("all", totals)
    return report


if __name__ == "__main__":
    profile(Path(sys.argv[1]), Path(sys.argv[2]))
