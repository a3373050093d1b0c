"""Every benchmark of the runner runs, once and on a few kB; what it measures is not looked at.

One process runs them all: with --tiny, their commands are forked from it, and begin with all packages loaded.
"""

from __future__ import annotations

import ast
import json
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.helpers import ROOT, python

BENCHMARKS = ROOT / "benchmarks"
EXTRAS = {"train": ("torch", "transformers", "accelerate")}  # the other packages come with derivlang


def assigned(file: Path, name: str) -> Any:
    """The value of a constant of a module, which is not imported: the names of its neighbours are those of others."""
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise AssertionError(f"{file.name} has no {name}")


NAMES = assigned(BENCHMARKS / "run.py", "NAMES")


def test_the_runner_knows_every_benchmark() -> None:
    found = [file.stem for file in BENCHMARKS.glob("*.py") if "\ndef benchmark(" in file.read_text("utf-8")]
    assert sorted(found) == sorted(NAMES)
    described = (BENCHMARKS / "README.md").read_text("utf-8")
    assert [name for name in NAMES if f"| `{name}` |" not in described] == []


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[CompletedProcess[str], dict[str, Any]]:
    """The process of all benchmarks whose packages are there, and the reports of those that ended, by name."""
    kept = tmp_path_factory.mktemp("benchmarks") / "results.json"
    names = [name for name in NAMES if all(find_spec(package) for package in EXTRAS.get(name, ()))]
    # Torch is loaded before a benchmark can ask for one thread.
    done = python(BENCHMARKS / "run.py", *names, "--tiny", "--json", kept, OMP_NUM_THREADS="1")
    return done, json.loads(kept.read_text("utf-8"))["benchmarks"] if kept.exists() else {}


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_gives_a_table(name: str, ran: tuple[CompletedProcess[str], dict[str, Any]]) -> None:
    for package in EXTRAS.get(name, ()):
        pytest.importorskip(package)
    done, reports = ran
    assert name in reports, done.stdout + done.stderr
    report = reports[name]
    assert report["rows"]
    assert {len(row) for row in report["rows"]} == {len(report["header"])}
    assert report["figures"]
    assert all(row[0] in done.stdout for row in report["rows"])
    assert {claim["holds"] for claim in report["claims"]} <= {None}
