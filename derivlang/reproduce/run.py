"""From a recipe to a report: text, tokenizer, data, cells side by side, the report. The same command goes on.

    OUT/text  OUT/tokenizer  OUT/data/SPEC          once, by the first cell that needs them
    OUT/runs/CELL                                   pretrain, then evaluate: processes of their own, with their log
    OUT/report                                      tables, figures, a page

Every step is a command of derivlang that could be typed; `plan` lists them with sizes and estimated seconds.
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

from derivlang.core.errors import DataError
from derivlang.reproduce.recipes import Cell, Recipe
from derivlang.reproduce.text import join
from derivlang.sources.find import Request
from derivlang.training.model import Design

# Seconds that an evaluation takes beside training, as a share of a cell; from runs of `tiny`.
_EVALUATION = 0.35
_FIXED = 60.0  # tokenizer, parses and report


@dataclass(frozen=True, slots=True)
class Place:
    """Where a study reads and writes, and on how many processes."""

    out: Path
    data_dir: Path | None = None
    parses: Path | None = None
    workers: int | None = None
    threads: int | None = 1


@dataclass(frozen=True, slots=True)
class Step:
    """A command. cell: whose, or None for what all share. tokens, seconds: expected."""

    name: str
    arguments: tuple[str, ...]
    cell: Cell | None = None
    tokens: int = 0
    seconds: float = 0.0

    @property
    def command(self) -> str:
        return "derivlang " + " ".join(self.arguments)


def plan(recipe: Recipe, place: Place, rate: float | None = None) -> list[Step]:
    """The steps of a study. rate: sub-words a second of training, for the estimates."""
    design = Design.read(recipe.model)
    training = design.training
    out, source = place.out, _source(recipe, place)
    where = () if place.data_dir is None else ("--data-dir", str(place.data_dir))
    parses = ("--parses", str(place.parses or out / "parses"))
    tokenizer = out / "tokenizer"
    steps = [
        Step("tokenizer", ("tokenizer", "train", source, "--vocab-size", str(training["vocab_size"]),
                           "-o", str(tokenizer), *where)),
    ]  # fmt: skip

    def steps_of(cell: Cell) -> int:
        return cell.steps or recipe.steps

    def pretrain(cell: Cell, folder: Path) -> tuple[str, ...]:
        return (
            "pretrain", "--source", source, "--t", cell.spec, "--objective", cell.objective, "--model", recipe.model,
            "--steps", str(steps_of(cell)), "--seed", str(cell.seed), "--tokenizer", str(tokenizer),
            "--data", str(out / "data" / _folder(cell.spec)), *parses, *where, *recipe.pretrain, *cell.options,
            *_threads(place), "-o", str(folder),
        )  # fmt: skip

    a_step = training["batch_size"] * training["seq_len"]
    for cell in _spread(recipe.cells):
        run = out / "runs" / cell.name
        tokens = steps_of(cell) * a_step
        seconds = tokens / rate if rate else 0.0
        steps.append(Step(f"pretrain {cell.name}", (*pretrain(cell, run), "--resume"), cell, tokens, seconds))
        if recipe.evaluate:
            evaluate = ("evaluate", str(run), *recipe.evaluate, *parses, *where, *_threads(place))
            steps.append(Step(f"evaluate {cell.name}", evaluate, cell, 0, seconds * _EVALUATION))
    runs = [str(out / "runs" / cell.name) for cell in recipe.cells]
    steps.append(Step("report", ("report", *runs, "-o", str(out / "report"))))
    return steps


def estimate(steps: Sequence[Step], workers: int) -> float:
    """Seconds of a whole study, from those of its steps."""
    return sum(step.seconds for step in steps) / workers + _FIXED


def reproduce(recipe: Recipe, place: Place, say: Callable[[str], None] = lambda message: None) -> dict[str, Any]:
    """Run what is not done yet; {"out", "cells", "report", "seconds"}. DataError names the log of what failed."""
    steps = plan(recipe, place)
    place.out.mkdir(parents=True, exist_ok=True)
    if recipe.text:
        _text(recipe, place, say)
    if not (place.out / "tokenizer").exists():
        say("tokenizer")
        _call(steps[0], place)
    chains = [[s for s in steps if s.cell is cell] for cell in _spread(recipe.cells)]
    failed: list[str] = []
    left, lock = [len(chains)], threading.Lock()

    def run(chain: list[Step]) -> None:
        try:
            for step in chain:
                if not _is_done(step, place, recipe):
                    _call(step, place)
        except DataError as error:
            failed.append(str(error))
        with lock:
            left[0] -= 1
            say(f"{chain[0].cell.name if chain[0].cell else ''} done, {left[0]} to go")

    workers = place.workers or recipe.workers
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(run, chains))
    if failed:
        raise DataError(f"{len(failed)} of {len(chains)} cells failed: {failed[0]}", id="cell")
    say("report")
    _call(steps[-1], place)
    return {"out": str(place.out), "cells": len(chains), "report": str(place.out / "report" / "index.html")}


def _spread(cells: tuple[Cell, ...]) -> list[Cell]:
    """The first cell of each language first: it encodes the language's data, for which the others would wait."""
    first = list({cell.spec: cell for cell in reversed(cells)}.values())[::-1]
    return [*first, *(cell for cell in cells if cell not in first)]


def _text(recipe: Recipe, place: Place, say: Callable[[str], None]) -> None:
    folder = place.out / "text"
    if (folder / "train.tokens").exists():
        return
    say("text")
    requests = []
    for name in recipe.text:
        path = None if place.data_dir is None else place.data_dir / name
        if path is not None and path.exists():
            requests.append(Request(str(path)))
        elif "/" not in name:
            requests.append(Request(name, place.data_dir))
    join(requests, folder)


def _source(recipe: Recipe, place: Place) -> str:
    return str(place.out / "text") if recipe.text else recipe.source


def _threads(place: Place) -> tuple[str, ...]:
    return () if place.threads is None else ("--threads", str(place.threads))


def _folder(spec: str) -> str:
    return spec.replace(",", "-").replace(":", "-")


def _is_done(step: Step, place: Place, recipe: Recipe) -> bool:
    """Known without starting a process; `evaluate` itself knows what it has done."""
    if step.cell is None or not step.name.startswith("pretrain"):
        return False
    record = _json(place.out / "runs" / step.cell.name / "run.json")
    return record.get("status") == "done" and record.get("steps") == (step.cell.steps or recipe.steps)


def _json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def _call(step: Step, place: Place) -> None:
    """Run a command; what it says goes to OUT/logs. DataError with its last words where it fails."""
    logs = place.out / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{step.name.replace(' ', '-').replace('/', '-')}.log"
    environment = dict(os.environ)
    if place.threads is not None:
        environment |= {"OMP_NUM_THREADS": str(place.threads), "OPENBLAS_NUM_THREADS": str(place.threads)}
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(
            [sys.executable, "-m", "derivlang", *step.arguments],
            stdout=file, stderr=subprocess.STDOUT, env=environment, check=False,
        )  # fmt: skip
    if done.returncode:
        words = log.read_text("utf-8").strip().splitlines()[-3:]
        raise DataError(f"{step.name}: {' '.join(words)}", where=str(log), fix="run the same command again", id="step")
