"""Run a study: text, tokenizer, data, cells in parallel, report. The same command resumes an interrupted study.

Each cell is a chain of processes (processes.py). A cell that fails does not end the others, but those that begin from
its run are not run. A finished cell is known by its records (records.py): a study whose file has changed so that a
finished cell no longer fits is refused before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, DerivlangError, StoreError
from derivlang.core.settings import text_of
from derivlang.evaluation.sets import check_sources
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.registry import task_of
from derivlang.evaluation.tasks.untuned import UntunedTask
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.disk import disk, file_lock
from derivlang.store.folders import sweep
from derivlang.studies.begins import RUNS
from derivlang.studies.estimate import tasks_in
from derivlang.studies.file import TEXT, StudyFile
from derivlang.studies.plan import PlannedCommand, data_folder, plan, report_of
from derivlang.studies.processes import Processes
from derivlang.studies.records import check_fits, check_shared, is_done, mark_done, other_beginning, write_study
from derivlang.studies.settings import Place
from derivlang.studies.text import is_joined, join
from derivlang.training.objectives.registry import read_objective

_OF_ROWS = ("model", "packing", "seq-len", "pair-length", "dict-coverage", "dict-by", "dict-seed")  # besides the folder
Say = Callable[[str], None]


def prepare(
    study: StudyFile, place: Place, say: Say = lambda message: None, *, whole: StudyFile | None = None
) -> dict[str, Any]:
    """Make only text, tokenizer and encoded data of all languages. Return {"out", "data": folders}.

    whole: the study with all of its cells, if these are only some.
    """
    done = set()
    with Processes(place, place.threads or study.threads) as processes:
        for step in _begin(study, whole or study, place, processes, say):
            if step.cell is None or step.arguments[0] != "pretrain":
                continue
            # objectives with the same streams read the same data
            folder = data_folder(step.cell, study)
            streams = read_objective(text_of(step.cell.options.get("objective", "mlm"))).streams()
            kind = folder, streams, *(str(step.cell.options.get(key)) for key in _OF_ROWS)
            if kind not in done:
                done.add(kind)
                say(f"{folder}")
                name = folder.replace("/", "-")
                processes.call(replace(step, name=name, arguments=(*step.arguments, "--data-only")))
    folders = dict.fromkeys(str(place.out / data_folder(cell, study)) for cell in study.cells)
    return {"out": str(place.out), "data": list(folders)}


def run_study(
    study: StudyFile, place: Place, say: Say = lambda message: None, *, whole: StudyFile | None = None
) -> dict[str, Any]:
    """Run the steps that are not done yet, and return {"out", "cells", "report"}.

    study: the cells to run. whole: the study with all of its cells, if these are only some; then there is no report.
    Raise StoreError if finished cells do not fit the study, and DataError if cells failed. The others are finished, and
    in the report, all the same.
    """
    _check_tasks(study, place)
    with Processes(place, place.threads or study.threads) as processes:
        return _run(study, whole, place, processes, say)


def _run(study: StudyFile, whole: StudyFile | None, place: Place, processes: Processes, say: Say) -> dict[str, Any]:
    steps = _begin(study, whole or study, place, processes, say)
    chains: dict[str, list[PlannedCommand]] = {}
    for step in steps:
        if step.cell is not None:
            chains.setdefault(step.cell.name, []).append(step)
    left: dict[str, list[PlannedCommand]] = {}
    for name, chain in chains.items():  # each after those that it begins from
        cell = chain[0].cell
        assert cell is not None
        done = all(is_done(step, place) for step in chain) and not other_beginning(cell, place)
        if not done or any(need in left for need in cell.needs):
            left[name] = chain
    if len(left) < len(chains):
        say(f"{len(chains) - len(left)} of {len(chains)} cells are done already")
    failed, not_run = _run_chains(left, place, processes, say, place.workers or study.workers)
    names = [cell.name for cell in study.cells if cell.name not in failed | not_run]
    summary: dict[str, Any] = {"out": str(place.out), "cells": len(names), "report": None}
    if whole is None and names:
        say("report")
        processes.call(report_of([f"{RUNS}/{name}" for name in names] if failed else ["."]))
        summary["report"] = str(place.out / "report" / "index.html")
    if failed:
        for message in (*failed.values(), *not_run.values()):
            say(message)
        told = f"{len(failed)} of {len(chains)} cells failed: {', '.join(failed)}"
        if not_run:
            told += f"; {len(not_run)} that begin from them were not run: {', '.join(not_run)}"
        raise DataError(
            told,
            where=str(place.out),
            fix="the same command tries them again",
            id="cell",
        )
    return summary


def _run_chains(
    chains: dict[str, list[PlannedCommand]], place: Place, processes: Processes, say: Say, workers: int
) -> tuple[dict[str, str], dict[str, str]]:
    """Run the commands of each cell after the commands of the cells that it needs.

    Return the messages of the cells that failed, and of those that were not run, as a cell that they need was not done.
    """
    needs = {name: chain[0].cell.needs for name, chain in chains.items() if chain[0].cell is not None}
    waiting, running = dict.fromkeys(chains), dict[Future[str | None], str]()
    unfinished, failed, not_run = set(chains), dict[str, str](), dict[str, str]()
    with ThreadPoolExecutor(workers) as pool:
        try:
            while waiting or running:
                for name in list(waiting):
                    if len(running) == workers:
                        break
                    if lost := [need for need in needs[name] if need in failed or need in not_run]:
                        not_run[name] = f"{name} not run: needs {lost[0]}"
                        unfinished.discard(name)
                        del waiting[name]
                        say(f"{name} not run, {len(unfinished)} to go")
                    elif unfinished.isdisjoint(needs[name]):
                        running[pool.submit(_run_chain, chains[name], place, processes)] = name
                        del waiting[name]
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    name, message = running.pop(done), done.result()
                    unfinished.discard(name)
                    if message is not None:
                        failed[name] = message
                    if not processes.stopped:
                        say(f"{name} {'done' if message is None else 'failed'}, {len(unfinished)} to go")
        except BaseException:
            processes.stop()
            raise
    return {name: failed[name] for name in chains if name in failed}, not_run


def _run_chain(chain: list[PlannedCommand], place: Place, processes: Processes) -> str | None:
    """Run the commands of a cell that are not done yet. Return the message of one that failed."""
    cell = chain[0].cell
    assert cell is not None
    try:
        if told := other_beginning(cell, place):
            raise StoreError(told, where=str(place.out / RUNS / cell.name), id="other-run")
        for step in chain:
            if not is_done(step, place):
                processes.call(step)
                mark_done(step, place)
    except DerivlangError as error:
        return f"{error.what} ({error.where})"
    return None


def _begin(study: StudyFile, whole: StudyFile, place: Place, processes: Processes, say: Say) -> list[PlannedCommand]:
    """Make the text and the tokenizers that cells share, and return the plan. Raise StoreError if OUT does not fit."""
    steps = plan(study, place)
    with disk(place.out):
        place.out.mkdir(parents=True, exist_ok=True)
    with file_lock(place.out / TEXT):  # another process may run other cells of the study at the same time
        for folder in (place.out, place.out / TEXT, *(place.out / RUNS).glob("*")):
            sweep(folder)
        check_shared(study, steps, place)
        for step in plan(whole, place):
            check_fits(step, place)
        write_study(whole, place)
        if place.as_is:
            return steps
        if study.text:
            _text(study, place, say)
        for step in steps:
            if step.arguments[0] == "tokenizer" and not (place.out / step.name).exists():
                say(step.name)
                processes.call(step)
    return steps


def _check_tasks(study: StudyFile, place: Place) -> None:
    """Raise DataError for a task without data, before hours of training instead of after them."""
    for name in dict.fromkeys(name for cell in study.cells for name in tasks_in(cell.evaluation)):
        task = task_of(name)
        if isinstance(task, Task):
            sources = [_from_out(source, place) for source in task.sources]
            check_sources(task, [find(SourceRequest(source, place.data_dir)) for source in sources])
        elif isinstance(task, UntunedTask):
            task.find(SourceRequest(_from_out(task.source, place), place.data_dir))


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


def _text(study: StudyFile, place: Place, say: Say) -> None:
    folder = place.out / TEXT
    if is_joined(folder, labelled=study.labelled):
        return
    requests = []
    for name in study.text:
        if "/" not in name:
            requests.append(SourceRequest(name, place.data_dir))
            continue
        path = (place.data_dir or Path()) / name
        if not path.exists():
            raise DataError(
                f"the study's text {name} is missing",
                where="--data-dir" if place.data_dir is None else str(place.data_dir),
                fix="put novels there, one paragraph per line; the results depend on this text",
                id="missing-text",
            )
        requests.append(SourceRequest(str(path)))
    say("text")
    join(requests, folder, labelled=study.labelled)
