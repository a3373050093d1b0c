"""What other systems need: line ends, modules that only Unix has, locks of Windows, workers that are spawned."""

from __future__ import annotations

import ast
import multiprocessing
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from derivlang.store.disk import locked
from tests.commands import run, wiki
from tests.helpers import ROOT

MODULES = sorted((ROOT / "derivlang").rglob("*.py"))
UNIX = {"fcntl", "grp", "pwd", "resource", "termios"}


def nodes(path: Path) -> Iterator[ast.AST]:
    yield from ast.walk(ast.parse(path.read_text("utf-8")))


def writes_text(call: ast.Call) -> bool:
    """Whether a call writes text: `write_text`, or an `open` with a mode that writes and is not binary."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    modes = [one.value for one in call.args[:1] if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return name == "write_text" or (name == "open" and any(m[:1] in ("w", "a", "x") and "b" not in m for m in modes))


def test_every_text_file_has_one_kind_of_line_ends() -> None:
    """Windows would write two characters for each end, and sets, twins and their hashes would differ."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Call) and writes_text(node) and "newline" not in {word.arg for word in node.keywords}
    ]
    assert found == []


def test_modules_of_unix_are_imported_where_their_absence_is_met() -> None:
    for path in MODULES:
        for node in nodes(path):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            assert not UNIX & set(names) or _is_guarded(path, node), f"{path.name}: {names}"


def _is_guarded(path: Path, node: ast.AST) -> bool:
    line = getattr(node, "lineno", 0)
    return any(
        isinstance(one, ast.Try) and any(part.lineno == line for part in one.body) and "ImportError" in ast.dump(one)
        for one in nodes(path)
    )


class Windows(ModuleType):
    """A module like msvcrt: one process may lock a byte."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        super().__init__("msvcrt")
        self.tries = 0

    def locking(self, file: int, mode: int, n: int) -> None:
        self.tries += 1
        if self.tries == 2:
            raise OSError(13, "Permission denied")


def test_locks_without_fcntl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Windows()
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    for turn in (1, 2):  # the second waits for one more try
        with locked(tmp_path / "lock", "held"):
            assert (tmp_path / "lock").read_text("utf-8") == "held", turn
    assert windows.tries == 3


def test_a_system_without_any_locks_just_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", None)
    with locked(tmp_path / "lock"):
        pass


def test_workers_that_are_spawned_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, and on macOS by default."""
    source = wiki(tmp_path, "The cat sleeps .\n" * 40)
    assert run("make", "--t", "inv", source, "-o", tmp_path / "a", "--shard-tokens", 60).code == 0
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    done = run("make", "--t", "inv", source, "-o", tmp_path / "b", "--shard-tokens", 60, "--workers", 2)
    assert done.code == 0, done.err
    first, second = (
        {path.name: path.read_bytes() for path in sorted((tmp_path / out / "data").iterdir())} for out in "ab"
    )
    assert len(first) > 1
    assert first == second
