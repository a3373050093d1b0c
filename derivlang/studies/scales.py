"""The scales of a study: its file has the grids, and a scale says how large they are run.

    [study]
    scales = ["tiny", "small", "paper"]     the first one is taken unless --scale names another
    [scale.paper]                           also in a [[grid]], of only this grid
    seeds = 1                               the first of the levels of `seed`
    [scale.paper.cell]                      keys that are added or replaced; also study, factors, evaluate, report
    steps = 500_000
    [scale."tiny,base".cell]                of two scales; what one of them has of its own has priority
    [[grid]]
    scales = ["tiny"]                       a grid of these scales only

What the scales of the shipped studies have in common, i.e. model, source, steps and evaluation, is in scales.toml; a
study's own keys have priority over it, and the study's [scale.NAME] over these. A published number of a task that a
scale does not evaluate is left out. The controls of scales.toml are grids of every shipped study with zero-shot scores.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.parse_errors import parse_errors
from derivlang.core.settings import names, text_of
from derivlang.evaluation.finetune_settings import USUAL_REGIMES
from derivlang.evaluation.settings import tasks_and_measures
from derivlang.evaluation.tasks.registry import TASKS
from derivlang.studies.cells import named_in
from derivlang.studies.commands import TypedFloat
from derivlang.studies.settings import SCALES

_PARTS = ("study", "cell", "evaluate", "factors", "report")
_KEYS = (*_PARTS, "seeds")
_GRID_KEYS = ("cell", "evaluate", "factors", "seeds")  # of [grid.scale.NAME]
_TEXT = ("source", "text", "treebanks")  # of [study], one of which takes the place of another


def scales_of(tables: Mapping[str, Any], place: str) -> list[str]:
    """Return the scales that a file names, none if it says nothing of them.

    Raise UsageError for other values, and for tables of other scales.
    """
    head = tables.get("study", {})
    names = head.get("scales", []) if isinstance(head, dict) else []
    if not isinstance(names, list) or (names == [] and "scales" in head):
        fix = 'write e.g. scales = ["tiny", "small"], or leave it out'
        raise UsageError(
            f"scales = {names!r} must be a list of one scale or more", where=f"{place} [study]", fix=fix, id="bad-value"
        )
    for name in names:
        if name not in SCALES:
            raise unknown("scale", str(name), SCALES, where=f"{place} [study]")
    for where, table in _tables(tables, place):
        own, is_grid = _table(table, "scale", where), table is not tables
        keys = _GRID_KEYS if is_grid else _KEYS
        named = [name.strip() for key in own for name in key.split(",")]
        for name in (*named, *table.get("scales", [])) if is_grid else named:
            if name not in names:
                raise unknown("scale", str(name), names, where=where, fix="name it in scales of [study]")
        for name in own:
            for key in (one := _table(own, name, f"{where} [scale]")):
                if key not in keys:
                    raise unknown(f"key of [scale.{name}]", key, keys, where=where)
            for part in _PARTS:
                _table(one, part, f"{where} [scale.{name}]")
            if "factors" in one and "factors" not in table:
                what = f"[scale.{name}.factors] has no [factors] to change"
                raise UsageError(what, where=where, fix="write it in the scale of a [[grid]]", id="study")
            if not isinstance(seeds := one.get("seeds", 1), int) or isinstance(seeds, bool) or seeds < 1:
                fix = "write a whole number of at least 1"
                raise UsageError(f"seeds = {seeds!r} is not a number of seeds", where=where, fix=fix, id="bad-value")
    return names


def scaled(tables: Mapping[str, Any], scale: str | None, place: str) -> dict[str, Any]:
    """Return the tables of a file at a scale, None for its first one; as they are if the file has no scales.

    Raise UsageError for a scale that the file does not have.
    """
    names = scales_of(tables, place)
    if scale is not None and scale not in names:
        if names:
            raise unknown("scale", scale, names, where="--scale")
        fix = "leave it out, or write scales = [...] in [study]"
        raise UsageError(f"{place} has no scales", where="--scale", fix=fix, id="bad-value")
    if not names:
        return dict(tables)
    name = scale or names[0]
    common, own = _common()[name], _of_scale(tables, name, place)
    layers = [common, tables, own]
    result = {key: value for key, value in tables.items() if key != "scale"}
    for part in _PARTS[:-1] if "factors" in tables else ("study", "cell", "evaluate"):
        result[part] = _merged([_table(layer, part, place) for layer in layers])
    if not _tasks(result["evaluate"]):  # then the scale's fine-tuning has nothing to tune
        result["evaluate"] = _merged([_table(layer, "evaluate", place) for layer in layers[1:]])
    result["study"].pop("scales")
    seeds = own.get("seeds", common["seeds"])
    if "factors" in result:
        result["factors"] = _with_seeds(result["factors"], seeds)
    grids = tables.get("grid")
    if isinstance(grids, list):
        kept = [grid for grid in grids if not isinstance(grid, dict) or name in grid.get("scales", names)]
        result["grid"] = [_grid(grid, name, seeds, place) if isinstance(grid, dict) else grid for grid in kept]
    if _has_zero_shot(result["evaluate"]) and isinstance(grids, (list, type(None))):
        controls = [grid for grid in _common()["controls"] if name in grid["scales"]]
        made = [_grid(_of_languages(one, result), name, seeds, place) for one in controls]
        result["grid"] = [*result.get("grid", ()), *made]
    report = _merged([_table(tables, "report", place), _table(own, "report", place)])
    if report:
        result["report"] = _evaluated(report, result)
    return result


@cache
def _common() -> dict[str, Any]:
    """Return scales.toml."""
    text = (resources.files("derivlang.studies") / "scales.toml").read_text("utf-8")
    with parse_errors("scales.toml", "TOML file", error=UsageError, id="study"):
        return tomllib.loads(text, parse_float=TypedFloat)


def _tables(tables: Mapping[str, Any], place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the file, and each [[grid]], with its place."""
    yield place, tables
    grids = tables.get("grid", [])
    for number, grid in enumerate(grids if isinstance(grids, list) else [], 1):
        if not isinstance(grid, dict):
            continue
        if not isinstance(grid.get("scales", []), list):
            fix = 'write e.g. scales = ["tiny"]'
            raise UsageError("scales must be a list", where=f"{place} grid {number}", fix=fix, id="bad-value")
        yield f"{place} grid {number}", grid


