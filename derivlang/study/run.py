"""Run a study: text, tokenizer, data, cells in parallel, report. The same command resumes an interrupted study.

Each cell is a chain of processes with a log each, in OUT/logs. A cell that fails does not end the others, but those
that begin from its run are not run. A finished cell is known by its record, RUN/pretrained.json, with its options: a
study whose file has changed so that a finished cell no longer fits is refused before anything runs.

    OUT/study.json     the factors, the report's choices, and the cells with their levels, for the report
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, DerivlangError, StoreError
from derivlang.evaluation.cell import RULES
from derivlang.evaluation.report.plan import FORMAT, STUDY
from derivlang.evaluation.sets import parts_of
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.registry import task_of
from derivlang.evaluation.tasks.untuned import UntunedTask
from derivlang.sources.find import SourceRequest, find
from derivlang.store.disk import disk, file_lock
from derivlang.store.export import writing
from derivlang.store.record import read_record
from derivlang.study.begins import RUNS
from derivlang.study.cells import Cell
from derivlang.study.commands import text_of
from derivlang.study.file import TEXT, Study
from derivlang.study.plan import Place, PlannedCommand, data_folder, plan, report_of
from derivlang.study.text import join
from derivlang.training.objectives.registry import read_objective

PRETRAINED, EVALUATED = "pretrained.json", "evaluated.json"  # in a run's folder: what was finished, with its options
_OF_ROWS = ("model", "packing", "seq-len", "pair-length", "dict-coverage", "dict-by", "dict-seed")  # besides the folder
Say = Callable[[str], None]


class Processes:
    """Running commands, which `stop` terminates."""

    def __init__(self, place: Place, threads: int | None):
        self._place, self._threads = place, threads
        self._running: list[subprocess.Popen[bytes]] = []
        self._lock, self.stopped = threading.Lock(), False

    def call(self, step: PlannedCommand) -> None:
        """Run a command with its output in OUT/logs. Raise DataError with its last lines if it fails."""
        log = self._place.out / "logs" / f"{step.name.replace(' ', '-').replace('/', '-')}.log"
        environment = dict(os.environ)
        if "DERIVLANG_DATA" in environment:
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
                    [sys.executable, "-m", "derivlang", *step.arguments],
                    stdout=file, stderr=subprocess.STDOUT, env=environment, cwd=self._place.out,
                )  # fmt: skip
                self._running.append(process)
            process.wait()
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


def prepare(
    study: Study, place: Place, say: Say = lambda message: None, *, whole: Study | None = None
) -> dict[str, Any]:
    """Make only text, tokenizer and encoded data of all languages. Return {"out", "data": folders}.

    whole: the study with all of its cells, if these are only some.
    """
    processes = Processes(place, place.threads or study.threads)
    steps = _begin(study, whole or study, place, processes, say)
    done = set()
    for step in steps:
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
            processes.call(PlannedCommand(name, (*step.arguments, "--data-only")))
    folders = dict.fromkeys(str(place.out / data_folder(cell, study)) for cell in study.cells)
    return {"out": str(place.out), "data": list(folders)}


def run_study(
    study: Study, place: Place, say: Say = lambda message: None, *, whole: Study | None = None
) -> dict[str, Any]:
    """Run the steps that are not done yet, and return {"out", "cells", "report"}.

    study: the cells to run. whole: the study with all of its cells, if these are only some; then there is no report.
    Raise StoreError if finished cells do not fit the study, and DataError if cells failed. The others are finished, and
    in the report, all the same.
    """
    _check_tasks(study, place)
    processes = Processes(place, place.threads or study.threads)
    steps = _begin(study, whole or study, place, processes, say)
    chains: dict[str, list[PlannedCommand]] = {}
    for step in steps:
        if step.cell is not None:
            chains.setdefault(step.cell.name, []).append(step)
    left: dict[str, list[PlannedCommand]] = {}
    for name, chain in chains.items():  # each after those that it begins from
        cell = chain[0].cell
        assert cell is not None
        done = all(_is_done(step, place) for step in chain) and not _other_beginning(cell, place)
        if not done or any(need in left for need in cell.needs):
            left[name] = chain
    if len(left) < len(chains):
        say(f"{len(chains) - len(left)} of {len(chains)} cells are done already")
    failed, not_run = _run_chains(left, place, processes, say, place.workers or study.workers)
    names = [cell.name for cell in study.cells if cell.name not in failed | not_run]
    found: dict[str, Any] = {"out": str(place.out), "cells": len(names), "report": None}
    if whole is None and names:
        say("report")
        processes.call(report_of([f"{RUNS}/{name}" for name in names] if failed else ["."]))
        found["report"] = str(place.out / "report" / "index.html")
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
    return found


def _run_chains(
    chains: dict[str, list[PlannedCommand]], place: Place, processes: Processes, say: Say, workers: int
) -> tuple[dict[str, str], dict[str, str]]:
    """Run the commands of each cell after those of the cells that it needs.

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
        if told := _other_beginning(cell, place):
            raise StoreError(told, where=str(place.out / RUNS / cell.name), id="other-run")
        for step in chain:
            if not _is_done(step, place):
                processes.call(step)
                _mark(step, place)
    except DerivlangError as error:
        return f"{error.what} ({error.where})"
    return None


def _other_beginning(cell: Cell, place: Place) -> str:
    """Return what is wrong if a run began with other weights than the run that it needs has now, else ""."""
    began = _json(place.out / RUNS / cell.name / "run.json").get("init") or {}
    for key, fact in (("init", "weights"), ("embeddings", "embeddings")):
        run = str(cell.options.get(key, "")).removeprefix("from=")
        if run.removeprefix(f"{RUNS}/") not in cell.needs:  # or a checkpoint, which may be gone
            continue
        now = _json(place.out / run / "run.json").get("weights")
        if now and began.get(fact, now) != now:
            return f"{cell.name} began with other weights than {run} has now; remove its folder to train it again"
    return ""


