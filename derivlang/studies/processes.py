"""The processes of a study: a command each (cli/child.py), with a log each in OUT/logs.

They end with the study.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Self

from derivlang.core.errors import DataError
from derivlang.store.disk import create, disk, reopen
from derivlang.studies.plan import PlannedCommand
from derivlang.studies.settings import Place

FORKS = sys.platform == "linux"  # elsewhere, forks of a process that has loaded torch may fail
_ENDED = -15  # the exit code of a call whose server has ended


class Processes:
    """Running commands, which `stop` terminates. A context, at whose end no process is left.

    One server makes all calls, if it can fork; else each call has its own.
    """

    def __init__(self, place: Place, threads: int | None):
        self._place = place
        # PYTHONSAFEPATH: a `numpy.py` in OUT is a file, not a module to import.
        self._environment = {**os.environ, "PYTHONSAFEPATH": "1"}
        if os.environ.get("DERIVLANG_DATA"):
            self._environment["DERIVLANG_DATA"] = str(Path(os.environ["DERIVLANG_DATA"]).resolve())
        if threads is not None:
            self._environment |= {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
        self._servers: list[Server] = []
        self._lock, self.stopped = threading.Lock(), False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def call(self, step: PlannedCommand) -> None:
        """Run a command with its output in OUT/logs. Raise DataError with its last lines if it fails."""
        log = self._place.out / "logs" / f"{step.name.replace(' ', '-').replace('/', '-')}.log"
        with disk(log):
            log.parent.mkdir(parents=True, exist_ok=True)
            create(log).close()
        with self._lock:  # so that no process starts after `stop`
            if self.stopped:
                raise DataError(f"{step.name}: the study was ended", id="step")
            if not (self._servers and FORKS):
                self._servers.append(Server(self._place.out, self._environment))
            server = self._servers[-1]
        code = server.call(step.arguments, log.resolve())
        if code:
            words = log.read_text("utf-8", "replace").strip().splitlines()[-3:]
            told = " ".join(" ".join(words).split()).removeprefix("derivlang: ")
            told = told or f"it ended with exit code {code}"
            raise DataError(f"{step.name}: {told}", where=str(log), fix="run the same command again", id="step")

    def stop(self) -> None:
        """Terminate what runs, and start nothing more."""
        with self._lock:
            self.stopped = True
            for server in self._servers:
                server.end()


class Server:
    """A process that runs the commands of a study (cli/child.py), several at a time if it can fork."""

    def __init__(self, folder: Path, environment: Mapping[str, str]):
        with reopen(folder / "logs" / "processes.log") as log:  # of the server itself
            self._process = subprocess.Popen(
                [sys.executable, "-m", "derivlang.cli.child", *([] if FORKS else ["once"])],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, cwd=folder,
            )  # fmt: skip
        self._codes: list[Future[int]] = []
        self._has_ended = False
        self._lock = threading.Lock()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def call(self, arguments: Sequence[str], log: Path) -> int:
        """Run a command with its output in a log, and return the exit code when it has ended."""
        with self._lock:
            self._codes.append(code := Future[int]())
            if self._has_ended:
                return _ENDED
            request = {"call": len(self._codes) - 1, "arguments": arguments, "log": str(log)}
            self._write(json.dumps(request).encode() + b"\n")
        return code.result()

    def end(self) -> None:
        """End all calls, and wait until they have ended."""
        with self._lock, suppress(BrokenPipeError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._listener.join()

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ValueError):  # it has ended, or is about to: the listener says so
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            for answer in map(json.loads, answers):
                self._codes[answer["call"]].set_result(answer["code"])
        ended = self._process.wait()
        with self._lock:
            self._has_ended = True
            for code in self._codes:
                if not code.done():
                    code.set_result(_ENDED if FORKS else ended)
