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
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.settings import names, text_of
from derivlang.evaluation.finetune_settings import USUAL_REGIMES
from derivlang.evaluation.settings import tasks_and_measures
from derivlang.evaluation.tasks.registry import TASKS
from derivlang.studies.cells import named_in
from derivlang.studies.commands import TypedFloat
from derivlang.studies.report import tables_of
from derivlang.studies.settings import SCALES

_PARTS = ("study", "cell", "evaluate", "factors", "report")
_KEYS = (*_PARTS, "seeds")
_GRID_PARTS = ("cell", "evaluate", "factors")
_TEXT = ("source", "text", "treebanks")  # of [study], one of which takes the place of another
Tables = Mapping[str, Any]


def scales_of(tables: Tables, place: str) -> list[str]:
    """Return the scales that a file names, none if it says nothing of them.

    Raise UsageError for other values, and for tables of other scales.
    """
    head = table_of(tables, "study", place)
    names: Any = head.get("scales", [])
    if not isinstance(names, list) or (names == [] and "scales" in head):
        raise UsageError(
            f"scales = {names!r} must be a list of one scale or more",
            where=f"{place} [study]",
            fix='write e.g. scales = ["tiny", "small"], or leave it out',
            id="bad-value",
        )
    check_known(names, SCALES, "scale", f"{place} [study]")
    _check_scales(tables, names, _KEYS, place)
    for number, grid in enumerate(tables_of(tables, "grid", place), 1):
        where = f"{place} grid {number}"
        if not isinstance(own := grid.get("scales", []), list):
            raise UsageError("scales must be a list", where=where, fix='write e.g. scales = ["tiny"]', id="bad-value")
        check_known(own, names, "scale", where, fix="name it in scales of [study]")
        _check_scales(grid, names, (*_GRID_PARTS, "seeds"), where)
    return names


def _check_scales(table: Tables, names: Collection[str], keys: Collection[str], where: str) -> None:
    """Raise UsageError for a [scale.…] of a file or a grid that has no effect. names: the scales. keys: of each."""
    for scales in (every := table_of(table, "scale", where)):
        check_known(map(str.strip, scales.split(",")), names, "scale", where, fix="name it in scales of [study]")
        check_known(own := table_of(every, scales, f"{where} [scale]"), keys, f"key of [scale.{scales}]", where)
        for part in _PARTS:
            table_of(own, part, f"{where} [scale.{scales}]")
        if "factors" in own and "factors" not in table:
            what = f"[scale.{scales}.factors] has no [factors] to change"
            raise UsageError(what, where=where, fix="write it in the scale of a [[grid]]", id="study")
        if not isinstance(seeds := own.get("seeds", 1), int) or isinstance(seeds, bool) or seeds < 1:
            fix = "write a whole number of at least 1"
            raise UsageError(f"seeds = {seeds!r} is not a number of seeds", where=where, fix=fix, id="bad-value")


def scaled(tables: Tables, scale: str | None, place: str) -> dict[str, Any]:
    """Return the tables of a file at a scale, None for its first one; as they are if the file has no scales.

    Raise UsageError for a scale that the file does not have.
    """
    names = scales_of(tables, place)
    if scale is not None and not names:
        fix = "leave it out, or write scales = [...] in [study]"
        raise UsageError(f"{place} has no scales", where="--scale", fix=fix, id="bad-value")
    check_known([scale or names[0]] if names else (), names, "scale", "--scale")
    if not names:
        return dict(tables)
    name = scale or names[0]
    common, own = _common()[name], _of_scale(tables, name, place)
    seeds, layers = own.get("seeds", common["seeds"]), [common, tables, own]

    def at_scale(grid: Tables) -> dict[str, Any]:
        own = _of_scale(grid, name, place)
        return {**grid, **_overlaid([grid, own], _GRID_PARTS, own.get("seeds", seeds), place)}

    result = {**tables, **_overlaid(layers, _PARTS, seeds, place)}
    if not _tasks(result["evaluate"]):  # then the scale's fine-tuning has nothing to tune
        result["evaluate"] = _overlaid(layers[1:], ("evaluate",), seeds, place).get("evaluate", {})
    grids = [at_scale(grid) for grid in tables_of(tables, "grid", place) if name in grid.get("scales", names)]
    if _has_zero_shot(result["evaluate"]):
        languages = _languages([result, *(grid for grid in grids if not grid.get("name"))], result)
        controls = [control for control in _common()["controls"] if name in control["scales"]]
        grids += [at_scale({**control, "factors": {**languages, **control["factors"]}}) for control in controls]
    if "report" in result:
        result["report"] = _evaluated(result["report"], [result, *grids], place)
    return {**result, "grid": grids}


