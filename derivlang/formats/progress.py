"""How far a run is: its stages, and in each the bytes read, the words or rows processed, or the steps done.

The code that does the work names its stages and reports its progress; the caller that shows a bar receives both. The
receiver belongs to the running context, so the functions in between need no argument for it; without a receiver nothing
is counted. The logger of the package records each stage with its time, at the level DEBUG.

    with stage("aligning", "rows", 1000):                 # the work
        for block in blocks: rows_done(len(block))

    with shown_by(bar): align(...)                        # the caller: bar.stage("aligning", "rows", 1000)

    def stage(self, what, unit, total):                   # a context manager of Bar
        with progress_to(self.step, unit): yield          # bar.step(64) for each block
"""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

from derivlang.core.messages import LOGGER

Unit = Literal["bytes", "words", "rows", "steps"]
Advance = Callable[[int], None]
LOOKING = "looking at the source"  # the stage before the source has been found

_log = logging.getLogger(LOGGER)
_receivers: ContextVar[dict[Unit, Advance] | None] = ContextVar("receivers", default=None)


class Reader:
    """What shows the progress of a command, and its notices; this one shows nothing."""

    def stage(self, what: str, unit: Unit | None, total: int | None) -> AbstractContextManager[None]:
        """Return the context of a stage. unit: None if nothing can be counted. total: None if unknown."""
        return nullcontext()

    def note(self, **shown: str) -> None:
        """Show what stands beside the progress, such as the loss."""

    def tell(self, line: str) -> None:
        """Show how far long work is, such as an epoch of training."""

    def found(self, place: Path) -> None:
        """Say that a folder or file is complete already, so that nothing is made."""

    def begins(self, text: str) -> None:
        """Say, once the input has been checked, what is made, such as the folder that a command has chosen."""


_reader: ContextVar[Reader] = ContextVar("reader", default=Reader())  # noqa: B039 (it has no state)


@contextmanager
def progress_to(advance: Advance, unit: Unit | None) -> Iterator[None]:
    """Call `advance(n)` for each n bytes, words, rows or steps that the block does; other units are not reported."""
    token = _receivers.set({} if unit is None else {unit: advance})
    try:
        yield
    finally:
        _receivers.reset(token)


@contextmanager
def shown_by(reader: Reader) -> Iterator[None]:
    """Let `reader` show the stages and notices of the block."""
    token = _reader.set(reader)
    try:
        yield
    finally:
        _reader.reset(token)


def reader() -> Reader:
    """Return what shows the progress and the notices of the running command."""
    return _reader.get()


def found(place: Path) -> None:
    """Say that a folder or file is complete already."""
    _reader.get().found(place)


def receive_all(receivers: dict[Unit, Advance]) -> None:
    """Call these functions for all that this process does from now on. For worker processes."""
    _receivers.set(receivers)


def stage(what: str, unit: Unit | None = "bytes", total: int | None = None) -> AbstractContextManager[None]:
    """Name the work of the block as a stage.

    unit: the unit in which the block reports its progress, None where the work is one call that reports nothing.
    total: how much there is to do, None if unknown.
    """
    shown = _reader.get().stage(what, unit, total)
    return _logged(shown, what, unit, total) if _log.isEnabledFor(logging.DEBUG) else shown


def bytes_read(n: int) -> None:
    """Report n further bytes of a file, as it lies on disk."""
    _report("bytes", n)


def words_done(n: int) -> None:
    """Report n further words, derived or parsed."""
    _report("words", n)


def rows_done(n: int) -> None:
    """Report n further rows, sentences or pairs that were processed."""
    _report("rows", n)


def steps_done(n: int) -> None:
    """Report n further steps of an iterative method."""
    _report("steps", n)


@contextmanager
def _logged(shown: AbstractContextManager[None], what: str, unit: Unit | None, total: int | None) -> Iterator[None]:
    """Run a stage, and log it when it is done."""
    began = time.perf_counter()
    with shown:
        yield
    size = f"{total:,} {unit}, " if unit and total else ""
    _log.debug("%s: %s%.1f s", what, size, time.perf_counter() - began)


def _report(unit: Unit, n: int) -> None:
    receivers = _receivers.get()
    if receivers is not None and unit in receivers:
        receivers[unit](n)


class CountedFile(io.FileIO):
    """A file of this machine, opened without a buffer, that reports the bytes read from it."""

    # FileIO's own do not call `readinto`.
    read, readall = io.RawIOBase.read, io.RawIOBase.readall  # type: ignore[assignment]

    def readinto(self, buffer: Any) -> int:
        n = super().readinto(buffer)
        bytes_read(n or 0)
        return n
