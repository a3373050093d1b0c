"""Claims: `make --t syn:fr` from parsed Parquet to derived Parquet runs at 0.5 M words a CPU second; parsing the text
first, all of it runs at 13,000 words a CPU second.

The words are WikiText-2's train text and, in what `--size` MB leave over, novels (`eltec-eng`): 100 MB take both
whole, 8.4 M words. They are parsed once with the bundled parser; `--cache` keeps the parses. A fresh process then makes
all of it: it reads Parquet, draws, lays out, writes Parquet with hashes, manifest and card.

    python make_syn.py SET...     one run, JSON
"""

from __future__ import annotations

import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import Report, Settings, Usage, alternate, derivlang, script, spread, tokens
from raw_text import text_of

_MADE, _WHOLE = 0.5, 13_000


def benchmark(settings: Settings) -> Report:
    wikitext = settings.data / "text" / "wikitext-2" / "wiki.train.tokens"
    sets, parses = [], []
    left = settings.size
    for name, text in (("wikitext-2", wikitext), ("novels", None)):
        text = text or text_of(settings, left)
        folder, usage = parsed(settings, name, text)
        parses.append((name, usage))
        sets.append(folder)
        left = max(settings.size - text.stat().st_size / 1e6, 1)
    (runs,) = alternate(settings.repeat, partial(script, "make_syn.py", *sets))
    told = {id(run): json.loads(run.output) for run in runs}
    words = told[id(runs[0])]["words"]
    title = f"make --t syn:fr from parsed Parquet, {words / 1e6:.2f} M words"
    report = Report(title, ("CPU s", "M words / CPU s"))
    cpu = spread(runs, lambda run: told[id(run)]["cpu"])
    speed = report.figure("M words a CPU second", spread(runs, lambda run: words / told[id(run)]["cpu"] / 1e6))
    report.row(cpu.text(), speed.text())
    report.claim(f"at least {_MADE} M words a CPU second", speed.text(), speed.median >= _MADE)
    peak = report.figure("peak MB", spread(runs, lambda run: run.peak))
    report.notes.append(f"peak memory {peak.text(0)} MB; one worker, Python's start left out")
    for name, usage in parses:
        if usage is not None:
            rate = tokens(usage) / usage.cpu
            report.notes.append(
                f"parsing {name}: {tokens(usage) / 1e6:.2f} M words, {usage.cpu:.0f} CPU s, peak {usage.peak:.0f} MB"
            )
            what = f"parsing {name}, all in all: at least {_WHOLE:,} words a CPU second"
            report.claim(what, f"{rate:,.0f}", rate >= _WHOLE)
    return report


def parsed(settings: Settings, name: str, text: Path) -> tuple[Path, Usage | None]:
    """The parsed set of a text, and what the parse cost; None if the set was there."""
    folder = settings.cache / f"parsed-{name}-{text.stat().st_size}"
    known = (folder / "derivlang.json").exists()
    return folder, None if known else derivlang("parse", text, "-o", folder, "--json")


def main(sets: list[Path]) -> None:
    """Make all sets; print the words and the CPU seconds."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does, before numpy
    from derivlang.engine.job import Events
    from derivlang.engine.make import make
    from derivlang.engine.options import MakeOptions
    from derivlang.pipeline import Pipeline
    from derivlang.sources.request import SourceRequest

    began, words = time.process_time(), 0
    with TemporaryDirectory() as work:
        for number, folder in enumerate(sets):
            options = MakeOptions(out=Path(work, str(number)), parser=None)
            result = make(Pipeline.parse("syn:fr"), SourceRequest(str(folder)), options, Events())
            words += sum(entry["tokens"] for entry in result["splits"].values())
    print(json.dumps({"words": words, "cpu": time.process_time() - began}))


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
