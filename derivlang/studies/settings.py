"""Settings of `study`, declared once (core/settings.py). Help pages import this module."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from derivlang.core.settings import Settings, setting
from derivlang.core.takes import Names
from derivlang.formats.places import OptionalPath

_STUDY = "the study's"
Scale = Literal["tiny", "base", "small", "paper"]  # from half an hour of two cores to days of an accelerator
SCALES: tuple[Scale, ...] = get_args(Scale)


@dataclass(frozen=True, kw_only=True)
class PlaceOptions(Settings):
    """The paths and processes of a study, but for its folder."""

    data_dir: OptionalPath = setting(None, "Folder of the corpora.", unset="$DERIVLANG_DATA, then the hub")
    parses: OptionalPath = setting(None, "Folder that keeps parses.", unset="OUT/parses")
    workers: int | None = setting(
        None, "Number of cells to run in parallel.", minimum=1, unset=_STUDY, excludes="--data-only"
    )
    threads: int | None = setting(None, "Number of CPU threads per cell.", minimum=1, unset=_STUDY)


@dataclass(frozen=True)
class Place(PlaceOptions):
    """The paths and processes of a study. out: its folder."""

    out: Path


@dataclass(frozen=True, kw_only=True)
class Extent(Settings):
    """Which cells of a study to run, and for how long."""

    steps: int | None = setting(None, "Number of steps of each run, for a trial.", minimum=1, unset=_STUDY)
    cells: Names = setting((), "Cells to run without a report, e.g. trans-inv.mlm.1,trans.*.", unset="all", commas=True)
    grids: Names = setting(
        (), "Named grids of the study to run in addition, e.g. untied,packing.", also="--as-published", commas=True
    )
