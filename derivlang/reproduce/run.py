"""Run a recipe: text, tokenizer, data, cells in parallel, report. The same command resumes an interrupted study.

    OUT/text  OUT/tokenizer  OUT/data/SPEC          made once, by the first cell that needs them
    OUT/runs/CELL                                   pretrain, then evaluate, as separate processes with a log each
    OUT/report                                      tables, figures, a page

Every step is a command of derivlang that also works when typed in OUT. `plan` lists the steps with sizes and estimated
seconds. Paths are relative to OUT, because a run records the path of its source. So a study can be moved, or its cells
distributed over machines.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, StoreError
from derivlang.evaluation.cell import RULES
from derivlang.evaluation.sets import parts_of
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.registry import task_of
from derivlang.formats.paths import is_path
from derivlang.reproduce.estimate import SHARED, START, STEP, fine_tuning
from derivlang.reproduce.recipes import PlannedRun, Recipe
from derivlang.reproduce.text import join
from derivlang.sources.find import SourceRequest, find
from derivlang.store.disk import file_lock
from derivlang.store.export import writing
from derivlang.store.record import read_record
from derivlang.training.config import ModelConfig
from derivlang.training.objectives.registry import read_objective

_TEXT, _TOKENIZER, _RUNS = "text", "tokenizer", "runs"
_RUNNING: list[subprocess.Popen[bytes]] = []  # running commands, terminated together with this process
_DONE = "evaluated.json"  # in a run's folder: run and options of a finished evaluation


@dataclass(frozen=True, slots=True)
class Place:
    """The paths and processes of a study. as_is: use encoded data made elsewhere."""

    out: Path
    data_dir: Path | None = None
    parses: Path | None = None
    workers: int | None = None
    threads: int | None = 1
    as_is: bool = False


@dataclass(frozen=True, slots=True)
class PlannedCommand:
    """A command of a study.

    cell: its cell, or None for a shared step. tokens, seconds: estimates. options: the recipe's options of an
    evaluation.
    """

    name: str
    arguments: tuple[str, ...]
    cell: PlannedRun | None = None
    tokens: int = 0
    seconds: float = 0.0
    options: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        return "derivlang " + " ".join(self.arguments)


def plan(recipe: Recipe, place: Place, rate: float | None = None) -> list[PlannedCommand]:
    """Return the steps of a study. rate: training speed in sub-words a second, for the estimates."""
    training = ModelConfig.read(recipe.model).training
    source = _TEXT if recipe.text else recipe.source
    model = str(Path(recipe.model).resolve()) if is_path(recipe.model, "file") else recipe.model
    where = () if place.data_dir is None else ("--data-dir", str(place.data_dir.resolve()))
    parses = ("--parses", "parses" if place.parses is None else str(place.parses.resolve()))
    threads = () if place.threads is None else ("--threads", str(place.threads))
    vocabulary = ("--vocab-size", str(training["vocab_size"]))
    steps = [PlannedCommand(_TOKENIZER, ("tokenizer", "train", source, *vocabulary, "-o", _TOKENIZER, *where))]
    for cell in _spread(recipe):
        run, n_steps = f"{_RUNS}/{cell.name}", cell.steps or recipe.steps
        pretrain = (
            "pretrain", "--source", source, "--t", cell.spec, "--objective", cell.objective, "--model", model,
            "--steps", str(n_steps), "--seed", str(cell.seed), "--tokenizer", _TOKENIZER,
            "--data", f"data/{_folder(cell.spec)}", *parses, *where, *recipe.pretrain, *cell.options, *threads,
            *(("--data-as-is",) if place.as_is else ()), "-o", run, "--resume",
        )  # fmt: skip
        tokens = _places(cell, recipe)
        seconds = tokens / rate + START[recipe.scale] if rate else 0.0
        steps.append(PlannedCommand(f"pretrain {cell.name}", pretrain, cell, tokens, seconds))
        if recipe.evaluate:
            evaluate = ("evaluate", run, *recipe.evaluate, *parses, *where, *threads)
            seconds = START[recipe.scale] + fine_tuning(recipe.evaluate, rate, STEP[recipe.scale]) if rate else 0.0
            steps.append(PlannedCommand(f"evaluate {cell.name}", evaluate, cell, 0, seconds, recipe.evaluate))
    runs = [f"{_RUNS}/{cell.name}" for cell in recipe.cells]
    steps.append(PlannedCommand("report", ("report", *runs, "-o", "report")))
    return steps


def estimate(recipe: Recipe, steps: Sequence[PlannedCommand], workers: int) -> float:
    """Return the estimated seconds of a whole study."""
    return (sum(step.seconds for step in steps) + SHARED[recipe.scale]) / workers


def prepare(recipe: Recipe, place: Place, say: Callable[[str], None] = lambda message: None) -> dict[str, Any]:
    """Make only text, tokenizer and encoded data of all languages. Return {"out", "data": folders}."""
    steps = _begin(recipe, place, say)
    done = set()
    for step in steps:
        if step.cell is None:
            continue
        # objectives with the same streams read the same data
        kind = step.cell.spec, read_objective(step.cell.objective).streams()
        if kind not in done:
            done.add(kind)
            say(f"data of {step.cell.spec}")
            _call(PlannedCommand(f"data {_folder(step.cell.spec)}", (*step.arguments, "--data-only")), place)
    folders = dict.fromkeys(str(place.out / "data" / _folder(cell.spec)) for cell in recipe.cells)
    return {"out": str(place.out), "data": list(folders)}


def reproduce(
    recipe: Recipe, place: Place, say: Callable[[str], None] = lambda message: None, *, report: bool = True
) -> dict[str, Any]:
    """Run the steps that are not done yet and return {"out", "cells", "report"}.

    report: False if these are only some of a study's cells. Raise DataError with the log of a failed step.
    """
    _check_tasks(recipe, place)
    steps = _begin(recipe, place, say)
    chains = [[s for s in steps if s.cell is cell] for cell in _spread(recipe)]
    failed: list[str] = []
    left, lock = [len(chains)], threading.Lock()

    def run(chain: list[PlannedCommand]) -> None:
        how = "done"
        try:
            for step in chain:
                if not _is_done(step, place):
                    _call(step, place)
                    _mark(step, place)
        except DataError as error:
            failed.append(str(error))
            how = "failed"
        with lock:
            left[0] -= 1
            say(f"{chain[0].cell.name if chain[0].cell else ''} {how}, {left[0]} to go")

    workers = place.workers or recipe.workers
    with ThreadPoolExecutor(workers) as pool:
        try:
            list(pool.map(run, chains))
        except BaseException:
            for process in _RUNNING:
                process.terminate()
            raise
    if failed:
        raise DataError(f"{len(failed)} of {len(chains)} cells failed: {failed[0]}", id="cell")
    found: dict[str, Any] = {"out": str(place.out), "cells": len(chains), "report": None}
    if report:
        say("report")
        _call(steps[-1], place)
        found["report"] = str(place.out / "report" / "index.html")
    return found


def _begin(recipe: Recipe, place: Place, say: Callable[[str], None]) -> list[PlannedCommand]:
    """Make the text and the tokenizer that all cells share, and return the plan."""
    steps = plan(recipe, place)
    place.out.mkdir(parents=True, exist_ok=True)
    if place.as_is:
        return steps
    with file_lock(place.out / _TEXT):  # another process may run other cells of the study at the same time
        if recipe.text:
            _text(recipe, place, say)
        if not (place.out / _TOKENIZER).exists():
            say("tokenizer")
            _call(steps[0], place)
    return steps


def _check_tasks(recipe: Recipe, place: Place) -> None:
    """Raise DataError for a task without data, before hours of training instead of after them."""
    asked = recipe.evaluate[recipe.evaluate.index("--task") + 1] if recipe.evaluate else "none"
    for name in (name for name in asked.split(",") if name != "none"):
        task = task_of(name)
        assert isinstance(task, Task)  # a recipe names tasks that are fine-tuned
        parts_of(task, [find(SourceRequest(source, place.data_dir)) for source in task.sources])


def _spread(recipe: Recipe) -> list[PlannedRun]:
    """Return the cells in the order of their start.

    The first cell of each language comes first, as it encodes the data that the others need. Longer cells follow before
    shorter ones, so that workers finish at about the same time.
    """
    first = list({cell.spec: cell for cell in reversed(recipe.cells)}.values())[::-1]
    others = [cell for cell in recipe.cells if cell not in first]
    return [*first, *sorted(others, key=lambda cell: -_places(cell, recipe))]


def _places(cell: PlannedRun, recipe: Recipe) -> int:
    """Return the number of sub-words, with padding, that a cell is trained on."""
    training = ModelConfig.read(recipe.model).training
    streams = read_objective(cell.objective).streams()
    places = (cell.steps or recipe.steps) * training["batch_size"] * training["seq_len"]
    return round(float(places) * sum(stream.share / stream.every for stream in streams))


def _text(recipe: Recipe, place: Place, say: Callable[[str], None]) -> None:
    folder = place.out / _TEXT
    if (folder / "train.tokens").exists():
        return
    requests = []
    for name in recipe.text:
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


def _folder(spec: str) -> str:
    return spec.replace(",", "-").replace(":", "-")


def _is_done(step: PlannedCommand, place: Place) -> bool:
    """Return whether a step is done, by its files; starting its command to find out would take longer."""
    if step.cell is None:
        return False
    folder = place.out / _RUNS / step.cell.name
    if step.arguments[0] == "evaluate":
        return _json(folder / _DONE) == _evaluated(step, folder)
    record = _json(folder / "run.json")
    return record.get("status") == "done" and str(record.get("steps")) == _value(step, "--steps")


def _mark(step: PlannedCommand, place: Place) -> None:
    """Record that an evaluation is done, with its run and options. `pretrain --force` removes the record."""
    if step.cell is not None and step.arguments[0] == "evaluate":
        folder = place.out / _RUNS / step.cell.name
        with writing(folder / _DONE) as file:
            file.write((json.dumps(_evaluated(step, folder), indent=1) + "\n").encode())


def _evaluated(step: PlannedCommand, folder: Path) -> dict[str, Any]:
    """Return what an evaluation depends on, except its data: rules, run and options."""
    record = _json(folder / "run.json")
    run = {name: record.get(name) for name in ("fingerprint", "weights")}
    return {"rules": RULES, **run, "options": list(step.options)}


def _value(step: PlannedCommand, option: str) -> str:
    return step.arguments[step.arguments.index(option) + 1]


def _json(path: Path) -> dict[str, Any]:
    try:
        return read_record(path, "record", id="run")
    except StoreError:
        return {}


def _call(step: PlannedCommand, place: Place) -> None:
    """Run a command with its output in OUT/logs. Raise DataError with its last lines if it fails."""
    logs = place.out / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{step.name.replace(' ', '-').replace('/', '-')}.log"
    environment = dict(os.environ)
    if "DERIVLANG_DATA" in environment:
        environment["DERIVLANG_DATA"] = str(Path(environment["DERIVLANG_DATA"]).resolve())
    if place.threads is not None:
        environment |= {"OMP_NUM_THREADS": str(place.threads), "OPENBLAS_NUM_THREADS": str(place.threads)}
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "derivlang", *step.arguments],
            stdout=file, stderr=subprocess.STDOUT, env=environment, cwd=place.out,
        )  # fmt: skip
        _RUNNING.append(process)
        try:
            process.wait()
        finally:
            _RUNNING.remove(process)
    if process.returncode:
        words = log.read_text("utf-8").strip().splitlines()[-3:]
        raise DataError(f"{step.name}: {' '.join(words)}", where=str(log), fix="run the same command again", id="step")
