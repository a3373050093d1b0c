"""A study whose commands run in this process: no server is started, which would load torch first.

monkeypatch.setattr("derivlang.studies.run.in_server", here)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

from derivlang.cli.main import main
from derivlang.studies.run import Job, Processes, Say
from derivlang.studies.settings import Place

Server = Callable[[Job[Any], Place, int | None, Say], Any]


class Here:
    """Processes that end before they have begun: their commands run in this one."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, int]] = []

    def start(self, name: str, arguments: Sequence[str], folder: Path, log: Path) -> None:
        self.ended.append((name, self.run(arguments, folder, log.resolve())))

    def wait(self) -> tuple[str, int]:
        return self.ended.pop(0)

    def run(self, arguments: Sequence[str], folder: Path, log: Path) -> int:
        with log.open("a", encoding="utf-8") as file, chdir(folder), redirect_stdout(file):
            main(list(arguments))
        return 0


def server(kind: Callable[[], Processes]) -> Server:
    """A server that calls its function in this process, with other processes."""

    def call(job: Job[Any], place: Place, threads: int | None, say: Say) -> Any:
        (place.out / "logs").mkdir(parents=True, exist_ok=True)
        return job(kind(), say)

    return call


here = server(Here)
