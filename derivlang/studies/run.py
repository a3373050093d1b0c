"""Run a study: text, tokenizer, data, cells in parallel, report. The same command resumes an interrupted study.

A server (cli/child.py) runs the steps, each in a process with a log in OUT/logs, and ends with the study. A cell that
fails does not end the others, but those that begin from its run are not run. A finished cell is known by its records
(records.py): a study whose file has changed so that a finished cell no longer fits is refused before anything runs.
"""

from __future__ import annotations

import glob
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from graphlib import TopologicalSorter
from itertools import groupby
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, Protocol, TypeVar

from derivlang.core.errors import DataError, DerivlangError
from derivlang.core.settings import text_of
from derivlang.evaluation.sets import check_sources
from derivlang.evaluation.tasks.base import Task, UntunedTask
from derivlang.evaluation.tasks.registry import task_of
from derivlang.sources.find import find, is_of_hub, with_near_names
from derivlang.sources.named import named_source
from derivlang.sources.request import SourceRequest
from derivlang.store.disk import create, disk, file_lock, reopen
from derivlang.store.folders import sweep
from derivlang.studies.cells import RUNS, Cell, tasks_in, texts_of
from derivlang.studies.commands import NAMES_FILE, NAMES_TEXT
from derivlang.studies.file import TEXT, StudyFile
from derivlang.studies.plan import DATA, PlannedCommand, data_of, in_order, plan, report_of
from derivlang.studies.records import (
    check_beginning,
    check_place,
    is_done,
    mark_begun,
    mark_done,
    planned,
    replaces,
    write_study,
)
from derivlang.studies.settings import Place
from derivlang.studies.text import is_joined, join
from derivlang.training.objectives.registry import read_objective

START = "fork" if sys.platform == "linux" else "spawn"  # elsewhere, forks of a process that has loaded torch may fail
_OF_ROWS = ("model", "packing", "seq-len", "pair-length", "dict-coverage", "dict-by", "dict-seed")  # besides the folder
Say = Callable[[str], None]
Result = TypeVar("Result")


class Processes(Protocol):
    """Command lines that run, each in a process."""

    def start(self, name: str, arguments: Sequence[str], folder: Path, log: Path) -> None:
        """Start a command in a folder, with its output in a log."""

    def wait(self) -> tuple[str, int]:
        """Return the name and the exit code of the next one that ends."""


Job = Callable[[Processes, Say], Result]


def prepare(study: StudyFile, place: Place, say: Say = lambda message: None) -> dict[str, Any]:
    """Make only text, tokenizers and encoded data of all languages. Return {"out", "data": the folder of the data}."""
    kinds: dict[tuple[Any, ...], PlannedCommand] = {}
    for step in _begin(study, place, say):
        if step.cell is None or step.arguments[0] != "pretrain":
            continue
        # objectives with the same streams read the same data
        options = step.cell.options
        streams = read_objective(text_of(options.get("objective", "mlm"))).streams()
        kind = data_of(step.cell), streams, *(str(options.get(key)) for key in _OF_ROWS)
        name = f"{DATA}-{step.cell.name}"
        kinds.setdefault(kind, replace(step, name=name, arguments=(*step.arguments, "--data-only")))
    in_server(partial(run_steps, list(kinds.values()), place.out), place, place.threads or study.threads, say)
    return {"out": str(place.out), "data": str(place.out / DATA)}


def run_study(study: StudyFile, place: Place, say: Say = lambda message: None) -> dict[str, Any]:
    """Run the steps that are not done yet, and return {"out", "cells", "report"}; only a whole study has a report.

    Raise StoreError if finished cells do not fit the study, and DataError if cells failed. The others are finished, and
    in the report, all the same.
    """
    check_texts(study, place)
    check_tasks(study, place)
    steps = _begin(study, place, say)
    return in_server(partial(_run_cells, study, place, steps), place, place.threads or study.threads, say)


