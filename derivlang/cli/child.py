"""The steps of a study, `python -m derivlang.cli.child [once]`: command lines, a process each.

It reads calls from standard input, a JSON object in a line each, and writes how each ended to standard output:

    {"call": 0, "arguments": ["pretrain", …], "log": "logs/pretrain-a.log"}      ->   {"call": 0, "code": 0}

It loads torch and what else the commands need once, which takes seconds, and if it can while the call before is at
work. It forks for each call, so that a call that dies takes no other with it. With `once`, for systems that cannot fork
so, it makes one call and ends with its exit code. The output of a command, with its messages, is in its log. When
standard input ends, so do the calls, as by SIGTERM: only the study holds the other end, however it ends.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, BinaryIO

from derivlang.cli.main import ends_at_once, exit_code
from derivlang.cli.main import main as command
from derivlang.cli.streams import message

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
_LOADED_NEXT = {"tokenizer": _TRAINING, "pretrain": _REPORT}  # what a later call loads


def main() -> None:
    """Serve the calls of a study; in a process of a call, make it."""
    code = ends_at_once()
    requests = os.fdopen(os.dup(0), "rb")
    call, life = (requests.readline(), requests) if sys.argv[1:] else _Server(requests).serve()
    code[0] = _make(json.loads(call), life) if call else 0
    sys.exit(code[0])


def _make(request: dict[str, Any], life: BinaryIO) -> int:
    """Make a call, and return its exit code. life: a pipe that ends when the study does."""
    with open(os.devnull, "rb") as empty, open(request["log"], "ab") as log:  # noqa: PTH123 (os.devnull is a text)
        for file, standard in ((empty, 0), (log, 1), (log, 2)):
            os.dup2(file.fileno(), standard)
    threading.Thread(target=_end_with, args=(life,), daemon=True).start()
    try:
        command(request["arguments"])
    except SystemExit as ended:
        if isinstance(ended.code, str):  # of a plug-in
            message(ended.code)
        return exit_code(ended)
    return 0


class _Server:
    """Forks for each call, and answers how it ended. requests: the lines of the study."""

    def __init__(self, requests: BinaryIO):
        self._requests = requests
        self._answers = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)  # so that nothing that a package prints is taken for an answer
        self._calls: dict[int, int] = {}  # of each process

    def serve(self) -> tuple[bytes, BinaryIO]:
        """Return (a call, a pipe that ends with the server) in the process of a call; no call when all have ended."""
        life, held = os.pipe()  # `held` is only open here
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the study ends the calls
        signal.signal(signal.SIGCHLD, self._ended)  # also while a request is waited for
        for request in self._requests:
            call = json.loads(request)
            _load(_LOADED.get(call["arguments"][0], ()))
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
            if (process := os.fork()) == 0:
                os.close(held)
                self._answers.close()
                self._requests.close()
                signal.signal(signal.SIGINT, signal.default_int_handler)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
                return request, os.fdopen(life, "rb")
            self._calls[process] = call["call"]
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            _load(_LOADED_NEXT.get(call["arguments"][0], ()))
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for process in list(self._calls):
            os.kill(process, signal.SIGTERM)
        while self._calls:
            self._answer(*os.waitpid(-1, 0))
        return b"", self._requests

    def _ended(self, *_: Any) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._answer(*ended)

    def _answer(self, process: int, status: int) -> None:
        answer = {"call": self._calls.pop(process), "code": os.waitstatus_to_exitcode(status)}
        with suppress(BrokenPipeError):  # the study has ended
            self._answers.write(json.dumps(answer).encode() + b"\n")


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


def _end_with(pipe: BinaryIO) -> None:
    pipe.read(1)  # nothing is written to it, so this waits for its end
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
