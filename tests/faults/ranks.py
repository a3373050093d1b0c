"""Kill ranks, what plans, what finishes and the workers of `make`, in a folder or in a store that fails now and then.

    fault = Campaign(place, seed).run(kills)        # None where each set was that of one run left alone

A campaign plans a set, kills some commands at random moments, and gives the same commands again until the set is
finished. Then the place must hold the files of a serial local run, byte for byte, and nothing else. Commands run in
forked children, so that a kill meets the work and not the start of Python; those with workers are processes.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, Protocol

from tests import commands, flaky_store
from tests.commands import run, snapshot
from tests.faults.kills import SECONDS, still_alive, strike
from tests.faults.scenarios import text

SPEC = "trans:overlap=30,inv"
SHARD = ("--shard-tokens", "400")
WORLD = 3
_TRIES = 8  # of a command in a store that fails: each ends with a message, or does its work


class Place(Protocol):
    """Where sets are made. out: the place of the set."""

    out: str

    def files(self) -> dict[str, bytes]:
        """Return what is there, by name."""

    def clear(self) -> None:
        """Remove all of it."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of this machine."""

    out: str

    def files(self) -> dict[str, bytes]:
        return snapshot(Path(self.out))

    def clear(self) -> None:
        shutil.rmtree(self.out, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class InBucket:
    """A place in a bucket of the tests' store. It is looked at past the proxy."""

    bucket: Any

    @property
    def out(self) -> str:
        return f"{self.bucket.url}/out"

    def files(self) -> dict[str, bytes]:
        found: dict[str, bytes] = self.bucket.snapshot("out")
        return found

    def clear(self) -> None:
        self.bucket.remove()


@contextmanager
def folder() -> Iterator[Folder]:
    """Give a folder for sets."""
    with TemporaryDirectory(prefix="derivlang-faults-") as place:
        yield Folder(f"{place}/out")


@contextmanager
def store(every: int) -> Iterator[tuple[InBucket, flaky_store.FlakyStore]]:
    """Give a place in a store that spoils every so many requests."""
    import_module("s3fs")  # here once: a kill shall meet the work of a child, and not its imports
    with flaky_store.opened() as server:
        bucket = server.new_bucket()
        server.spoil(every)
        yield InBucket(bucket), server


@cache
def _source() -> Path:
    return text(Path(mkdtemp(prefix="derivlang-faults-")), 300)


@cache
def _wanted() -> dict[str, bytes]:
    """Return the files of a serial local run."""
    with TemporaryDirectory(prefix="derivlang-faults-") as place:
        run("make", "--t", SPEC, _source(), "-o", f"{place}/out", *SHARD)
        return snapshot(Path(place, "out"))


@dataclass(slots=True)
class Campaign:
    """Kills in one place.

    defer: whether ranks count the source. told: what happened, by kind: `killed work`, `ended before`, messages by
    their ids.
    """

    place: Place
    rng: random.Random
    defer: bool = False
    told: Counter[str] = field(default_factory=Counter)
    _usual: dict[str, float] = field(default_factory=dict)  # seconds of each command

    def run(self, kills: int, workers: int = 0) -> str | None:
        """Kill some commands, and as many runs with workers. Returns the first fault."""
        _wanted()
        while (left := kills - self._killed("plan", "count", "work", "finish")) > 0:
            if fault := self._one_set(min(left, 5)):
                return fault
        while workers > self._killed("a worker", "make"):
            if fault := self._with_workers():
                return fault
        return None

    def _killed(self, *names: str) -> int:
        return sum(self.told[f"killed {name}"] for name in names)

    def _one_set(self, kills: int) -> str | None:
        self.place.clear()
        commands_of = {"plan": self._plan(), "finish": ("finish", self.place.out)}
        killed = 0
        if self.rng.random() < 0.3:
            killed += self._kill("plan", commands_of["plan"])
        if fault := self._until_done("plan", commands_of["plan"]):
            return fault
        for stage in ("count", "work") if self.defer else ("work",):
            for _ in range(kills):  # at most: where all tasks are done, a rank ends before it is killed
                if killed >= (kills - 1 if stage == "work" else kills // 2):
                    break
                ranks = self.rng.sample(range(WORLD), self.rng.randint(1, 2))
                killed += self._kill(stage, *(self._work(rank, stage) for rank in ranks))
            for rank in range(WORLD):
                if fault := self._until_done(stage, self._work(rank, stage)):
                    return fault
        while killed < kills and not self._is_finished():
            killed += self._kill("finish", commands_of["finish"])
        return self._until_done("finish", commands_of["finish"]) or self._other_files()

    def _with_workers(self) -> str | None:
        """Kill a worker of `make --workers 2`, or the process that started it."""
        self.place.clear()
        line = ("make", *(word for word in self._plan()[1:] if word != "--defer"), "--workers", "2")
        whole = self.rng.random() < 0.5
        process = _process(line)
        hit, family = strike(process, self.rng, whole)
        self.told[f"killed {'make' if whole else 'a worker'}" if hit else "ended before"] += 1
        _, err = process.communicate(timeout=SECONDS)
        if "Traceback" in err.decode():
            return f"a traceback: {err.decode()[-300:]}"
        if left := still_alive(family, 10.0):
            return f"{len(left)} processes live on"
        return self._until_done("make", line[:-2]) or self._other_files()

    def _plan(self) -> tuple[str, ...]:
        line = ("plan", "--t", SPEC, str(_source()), "-o", self.place.out, *SHARD)
        return (*line, "--defer") if self.defer else line

    def _work(self, rank: int, stage: str) -> tuple[str, ...]:
        line = ("work", self.place.out, "--rank", str(rank), "--world", str(WORLD), "--trust")
        return (*line, "--stage", "count") if stage == "count" else line

    def _kill(self, name: str, *lines: tuple[str, ...]) -> int:
        """Start commands at once and kill them at random moments; how many were killed before they ended."""
        children = [_fork(line) for line in lines]
        end = time.monotonic()
        killed = 0
        for child in children:
            end = max(end, time.monotonic() + self.rng.uniform(0.0, self._usual.get(name, 0.3)))
            while time.monotonic() < end:
                time.sleep(0.002)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            died = os.WIFSIGNALED(status)
            killed += died
            self.told[f"killed {name}" if died else "ended before"] += 1
        return killed

    def _until_done(self, name: str, line: tuple[str, ...]) -> str | None:
        """Give a command again until it ends well. A fault: no end, a traceback, an error of no use."""
        for _ in range(_TRIES):
            began = time.monotonic()
            with TemporaryDirectory() as said:
                status = _wait(_fork(line, Path(said, "err")))
                err = Path(said, "err").read_text("utf-8")
            if status == 0:
                self._usual[name] = max(self._usual.get(name, 0.0), time.monotonic() - began)
                return None
            ids = re.findall(r"\[([a-z-]+)\]", err)
            if status != 1 or len(ids) != 1 or "Traceback" in err:
                return f"{name} ends with {status}: {err[-400:]}"
            self.told[f"{name}: [{ids[0]}]"] += 1
        return f"{name} fails {_TRIES} times: {err[-300:]}"

    def _is_finished(self) -> bool:
        return "derivlang.json" in self.place.files()

    def _other_files(self) -> str | None:
        found, wanted = self.place.files(), _wanted()
        self.told["sets compared"] += 1
        if found == wanted:
            return None
        names = sorted(set(found) ^ set(wanted)) or sorted(name for name in wanted if found[name] != wanted[name])
        return f"other files than those of a serial run: {', '.join(names[:4])}"


def _fork(line: tuple[str, ...], said: Path | None = None) -> int:
    """A child that runs a command, and writes its messages to a file."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        ran = run(*line, code=None)
        status = ran.code
        if said is not None:
            said.write_text(ran.err, "utf-8")
    except BaseException as error:  # noqa: BLE001 (a child must not go on as its parent would)
        if said is not None:
            said.write_text(f"Traceback: {error!r}", "utf-8")
    finally:
        os._exit(status)


def _wait(child: int) -> int:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def _process(line: tuple[str, ...]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        commands.command_line(*line, warnings="ignore"),
        env=commands.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