def _table(table: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    part = table.get(name, {})
    if not isinstance(part, dict):
        raise UsageError(f"{name} is not a table", where=where, fix=f"write [{name}]", id="study")
    return part


def _of_scale(table: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    """Return what the [scale.…] of a file or a grid have for a scale: what several scales share, then its own."""
    every = _table(table, "scale", where)
    merged: dict[str, Any] = {}
    for scales in sorted(every, key=lambda scales: "," not in scales):
        if name in map(str.strip, scales.split(",")):
            for key, value in every[scales].items():
                merged[key] = _merged([merged.get(key, {}), value]) if isinstance(value, dict) else value
    return merged


def _merged(layers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the keys of all layers; a later layer has priority, and its `text` takes the place of a `source`."""
    merged: dict[str, Any] = {}
    for layer in layers:
        if any(key in layer for key in _TEXT):
            merged = {key: value for key, value in merged.items() if key not in _TEXT}
        merged |= layer
    return merged


def _grid(grid: dict[str, Any], name: str, seeds: int, place: str) -> dict[str, Any]:
    """Return a [[grid]] at a scale."""
    own = _of_scale(grid, name, place)
    scaled = {key: value for key, value in grid.items() if key not in ("scale", "scales")}
    for part in ("cell", "evaluate", "factors"):
        if merged := _merged([_table(grid, part, place), _table(own, part, place)]):
            scaled[part] = merged
    if "factors" in scaled:
        scaled["factors"] = _with_seeds(scaled["factors"], own.get("seeds", seeds))
    return scaled


def _tasks(evaluate: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tasks of [evaluate]."""
    return tasks_and_measures(text_of(evaluate.get("task", "none")))[0]


def _has_zero_shot(evaluate: Mapping[str, Any]) -> bool:
    """Return whether [evaluate] fine-tunes tasks on the source and tests them on the derived language."""
    regimes = names(text_of(evaluate.get("regime", ",".join(USUAL_REGIMES))), "regime")
    return bool(_tasks(evaluate)) and "zs" in regimes


def _of_languages(control: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a grid of controls for each language of a study: the levels of `t`, and of the factors that it names."""
    grids = [grid for grid in (tables, *tables.get("grid", ())) if isinstance(grid, dict) and not grid.get("name")]
    axes = {"t", *named_in(tables["cell"].get("t", ""))}
    levels: dict[str, list[Any]] = {}
    for grid in grids:
        for factor, some in _table(grid, "factors", "").items():
            if factor in axes and isinstance(some, list):
                levels[factor] = list(dict.fromkeys([*levels.get(factor, []), *some]))
    return {**control, "factors": {**levels, **control["factors"]}}


def _with_seeds(factors: dict[str, Any], seeds: int) -> dict[str, Any]:
    levels = factors.get("seed")
    return {**factors, "seed": levels[:seeds]} if isinstance(levels, list) else factors


def _evaluated(report: dict[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return [report] without published numbers of tasks that are not evaluated."""
    rows = report.get("published")
    if not isinstance(rows, list):
        return report
    grids = tables.get("grid", [])
    every = [grid for grid in (grids if isinstance(grids, list) else []) if isinstance(grid, dict)]
    options = [tables["evaluate"], *(grid.get("evaluate", {}) for grid in every)]
    asked = {task for one in options if "task" in one for task in tasks_and_measures(text_of(one["task"]))[0]}
    others = set(TASKS.names()) - {task.partition(":")[0] for task in asked}

    def is_left_out(row: Any) -> bool:  # what is malformed stays, and is refused when the report is read
        task = row.get("task") if isinstance(row, dict) else None
        return isinstance(task, str) and task in others

    return {**report, "published": [row for row in rows if not is_left_out(row)]}
