"""The processes of a study: a call of a Python function each (cli/child.py), with a log each in OUT/logs.

They end with the study.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from derivlang.core.errors import DataError
from derivlang.store.disk import disk
from derivlang.studies.plan import PlannedCommand
from derivlang.studies.settings import Place


class Processes:
    """Running commands, which `stop` terminates."""

    def __init__(self, place: Place, threads: int | None):
        self._place, self._threads = place, threads
        self._running: list[subprocess.Popen[bytes]] = []
        self._lock, self.stopped = threading.Lock(), False

    def call(self, step: PlannedCommand) -> None:
        """Run a command with its output in OUT/logs. Raise DataError with its last lines if it fails."""
        log = self._place.out / "logs" / f"{step.name.replace(' ', '-').replace('/', '-')}.log"
        environment = {**os.environ, "PYTHONSAFEPATH": "1"}  # a `numpy.py` in OUT is a file, not a module to import
        if environment.get("DERIVLANG_DATA"):
            environment["DERIVLANG_DATA"] = str(Path(environment["DERIVLANG_DATA"]).resolve())
        if self._threads is not None:
            environment |= {"OMP_NUM_THREADS": str(self._threads), "OPENBLAS_NUM_THREADS": str(self._threads)}
        with disk(log):
            log.parent.mkdir(parents=True, exist_ok=True)
            file = log.open("w", encoding="utf-8", newline="\n")
        with file:
            with self._lock:  # so that no process starts after `stop`
                if self.stopped:
                    raise DataError(f"{step.name}: the study was ended", id="step")
                process = subprocess.Popen(
                    [sys.executable, "-m", "derivlang.cli.child", step.arguments[0]],
                    stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT, env=environment, cwd=self._place.out,
                )  # fmt: skip
                self._running.append(process)
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # it ended at once, and its log says why
                process.stdin.write(json.dumps(step.keywords).encode() + b"\n")
                process.stdin.flush()
            process.wait()
            with suppress(BrokenPipeError):
                process.stdin.close()
            with self._lock:
                self._running.remove(process)
        if process.returncode:
            words = log.read_text("utf-8", "replace").strip().splitlines()[-3:]
            told = " ".join(" ".join(words).split()).removeprefix("derivlang: ")
            told = told or f"it ended with exit code {process.returncode}"
            raise DataError(f"{step.name}: {told}", where=str(log), fix="run the same command again", id="step")

    def stop(self) -> None:
        """Terminate what runs, and start nothing more."""
        with self._lock:
            self.stopped = True
            for process in self._running:
                process.terminate()
