"""The server of a study, `python -m derivlang.cli.child fork|spawn FD`: it runs each step in a process.

The study sends a function (studies/run.py), which is called here with `_Calls`. What the function says, returns or
raises is sent back:

    ("said", "mlm.1 done, 3 to go")      ("result", {"cells": 4, …})      ("error", DataError(…))

The server loads torch and what else the commands need once, which takes seconds, and if it can while the call before is
at work. It forks for each call, so that a call that dies takes no other with it. Where that fails, it starts a new
process. The output of a command, with its messages, is in its log. Calls end with the server, as by SIGTERM, and the
server ends with the study: only the study holds the other end of the pipe, however it ends.
"""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from derivlang.cli.main import main as command
from derivlang.core.errors import DerivlangError

# What a call loads; one that needs a missing package says so.
_TRAINING = (
    "derivlang.cli.pretrain",
    "derivlang.cli.evaluate",
    "derivlang.training.plan",
    "derivlang.training.run",
    "derivlang.evaluation.cell",
    "derivlang.evaluation.evaluate",
    "derivlang.evaluation.measures.alignment",
    "accelerate",
    "transformers.models.modernbert.modeling_modernbert",
    "pandas",
    "pyarrow.pandas_compat",
)
_REPORT = (
    "derivlang.cli.report",
    "derivlang.evaluation.report.write",
    "derivlang.evaluation.report.figures",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
)
_LOADED = {"pretrain": _TRAINING, "evaluate": _TRAINING}
_LOADED_NEXT = {"pretrain": _REPORT}  # what a later call loads


def main() -> None:
    """Run the function that the study sends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the study ends the server
    study: Connection[Any, Any] = Connection(int(sys.argv[2]))
    calls = _Calls(sys.argv[1], study)
    try:
        answer = "result", study.recv()(calls, lambda message: study.send(("said", message)))
    except DerivlangError as error:
        answer = "error", error
    finally:
        calls.end()
    study.send(answer)
    os._exit(0)  # without clearing the modules, which takes 0.3 s


class _Calls:
    """Processes that run commands. start: how they are made. study: the end of a pipe."""

    def __init__(self, start: Any, study: Connection[Any, Any]):
        self._context, self._study = multiprocessing.get_context(start), study
        self._forks = start == "fork"
        self._running: dict[Any, tuple[str, Any]] = {}  # the name and the process, by what `wait` waits for

    def start(self, name: str, arguments: Sequence[str], folder: Path, log: Path) -> None:
        """Start a command in a folder, with its output in a log."""
        _load(_LOADED.get(arguments[0], ()) if self._forks else ())
        process = self._context.Process(target=_make, args=(arguments, folder, log.resolve()))
        process.start()
        self._running[process.sentinel] = name, process
        _load(_LOADED_NEXT.get(arguments[0], ()) if self._forks else ())

    def wait(self) -> tuple[str, int]:
        """Return the name and the exit code of the next one that ends. End with the study."""
        ended = wait([self._study, *self._running])
        if self._study in ended:
            sys.exit()
        name, process = self._running.pop(ended[0])
        process.join()
        return name, process.exitcode

    def end(self) -> None:
        """End all calls, and wait until they have ended."""
        for _, process in self._running.values():
            process.terminate()
        for _, process in self._running.values():
            process.join()


def _make(arguments: Sequence[str], folder: Path, log: Path) -> None:
    """Make a call, in a process of its own."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(os.devnull, "rb") as empty, log.open("ab") as file:  # noqa: PTH123 (os.devnull is a text)
        for opened, standard in ((empty, 0), (file, 1), (file, 2)):
            os.dup2(opened.fileno(), standard)
    os.chdir(folder)
    threading.Thread(target=_end_with_server, daemon=True).start()
    try:
        command(list(arguments))
    finally:
        atexit._run_exitfuncs()  # a fork ends without them


def _end_with_server() -> None:
    server = multiprocessing.parent_process()
    assert server is not None
    server.join()
    os.kill(os.getpid(), signal.SIGTERM)


@cache
def _load(names: tuple[str, ...]) -> None:
    gc.disable()  # a quarter of the time: it looks through all modules again and again, and none is garbage
    for name in names:
        with suppress(Exception):
            import_module(name)
    if names == _TRAINING:
        with suppress(Exception):  # builds the table of all types, for which each call would take 0.1 s
            import_module("transformers.conversion_mapping").get_checkpoint_conversion_mapping("")
    gc.enable()
    gc.freeze()  # what is shared with the calls is not copied to be looked through


if __name__ == "__main__":
    main()
