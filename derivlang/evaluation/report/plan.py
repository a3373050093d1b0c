"""Read OUT/study.json: the factors of a study, what its report compares, and the cells that it plans."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derivlang.core.seal import check_intact
from derivlang.core.settings import text_of
from derivlang.store.record import check_types, read_record, short

STUDY, FORMAT = "study.json", 1
_LONGEST = 200  # bytes of the path of a run; file systems have names of up to 255
_LEVEL = (str, int, float)  # bool is one, too


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """A study. factors: the levels of each factor, in order. cells: folder of a run -> its levels. Levels are text.

    baseline: the level of a factor that others are compared with. x, lines: factors of tables and figures, or None.
    """

    folder: Path
    name: str
    factors: Mapping[str, tuple[str, ...]]
    baseline: Mapping[str, str]
    x: str | None
    lines: str | None
    cells: Mapping[Path, Mapping[str, str]]


def read_plan(folder: Path) -> StudyPlan | None:
    """Return the plan of the study in a folder, or None without one. Raise StoreError for a damaged file."""
    path = folder / STUDY
    if not path.is_file():
        return None
    found = read_record(path, STUDY, _check, id="run", fix="run the study again: derivlang study FILE -o OUT")
    cells = [levels_of(cell["factors"]) for cell in found["cells"]]
    told, place = found["report"], Path(os.path.normpath(folder.absolute()))
    return StudyPlan(
        place,
        str(found.get("study") or place.name),
        # Studies of earlier versions list only one of 0 and 0.0, which are levels of their own.
        {
            name: tuple(dict.fromkeys([*map(text_of, levels), *(cell[name] for cell in cells if name in cell)]))
            for name, levels in found["factors"].items()
        },
        levels_of(told.get("baseline") or {}),
        told.get("x"),
        told.get("lines"),
        {place / cell["run"]: levels for cell, levels in zip(found["cells"], cells, strict=True)},
    )


def levels_of(factors: Mapping[str, Any]) -> dict[str, str]:
    """Return the levels of a cell as text."""
    return {name: text_of(level) for name, level in factors.items()}


def check_levels(factors: Any, where: str) -> None:
    """Raise ValueError if factors are not levels by name."""
    if not isinstance(factors, dict):
        raise ValueError(f"{where} is {short(factors)}")
    for name, level in factors.items():
        if not isinstance(level, _LEVEL):
            raise ValueError(f"{where}: {short(name)} is {short(level)}, not a level")


def _check(found: dict[str, Any]) -> None:
    """Raise ValueError for a study.json that the report cannot show."""
    if found.get("format") != FORMAT:
        raise ValueError(f"format {short(found.get('format'))}, but this version reads {FORMAT}")
    check_types(found, {"factors": dict, "report": dict, "cells": list}, {"study": str})
    check_intact(found, ["derivlang"])
    for name, levels in found["factors"].items():
        if not isinstance(levels, list):
            raise ValueError(f"factors: {short(name)} is {short(levels)}")
        check_levels(dict(enumerate(levels)), f"factors: {name}")
    check_types(found["report"], {}, {"baseline": dict, "x": str, "lines": str})
    check_levels(found["report"].get("baseline") or {}, "baseline")
    for cell in found["cells"]:
        check_types(cell, {"run": str, "factors": dict})
        path = Path(cell["run"])
        if path.is_absolute() or ".." in path.parts or len(path.parts) != 2 or len(str(path).encode()) > _LONGEST:
            raise ValueError(f"a cell has the path {short(cell['run'])}, not one such as runs/CELL")
        check_levels(cell["factors"], "cells")
        if unknown := [name for name in cell["factors"] if name not in found["factors"]]:
            raise ValueError(f"a cell has the factor {short(unknown[0])}, which is in no list")
        for name, level in cell["factors"].items():
            if level not in found["factors"][name]:
                raise ValueError(f"a cell has the level {short(level)} of {name}, which is in no list")
