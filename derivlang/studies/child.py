"""A command of a study, `python -m derivlang.studies.child COMMAND …`, which ends with the study, however that ends.

Its standard input is a pipe that only the study holds open. At its end, the command ends as after `Processes.stop`.
"""

from __future__ import annotations

import os
import runpy
import signal
import threading


def main() -> None:
    """Run a command line of derivlang, whose standard input is empty."""
    pipe = os.dup(0)
    with open(os.devnull, "rb") as empty:  # noqa: PTH123 (os.devnull is a text)
        os.dup2(empty.fileno(), 0)
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()
    runpy.run_module("derivlang", run_name="__main__", alter_sys=True)


def _end_with(pipe: int) -> None:
    os.read(pipe, 1)  # nothing is written to it, so this waits for its end
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
