"""The processes of a study: each runs a command line in OUT, with its output in a log.

On Linux they are forked from the fork server of multiprocessing, which has loaded `loaded.py`; a step that dies takes
no other with it. Elsewhere forks of a process that has loaded torch may fail, and each process loads it for itself. No
step outlives its study, however that ends.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from derivlang.engine.engines import whole, without_script

START = "forkserver" if sys.platform == "linux" else "spawn"


class Processes:
    """Command lines that run, each in a process. threads: of each. At the end of the block, all are ended."""

    def __init__(self, threads: int | None):
        self._context = multiprocessing.get_context(START)
        if START == "forkserver":
            self._context.set_forkserver_preload(["derivlang.studies.loaded"])
        self._running: dict[str, BaseProcess] = {}
        self._environment = {"PYTHONSAFEPATH": "1"}  # a `numpy.py` in OUT is a file, not a module to import
        if os.environ.get("DERIVLANG_DATA"):
            self._environment["DERIVLANG_DATA"] = str(Path(os.environ["DERIVLANG_DATA"]).resolve())
        if threads is not None:
            self._environment |= {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}

    def start(self, name: str, arguments: Sequence[str], folder: Path, log: Path) -> None:
        """Start a command in a folder, with its output in a log."""
        values = arguments, folder, log.resolve(), self._environment
        process = self._context.Process(target=_call, args=values)  # type: ignore[attr-defined]
        with without_script(), whole(), _environment(self._environment):  # of the server, which begins with the first
            process.start()
        self._running[name] = process

    def wait(self) -> tuple[str, int]:
        """Return the name and the exit code of the next one that ends."""
        names = {process.sentinel: name for name, process in self._running.items()}
        name = names[wait(names)[0]]  # type: ignore[index]
        process = self._running.pop(name)
        process.join()
        return name, process.exitcode or 0

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.join()


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _call(arguments: Sequence[str], folder: Path, log: Path, environment: Mapping[str, str]) -> None:
    """Run a command, in a process of its own."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(os.devnull, "rb") as empty, log.open("ab") as file:  # noqa: PTH123 (os.devnull is a text)
        for opened, standard in ((empty, 0), (file, 1), (file, 2)):
            os.dup2(opened.fileno(), standard)
    os.environ.update(environment)
    os.chdir(folder)
    threading.Thread(target=_end_with_study, daemon=True).start()
    try:
        import_module("derivlang.cli.main").main(list(arguments))
    finally:
        atexit._run_exitfuncs()  # a fork ends without them


def _end_with_study() -> None:
    study = multiprocessing.parent_process()
    assert study is not None
    study.join()
    os.kill(os.getpid(), signal.SIGTERM)