def in_server(job: Job[Result], place: Place, threads: int | None, say: Say) -> Result:
    """Call a function of this module in a server, with the processes that it makes, and return the result.

    say: called with the messages. Raise what the function raises, and DataError if the server is killed. At the end no
    process is left.
    """
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}  # a `numpy.py` in OUT is a file, not a module to import
    if os.environ.get("DERIVLANG_DATA"):
        environment["DERIVLANG_DATA"] = str(Path(os.environ["DERIVLANG_DATA"]).resolve())
    if threads is not None:
        environment |= {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    path = place.out / "logs" / "processes.log"  # of the server itself
    with disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        log = reopen(path)
    ours, theirs = Pipe()
    command = [sys.executable, "-m", "derivlang.cli.child", START, str(theirs.fileno())]
    with log, ours, subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, pass_fds=[theirs.fileno()]
    ) as server:  # fmt: skip
        theirs.close()
        try:
            ours.send(job)
            while True:
                kind, what = ours.recv()
                if kind == "result":
                    return what  # type: ignore[no-any-return]
                if kind == "error":
                    raise what
                say(what)
        except (EOFError, ConnectionError):
            fix = "run the same command again" if server.wait() < 0 else "its log says why"
            raise DataError("the process of its steps has ended", where=str(path), fix=fix, id="step") from None
        finally:
            ours.close()
            server.wait()


def run_steps(steps: Iterable[PlannedCommand], out: Path, processes: Processes, say: Say) -> None:
    """Run some steps, one after another. Raise DataError with the last lines of its log if one fails."""
    for step in steps:
        say(step.name)
        log = _start(step, step.name, out, processes)
        _check(step, log, processes.wait()[1])


def _run_cells(
    study: StudyFile, place: Place, steps: Iterable[PlannedCommand], processes: Processes, say: Say
) -> dict[str, Any]:
    """Run the steps of a plan that are not done yet, and return what `run_study` returns."""
    cells = {cell.name: cell for cell in in_order(study)}  # each after those that it begins from
    left: dict[str, list[PlannedCommand]] = {}
    for name, group in groupby(steps, key=lambda step: step.cell.name if step.cell else ""):
        chain = list(group)
        if name and (left.keys() & cells[name].needs or not all(is_done(step, place) for step in chain)):
            left[name] = chain
    if len(left) < len(cells):
        say(f"{len(cells) - len(left)} of {len(cells)} cells are done already")
    failed, not_run = _run_chains(left, cells, place, processes, say, place.workers or study.workers)
    names = [cell.name for cell in study.cells if cell.name not in failed | not_run]
    summary: dict[str, Any] = {"out": str(place.out), "cells": len(names), "report": None}
    if study.whole is None and names:
        if left_out := planned(place.out).left_out():
            say(left_out)
        run_steps([report_of([f"{RUNS}/{name}" for name in names] if failed else ["."])], place.out, processes, say)
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
    ready, running = list[str](), dict[str, Generator[None, int | None]]()
    failed, not_run, to_go = dict[str, str](), dict[str, str](), len(chains)
    while sorter.is_active():
        ready += sorter.get_ready()
        code, how = None, "done"
        if ready and len(running) < workers:
            name = ready.pop(0)
            running[name] = _run_chain(cells[name], chains[name], place, processes)
        else:
            name, code = processes.wait()
        try:
            if lost := [need for need in cells[name].needs if need in failed or need in not_run]:
                not_run[name], how = f"{name} not run: needs {lost[0]}", "not run"
            else:
                running[name].send(code)
                continue
        except StopIteration:
            pass
        except DerivlangError as error:
            failed[name], how = f"{error.what} ({error.where})", "failed"
        del running[name]
        sorter.done(name)
        to_go -= 1
        say(f"{name} {how}, {to_go} to go")
    return {name: failed[name] for name in chains if name in failed}, not_run


def _run_chain(
    cell: Cell, chain: Iterable[PlannedCommand], place: Place, processes: Processes
) -> Generator[None, int | None]:
    """Start the commands of a cell that are not done yet, one after another, and end when all are done.

    It is sent the exit code of each. Raise DerivlangError if one fails.
    """
    for step in chain:
        if not is_done(step, place):
            check_beginning(cell, place)
            again = ("--force",) * replaces(step, place)
            mark_begun(step, place)
            log = _start(replace(step, arguments=(*step.arguments, *again)), cell.name, place.out, processes)
            _check(step, log, (yield))
            mark_done(step, place)


def _start(step: PlannedCommand, name: str, out: Path, processes: Processes) -> Path:
    """Start a step, and return its log. name: for `Processes.wait`."""
    log = out / "logs" / f"{step.name.replace(' ', '-').replace('/', '-')}.log"
    with disk(log):
        create(log).close()
    processes.start(name, step.arguments, out, log)
    return log


