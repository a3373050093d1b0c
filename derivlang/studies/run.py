"""Run a study: text, tokenizer, data, cells in parallel, report. The same command resumes an interrupted study.

Each step is a process (cli/child.py) with a log in OUT/logs, and ends with the study. A cell that fails does not end
the others, but those that begin from its run are not run. A finished cell is known by its records (records.py): a study
whose file has changed so that a finished cell no longer fits is refused before anything runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, Self

from derivlang.core.errors import DataError, DerivlangError, StoreError
from derivlang.core.settings import text_of
from derivlang.evaluation.sets import check_sources
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.registry import task_of
from derivlang.evaluation.tasks.untuned import UntunedTask
from derivlang.sources.find import find, is_of_hub
from derivlang.sources.request import SourceRequest
from derivlang.store.disk import create, disk, file_lock, reopen
from derivlang.store.folders import sweep
from derivlang.studies.cells import RUNS, Cell
from derivlang.studies.estimate import tasks_in
from derivlang.studies.file import TEXT, StudyFile
from derivlang.studies.plan import DATA, PlannedCommand, data_of, in_order, plan, report_of
from derivlang.studies.records import check_fits, check_shared, is_done, mark_done, other_beginning, write_study
from derivlang.studies.settings import Place
from derivlang.studies.text import is_joined, join
from derivlang.training.objectives.registry import read_objective

FORKS = sys.platform == "linux"  # elsewhere, forks of a process that has loaded torch may fail
_OF_ROWS = ("model", "packing", "seq-len", "pair-length", "dict-coverage", "dict-by", "dict-seed")  # besides the folder
_ENDED = -15  # the exit code of a call whose server has ended
Say = Callable[[str], None]


def prepare(study: StudyFile, place: Place, say: Say = lambda message: None) -> dict[str, Any]:
    """Make only text, tokenizers and encoded data of all languages. Return {"out", "data": the folder of the data}."""
    kinds: dict[tuple[Any, ...], PlannedCommand] = {}
    with Processes(place, place.threads or study.threads) as processes:
        for step in _begin(study, place, say):
            if step.cell is None or step.arguments[0] != "pretrain":
                continue
            # objectives with the same streams read the same data
            options = step.cell.options
            streams = read_objective(text_of(options.get("objective", "mlm"))).streams()
            kind = data_of(step.cell), streams, *(str(options.get(key)) for key in _OF_ROWS)
            name = f"{DATA}-{step.cell.name}"
            kinds.setdefault(kind, replace(step, name=name, arguments=(*step.arguments, "--data-only")))
        for step in kinds.values():
            say(step.name)
            processes.call(step)
    return {"out": str(place.out), "data": str(place.out / DATA)}


def run_study(study: StudyFile, place: Place, say: Say = lambda message: None) -> dict[str, Any]:
    """Run the steps that are not done yet, and return {"out", "cells", "report"}; only a whole study has a report.

    Raise StoreError if finished cells do not fit the study, and DataError if cells failed. The others are finished, and
    in the report, all the same.
    """
    check_tasks(study, place)
    cells = {cell.name: cell for cell in in_order(study)}  # each after those that it begins from
    with Processes(place, place.threads or study.threads) as processes:
        chains: dict[str, list[PlannedCommand]] = {name: [] for name in cells}
        for step in _begin(study, place, say):
            if step.cell is not None:
                chains[step.cell.name].append(step)
        left: dict[str, list[PlannedCommand]] = {}
        for name, chain in chains.items():
            done = all(is_done(step, place) for step in chain) and not other_beginning(cells[name], place)
            if not done or any(need in left for need in cells[name].needs):
                left[name] = chain
        if len(left) < len(cells):
            say(f"{len(cells) - len(left)} of {len(cells)} cells are done already")
        failed, not_run = _run_chains(left, cells, place, processes, say, place.workers or study.workers)
        names = [cell.name for cell in study.cells if cell.name not in failed | not_run]
        summary: dict[str, Any] = {"out": str(place.out), "cells": len(names), "report": None}
        if study.whole is None and names:
            say("report")
            processes.call(report_of([f"{RUNS}/{name}" for name in names] if failed else ["."]))
            summary["report"] = str(place.out / "report" / "index.html")
    if failed:
        for message in (*failed.values(), *not_run.values()):
            say(message)
        told = f"{len(failed)} of {len(cells)} cells failed: {', '.join(failed)}"
        if not_run:
            told += f"; {len(not_run)} that begin from them were not run: {', '.join(not_run)}"
        raise DataError(told, where=str(place.out), fix="the same command tries them again", id="cell")
    return summary


def _run_chains(
    chains: Mapping[str, list[PlannedCommand]],
    cells: Mapping[str, Cell],
    place: Place,
    processes: Processes,
    say: Say,
    workers: int,
) -> tuple[dict[str, str], dict[str, str]]:
    """Run the commands of each cell after the commands of the cells that it needs.

    Return the messages of the cells that failed, and of those that were not run, as a cell that they need was not done.
    """
    sorter = TopologicalSorter({name: [need for need in cells[name].needs if need in chains] for name in chains})
    sorter.prepare()
    running: dict[Future[None], str] = {}
    failed, not_run, to_go = dict[str, str](), dict[str, str](), len(chains)
    with ThreadPoolExecutor(workers) as pool:
        try:
            while sorter.is_active():
                for name in sorter.get_ready():
                    if lost := [need for need in cells[name].needs if need in failed or need in not_run]:
                        not_run[name], to_go = f"{name} not run: needs {lost[0]}", to_go - 1
                        sorter.done(name)
                        say(f"{name} not run, {to_go} to go")
                    else:
                        running[pool.submit(_run_chain, cells[name], chains[name], place, processes)] = name
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    name, error, to_go = running.pop(ended), ended.exception(), to_go - 1
                    if isinstance(error, DerivlangError):
                        failed[name] = f"{error.what} ({error.where})"
                    elif error is not None:
                        raise error
                    sorter.done(name)
                    if not processes.stopped:
                        say(f"{name} {'done' if error is None else 'failed'}, {to_go} to go")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.stop()
            raise
    return {name: failed[name] for name in chains if name in failed}, not_run


def _run_chain(cell: Cell, chain: list[PlannedCommand], place: Place, processes: Processes) -> None:
    """Run the commands of a cell that are not done yet. Raise DerivlangError if one fails."""
    if told := other_beginning(cell, place):
        raise StoreError(told, where=str(place.out / RUNS / cell.name), id="other-run")
    for step in chain:
        if not is_done(step, place):
            processes.call(step)
            mark_done(step, place)


def _begin(study: StudyFile, place: Place, say: Say) -> list[PlannedCommand]:
    """Make the text that cells share, and return the plan. Raise StoreError if OUT does not fit."""
    steps, whole = plan(study, place), study.whole or study
    with disk(place.out):
        place.out.mkdir(parents=True, exist_ok=True)
    with file_lock(place.out / TEXT):  # another process may run other cells of the study at the same time
        for folder in (place.out, place.out / TEXT, *(place.out / RUNS).glob("*")):
            sweep(folder)
        check_shared(study, place)
        for step in plan(whole, place):
            check_fits(step, place)
        write_study(whole, place)
        if place.data_as_is:
            return steps
        if study.text and not is_joined(place.out / TEXT, labelled=study.labelled):
            requests = [_text(name, place) for name in study.text]
            say("text")
            join(requests, place.out / TEXT, labelled=study.labelled)
    return steps


def _text(name: str, place: Place) -> SourceRequest:
    """Return the source of a name in the list `text`: with a `/`, a path in the folder of the corpora."""
    if "/" not in name:
        return SourceRequest(name, data_dir=place.data_dir)
    path = Path(place.data_dir or "") / name
    if not path.exists():
        raise DataError(
            f"the study's text {name} is missing",
            where="--data-dir" if place.data_dir is None else str(place.data_dir),
            fix="put novels there, one paragraph per line; the results depend on this text",
            id="missing-text",
        )
    return SourceRequest(str(path))


def check_tasks(study: StudyFile, place: Place, *, dry: bool = False) -> list[str]:
    """Raise DataError for a task without data, before hours of training instead of after them.

    dry: leave out tasks whose data would be loaded from the hub. Return their sources.
    """
    of_hub: list[str] = []
    for name in dict.fromkeys(name for cell in study.cells for name in tasks_in(cell.evaluation)):
        task = task_of(name)
        given = task.sources if isinstance(task, Task) else [task.source] if isinstance(task, UntunedTask) else []
        sources = [_from_out(source, place) for source in given]
        requests = [SourceRequest(source, data_dir=place.data_dir) for source in sources]
        if dry and (absent := [source for source in sources if is_of_hub(source, place.data_dir)]):
            of_hub += absent
        elif isinstance(task, Task):
            check_sources(task, [find(request) for request in requests])
        elif isinstance(task, UntunedTask):
            task.find(*requests)
    return of_hub


def _from_out(source: str, place: Place) -> str:
    """Return a task's source as this process finds it: a relative path is one from OUT, where `evaluate` runs."""
    first, slash, _ = source.partition("/")
    if ":" in first or not slash or Path(source).is_absolute():
        return source
    path = (place.out / source).resolve()  # OUT, and so OUT/.., may not exist yet
    if not path.exists():
        raise DataError(
            f"the task's file {source} is missing",
            where=str(place.out),
            fix="paths in `task` are relative to -o OUT: put the file there, or give its absolute path",
            id="missing-file",
        )
    return str(path)


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
