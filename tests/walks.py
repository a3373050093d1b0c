"""How far one sentence walks through the package: a program that prints what two commands enter.

    python tests/walks.py            make of one sentence of JSON lines; pretrain of one step
    python tests/walks.py make

Counted by `sys.setprofile` in one process, in the second of two runs, so without imports: functions of the package that
were called, its files that were entered, moves from one of its files into another, and how often the source was opened.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import derivlang
from derivlang.cli.main import main as command_line

ROOM = str(Path(derivlang.__file__).parent) + os.sep
SENTENCE = {"text": "Welcome to ACL ."}


class Walk:
    """What was entered while it was on."""

    def __init__(self, source: Path):
        self.source = os.fspath(source)
        self.functions: set[CodeType] = set()
        self.files: set[str] = set()
        self.moves = self.opened = 0
        self._on = False
        sys.addaudithook(self._audit)

    @contextmanager
    def on(self) -> Iterator[None]:
        self._on = True
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            self._on = False

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._on and event == "open" and arguments[0] == self.source:
            self.opened += 1

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(ROOM):
            return
        self.functions.add(frame.f_code)
        self.files.add(file)
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(ROOM):
            caller = caller.f_back
        self.moves += caller is not None and caller.f_code.co_filename != file

    def __str__(self) -> str:
        return (
            f"{len(self.functions):,} functions, {len(self.files)} files, {self.moves:,} moves between files, "
            f"the source opened {self.opened} times"
        )


def walk(name: str, folder: Path) -> Walk:
    """Run a command twice in a folder, and return what the second run entered."""
    source = folder / "one.jsonl"
    words = ["make", "--t", "trans,inv"]
    if name == "make":
        source.write_text(json.dumps(SENTENCE) + "\n", "utf-8")
        words += [str(source), "-o"]
    else:
        source = folder / "text.txt"
        source.write_text("\n".join(f"This is sentence {i} of {i % 7} ." for i in range(200)), "utf-8")
        words = ["pretrain", "--source", str(source), "--t", "trans,inv", "--vocab-size", "60", "--seq-len", "32"]
        words += ["--steps", "1", "-o"]
    with redirect_stderr(StringIO()):
        command_line([*words, str(folder / "first")], standalone_mode=False)  # imports are no part of the walk
        found = Walk(source)
        with found.on():
            command_line([*words, str(folder / "second")], standalone_mode=False)
    return found


def main(*names: str) -> None:
    for name in names or ("make", "pretrain"):
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(f"{name}: {walk(name, Path(folder))}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
