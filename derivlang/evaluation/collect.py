"""Collect the table of scores (`table.py`) from studies, run folders, and tables that somebody else wrote.

A run without an evaluation has no rows; `states` says so. If no run has one, the rows are their training losses. Any
file that is unreadable, or not the one that was written, is an error, because leaving it out would silently select
runs.

A run is verified by its record, every file against its hash, its checkpoints, its data, and the results of its
evaluations. Nothing is trained or measured again, and torch is not needed.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from derivlang.core.errors import DerivlangError, StoreError, UsageError
from derivlang.core.messages import first_names, warn
from derivlang.evaluation import results
from derivlang.evaluation.columns import Column
from derivlang.evaluation.plan import LEVELS, STUDY, StudyPlan, levels_of, place_of, read_plan
from derivlang.evaluation.results import AGAIN, COUNTS, EVALUATION
from derivlang.evaluation.scores import SCHEMA, Score, table_of
from derivlang.evaluation.table import ATTRIBUTES, FACTOR, OF_RUN, SETTING, TARGET, frame_of, read_scores
from derivlang.formats.places import located
from derivlang.store import made_of
from derivlang.store.record import check_same, read_record
from derivlang.training import checkpoint, run_folder
from derivlang.training.checkpoint import MODEL
from derivlang.training.run_folder import (
    MODEL_AGAIN,
    RECORD,
    RUN,
    check_files,
    damages,
    has_last_checkpoint,
    lacks_model,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_TRAINING = "training"  # the task of training losses
_FACTS = {
    **RECORD,
    **dict.fromkeys(("source", "spec", "objective", "fingerprint"), str),
    **dict.fromkeys(("seed", "steps"), int),
    "model": dict,
    "factors?": LEVELS,
}
_RERUN = "leave this run out, restore the file, or make the run again"
_ANY_STEP = "remove this file, or evaluate again: derivlang evaluate RUN --every-checkpoint"


def scores(*places: Path | str, warn: Callable[[str], None] = warn) -> DataFrame:
    """Return the table of scores of studies, run folders, folders of run folders, and files scores.parquet.

    warn: called for finished runs without a model, and for runs in a study's folder that are not its cells. Raise
    UsageError if there is no run, StoreError for a folder without a run and for damaged files.
    """
    import pandas as pd

    paths = [located(place) for place in places]
    files = [path for path in paths if path.is_file()]
    runs: dict[Path, Path] = {}
    for folder in paths:
        for run in _find(folder, warn) if folder not in files else ():
            runs.setdefault(run.resolve(), run)
    if not runs and not files:
        raise UsageError("there are no runs to report", where="RUNS", fix="give run folders", id="no-runs")
    frames = [read_scores(path) for path in files]
    if runs:
        frames.append(_Collection(runs.values(), warn).frame())
    whole = pd.concat(frames, ignore_index=True)
    whole.attrs = {name: dict(ChainMap(*(one.attrs[name] for one in frames))) for name in ATTRIBUTES}
    return whole


class _Collection:
    """Rows of runs, or losses of their training, and what rows cannot say. columns: of losses."""

    def __init__(self, runs: Iterable[Path], warn: Callable[[str], None]):
        self.rows: list[pa.Table] = []
        self.losses: list[pa.Table] = []
        self.columns: dict[str, dict[str, Any]] = {}
        self.attributes: dict[str, dict[str, Any]] = {name: {} for name in ATTRIBUTES}
        self.without_model: list[Path] = []
        plans: dict[Path, StudyPlan | None] = {}
        for run in runs:
            above = place_of(run).parent.parent  # the folder that may be the study's: OUT of OUT/runs/CELL
            if above not in plans:
                plans[above] = read_plan(above)
                names = [plan.name for plan in plans.values() if plan]
                if (plan := plans[above]) and names.count(plan.name) > 1:
                    raise StoreError(
                        f"two studies have the name {plan.name}",
                        where=", ".join(str(p.folder) for p in plans.values() if p and p.name == plan.name),
                        fix="write separate reports, or name them in [study]",
                        id="run",
                    )
            self._add(run, plans[above])
        if self.without_model:
            warn(f"{MODEL}/ is missing in {first_names(self.without_model)}; {MODEL_AGAIN}")

    def frame(self) -> DataFrame:
        """Return the rows of scores, or of losses if there are none, with all columns that a table of scores has."""
        if not self.rows and self.losses:
            self.attributes["columns"][_TRAINING] = list(self.columns.values())
        empty = pa.schema([*OF_RUN, *SCHEMA]).empty_table()
        table = pa.concat_tables([empty, *(self.rows or self.losses)], promote_options="default")
        return frame_of([table.to_pandas()], self.attributes)

    def _add(self, folder: Path, plan: StudyPlan | None) -> None:
        facts = read_record(folder / RUN, RUN, _FACTS, sealed=True, id="run", fix=_RERUN)
        check_files(folder, facts, missing=False)
        if lacks_model(folder, facts) and has_last_checkpoint(folder, facts):
            self.without_model.append(folder)
        study, run, levels = "", str(folder), levels_of(facts.get("factors") or {})
        if plan and (cell := place_of(folder)) in plan.cells:
            if levels and levels != plan.cells[cell]:
                raise StoreError(
                    f"has other factors than {STUDY} of its study", where=str(folder), fix=_RERUN, id="run"
                )
            study, run, levels = plan.name, cell.name, dict(plan.cells[cell])
            self.attributes["studies"].setdefault(study, plan.record())
        of_run = {"study": study, "run": run, "fingerprint": facts["fingerprint"], "seed": facts["seed"]}
        if losses := (facts.get("result") or {}).get("parts"):
            losses = {"loss": facts["result"]["loss"], **losses}
            columns = [  # objectives sum other parts, so a smaller sum says nothing
                Column("loss", unit="nats", better="", formula="", headline=True),
                *(Column(name, unit="nats", better="down", formula="") for name in losses if name != "loss"),
            ]
            table = table_of(_TRAINING, columns, [Score(name, value=value) for name, value in losses.items()])
            of_model = {"weights": facts.get("weights") or "", "version": "", "step": facts["result"]["steps"]}
            self.losses.append(_with_columns(table, {**of_run, **of_model}, _settings(facts), levels))
            self.columns.update({column.name: column.record() for column in columns})
        ended: dict[str, bool] = {}  # by run, or target of a run: whether its finished model was evaluated
        seen: set[tuple[int, str, str]] = set()  # (step, target, label): the last checkpoint may be evaluated, too
        for path, cells in evaluations(folder):
            record = results.read(path)
            signature = record["signature"]
            check_signature(signature, facts, path)
            step, target = signature.get("steps") or 0, signature.get("target") or ""
            unit = f"{run}@{target}" if target else run  # what a report takes for a run
            name = f"{study}/{unit}"
            ended[name] = ended.get(name, False) or _is_last(path)
            of_weights = {"weights": signature.get("weights") or "", "version": signature.get("derivlang") or ""}
            of_pair = {"spec": signature["spec"]} if target else {}
            of_target = {TARGET: target} if target else {}
            for label, entry in results.entries_of(record).items():
                if (step, target, label) in seen:
                    continue
                seen.add((step, target, label))
                table, columns_of = results.scores_of(cells, record, [label])
                self.attributes["columns"] |= columns_of
                if "test" in entry and _is_last(path):
                    self.attributes["tests"].setdefault(name, {})[label] = entry["test"]
                prefix = "ft_" if label in record["tasks"] else ""
                own = {f"{prefix}{key}": _text(value) for key, value in entry["settings"].items()}
                told = {**of_run, "run": unit, **of_weights, "step": step}
                every = {**_settings(facts), **of_pair, **own}
                self.rows.append(_with_columns(table, told, every, {**levels, **of_target}))
        for name, evaluated in (ended or {f"{study}/{run}": False}).items():
            self.attributes["states"][name] = _state(facts, evaluated)
            if isinstance(facts.get("doses"), dict):
                self.attributes["doses"][name] = facts["doses"]


def check_signature(signature: Mapping[str, Any], facts: Mapping[str, Any], path: Path) -> None:
    """Raise StoreError if results are of other weights than the run's."""
    last = _is_last(path)
    made = {"fingerprint": facts.get("fingerprint")}
    if last:
        made |= {"steps": facts.get("step", facts.get("steps")), "weights": facts.get("weights")}
    known = {key: value for key, value in made.items() if value and signature.get(key)}
    check_same(
        signature,
        known,
        "is of another state of the run",
        where=str(path),
        fix=AGAIN if last else _ANY_STEP,
        id="stale-evaluation",
        words=results.SIGNATURE_WORDS,
    )