def _begin(study: Study, whole: Study, place: Place, processes: Processes, say: Say) -> list[PlannedCommand]:
    """Make the text and the tokenizers that cells share, and return the plan. Raise StoreError if OUT does not fit."""
    steps = plan(study, place)
    with disk(place.out):
        place.out.mkdir(parents=True, exist_ok=True)
    with file_lock(place.out / TEXT):  # another process may run other cells of the study at the same time
        _check_shared(study, steps, place)
        for step in plan(whole, place):
            _check_fits(step, place)
        _write(place.out / STUDY, _record(whole, place))
        if place.as_is:
            return steps
        if study.text:
            _text(study, place, say)
        for step in steps:
            if step.arguments[0] == "tokenizer" and not (place.out / step.name).exists():
                say(step.name)
                processes.call(step)
    return steps


def _record(study: Study, place: Place) -> dict[str, Any]:
    """Return what study.json holds."""
    shared = {step.name: step.facts for step in plan(study, place) if step.arguments[0] == "tokenizer"}
    return {
        "format": FORMAT,
        "study": study.name,
        "text": list(study.text),
        "tokenizers": shared,
        "factors": {name: list(levels) for name, levels in study.factors.items()},
        "report": dict(study.report),
        "cells": [{"name": cell.name, "run": f"{RUNS}/{cell.name}", "factors": cell.levels} for cell in study.cells],
    }


def _check_shared(study: Study, steps: Sequence[PlannedCommand], place: Place) -> None:
    """Raise StoreError if OUT holds the text or a tokenizer of another study."""
    before = _json(place.out / STUDY)
    fix = "give another -o"
    if study.text and (place.out / TEXT).exists() and before.get("text", list(study.text)) != list(study.text):
        raise StoreError(
            f"was joined from {', '.join(before['text']) or 'nothing'}, and the study has {', '.join(study.text)}",
            where=str(place.out / TEXT), fix=fix, id="other-study",
        )  # fmt: skip
    for step in steps:
        earlier = before.get("tokenizers", {}).get(step.name)
        if earlier is not None and earlier != step.facts and (place.out / step.name).exists():
            where = str(place.out / step.name)
            raise StoreError(
                f"was trained with {_difference(earlier, step.facts)}", where=where, fix=fix, id="other-study"
            )


def _check_fits(step: PlannedCommand, place: Place) -> None:
    """Raise StoreError if a finished run of a cell had other options than the study gives it."""
    if step.cell is None or step.arguments[0] != "pretrain":
        return
    run = place.out / RUNS / step.cell.name
    record, done = _json(run / "run.json"), _json(run / PRETRAINED)
    if done and done.get("fingerprint") == record.get("fingerprint") and done.get("options") != step.facts:
        raise StoreError(
            f"was trained with {_difference(done['options'], step.facts)}",
            where=str(run),
            fix="give another -o, or remove this folder to train it again",
            id="other-study",
        )


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Return the first option that differs, as in `warmup = 0.1, and the study gives 0.2`."""
    name = next(name for name in [*before, *now] if before.get(name) != now.get(name))
    was, given = (f"{json.dumps(some[name])}" if name in some else "no value" for some in (before, now))
    return f"{name} = {was}, and the study gives {given}"


def _check_tasks(study: Study, place: Place) -> None:
    """Raise DataError for a task without data, before hours of training instead of after them."""
    asked = dict.fromkeys(name for cell in study.cells for name in str(cell.evaluation.get("task", "none")).split(","))
    for name in (name for name in asked if name != "none"):
        task = task_of(name)
        if isinstance(task, Task):
            parts_of(task, [find(SourceRequest(source, place.data_dir)) for source in task.sources])
        elif isinstance(task, UntunedTask):
            find(SourceRequest(task.source, place.data_dir, texts=task.texts))


def _text(study: Study, place: Place, say: Say) -> None:
    folder = place.out / TEXT
    if (folder / "train.tokens").exists():
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
                fix="put novels there, one paragraph a line; the results depend on this text",
                id="missing-text",
            )
        requests.append(SourceRequest(str(path)))
    say("text")
    join(requests, folder)


def _is_done(step: PlannedCommand, place: Place) -> bool:
    """Return whether a cell's step is done, by its record; starting its command to find out would take longer."""
    assert step.cell is not None
    run = place.out / RUNS / step.cell.name
    if step.arguments[0] == "evaluate":
        return _json(run / EVALUATED) == _finished(step, run)
    return _json(run / "run.json").get("status") == "done" and _json(run / PRETRAINED) == _finished(step, run)


def _mark(step: PlannedCommand, place: Place) -> None:
    """Record that a cell's step is done. `pretrain --force` removes the record."""
    assert step.cell is not None
    run = place.out / RUNS / step.cell.name
    _write(run / (EVALUATED if step.arguments[0] == "evaluate" else PRETRAINED), _finished(step, run))


def _finished(step: PlannedCommand, run: Path) -> dict[str, Any]:
    """Return what the record of a finished step holds: the run, and the options."""
    record = _json(run / "run.json")
    if step.arguments[0] == "pretrain":
        return {"fingerprint": record.get("fingerprint"), "options": step.facts}
    return {"rules": RULES, **{name: record.get(name) for name in ("fingerprint", "weights")}, "options": step.facts}


def _write(path: Path, record: dict[str, Any]) -> None:
    with writing(path) as file:
        file.write((json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode())


def _json(path: Path) -> dict[str, Any]:
    try:
        return read_record(path, "record", id="run")
    except StoreError:
        return {}