@cache
def _common() -> dict[str, Any]:
    """Return scales.toml."""
    text = (resources.files("derivlang.studies") / "scales.toml").read_text("utf-8")
    return tomllib.loads(text, parse_float=TypedFloat)


def check_known(names: Iterable[str], known: Collection[str], what: str, where: str, *, fix: str | None = None) -> None:
    """Raise UsageError, with similar names, for the first name that is not known. what: a noun for it."""
    for name in names:
        if name not in known:
            raise unknown(what, str(name), known, where=where, fix=fix)


def table_of(tables: Tables, name: str, where: str) -> dict[str, Any]:
    """Return a table of a file or of a table, {} without it. Raise UsageError if it is something else."""
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"{name} is not a table", where=where, fix=f"write [{name}]", id="study")
    return table


def _of_scale(table: Tables, name: str, where: str) -> dict[str, Any]:
    """Return what the [scale.…] of a file or a grid have for a scale: what several scales share, then its own."""
    every = table_of(table, "scale", where)
    merged: dict[str, Any] = {}
    for scales in sorted(every, key=lambda scales: "," not in scales):
        if name in map(str.strip, scales.split(",")):
            for key, value in every[scales].items():
                merged[key] = _merged([merged.get(key, {}), value]) if isinstance(value, dict) else value
    return merged


def _overlaid(layers: Sequence[Tables], parts: Iterable[str], seeds: int, where: str) -> dict[str, Any]:
    """Return some tables of several layers, without those that are empty. seeds: the number of levels of `seed`."""
    every = {part: _merged([table_of(layer, part, where) for layer in layers]) for part in parts}
    if isinstance(levels := every.get("factors", {}).get("seed"), list):
        every["factors"]["seed"] = levels[:seeds]
    return {part: table for part, table in every.items() if table}


def _merged(layers: Iterable[Tables]) -> dict[str, Any]:
    """Return the keys of all layers; a later layer has priority, and its `text` takes the place of a `source`."""
    merged: dict[str, Any] = {}
    for layer in layers:
        if any(key in layer for key in _TEXT):
            merged = {key: value for key, value in merged.items() if key not in _TEXT}
        merged |= layer
    return merged


def _tasks(evaluate: Tables) -> tuple[str, ...]:
    """Return the tasks of [evaluate]."""
    return tasks_and_measures(text_of(evaluate.get("task", "none")))[0]


def _has_zero_shot(evaluate: Tables) -> bool:
    """Return whether [evaluate] fine-tunes tasks on the source and tests them on the derived language."""
    regimes = names(text_of(evaluate.get("regime", ",".join(USUAL_REGIMES))), "regime")
    return bool(_tasks(evaluate)) and "zs" in regimes


def _languages(blocks: Iterable[Tables], tables: Tables) -> dict[str, list[Any]]:
    """Return the languages of a study, for its controls: the levels of `t`, and of the factors that it names."""
    axes = {"t", *named_in(table_of(tables, "cell", "").get("t", ""))}
    levels: dict[str, list[Any]] = {}
    for block in blocks:
        for factor, some in table_of(block, "factors", "").items():
            if factor in axes and isinstance(some, list):
                levels[factor] = list(dict.fromkeys([*levels.get(factor, []), *some]))
    return levels


def _evaluated(report: dict[str, Any], blocks: Iterable[Tables], place: str) -> dict[str, Any]:
    """Return [report] without published numbers of tasks that are not evaluated."""
    asked = {task.partition(":")[0] for block in blocks for task in _tasks(table_of(block, "evaluate", place))}
    others = [task for task in TASKS.names() if task not in asked]
    rows = tables_of(report, "published", f"{place} [report]", "report.published")
    return {**report, **({"published": [row for row in rows if row.get("task") not in others]} if rows else {})}