def _with_columns(
    table: pa.Table, of_run: Mapping[str, Any], settings: Mapping[str, Any], factors: Mapping[str, Any]
) -> pa.Table:
    """Return the rows of a table with columns of one value each; None means no column."""
    of_settings = {f"{SETTING}{key}": value for key, value in settings.items()}
    for name, value in {**of_run, **of_settings, **{f"{FACTOR}{key}": one for key, one in factors.items()}}.items():
        kind = OF_RUN.field(name).type if name in OF_RUN.names else pa.string()
        if value is not None:
            table = table.append_column(name, pa.repeat(pa.scalar(value, kind), table.num_rows))
    return table


def evaluations(run: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the record of the results of a run, and of each target and checkpoint, with the folder of their files."""
    if (run / EVALUATION).exists():
        yield run / EVALUATION, run / COUNTS
    for path in sorted([*(run / COUNTS).glob("*.json"), *(run / COUNTS).glob("*/step-*.json")]):
        yield path, path.with_suffix("")


def _is_last(path: Path) -> bool:
    """Return whether results are of a finished model, not of a checkpoint."""
    return not path.stem.startswith("step-")


def _find(folder: Path, warn: Callable[[str], None]) -> list[Path]:
    if not folder.is_dir():
        raise StoreError("there is no such folder", where=str(folder), id="missing-folder")
    if (folder / RUN).exists():
        return [folder]
    if plan := read_plan(folder):
        inside = [folder / cell.relative_to(plan.folder) for cell in plan.cells if (cell / RUN).exists()]
        if not inside:
            raise UsageError(
                f"no cell of the study has been run: only {STUDY} is there", where=str(folder), id="no-runs"
            )
        if left_out := plan.left_out():
            warn(left_out)
        return inside
    inside = sorted(path.parent for path in folder.glob(f"*/{RUN}"))
    if not inside:
        below = " or ".join(sorted({str(path.parents[1]) for path in folder.glob(f"*/*/{RUN}")})[:3])
        raise StoreError(
            f"not a run: there is no {RUN}, here or in its subfolders",
            where=str(folder),
            fix=f"name the folder of runs: {below}" if below else "make one: derivlang pretrain … -o RUN",
            id="not-a-run",
        )
    return inside


def _settings(facts: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the settings of a run as text. The model's are those that it was built with."""
    model = facts.get("model") or {}
    settings = {**(facts.get("settings") or {}), "spec": facts["spec"], "objective": facts["objective"]}
    settings |= {"source": facts["source"], "model": model.get("name"), "data": facts.get("data")}
    settings |= {"derived_data": facts.get("derived_data"), "parameters": model.get("parameters")}
    settings |= {"init": (facts.get("init") or {}).get("weights")}
    return {name: _text(value) for name, value in settings.items() if name != "seed"}


def _text(value: Any) -> str | None:
    if isinstance(value, list):  # of --language
        return "; ".join(map(str, value))
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _state(facts: Mapping[str, Any], evaluated: bool) -> str:
    """Return the state of a run: done, or unfinished or not evaluated."""
    status = facts.get("status")
    unfinished = [] if status in (None, "done") else [f"{status} at step {facts.get('step')} of {facts.get('steps')}"]
    return ", ".join(unfinished + ([] if evaluated else ["not evaluated"])) or "done"


def verify_run(run: Path) -> dict[str, Any]:
    """Return {"ok", "out", "checked", "problems": [{"file", "what"}], "notes": [{"file", "what"}]}.

    checked: numbers of files, of checkpoints and of evaluations. notes: what is unusual but not damage, such as a run
    that is not finished. Files are named by their path in the run. Raise StoreError if there is no run.
    """
    problems: list[tuple[str, str]] = []
    notes: list[tuple[str, str]] = []
    record: dict[str, Any] = {}
    if not (run / run_folder.RUN).exists():
        run_folder.read(run)
    try:
        record = run_folder.read(run)
    except DerivlangError as error:
        problems.append((run_folder.RUN, error.what))
    else:
        problems += damages(run, record)
        if record["status"] != "done":
            notes.append((run_folder.RUN, f"the run is not finished: its status is {record['status']!r}"))
    checkpoints = checkpoint.check_all(run)
    problems += [(f"{checkpoint.FOLDER}/{name}", what) for name, what in checkpoints.items() if what]
    for folder in sorted(path.parent for path in (run / run_folder.DATA).glob(f"*/{made_of.RECIPE}")):
        problems += [(str(folder.relative_to(run) / name), what) for name, what in _data(folder)]
    if not (run / results.EVALUATION).exists() and (kept := sorted((run / results.COUNTS).glob("*.parquet"))):
        lost = f"is not there, but {kept[0].relative_to(run)} is: evaluate the run again to have its results"
        notes.append((results.EVALUATION, lost))
    n_evaluations = 0
    for path, cells in evaluations(run):
        n_evaluations += 1
        problems += [(str(name.relative_to(run)), what) for name, what in _evaluation(path, cells, record)]
    listed = len(record.get("files") or ())
    checked = {"files": 1 + listed, "checkpoints": len(checkpoints), "evaluations": n_evaluations}
    told = {
        name: [{"file": file, "what": what} for file, what in some]
        for name, some in (("problems", problems), ("notes", notes))
    }
    return {"ok": not problems, "out": str(run), "checked": checked, **told}


def _data(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the files of a folder of data that are not as they were written, and what is wrong with them."""
    try:
        yield from made_of.faults(folder)
    except DerivlangError as error:
        yield made_of.RECIPE, error.what


def _evaluation(path: Path, cells: Path, record: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the files of an evaluation that are not as they were written, and what is wrong with them."""
    try:
        evaluation = results.read(path)
        check_signature(evaluation["signature"], record, path)
    except DerivlangError as error:
        yield path, error.what
        return
    for file, what in results.damages(cells, results.entries_of(evaluation).values()):
        yield cells / file, what


def files_of_run(run: Path, *, checkpoints: bool = False) -> list[str]:
    """Return the names of the files of a run and of its evaluations in alphabetical order, run.json last.

    The encoded data, logs of other tools and, unless asked for, checkpoints are left out: nothing but training needs
    them. Raise StoreError for a damaged record of an evaluation.
    """
    names = set(run_folder.own_files(run))
    for path, cells in evaluations(run):
        names |= {(cells / name).relative_to(run).as_posix() for name in results.files_of(results.read(path))}
    names = {name for name in names if checkpoints or not name.startswith(f"{checkpoint.FOLDER}/")}
    return [*sorted(names - {run_folder.RUN}), run_folder.RUN]
