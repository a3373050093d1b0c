"""`study` and `reproduce`: grids of runs, from data to report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.commands.shared import InFolder, PathLike, local
from derivlang.commands.training import Run, report
from derivlang.core.keywords import takes
from derivlang.display.bar import ProgressBar
from derivlang.studies.settings import Extent, Place, Scale

if TYPE_CHECKING:
    from pandas import DataFrame


class Study(InFolder):
    """A study that was run. path: its folder."""

    @property
    def runs(self) -> dict[str, Run]:
        """The runs of the study's cells that are there, by the name of the cell. Raise StoreError as `verify`."""
        from derivlang.studies.records import planned

        return {cell.name: Run(cell) for cell in planned(self.path).cells if cell.exists()}

    def scores(self) -> DataFrame:
        """Return the scores of all cells (`derivlang.scores`), with a column `factor.NAME` for each factor."""
        from derivlang.evaluation.collect import scores

        return scores(self.path)

    def report(self) -> Path:
        """Write the tables and figures of the cells that are finished, and return the path of index.html."""
        return report(self.path, out=self.path / "report")

    def verify(self) -> dict[str, Any]:
        """Check the runs, their results and the records of what is done, as `derivlang verify` does.

        Return {"ok", "out", "checked", "problems", "notes"}. Raise StoreError if the folder is not a study.
        """
        from derivlang.studies.records import verify_study

        with ProgressBar():
            return verify_study(self.path)


@takes(Place, Extent)
def study(
    file: PathLike, out: PathLike | None = None, *, scale: Scale | None = None, data_only: bool = False, **options: Any
) -> Study:
    """Run a study, as `derivlang study` does. The same call continues one that was interrupted.

    file: a TOML file, or the name of a shipped study. out: the folder to write; None for the study's name, here. scale:
    of a study that has several, by default its first. data_only: prepare text, tokenizer and encoded data, and stop.
    Raise DerivlangError as the command, which leaves the finished cells as they are.
    """
    from derivlang.core.extras import EXTRAS, require_torch

    require_torch(*EXTRAS["train"])  # before modules that import torch; a study ends with its report
    from derivlang.studies.file import asked_for
    from derivlang.studies.run import prepare, run_study

    asked, place, _ = asked_for(str(file), None if out is None else local(out, "studies"), options, scale)
    with ProgressBar() as bar, bar.stage(f"study {asked.name}", None):
        (prepare if data_only else run_study)(asked, place, lambda line: bar.note(now=line))
    return Study(place.out)


@takes(Place, Extent)
def reproduce(
    recipe: str, out: PathLike | None = None, *, scale: Scale = "tiny", data_only: bool = False, **options: Any
) -> Study:
    """Run the study of a paper, as `derivlang reproduce` does.

    recipe: a shipped study, e.g. align-mlm. scale: half an hour on 2 cores, hours on an accelerator, or days on an
    accelerator. out, data_only: as of `study`. Raise DerivlangError as `study`.
    """
    return study(recipe, out, scale=scale, data_only=data_only, **options)