def _check(step: PlannedCommand, log: Path, code: int | None) -> None:
    """Raise DataError with the last lines of its log if a step has failed."""
    if code:
        words = log.read_text("utf-8", "replace").strip().splitlines()[-3:]
        told = " ".join(" ".join(words).split()).removeprefix("derivlang: ")
        told = told or f"it ended with exit code {code}"
        raise DataError(f"{step.name}: {told}", where=str(log), fix="run the same command again", id="step")


def _begin(study: StudyFile, place: Place, say: Say) -> list[PlannedCommand]:
    """Make the text that cells share, and return the plan. Raise StoreError if OUT does not fit."""
    steps, whole = plan(study, place), study.whole or study
    with disk(place.out):
        place.out.mkdir(parents=True, exist_ok=True)
    with file_lock(place.out / TEXT):  # another process may run other cells of the study at the same time
        for folder in (place.out, place.out / TEXT, *(place.out / RUNS).glob("*")):
            sweep(folder)
        check_place(study, place)
        write_study(whole, place)
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


def check_texts(study: StudyFile, place: Place) -> None:
    """Raise DerivlangError for a source or a file that is not there, of a cell that has not been trained yet."""
    cells: dict[str, str] = {}  # the first one of each source
    files: dict[str, str] = {}  # and of each dictionary, or prefix of pairs
    for step in plan(study, place):
        if step.cell and step.arguments[0] == "pretrain" and not is_done(step, place):
            named = [one for key, value in step.options.items() for one in texts_of(key, value)]
            cells = {text: step.cell.name for key, text in named if key in NAMES_TEXT} | cells
            files = {text: step.cell.name for key, text in named if key in NAMES_FILE} | files
    for text, cell in files.items():
        path = (place.out / text).resolve()  # OUT may not exist yet
        if "://" not in text and not any(path.parent.glob(f"{glob.escape(path.name)}*")):
            raise _lost(f"the file {text}", study, cell)
    for text, cell in cells.items():
        path = (place.out / text).resolve()
        if text in ("", TEXT) or "://" in text or path.exists() or is_of_hub(text, place.data_dir):
            continue
        if named_source(text)[0] is None and {"/", "."} & set(text):
            raise _lost(f"the source {text}", study, cell)
        find(SourceRequest(text, data_dir=place.data_dir))


def _lost(what: str, study: StudyFile, cell: str) -> DataError:
    return DataError(
        f"{what} is missing",
        where=f"{study.place}: cell {cell}",
        fix="give a path from the file of the study, from -o OUT or from --data-dir",
        id="missing-file",
    )


def check_tasks(study: StudyFile, place: Place, *, dry: bool = False) -> list[str]:
    """Raise DataError for a task without data, before hours of training instead of after them.

    dry: leave out tasks whose data would be loaded from the hub. Return their sources.
    """
    of_hub: list[str] = []
    for name in dict.fromkeys(name for cell in study.cells for name in tasks_in(cell.evaluation)):
        named = task_of(name)
        for task in (named, *named.own.values()) if isinstance(named, Task) else (named,):
            given = task.sources if isinstance(task, Task) else [task.source] if isinstance(task, UntunedTask) else []
            sources = [_from_out(source, place, Path(study.place).parent) for source in given]
            requests = [SourceRequest(source, data_dir=place.data_dir) for source in sources]
            if dry and (absent := [source for source in sources if is_of_hub(source, place.data_dir)]):
                of_hub += [with_near_names(source, place.data_dir) for source in absent]
            elif isinstance(task, Task):
                check_sources(task, [find(request) for request in requests])
            elif isinstance(task, UntunedTask):
                task.find(*requests)
    return of_hub


def _from_out(source: str, place: Place, beside: Path) -> str:
    """Return a task's source as this process finds it: a relative path is one from OUT, where `evaluate` runs.

    beside: the folder of the study's file, for advice.
    """
    first, slash, _ = source.partition("/")
    if ":" in first or not slash or Path(source).is_absolute():
        return source
    path = (place.out / source).resolve()  # OUT, and so OUT/.., may not exist yet
    if not path.exists():
        raise DataError(
            f"the task's file {source} is missing",
            where=str(place.out),
            fix="paths in `task` are relative to -o OUT: "
            + (
                f"write {os.path.relpath(beside / source, place.out)}"
                if (beside / source).exists()
                else "put the file there, or give its absolute path"
            ),
            id="missing-file",
        )
    return str(path)
