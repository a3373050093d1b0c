"""`study`: grids of runs, from data to report."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.commands.command import Command
from derivlang.commands.folders import InFolder
from derivlang.commands.report import WriteReport
from derivlang.core.settings import setting
from derivlang.display.bar import ProgressBar
from derivlang.formats.places import OptionalPath, PathLike
from derivlang.formats.progress import reader
from derivlang.studies.settings import Extent, Place, PlaceOptions, Scale

if TYPE_CHECKING:
    from pandas import DataFrame

    from derivlang.commands.results import Run
    from derivlang.studies.file import StudyFile


class Study(InFolder):
    """A study. path: its folder. summary: what was made, or what a dry run has found (`study`), or {}."""

    @property
    def runs(self) -> dict[str, Run]:
        """The runs of the study's cells that are there, by the name of the cell. Raise StoreError as `verify`."""
        from derivlang.commands.results import Run
        from derivlang.studies.records import planned

        return {cell.name: Run(cell) for cell in planned(self.path).cells if cell.exists()}

    def facts(self) -> dict[str, Any]:
        if "steps" in self.summary:  # of a dry run, which makes nothing
            return {name: self.summary[name] for name in ("study", "cells", "seconds", "bytes")}
        from derivlang.studies.records import planned

        plan = planned(self.path)
        return {"study": plan.name, "cells": len(plan.cells), "runs": sum(cell.exists() for cell in plan.cells)}

    def scores(self) -> DataFrame:
        """Return the scores of all cells (`derivlang.scores`), with a column `factor.NAME` for each factor."""
        from derivlang.evaluation.collect import scores

        return scores(self.path)

    def report(self) -> Path:
        """Write the tables and figures of the cells that are finished, and return the path of index.html."""
        return WriteReport(self.path, self.path / "report")()

    def verify(self) -> dict[str, Any]:
        """Check the runs, their results and the records of what is done, as `derivlang verify` does.

        Return {"ok", "out", "checked", "problems", "notes"}. Raise StoreError if the folder is not a study.
        """
        from derivlang.studies.records import verify_study

        with ProgressBar():
            return verify_study(self.path)


@dataclass(frozen=True, eq=False, repr=False)
class RunStudy(Command[Study], PlaceOptions, Extent):
    """Run the study of FILE, a TOML file or the name of a shipped study, from data to report.

    A study has a cell for every combination of its factors' levels: a run of pretrain, then evaluate. The same command
    continues an interrupted study, and adds the cells of new levels. --list prints the shipped studies.

    \b
    derivlang study overlap.toml -o overlap --data-dir DIR --workers 2
    derivlang study overlap.toml -o overlap --cells "perm.*,identity.0.1"
    derivlang study alignment-methods --scale tiny -o methods --dry-run
    derivlang study --list
    """

    file: PathLike
    out: OptionalPath = setting(None, "Folder of the study.", also="-o", unset="the study's name, here", writes=True)
    _: KW_ONLY
    scale: Scale | None = setting(None, "Scale, of a study that has several.", unset="its first")
    data_only: bool = setting(False, "Prepare text, tokenizer and encoded data, and stop.", excludes="--dry-run")
    dry_run: bool = setting(False, "Estimate size, time and disk of each step; run nothing.")
    rate: float | None = setting(
        None, "Training speed in sub-words per second.", minimum=1, only_with="--dry-run",
        unset="measured; 1.1 million for a wide model if there is no accelerator",
    )  # fmt: skip

    def __call__(self) -> Study:
        """Return the study. Cells that are finished stay as they are.

        Of a dry run, the study's `summary` has "cells", "steps" with the "name", "command", "tokens" (sub-words),
        "seconds" and "done" of each, "seconds" of all, "bytes" of disk, and "tokens_per_second".
        """
        summary = self.summary()
        return Study(summary["out"], summary)

    def summary(self) -> dict[str, Any]:
        """Run the study, and return what was made, or what a dry run finds."""
        study, place = self.planned()
        if self.dry_run:
            from derivlang.studies.estimate import dry_run

            return dry_run(study, place, self.rate, reader().tell)
        from derivlang.studies.run import prepare, run_study

        if self.path("out") is None:
            reader().begins(f"writing to {place.out}{os.sep}")
        return (prepare if self.data_only else run_study)(study, place, reader().tell)

    def planned(self) -> tuple[StudyFile, Place]:
        """Return the study with the cells to run, and where it runs."""
        from derivlang.core.dependencies import EXTRAS, require_torch

        require_torch(*EXTRAS["train"])  # before modules that import torch; a study ends with its report
        from derivlang.studies.file import only, read

        study = read(str(self.file), grids=self.grids, steps=self.steps, scale=self.scale)
        study = only(study, self.cells) if self.cells else study
        folder = os.environ.get("DERIVLANG_DATA")
        data_dir = self.path("data_dir") or (Path(folder) if folder else None)
        return study, self.part(Place, out=self.path("out") or Path(study.name), data_dir=data_dir)
