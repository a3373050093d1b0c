"""What a study's folder says is done, and whether it fits the study: no command has to be started to find out.

OUT/study.json                the factors, the report's choices, and the cells with their levels, for the report
OUT/runs/CELL/pretrained.json, evaluated.json
                              that a command of a cell was finished: its options, and the run that it made or read
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.evaluation.cell import RULES
from derivlang.evaluation.report.plan import FORMAT, STUDY
from derivlang.store.export import writing
from derivlang.store.record import check_types, read_record, record_text
from derivlang.study.begins import RUNS
from derivlang.study.cells import Cell
from derivlang.study.file import TEXT, Study
from derivlang.study.plan import Place, PlannedCommand, plan

PRETRAINED, EVALUATED = "pretrained.json", "evaluated.json"  # in a run's folder


def write_study(study: Study, place: Place) -> None:
    """Write study.json."""
    _write(place.out / STUDY, _record(study, place))


def is_done(step: PlannedCommand, place: Place) -> bool:
    """Return whether a cell's step is done, by its record; starting its command to find out would take longer."""
    assert step.cell is not None
    run = place.out / RUNS / step.cell.name
    if step.arguments[0] == "evaluate":
        return _json(run / EVALUATED) == _finished(step, run)
    return _json(run / "run.json").get("status") == "done" and _json(run / PRETRAINED) == _finished(step, run)


def mark_done(step: PlannedCommand, place: Place) -> None:
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


def other_beginning(cell: Cell, place: Place) -> str:
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


def check_shared(study: Study, steps: Sequence[PlannedCommand], place: Place) -> None:
    """Raise StoreError if OUT holds the text or a tokenizer of another study."""
    before = _json(place.out / STUDY)
    fix = "give another -o"
    text, joined = list(study.text), before.get("text")
    if text and (place.out / TEXT).exists() and joined is not None and joined != text:
        raise StoreError(
            f"was joined from {', '.join(joined) or 'nothing'}, and the study has {', '.join(text)}",
            where=str(place.out / TEXT), fix=fix, id="other-study",
        )  # fmt: skip
    for step in steps:
        earlier = (before.get("tokenizers") or {}).get(step.name)
        if earlier is not None and earlier != step.facts and (place.out / step.name).exists():
            where = str(place.out / step.name)
            raise StoreError(
                f"was trained with {_difference(earlier, step.facts)}", where=where, fix=fix, id="other-study"
            )


def check_fits(step: PlannedCommand, place: Place) -> None:
    """Raise StoreError if a finished run of a cell had other options than the study gives it."""
    if step.cell is None or step.arguments[0] != "pretrain":
        return
    run = place.out / RUNS / step.cell.name
    record, done = _json(run / "run.json"), _json(run / PRETRAINED)
    if done and done.get("fingerprint") == record.get("fingerprint") and done.get("options") != step.facts:
        raise StoreError(
            f"was trained with {_difference(done.get('options') or {}, step.facts)}",
            where=str(run),
            fix="give another -o, or remove this folder to train it again",
            id="other-study",
        )


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Return the first option that differs, as in `warmup = 0.1, and the study gives 0.2`."""
    name = next(name for name in [*before, *now] if before.get(name) != now.get(name))
    was, given = (f"{json.dumps(some[name])}" if name in some else "no value" for some in (before, now))
    return f"{name} = {was}, and the study gives {given}"


def _write(path: Path, record: dict[str, Any]) -> None:
    with writing(path) as file:
        file.write(record_text(record).encode())


def _json(path: Path) -> dict[str, Any]:
    """Return a record, or {} if it is missing or damaged: then its step runs again, and says what is wrong."""
    try:
        return read_record(path, "record", _check, id="run")
    except StoreError:
        return {}


def _check(record: dict[str, Any]) -> None:
    """Raise ValueError if a field that is read here has another type."""
    check_types(record, {}, {"init": dict, "options": dict, "text": list, "tokenizers": dict})
    check_types(record.get("init") or {}, {}, {"weights": str, "embeddings": str}, where="init.")
    tokenizers = record.get("tokenizers") or {}
    check_types(tokenizers, dict.fromkeys(tokenizers, dict), where="tokenizers.")
    texts = {str(place): text for place, text in enumerate(record.get("text") or ())}
    check_types(texts, dict.fromkeys(texts, str), where="text.")
