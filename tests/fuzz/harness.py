"""Run a reader on damaged inputs, each with bounded time; what is not a clean error or a clean result is a fault.

A process of its own does it (`python -m tests.fuzz`), with bounded memory: the input on which it dies is told by the
last line that it wrote.
"""

from __future__ import annotations

import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError
from tests.fuzz.mutate import mutated
from tests.fuzz.readers import Reader

SECONDS = 20.0  # CPU time of one input; ten times as long by the clock, for a wait. Other programs make no hang.
AT_LEAST = 5  # inputs of a reader, whatever the time
MEMORY = 3 << 30  # bytes beyond what the process has when it begins


@dataclass(frozen=True, slots=True)
class Fault:
    """reader, number: of the input. kind: exception, silent, hang, memory, ignored or crash."""

    reader: str
    number: int
    kind: str
    what: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def input_of(reader: Reader, number: int, seed: int = 0) -> bytes:
    """The bytes of an input: a function of the reader's name, the number and the seed."""
    rng = random.Random(f"{reader.name}/{seed}/{number}")
    return mutated(reader.kind, rng.choice(reader.seeds()), rng)


def run(
    reader: Reader, numbers: range, seed: int = 0, seconds: float | None = None
) -> Iterator[tuple[int, Fault | None]]:
    """Yield (number, fault or None) of each input, intact seeds first (numbered below 0).

    Stop after `seconds` of CPU time, but not before `AT_LEAST` inputs, however slow the machine.
    """
    for i, data in enumerate(reader.seeds()):
        fault = one(reader, data, -1 - i, intact=True)
        yield -1 - i, fault
    began = time.process_time()
    for done, number in enumerate(numbers):
        if seconds is not None and done >= AT_LEAST and time.process_time() - began > seconds:
            return
        yield number, one(reader, input_of(reader, number, seed), number)


def one(reader: Reader, data: bytes, number: int, *, intact: bool = False) -> Fault | None:
    """Give one input to a reader. An intact one has ten times as long: modules may be imported first."""
    ignored: list[str] = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda seen: ignored.append(repr(seen.exc_value))
    folder = Path(tempfile.mkdtemp(prefix="derivlang-fuzz-"))
    try:
        with limited(10 * SECONDS if intact else SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = reader.read(folder, data)
        if found is not None and not intact:
            return Fault(reader.name, number, "silent", found)
    except DerivlangError as error:
        if intact:
            return Fault(reader.name, number, "exception", f"an intact file is refused: {error}")
        if _of_memory(error):
            return Fault(reader.name, number, "memory", str(error))
    except _TooLong:
        return Fault(reader.name, number, "hang", f"more than {SECONDS:.0f} s of CPU time")
    except MemoryError:
        return Fault(reader.name, number, "memory", _where(sys.exception()))
    except Exception as error:  # noqa: BLE001 (what escapes a reader is what is looked for)
        return Fault(reader.name, number, "exception", f"{type(error).__name__}: {str(error)[:120]} {_where(error)}")
    finally:
        sys.unraisablehook = hook
        shutil.rmtree(folder, ignore_errors=True)
    return Fault(reader.name, number, "ignored", ignored[0]) if ignored else None


class _TooLong(BaseException):
    """Not an Exception: readers turn those into errors of their own."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
        raise _TooLong

    timers = {signal.ITIMER_PROF: (signal.SIGPROF, seconds), signal.ITIMER_REAL: (signal.SIGALRM, 10 * seconds)}
    before = {number: signal.signal(number, stop) for number, _ in timers.values()}
    try:
        for timer, (_, after) in timers.items():
            signal.setitimer(timer, after)
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def limit_memory() -> None:
    """Let this process have `MEMORY` bytes of addresses more than it has."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def _of_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__
    return False


def _where(error: BaseException | None) -> str:
    """The last place in derivlang that the exception passed."""
    assert error is not None
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/derivlang/" in f.filename]
    return f"({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
