"""A step of a study, `python -m derivlang.cli.child FUNCTION`, which ends with the study, however that ends.

It calls `derivlang.FUNCTION` with keyword arguments, and prints what the log says of the result. It ends with the
messages and exit codes of a command. Its standard input is a pipe that only the study holds open: it begins with the
arguments, a JSON object in one line (a report may have more runs than fit into an argument). At the end of the pipe,
the call ends as after `Processes.stop`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

import derivlang
from derivlang.cli.main import reported
from derivlang.cli.messages import echo
from derivlang.cli.options import ends_well
from derivlang.core.errors import DerivlangError


def main() -> None:
    """Call a function as the process's arguments say, with an empty standard input."""
    pipe = os.fdopen(os.dup(0), "rb")
    arguments = pipe.readline()
    with open(os.devnull, "rb") as empty:  # noqa: PTH123 (os.devnull is a text)
        os.dup2(empty.fileno(), 0)
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()
    (name,) = sys.argv[1:]
    with reported(continues=True), ends_well():
        try:
            echo(_CALLS[name](**json.loads(arguments)))
        except DerivlangError as error:  # in the words of options, which are the keys of a study's file
            raise error.__cause__ if isinstance(error.__cause__, DerivlangError) else error from None


def _end_with(pipe: BinaryIO) -> None:
    pipe.read(1)  # nothing more is written to it, so this waits for its end
    os.kill(os.getpid(), signal.SIGTERM)


def _pretrain(*, data_only: bool = False, **options: Any) -> str:
    run = derivlang.pretrain(data_only=data_only, **options)
    return str(run.path) if data_only else json.dumps(run.record["result"])


def _evaluate(run: str, **options: Any) -> str:
    columns = ["task", "metric", "regime", "group", "step", "ft_seed", "value"]
    return str(derivlang.Run(run).evaluate(**options)[columns].to_string(index=False))


# The functions of a study's steps; each returns what the log says of its result.
_CALLS: dict[str, Callable[..., str]] = {
    "tokenizer": lambda **options: json.dumps(derivlang.tokenizer(**options)),
    "pretrain": _pretrain,
    "evaluate": _evaluate,
    "report": lambda runs, **options: str(derivlang.report(*runs, **options)),
}


if __name__ == "__main__":
    main()
