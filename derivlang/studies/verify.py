"""Verify a study: study.json, and of each cell its run (evaluation/verify.py) and the records of what is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError, StoreError
from derivlang.evaluation.plan import STUDY, StudyPlan, read_plan
from derivlang.evaluation.results import EVALUATION
from derivlang.evaluation.verify import verify_run
from derivlang.store.listing import file_hash
from derivlang.store.record import check_types, read_record
from derivlang.studies.records import EVALUATED, PRETRAINED
from derivlang.training.run_folder import RUN


def verify_study(out: Path) -> dict[str, Any]:
    """Return what `verify_run` returns, for all cells of a study; `checked` has their number, too.

    A cell that has not been run, or is not finished, is a problem. Files are named by their path in the study. Raise
    StoreError if study.json is missing or damaged.
    """
    plan = planned(out)
    checked: dict[str, int] = {"cells": len(plan.cells), "files": 1, "checkpoints": 0, "evaluations": 0}
    problems: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for name in _names(plan):
        if not (out / name / RUN).is_file():
            problems.append({"file": name, "what": "the cell has not been run"})
            continue
        of_run = verify_run(out / name)
        for place, entries in ((problems, of_run["problems"]), (notes, of_run["notes"])):
            place += [{**entry, "file": f"{name}/{entry['file']}"} for entry in entries]
        checked = {key: n + of_run["checked"].get(key, 0) for key, n in checked.items()}
        problems += [{"file": f"{name}/{file}", "what": what} for file, what in _records(out / name)]
    return {"ok": not problems, "out": str(out), "checked": checked, "problems": problems, "notes": notes}


def planned(out: Path) -> StudyPlan:
    """Return the plan of a study. Raise StoreError if study.json is missing or damaged."""
    plan = read_plan(out)
    if plan is None:
        raise StoreError(f"is not a study: there is no {STUDY}", where=str(out), id="missing-file")
    return plan


def _names(plan: StudyPlan) -> list[str]:
    return [cell.relative_to(plan.folder).as_posix() for cell in plan.cells]


def _records(run: Path) -> list[tuple[str, str]]:
    """Return what is wrong with the records that a cell is done, by file."""
    records, kinds = {}, {"fingerprint": str, "weights": str, "evaluation": str}
    for name in (RUN, PRETRAINED, EVALUATED):
        try:
            records[name] = read_record(run / name, "record", lambda record: check_types(record, {}, kinds), id="run")
        except DerivlangError as error:
            if name == PRETRAINED or (name == EVALUATED and (run / name).exists()):
                missing = not (run / name).exists()
                return [(name, "is missing: the cell is not finished" if missing else error.what)]
    record = records.get(RUN, {})
    wrong = [
        (name, f"is of another run: {key} {told[key]}, and run.json has {record.get(key)}")
        for name, told in records.items()
        for key in ("fingerprint", "weights")
        if told.get(key) and told[key] != record.get(key)
    ]
    if hashed := records.get(EVALUATED, {}).get("evaluation"):
        scores = run / EVALUATION
        if not scores.is_file():
            wrong.append((EVALUATION, "is missing"))
        elif file_hash(scores) != hashed:
            wrong.append((EVALUATION, "was written by another command than the study's"))
    return wrong
