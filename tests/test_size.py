"""The record of the size (benchmarks/size.toml): the package grows only by features that it names."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.helpers import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
from size import Size, by_room, totals

TEXT = '''"""A docstring."""

import ast


def f(x):
    """Another."""
    if x:
        raise ValueError
    y = 1
    return y
'''


def test_what_counts(tmp_path: Path) -> None:
    """The function, the `if`, the assignment and the `return`: no docstring, no import, no `raise`."""
    assert (Size.of(TEXT).statements, Size.of(TEXT).lines, Size.of(TEXT).files) == (4, 11, 1)
    for place in ("derivlang/a.py", "derivlang/core/b.py", "derivlang/core/c.txt", "tools/d.py", "derivlang/e.toml"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text("x = 1\n" if place.endswith("toml") else TEXT, "utf-8")
    rooms = by_room(tmp_path)
    assert {room: size.statements for room, size in rooms.items()} == {
        "derivlang": 4, "core": 4, "tools": 4, "in other files": 4,
    }  # fmt: skip
    assert {name: size.statements for name, size in totals(rooms).items()} == {"package": 8, "whole": 16}
    table = subprocess.run([sys.executable, ROOT / "benchmarks/size.py", tmp_path], capture_output=True, check=True)
    assert b"whole                  44          16" in table.stdout


@pytest.mark.parametrize("name", ["package", "whole"])
def test_the_size_is_on_record(name: str) -> None:
    told = tomllib.loads((ROOT / "benchmarks" / "size.toml").read_text("utf-8"))
    record, features = told["record"][name], sum(told["features"].values())
    found = totals(by_room(ROOT))[name].statements
    assert found <= record + features, "it grew: remove something, or name the feature in benchmarks/size.toml"
    assert found == record + features, f"it shrank: write {name} = {found - features} into benchmarks/size.toml"
