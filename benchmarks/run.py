"""The runner of the benchmarks: `python benchmarks/run.py NAME... | all`. See `README.md`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import measure
from corpus import data_folder
from measure import Benchmark, Settings, derivlang, machine, run
from tiny import corpora

NAMES = (
    "startup",
    "make_floor",
    "make_formats",
    "make_types",
    "make_wide",
    "orders",
    "make_loops",
    "make_tuned_loops",
    "make_first_loops",
    "make_memory",
    "make_workers",
    "many_tasks",
    "stages",
    "raw_text",
    "parse",
    "make_syn",
    "make_tree_orders",
    "make_constituents",
    "make_marks",
    "profile_make",
    "grammar_draws",
    "encoding",
    "align",
    "train",
    "ppa",
    "languages",
    "study",
)
_TINY = 0.02  # MB


def main() -> int:
    """Run benchmarks; 1 where a claim does not hold."""
    parser = argparse.ArgumentParser(description="Run benchmarks of derivlang.", epilog=f"names: {' '.join(NAMES)}")
    parser.add_argument("names", nargs="+", choices=[*NAMES, "all"], metavar="NAME", help="or all")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each command (default 5)")
    parser.add_argument("--size", type=float, default=100, help="MB of text (default 100)")
    parser.add_argument("--json", type=Path, help="keep the figures in this file")
    parser.add_argument("--cache", type=Path, help="keep the made texts here (default: a temporary folder)")
    parser.add_argument("--tiny", action="store_true", help="once, on a few kB: shows that all works, decides no claim")
    parser.add_argument("--data-dir", type=Path, help="the corpora (default $DERIVLANG_DATA, then ../shared/data)")
    options = parser.parse_args()
    if options.tiny:
        options.repeat, options.size = 1, _TINY
        measure.forks = True
    names = NAMES if "all" in options.names else tuple(dict.fromkeys(options.names))
    about = machine()
    print("; ".join(f"{key} {value}" for key, value in about.items()))
    print(f"medians of {options.repeat} runs, least and most in brackets; ratios are taken run by run")
    results: dict[str, Any] = {}
    held = True
    with tempfile.TemporaryDirectory(prefix="derivlang-benchmarks-") as temporary:
        cache = options.cache or Path(temporary, "texts")
        data = corpora(Path(temporary, "corpora")) if options.tiny else data_folder(options.data_dir)
        os.environ.pop("DERIVLANG_DATA", None)  # else `make` finds further splits beside the made texts
        if not options.tiny:
            _compile(Path(temporary))
        for name in names:
            work = Path(temporary, name)
            work.mkdir()
            benchmark: Benchmark = import_module(name).benchmark
            report = benchmark(Settings(options.repeat, options.size, cache, data, work))
            if options.tiny:
                report.claims = [(text, figure, None) for text, figure, _ in report.claims]
            report.print()
            sys.stdout.flush()
            results[name] = report.as_json()
            held &= all(holds is not False for _, _, holds in report.claims)
            if options.json is not None:
                kept = {
                    "date": date.today().isoformat(),
                    "machine": about,
                    "repeat": options.repeat,
                    "size_mb": options.size,
                    "benchmarks": results,
                }
                options.json.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    return 0 if held else 1


def _compile(temporary: Path) -> None:
    """Byte code of all packages, as an installed package has it, in a folder of its own; no run pays for it."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(temporary / "bytecode")
    for text in ("import derivlang", "import datasets", "import spacy; spacy.blank('en')", "import pyarrow.dataset"):
        run([sys.executable, "-c", text])
    derivlang("--help")
    derivlang("make", "--t", "trans,inv", "demo", "-o", temporary / "demo", "--workers", "2")


if __name__ == "__main__":
    sys.exit(main())
