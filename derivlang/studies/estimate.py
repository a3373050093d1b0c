"""What studies take: positions, seconds and bytes of cells and of the data that they share; dry runs; the list of
shipped studies. Nothing is run.

The rates of `tiny` are measured on two cores, the rates of wide models are assumed for an accelerator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError
from derivlang.core.messages import first_names
from derivlang.core.settings import text_of
from derivlang.evaluation.finetune_settings import USUAL_REGIMES
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.registry import TASKS
from derivlang.lexical.bpe import SPECIAL_TOKENS
from derivlang.sources.find import find, is_of_hub
from derivlang.sources.request import SourceRequest
from derivlang.studies.cells import Cell, languages_of, tasks_in
from derivlang.studies.file import TEXT, StudyFile, read, scales, shipped
from derivlang.studies.plan import first_cells, model_of, needs_trees, plan, positions, vocabulary_size
from derivlang.studies.records import check_place, is_done
from derivlang.studies.run import check_tasks, check_texts
from derivlang.studies.settings import Place
from derivlang.training.config import ModelConfig

_PARSED = 19_000.0  # words per second that the bundled parser parses on one core
SHARED, _OF_BYTES = 80.0, 10.8e6  # seconds on one core for tokenizer, dictionaries and encoding, of WikiText-2's bytes
_LEAST = 3.0  # seconds of a small text
_WORD = 5.3  # bytes of a word of running text, with its space
# Bytes of encoded data for a byte of text, of WikiText-2 with 2,000 entries; more entries take less.
_ENCODED = 2.0
_RESULTS = 6e6  # bytes of a run besides weights: evaluation, tokenizers, log
_NARROW = 256  # width of a model below which costs are as for `tiny` on a CPU
# Number of examples in train, dev and test, and of sub-words in a row; other tasks are assumed to be like pos.
_SIZES = {"pos": (12_544, 2_001, 2_077, 22), "ner": (20_000, 10_000, 10_000, 14), "xnli": (392_702, 2_490, 5_010, 40)}
_DEMO = (76, 16, 23, 22)
RATE = 20_000.0  # sub-words per second of `tiny` on one core: 20 runs of 10,500 steps in 88 minutes, rounded down
_ACCELERATED = 1.1e6  # of a wide model on an accelerator
CORES = 2
OPEN = "Questions that the papers leave open"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a cell takes. positions: sub-words of pre-training with padding, None if only the data can show it."""

    positions: int | None
    pretraining: float
    evaluation: float
    bytes: float

    @property
    def seconds(self) -> float:
        return self.pretraining + self.evaluation


def is_narrow(cell: Cell) -> bool:
    """Return whether a cell's model is small enough for a CPU."""
    return ModelConfig.read(model_of(cell)).width < _NARROW


def cost(cell: Cell, rate: float) -> Cost:
    """Return the estimated cost of a cell. rate: training speed in sub-words per second."""
    # Seconds for a process to start, compile and save, where wide models are compiled; minimum seconds of a step of
    # fine-tuning, where an accelerator waits for kernel launches.
    start, step = (3.0, 0.004) if is_narrow(cell) else (50.0, 0.015)
    size = positions(cell)
    targets = sum(not one.text for one in languages_of(cell)[1:]) or 1  # each is evaluated on its own
    evaluation = start + targets * fine_tuning(cell.evaluation, rate, step) if cell.evaluation else 0.0
    return Cost(size, start + (size or 0) / rate, evaluation, _bytes(cell))


def shared_cost(study: StudyFile, place: Place) -> tuple[float, float] | None:
    """Return (seconds, bytes) of the data that cells share; None if a text is not here."""
    seconds = total = largest = 0.0
    parsed: set[tuple[str, ...]] = set()
    for cell in first_cells(study):
        names = dict.fromkeys(one.text for one in languages_of(cell) if one.text)
        sources = tuple(source for name in names for source in (study.text if name == TEXT else (name,)))
        sizes = [_text_size(name, place) for name in sources]
        size = sum(filter(None, sizes))
        if None in sizes:
            return None
        if needs_trees(cell) and sources not in parsed:
            parsed.add(sources)
            seconds += size / _WORD / _PARSED
        total += _ENCODED * size
        largest = max(largest, size)
    return seconds + max(_LEAST, SHARED * largest / _OF_BYTES), total


