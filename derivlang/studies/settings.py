"""Settings of `study`, declared once (core/settings.py). Help pages import this module."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from derivlang.core.settings import check_settings, setting

_STUDY = "the study's"
Scale = Literal["tiny", "base", "small", "paper"]  # from half an hour of two cores to days of an accelerator
SCALES: tuple[Scale, ...] = get_args(Scale)


@dataclass(frozen=True, slots=True)
class Place:
    """The paths and processes of a study. out: its folder. as_is: use encoded data made elsewhere."""

    out: Path
    data_dir: Path | None = setting(None, "Folder of the corpora.", unset="$DERIVLANG_DATA, then the hub")
    parses: Path | None = setting(None, "Folder that keeps parses.", unset="OUT/parses")
    workers: int | None = setting(
        None, "Number of cells to run in parallel.", minimum=1, unset=_STUDY, excludes="--data-only"
    )
    threads: int | None = setting(None, "Number of CPU threads per cell.", minimum=1, unset=_STUDY)
    as_is: bool = setting(
        False, "Use encoded data made elsewhere, without its text.", option="--data-as-is", key="data_as_is"
    )

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True)
class Extent:
    """Which cells of a study to run, and for how long."""

    steps: int | None = setting(None, "Number of steps of each run, for a trial.", minimum=1, unset=_STUDY)
    cells: tuple[str, ...] = setting(
        (), "Cells to run without a report, e.g. trans-inv.mlm.1,trans.*.", unset="all", commas=True
    )
    grids: tuple[str, ...] = setting(
        (), "Named grids of the study to run in addition, e.g. untied,packing.", also="--as-published", commas=True
    )

    def __post_init__(self) -> None:
        check_settings(self)
