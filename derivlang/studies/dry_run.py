"""What a study would take: its commands with sizes, estimated time and disk. Nothing is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from derivlang.core.messages import first_names
from derivlang.studies.estimate import ACCELERATED, RATE, cost, is_narrow, shared_cost, total_seconds
from derivlang.studies.file import StudyFile
from derivlang.studies.plan import plan
from derivlang.studies.run import check_tasks, check_texts
from derivlang.studies.settings import Place


def dry_run(study: StudyFile, place: Place, rate: float | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Return {"out", "study", "cells", "workers", "steps", "seconds", "bytes", "tokens_per_second", "rate",
    "not_counted"}.

    steps: {"name", "command", "tokens", "seconds"} of each command. rate: training speed, sub-words per second, None to
    assume it; in the result, its origin. not_counted: sentences about what the estimate leaves out. say: called with
    what the hub is asked for. Raise what the run would refuse.
    """
    if study.place.endswith(".toml"):  # a shipped study is estimated before its corpora are there
        check_texts(study, place)
    if of_hub := check_tasks(study, place, dry=True):
        say(f"not on this machine, so the hub is asked for them: {first_names(of_hub)}")
    workers, narrow = place.workers or study.workers, all(is_narrow(cell) for cell in study.cells)
    speed = rate or (RATE if narrow else ACCELERATED)
    costs = {cell.name: cost(cell, speed) for cell in study.cells}
    shared = shared_cost(study, place)
    steps = []
    for step in plan(study, place):
        one = costs.get(step.cell.name) if step.cell else None
        pretrain = step.arguments[0] == "pretrain"
        if study.whole is None or step.arguments[0] != "report":
            took = 0.0 if one is None else one.pretraining if pretrain else one.evaluation
            tokens = (one.positions if one and pretrain else 0) or 0
            steps.append({"name": step.name, "command": step.command, "tokens": tokens, "seconds": took})
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
        "seconds": round(total_seconds(list(costs.values()), shared, workers)),
        "bytes": round(sum(one.bytes for one in costs.values()) + (shared[1] if shared else 0.0)),
        "tokens_per_second": speed,
        "rate": "as asked" if rate else "assumed",
        "not_counted": not_counted,
    }