def _text_size(name: str, place: Place) -> int | None:
    """Return the bytes of the train split of a source on this machine; None if it is not here."""
    try:
        if is_of_hub(name, place.data_dir):
            return None
        path = Path(place.data_dir or "") / name
        corpus = find(SourceRequest(str(path) if path.exists() else name, data_dir=place.data_dir))
        return sum(part.path.stat().st_size for part in corpus.parts if part.split == corpus.splits[0])
    except (DerivlangError, OSError):
        return None


def fine_tuning(options: Mapping[str, Any], rate: float, a_step: float) -> float:
    """Return the estimated seconds of an evaluation's fine-tuning and tests. Tasks without fine-tuning count nothing.

    rate: training speed in sub-words per second. a_step: minimum seconds of a step.
    """
    asked = [name.partition(":") for name in tasks_in(options)]
    sizes = [(kind, _DEMO if which.startswith("demo") else _SIZES.get(kind, _SIZES["pos"])) for kind, _, which in asked]
    tasks = [(size, task_type) for kind, size in sizes if issubclass(task_type := TASKS.find(kind), Task)]

    def number(option: str, task: int, default: int) -> int:
        given = text_of(options.get(option, default)).split(",")
        return int(given[task % len(given)])

    regimes = text_of(options.get("regime", ",".join(USUAL_REGIMES))).split(",")  # cs has two rows for each example
    total = 0.0
    for i, ((train, dev, test, length), task) in enumerate(tasks):
        settings = task.defaults
        train, dev = min(train, number("train-examples", i, train)), min(dev, number("dev-examples", i, dev))
        epochs, batch = number("epochs", i, settings.epochs), number("batch-size", i, settings.batch_size)
        steps = epochs * -(-train // batch)
        tested = (epochs + 0.5) * dev + 1.5 * test  # dev after each epoch; ZS is tested on the source as well
        one = steps * max(a_step, batch * length / rate) + tested * length / (3 * rate)
        total += number("seeds", 0, 3) * sum(2 if regime == "cs" else 1 for regime in regimes) * one
    return total


def _bytes(cell: Cell) -> float:
    """The model and the checkpoints of a run, each with two moments for every weight, and its results."""
    size = 2 * vocabulary_size(cell) - len(SPECIAL_TOKENS)  # both languages share the special tokens
    weights = _weights(model_of(cell), size, tie=bool(cell.options.get("tie", True)))
    return 4.0 * weights * (1 + 3 * int(cell.options.get("keep", 2))) + _RESULTS


@cache  # to count them takes 50 ms, and cells share a model
def _weights(model: str, size: int, *, tie: bool) -> int:
    from derivlang.training.model import n_weights  # imported late: it loads torch

    return n_weights(ModelConfig.read(model), size, tie=tie)


def dry_run(study: StudyFile, place: Place, rate: float | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Return {"out", "study", "cells", "workers", "steps", "seconds", "bytes", "tokens_per_second", "rate",
    "not_counted"}.

    steps: {"name", "command", "tokens", "seconds", "done"} of each command; those that are done take no time. rate:
    training speed, sub-words per second, None to measure it; in the result, its origin. not_counted: sentences about
    what the estimate leaves out. say: called with what the hub is asked for. Raise what the run would refuse.
    """
    if study.place.endswith(".toml"):  # a shipped study is estimated before its corpora are there
        check_texts(study, place)
    if of_hub := check_tasks(study, place, dry=True):
        say(f"not on this machine, so the hub is asked for them: {first_names(of_hub)}")
    check_place(study, place)
    workers, narrow = place.workers or study.workers, all(is_narrow(cell) for cell in study.cells)
    speed, how = _rate(model_of(study.cells[0]), place.threads or study.threads, rate, narrow=narrow)
    costs = {cell.name: cost(cell, speed) for cell in study.cells}
    shared = shared_cost(study, place)
    steps: list[dict[str, Any]] = []
    for step in plan(study, place):
        one = costs.get(step.cell.name) if step.cell else None
        pretrain = step.arguments[0] == "pretrain"
        if study.whole is None or step.arguments[0] != "report":
            done = step.cell is not None and is_done(step, place)
            took = 0.0 if one is None or done else one.pretraining if pretrain else one.evaluation
            tokens = (one.positions if one and pretrain else 0) or 0
            steps.append({"name": step.name, "command": step.command, "tokens": tokens, "seconds": took,
                          "done": done})  # fmt: skip
    # What cells share is there once one of them is done.
    rest = 0.0 if shared is None or any(step["done"] for step in steps) else shared[0]
    not_counted = []
    if any(one.positions is None for one in costs.values()):
        not_counted.append("cells with --epochs are counted without their training, whose length follows from the data")
    if shared is None:
        not_counted.append("the text is not here: its tokenizer, parses and encoded data are not counted")
    return {
        "out": str(place.out),
        "study": study.name,
        "cells": len(costs),
        "workers": workers,
        "steps": steps,
        "seconds": round((sum(step["seconds"] for step in steps) + rest) / workers),
        "bytes": round(sum(one.bytes for one in costs.values()) + (shared[1] if shared else 0.0)),
        "tokens_per_second": speed,
        "rate": how,
        "not_counted": not_counted,
    }


def _rate(model: str, threads: int | None, asked: float | None, *, narrow: bool) -> tuple[float, str]:
    """Return the training speed in sub-words per second, and its origin: asked, assumed or measured.

    Wide models are not measured on a CPU, where a step takes minutes.
    """
    if asked is not None:
        return asked, "as asked"
    import torch

    from derivlang.training.plan import settings_of
    from derivlang.training.speed import made_up_run, steps_per_second

    cuda = torch.cuda.is_available()
    if not cuda and not narrow:
        return _ACCELERATED, "assumed: there is no accelerator here"
    settings, model_config, _ = settings_of(
        "made-up", {"model": model, "spec": "trans", "objective": "mlm", "threads": threads}
    )
    net, loader = made_up_run(settings, model_config, compile=cuda)
    steps = steps_per_second(net, loader, settings, seconds=2.0)
    return steps * settings.batch_size * settings.seq_len, "measured"


def listing() -> list[dict[str, Any]]:
    """Return a record of each shipped study, sorted by paper; studies without a paper come last.

    Each has paper, name, title, table, runs, scales, and seconds on two cores, None for a model that needs an
    accelerator.
    """
    found: list[dict[str, Any]] = []
    for name in shipped():
        study = read(name, check=False)
        narrow = all(map(is_narrow, study.cells))
        costs = [cost(cell, RATE) for cell in study.cells] if narrow else []
        found.append(
            {
                "paper": study.paper,
                "name": name,
                "title": study.title,
                "table": study.table,
                "runs": len(study.cells),
                "seconds": round((sum(one.seconds for one in costs) + SHARED) / CORES) if narrow else None,
                "scales": scales(name),
            }
        )
    return sorted(found, key=lambda one: (not one["paper"], one["paper"], one["name"]))


def lines_of(found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a listing for a person."""
    width, last = max(len(one["name"]) for one in found), None
    for one in found:
        if (paper := one["paper"] or OPEN) != last:
            yield paper if last is None else f"\n{paper}"
            last = paper
        told = f"{one['title']} ({one['table']})" if one["table"] else one["title"]
        took = f"{_duration(one['seconds']):>7}" if one["seconds"] else ""
        yield f"  {one['name']:<{width}}  {one['runs']:>3} runs {took}  {'/'.join(one['scales'])}  {told}"
    yield (
        f"\nRuns and times are of the first scale. Times are computed, not measured: on {CORES} cores, at {RATE:,.0f} "
        "sub-words per second each."
    )


def _duration(seconds: float) -> str:
    """5400 -> "1.5 h", 1500 -> "25 min"."""
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"
