"""The files of a run that others need to use its model, to report it, and to check it."""

from __future__ import annotations

from pathlib import Path

from derivlang.evaluation import results
from derivlang.evaluation.collect import evaluations
from derivlang.training import checkpoint, run_folder


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
