"""Run a study: text, tokenizer, data, cells in parallel, report. The same command resumes an interrupted study.

Each step is a command line that runs in a process (processes.py) with a log in OUT/logs. A cell that fails does not end
the others, but those that begin from its run are not run. A finished cell is known by its records (records.py): a study
whose file has changed so that a finished cell no longer fits is refused before anything runs.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, DerivlangError
from derivlang.core.settings import text_of
from derivlang.evaluation.sets import check_sources
from derivlang.evaluation.tasks.base import Task, UntunedTask
from derivlang.evaluation.tasks.registry import task_of
from derivlang.sources.find import find, is_of_hub, with_near_names
from derivlang.sources.named import named_source
from derivlang.sources.request import SourceRequest
from derivlang.store.disk import create, disk, file_lock
from derivlang.store.folders import sweep
from derivlang.studies.cells import RUNS, Cell, tasks_in, texts_of
from derivlang.studies.commands import NAMES_FILE, NAMES_TEXT
from derivlang.studies.file import TEXT, StudyFile
from derivlang.studies.plan import DATA, PlannedCommand, commands_of, data_of, in_order, plan, report_of
from derivlang.studies.processes import Processes
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

_NAMES = (*NAMES_TEXT, *NAMES_FILE)
_OF_ROWS = ("model", "packing", "seq-len", "pair-length", "dict-coverage", "dict-by", "dict-seed")  # besides the folder
Say = Callable[[str], None]


def prepare(study: StudyFile, place: Place, say: Say = lambda message: None) -> dict[str, Any]:
    """Make only text, tokenizers and encoded data of all languages. Return {"out", "data": the folder of the data}."""
    kinds: dict[tuple[Any, ...], PlannedCommand] = {}
    _begin(study, place, say)
    for cell in in_order(study):
        # objectives with the same streams read the same data
        streams = read_objective(text_of(cell.options.get("objective", "mlm"))).streams()
        kind = data_of(cell), streams, *(str(cell.options.get(key)) for key in _OF_ROWS)
        step = commands_of(cell, study, place)[0]
        step = replace(step, name=f"{DATA}-{cell.name}", arguments=(*step.arguments, "--data-only"))
        kinds.setdefault(kind, step)
    with Processes(place.threads or study.head.get("threads")) as processes:
        run_steps(kinds.values(), place.out, processes, say)
    return {"out": str(place.out), "data": str(place.out / DATA)}


def run_study(study: StudyFile, place: Place, say: Say = lambda message: None) -> dict[str, Any]:
    """Run the steps that are not done yet, and return {"out", "cells", "report"}; only a whole study has a report.

    Raise StoreError if finished cells do not fit the study, and DataError if cells failed. The others are finished, and
    in the report, all the same.
    """
    check_texts(study, place)
    check_tasks(study, place)
    _begin(study, place, say)
    left: dict[str, tuple[Cell, list[PlannedCommand]]] = {}
    for cell in in_order(study):
        chain = commands_of(cell, study, place)
        if cell.needs in left or not all(is_done(step, place) for step in chain):
            left[cell.name] = cell, chain
    n_cells = len(study.cells)
    if len(left) < n_cells:
        say(f"{n_cells - len(left)} of {n_cells} cells are done already")
    with Processes(place.threads or study.head.get("threads")) as processes:
        failed, not_run = _run_cells(left, place, processes, say, place.workers or study.head.get("workers", 1))
        names = [cell.name for cell in study.cells if cell.name not in failed | not_run]
        summary: dict[str, Any] = {"out": str(place.out), "cells": len(names), "report": None}
        if study.cells == study.whole and names:
            if left_out := planned(place.out).left_out():
                say(left_out)
            report = report_of([f"{RUNS}/{name}" for name in names] if failed else ["."])
            run_steps([report], place.out, processes, say)
            summary["report"] = str(place.out / "report" / "index.html")
    if failed:
        for message in (*failed.values(), *not_run.values()):
            say(message)
        told = f"{len(failed)} of {n_cells} cells failed: {', '.join(failed)}"
        if not_run:
            told += f"; {len(not_run)} that begin from them were not run: {', '.join(not_run)}"
        raise DataError(told, where=str(place.out), fix="the same command tries them again", id="cell")
    return summary


def run_steps(steps: Iterable[PlannedCommand], out: Path, processes: Processes, say: Say) -> None:
    """Run some steps, one after another. Raise DataError with the last lines of its log if one fails."""
    for step in steps:
        say(step.name)
        log = _start(step, step.name, out, processes)
        _check(step, log, processes.wait()[1])


def _run_cells(
    left: Mapping[str, tuple[Cell, list[PlannedCommand]]], place: Place, processes: Processes, say: Say, workers: int
) -> tuple[dict[str, str], dict[str, str]]:
    """Run the commands of each cell after the commands of the cell that it needs.

    Return the messages of the cells that failed, and of those that were not run, as the cell that they need was not.
    """
    waiting, running = list(left), dict[str, Generator[None, int | None]]()
    failed, not_run = dict[str, str](), dict[str, str]()
    while waiting or running:
        ready = [name for name in waiting if left[name][0].needs not in {*waiting, *running}]
        if ready and len(running) < workers:
            name, code = ready[0], None
            waiting.remove(name)
            running[name] = _run_cell(*left[name], place, processes)
        else:
            name, code = processes.wait()
        how, needed = "done", left[name][0].needs
        try:
            if needed in failed or needed in not_run:
                not_run[name], how = f"{name} not run: needs {needed}", "not run"
            else:
                running[name].send(code)
                continue
        except StopIteration:
            pass
        except DerivlangError as error:
            failed[name], how = f"{error.what} ({error.where})", "failed"
        del running[name]
        say(f"{name} {how}, {len(waiting) + len(running)} to go")
    return {name: failed[name] for name in left if name in failed}, not_run


def _run_cell(
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


def _begin(study: StudyFile, place: Place, say: Say) -> None:
    """Make the text that cells share. Raise StoreError if OUT does not fit."""
    with disk(place.out):
        (place.out / "logs").mkdir(parents=True, exist_ok=True)
    with file_lock(place.out / TEXT):  # another process may run other cells of the study at the same time
        for folder in (place.out, place.out / TEXT, *(place.out / RUNS).glob("*")):
            sweep(folder)
        check_place(study, place)
        write_study(study, place)
        if study.text and not is_joined(place.out / TEXT, labelled=study.labelled):
            requests = [_text(name, place) for name in study.text]
            say("text")
            join(requests, place.out / TEXT, labelled=study.labelled)


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
    cells: dict[tuple[str, bool], str] = {}  # the first one of each text; whether it is a source
    for step in plan(study, place):
        if step.arguments[0] == "pretrain" and not is_done(step, place):
            named = [(text, key in NAMES_TEXT) for key, text in texts_of(step.options) if key in _NAMES]
            cells = dict.fromkeys(named, step.cell) | cells
    for (text, is_source), cell in cells.items():
        path = (place.out / text).resolve()  # OUT may not exist yet
        if "://" in text or path.exists() or (is_source and (text in ("", TEXT) or is_of_hub(text, place.data_dir))):
            continue
        may_be = named_source(text)[0] is not None or not {"/", "."} & set(text)
        if not (may_be if is_source else any(path.parent.glob(f"{glob.escape(path.name)}*"))):
            raise DataError(
                f"the {'source' if is_source else 'file'} {text} is missing",
                where=f"{study.place}: cell {cell}",
                fix="give a path from the file of the study, from -o OUT or from --data-dir",
                id="missing-file",
            )
        if is_source:
            find(SourceRequest(text, data_dir=place.data_dir))


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
