"""A study as it is asked for, by the command and by `derivlang.study` alike: its file, its folder, and what to run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derivlang.core.settings import given
from derivlang.studies.file import StudyFile, only, read
from derivlang.studies.run import prepare, run_study
from derivlang.studies.settings import Extent, Place


@dataclass(frozen=True, slots=True)
class AskedStudy:
    """A study and where to run it. study: with the cells to run. whole: with all cells, the same if these are all."""

    study: StudyFile
    whole: StudyFile
    place: Place
    extent: Extent

    def run(self, say: Callable[[str], None], *, data_only: bool = False) -> dict[str, Any]:
        """Run the study, or prepare its data only, and return what `run_study` or `prepare` returns."""
        whole = None if self.study is self.whole else self.whole
        return (prepare if data_only else run_study)(self.study, self.place, say, whole=whole)


def asked_for(name: str, out: Path | None, options: Mapping[str, Any], scale: str | None = None) -> AskedStudy:
    """Return the study of a file or a name.

    options: the values of Place and Extent, by `Declared.key`. scale: as of `read`. out: None for the study's name, in
    the current folder. Raise UsageError as `read` and `only`.
    """
    extent = Extent(**given(Extent, options))
    whole = read(name, grids=extent.grids, steps=extent.steps, scale=scale)
    study = only(whole, extent.cells) if extent.cells else whole
    folder = os.environ.get("DERIVLANG_DATA")
    corpora = {"data_dir": Path(folder)} if folder else {}
    return AskedStudy(study, whole, Place(out or Path(whole.name), **(corpora | given(Place, options))), extent)
