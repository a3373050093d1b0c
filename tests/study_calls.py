"""A study whose commands run in this process: no server is started, which would load torch first.

monkeypatch.setattr("derivlang.studies.run.Server", Here)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stdout
from pathlib import Path

from derivlang.cli.main import main


class Here:
    """A server that runs its commands in this process, one at a time."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder

    def call(self, arguments: Sequence[str], log: Path) -> int:
        with log.open("a", encoding="utf-8") as file, chdir(self.folder), redirect_stdout(file):
            main(list(arguments))
        return 0

    def end(self) -> None:
        pass
