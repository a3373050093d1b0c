"""The standard streams of the process, which the caller may have closed (`>&-`) or which may be full.

A closed stream is opened again as the null device: else the next file that the process opens gets its number, and what
is printed goes into that file. To read a closed standard input or to write to a closed standard output stays an error;
messages to a closed or full standard error are lost.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import TextIO

import click

from derivlang.core.errors import visible

# Number, name, how the null device is opened (stdin and stdout so that their use is an error), and the file's mode.
_STREAMS = (
    (0, "stdin", os.O_WRONLY, "r"),
    (1, "stdout", os.O_RDONLY, "w"),
    (2, "stderr", os.O_WRONLY, "w"),
)
_NAMES = {"stdin": "standard input", "stdout": "standard output"}
_closed: list[str] = []


def open_closed_streams() -> None:
    """Open each standard stream that is closed, as the null device."""
    for number, name, flags, mode in _STREAMS:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # gets the lowest number that is free, which is this one
            _closed.append(name)
        if getattr(sys, name) is None:
            stream = open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def fault_of(error: OSError) -> str:
    """Return what the system says about an error, in plain words for a closed stream."""
    streams = [_NAMES[name] for name in _closed if name in _NAMES]
    if error.errno == errno.EBADF and error.filename is None and streams:
        return f"{' or '.join(streams)} is closed"
    return error.strerror or str(error)


def message(line: str) -> None:
    """Print a line on stderr, with control characters as visible escapes (`core/errors.py`).

    Where that is impossible, the command goes on without its messages.
    """
    try:
        click.echo(visible(line, keep="\t\n"), err=True)
    except OSError:
        give_up(sys.stderr)


def give_up(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that Python does not fail again when it flushes it at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
