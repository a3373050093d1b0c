"""Read run folders for the report.

A run without an evaluation is listed with empty cells. Any file that is unreadable, or not the one that was written, is
an error, because skipping it would silently select runs. Missing files are none if the report does not need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.messages import counted, warn
from derivlang.evaluation.report.checks import check_evaluation, check_facts
from derivlang.evaluation.report.plan import STUDY, StudyPlan, levels_of, read_plan
from derivlang.evaluation.report.runs import AGAIN, COUNTS, EVALUATION, RUN, Run, place_of, shown
from derivlang.store.record import read_record
from derivlang.training.checkpoint import MODEL
from derivlang.training.run_files import AGAIN as AGAIN_MODEL
from derivlang.training.run_files import check_files, has_hashes, has_last_checkpoint, lacks_model

_RERUN = "leave this run out, restore the file, or make the run again"
_ANY_STEP = "remove this file, or evaluate again: derivlang evaluate RUN --every-checkpoint"


def read_runs(folders: Iterable[Path], warn: Callable[[str], None] = warn) -> list[Run]:
    """Read the runs in these folders, in this order, each folder once.

    A folder of run folders stands for all of them, and the folder of a study for its cells that have been run. warn:
    called once if runs cannot be checked, as they are of an earlier version, and once if finished runs have no model.
    Raise UsageError if there is no run, StoreError for a folder without a run and for damaged files.
    """
    found: dict[Path, Path] = {}
    for folder in folders:
        for run in _find(folder):
            found.setdefault(run.resolve(), run)
    if not found:
        raise UsageError("there are no runs to report", where="RUNS", fix="give run folders", id="no-runs")
    plans = {above: read_plan(above) for above in {_above(run) for run in found.values()}}
    runs = [_read(run, f"R{number}", plans[_above(run)]) for number, run in enumerate(found.values(), 1)]
    _warn_of(runs, warn)
    return runs


def _warn_of(runs: Sequence[Run], warn: Callable[[str], None]) -> None:
    """Warn of runs that cannot be checked, and of finished ones whose model is missing and can be written again."""
    records = ((run, record) for run in runs for record in (run.facts, run.evaluation) if record is not None)
    early = dict.fromkeys(str(run.folder) for run, record in records if not has_hashes(record))
    if early:
        told = "cannot be checked, as an earlier version wrote files without hashes"
        warn(f"{counted(len(early), 'run')} {told}: {_some(list(early))}")
    without = [run for run in runs if lacks_model(run.folder, run.facts)]
    if again := [str(run.folder) for run in without if has_last_checkpoint(run.folder, run.facts)]:
        warn(f"{MODEL}/ is missing in {_some(again)}; {AGAIN_MODEL}")


def _some(names: Sequence[str]) -> str:
    """Return the first names of a list, and the number of the others."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _find(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise StoreError("there is no such folder", where=str(folder), id="missing-folder")
    if (folder / RUN).exists():
        return [folder]
    if plan := read_plan(folder):
        inside = [folder / cell.relative_to(plan.folder) for cell in plan.cells if (cell / RUN).exists()]
        if not inside:
            raise UsageError(f"no cell of the study has been run: {STUDY} alone", where=str(folder), id="no-runs")
        return inside
    inside = sorted(path.parent for path in folder.glob(f"*/{RUN}"))
    if not inside:
        raise StoreError(
            f"not a run: there is no {RUN}, here or in its subfolders",
            where=str(folder),
            fix="make one: derivlang pretrain … -o RUN",
            id="not-a-run",
        )
    return inside


def _above(run: Path) -> Path:
    """Return the folder that may be the study's: OUT of OUT/runs/CELL."""
    return place_of(run).parent.parent


def _read(folder: Path, id: str, plan: StudyPlan | None) -> Run:
    facts = read_record(folder / RUN, RUN, check_facts, id="run", fix=_RERUN)
    check_files(folder, facts, missing=False, warn=None)
    levels = None if plan is None else plan.cells.get(place_of(folder))
    if levels is None:
        plan = None
    elif facts.get("factors") and levels_of(facts["factors"]) != levels:
        raise StoreError(f"has other factors than {STUDY} of its study", where=str(folder), fix=_RERUN, id="run")
    path = folder / EVALUATION
    if not path.exists():
        return Run(id, folder, facts, None, plan, _checkpoints(id, folder, facts))
    evaluation = read_record(path, EVALUATION, check_evaluation, id="run", fix=AGAIN)
    signature = evaluation["signature"]
    told, made = ((one.get("weights"), one["fingerprint"]) for one in (signature, facts))
    told_step, step = signature.get("steps"), facts.get("step", facts["steps"])
    if told[1] != made[1] or told_step != step:
        told_of, made_of = f"{told[1]} at step {shown(told_step)}", f"{made[1]} at step {shown(step)}"
    elif told[0] and made[0] and told[0] != made[0]:
        told_of, made_of = f"the weights {told[0]}", f"the weights {made[0]}"
    else:
        return Run(id, folder, facts, evaluation, plan, _checkpoints(id, folder, facts))
    raise StoreError(
        f"is of {told_of}, but the run has made {made_of}", where=str(path), fix=AGAIN, id="stale-evaluation"
    )


def _checkpoints(id: str, folder: Path, facts: Mapping[str, Any]) -> tuple[Run, ...]:
    """Return the run with the evaluations of its checkpoints (`evaluate --every-checkpoint`), by step."""
    found = []
    for path in sorted((folder / COUNTS).glob("step-*.json")):
        evaluation = read_record(path, "evaluation of a checkpoint", check_evaluation, id="run", fix=_ANY_STEP)
        made = evaluation["signature"]["fingerprint"]
        if made != facts["fingerprint"] or "steps" not in evaluation["signature"]:
            told = f"is of {made}, but the run is {facts['fingerprint']}"
            raise StoreError(told, where=str(path), fix=_ANY_STEP, id="stale-evaluation")
        found.append(Run(id, folder, facts, evaluation))
    return tuple(sorted(found, key=lambda run: run.steps))
