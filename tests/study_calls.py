"""A study whose commands run in this process: no server is started, which would load torch first.

monkeypatch.setattr("derivlang.studies.run.Processes", Here)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import chdir, redirect_stdout
from pathlib import Path

from derivlang.cli.main import main


class Here:
    """Processes that end before they have begun: their commands run in this one."""

    def __init__(self, threads: int | None) -> None:
        self.ended: list[tuple[str, int]] = []

    def start(self, name: str, arguments: Sequence[str], folder: Path, log: Path) -> None:
        self.ended.append((name, self.run(arguments, folder, log.resolve())))

    def wait(self) -> tuple[str, int]:
        return self.ended.pop(0)

    def run(self, arguments: Sequence[str], folder: Path, log: Path) -> int:
        with log.open("a", encoding="utf-8") as file, chdir(folder), redirect_stdout(file):
            main(list(arguments))
        return 0

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *error: object) -> None:
        pass
