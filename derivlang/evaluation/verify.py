"""Verify a run: its record, every file against its hash, its checkpoints, its data, and the results of its evaluations.

Nothing is trained or measured again, and torch is not needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError
from derivlang.evaluation import results
from derivlang.evaluation.collect import check_signature, evaluations
from derivlang.store import made_of
from derivlang.training import checkpoint, run_folder
from derivlang.training.run_folder import damages


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
