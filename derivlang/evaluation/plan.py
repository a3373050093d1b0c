"""Read OUT/study.json: the factors of a study, what its report compares, and the cells that it plans."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derivlang.core.messages import counted, first_names
from derivlang.core.settings import text_of
from derivlang.formats.places import is_remote
from derivlang.store.record import read_record, short
from derivlang.training.run_folder import RUN

STUDY, FORMAT = "study.json", 1
_LONGEST = 200  # bytes of the path of a run; file systems have names of up to 255
_LEVEL = str | int | float | bool
LEVELS = {"*": _LEVEL}
PLAN = {  # of a study, as `StudyPlan.record` gives it
    **dict.fromkeys(("title?", "x?", "lines?", "primary?", "test?"), str),
    "factors?": {"*": [_LEVEL]},
    "names?": {"*": {"*": str}},
    "baseline?": LEVELS,
    "published?": [{"task": str, "value": float, "metric?": str, "regime?": str}],
    "cells?": [{"run": str, "factors": LEVELS}],
}
_RECORD = {
    "format": FORMAT,
    "study?": str,
    "report": PLAN,
    "factors": PLAN["factors?"],
    "cells": PLAN["cells?"],
}


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """A study. factors: the levels of each factor, in order. cells: folder of a run -> its levels. Levels are text.

    report: what the study file says of the report: title, baseline, x, lines, primary …
    """

    folder: Path
    name: str
    factors: Mapping[str, tuple[str, ...]]
    report: Mapping[str, Any]
    cells: Mapping[Path, Mapping[str, str]]

    def left_out(self) -> str:
        """Return a sentence about runs in its folder that are not its cells, such as of a former level, or ""."""
        found = [path.parent for path in self.folder.glob(f"*/*/{RUN}")]
        names = sorted(run.name for run in found if run not in self.cells)
        told = (
            f"{counted(len(names), 'run')} of {len(found)} in its folder (not cells of its file): {first_names(names)}"
        )
        return f"the study {self.name} leaves out {told}" if names else ""

    def record(self) -> dict[str, Any]:
        """Return it as JSON, for the attributes of a table of scores."""
        cells = [{"run": cell.name, "factors": dict(levels)} for cell, levels in self.cells.items()]
        baseline = levels_of(self.report.get("baseline") or {})
        factors = {name: list(levels) for name, levels in self.factors.items()}
        return {**self.report, "factors": factors, "baseline": baseline, "cells": cells}


def read_plan(folder: Path) -> StudyPlan | None:
    """Return the plan of the study in a folder, or None without one. Raise StoreError for a damaged file."""
    path = folder / STUDY
    if not path.is_file():
        return None
    again = "run the study again: derivlang study FILE -o OUT"
    record = read_record(path, STUDY, _RECORD, _check, sealed=True, id="run", fix=again)
    cells = [levels_of(cell["factors"]) for cell in record["cells"]]
    place = place_of(folder)
    return StudyPlan(
        place,
        str(record.get("study") or place.name),
        {name: tuple(map(text_of, levels)) for name, levels in record["factors"].items()},
        record["report"],
        {place / cell["run"]: levels for cell, levels in zip(record["cells"], cells, strict=True)},
    )


def place_of(run: Path) -> Path:
    """Return the absolute path of a folder as a study has it: without `..`, links not followed."""
    return run if is_remote(run) else Path(os.path.normpath(run.absolute()))


def levels_of(factors: Mapping[str, Any]) -> dict[str, str]:
    """Return the levels of a cell as text."""
    return {name: text_of(level) for name, level in factors.items()}


def _check(record: dict[str, Any]) -> None:
    """Raise ValueError for a study.json that the report cannot show."""
    for cell in record["cells"]:
        path = Path(cell["run"])
        if path.is_absolute() or ".." in path.parts or len(path.parts) != 2 or len(str(path).encode()) > _LONGEST:
            raise ValueError(f"a cell has the path {short(cell['run'])}, not one such as runs/CELL")
        if unknown := [name for name in cell["factors"] if name not in record["factors"]]:
            raise ValueError(f"a cell has the factor {short(unknown[0])}, which is in no list")
        for name, level in cell["factors"].items():
            if level not in record["factors"][name]:
                raise ValueError(f"a cell has the level {short(level)} of {name}, which is in no list")
