"""Every benchmark of the runner runs, once and on a few kB; what it measures is not looked at."""

from __future__ import annotations

import ast
import json
from pathlib import Path
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


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_gives_a_table(name: str, tmp_path: Path) -> None:
    for package in EXTRAS.get(name, ()):
        pytest.importorskip(package)
    kept = tmp_path / "results.json"
    done = python(BENCHMARKS / "run.py", name, "--tiny", "--json", kept)
    assert done.returncode == 0, done.stdout + done.stderr
    (report,) = json.loads(kept.read_text("utf-8"))["benchmarks"].values()
    assert report["rows"]
    assert {len(row) for row in report["rows"]} == {len(report["header"])}
    assert report["figures"]
    assert all(row[0] in done.stdout for row in report["rows"])
    assert {claim["holds"] for claim in report["claims"]} <= {None}
