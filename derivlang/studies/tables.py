"""The tables and keys that a study's file may have, and the form of each value. What reads the file believes them.

check({"study": {"step": 3}}, "my.toml")      my.toml [study]: there is no key 'step'; did you mean steps?

The scales of a study: its file has the grids, and a scale says how large they are run.

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

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from importlib import resources
from itertools import chain
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.settings import names, text_of
from derivlang.evaluation.finetune_settings import USUAL_REGIMES
from derivlang.evaluation.tasks.registry import TASKS
from derivlang.studies.cells import named_in, tasks_in
from derivlang.studies.commands import EVALUATE, PRETRAIN, TypedFloat
from derivlang.studies.settings import SCALES

Tables = Mapping[str, Any]
_NUMBERS = re.compile(r"[\d.]+(, *[\d.]+)*")  # in a text, as on a command line
Form = Callable[[str, Any, str], None]  # called with a key, its value and the place of its table


def check_tables(tables: Tables, place: str) -> None:
    """Raise UsageError, with the table, for the first key that is not known or has a wrong value. place: the file."""
    for name in tables:
        if name not in _FILE:
            raise unknown("table", name, _FILE, where=place)
    _check(tables, _FILE, place)


def _check(table: Tables, known: Mapping[str, Any], where: str, path: str = "") -> None:
    """Raise UsageError for a table. known: the form of each key. path: of the table in the file, as "grid.cell."."""
    for key, value in table.items():
        form = known.get(key) or known.get("*")
        inner = f"{where[:-1]}.{key}]" if where.endswith("]") else f"{where} [{key}]"
        name = f"{path}{key}"
        if form is None:
            raise unknown("key", key, known, where=where)
        if isinstance(form, list):
            if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
                raise UsageError(f"{key} must be a list of tables", where=where, fix=f"write [[{name}]]", id="study")
            for number, one in enumerate(value, 1):
                _check(one, form[0], f"{where} {key} {number}", f"{name}.")
        elif isinstance(form, dict):
            if not isinstance(value, dict):
                raise UsageError(
                    f"{key} must be a table, not {value!r}", where=where, fix=f"write [{name}]", id="study"
                )
            _check(value, form, inner, f"{name}.")
        else:
            form(key, value, where)


def _of(form: str, is_right: Callable[[Any], bool]) -> Form:
    """Return a form of values. form: for messages."""

    def check(key: str, value: Any, where: str) -> None:
        if not is_right(value):
            raise UsageError(f"{key} = {value!r} must be {form}", where=where, id="bad-value")

    return check


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _levels(name: str, value: Any, where: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name):
        fix = "use letters, digits, -, _"
        raise UsageError(f"{name!r} is not the name of a factor", where=where, fix=fix, id="study")
    if name in PRETRAIN.reserved:
        PRETRAIN.check_key(name, value, where)
    if not isinstance(value, list) or not value or not all(map(_is_level, value)):
        what = f"{name} = {value!r} must be a list of levels, which are texts, numbers, true or false"
        fix = f"write e.g. {name} = [1, 2]"
        if _is_level(value):
            listed = value if _NUMBERS.fullmatch(str(value)) else json.dumps(value, ensure_ascii=False)
            fix = f"write {name} = [{listed}]"
        raise UsageError(what, where=where, fix=fix, id="bad-value")


def _is_level(value: Any) -> bool:
    return isinstance(value, (str, int, float))


def _distinct_levels(name: str, value: Any, where: str) -> None:
    _levels(name, value, where)
    texts = list(map(text_of, value))
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise UsageError(f"the factor {name} has the level {twice[0]} twice", where=where, id="study")


_text = _of("text", _is_text)
_texts = _of("a list of sources, each once", lambda value: _are_texts(value) and len(set(value)) == len(value))
_count = _of("a whole number of at least 1", lambda value: type(value) is int and value > 0)
_number = _of("a number", lambda value: type(value) is not bool and isinstance(value, (int, float)))
_level = _of("a text or a number", _is_level)
_scales = _of(f"a list of one scale or more: {', '.join(SCALES)}", _are_texts)
_STUDY = {
    "source": _text, "text": _texts, "treebanks": _texts, "model": _text, "steps": _count, "workers": _count,
    "threads": _count, "title": _text, "paper": _text, "table": _text, "scales": _scales,
}  # fmt: skip
_REPORT = {
    "baseline": {"*": _level},
    "x": _text,
    "lines": _text,
    "primary": _text,
    "test": _text,
    "names": {"*": {"*": _text}},
    "published": [
        {
            "task": _text, "metric": _text, "source": _text, "regime": _text, "value": _number,
            "values": {"*": _number}, "*": _level,
        }
    ],
}  # fmt: skip
_PARTS = {"factors": {"*": _distinct_levels}, "cell": {"*": PRETRAIN.check_key}, "evaluate": {"*": EVALUATE.check_key}}
_LANGUAGE = {**dict.fromkeys(("text", "t", "ids", "tokenizer", "part"), _text), "*": _level}
_CELLS = {**_PARTS, "zip": [{"*": _levels}], "languages": {"*": _LANGUAGE}}
_FILE = {
    **_CELLS,
    "study": _STUDY,
    "report": _REPORT,
    "scale": {"*": {**_PARTS, "study": _STUDY, "report": _REPORT, "seeds": _count}},
    "grid": [{**_CELLS, "name": _text, "scales": _scales, "scale": {"*": {**_PARTS, "seeds": _count}}}],
}


_SCALED = ("study", "cell", "evaluate", "factors", "report")
_TEXT = ("source", "text", "treebanks")  # of [study], one of which takes the place of another


def scaled(tables: Tables, scale: str | None, place: str) -> Tables:
    """Return the tables of a file at a scale, None for its first one; as they are if the file has no scales.

    place: the file. Raise UsageError for a scale that the file does not have.
    """
    scales = tables.get("study", {}).get("scales", [])
    _check_known(scales, SCALES, f"{place} [study]")
    _check_scales(tables, scales, place)
    for number, grid in enumerate(tables.get("grid", []), 1):
        _check_scales(grid, scales, f"{place} grid {number}")
    if scale is not None and not scales:
        fix = "leave it out, or write scales = [...] in [study]"
        raise UsageError(f"{place} has no scales", where="--scale", fix=fix, id="bad-value")
    if not scales:
        return tables
    name = scale or scales[0]
    _check_known([name], scales, "--scale")
    common = _common()[name]
    seeds = _of_scale(tables, name).get("seeds", common["seeds"])
    result = _overlaid(tables, name, seeds, common)
    if not tasks_in(result.get("evaluate", {})):  # then the scale's fine-tuning has nothing to tune
        result = _overlaid(tables, name, seeds, {**common, "evaluate": {}})
    grids = [_overlaid(grid, name, seeds, {}) for grid in tables.get("grid", []) if name in grid.get("scales", scales)]
    if _has_zero_shot(result):
        languages = _languages([result, *(grid for grid in grids if not grid.get("name"))], result)
        controls = [control for control in _common()["controls"] if name in control["scales"]]
        if any("text" in one for one in [*result.get("languages", {}).values()][1:]):  # no embeddings to copy from
            controls = [control for control in controls if "embeddings" not in control["cell"]]
        grids += [_overlaid({**one, "factors": {**languages, **one["factors"]}}, name, seeds, {}) for one in controls]
    if rows := result.get("report", {}).get("published"):
        asked = {task.partition(":")[0] for block in [result, *grids] for task in tasks_in(block.get("evaluate", {}))}
        others = [task for task in TASKS.names() if task not in asked]
        result["report"] = {**result["report"], "published": [row for row in rows if row.get("task") not in others]}
    return {**result, "grid": grids}


def _check_scales(table: Tables, scales: Collection[str], where: str) -> None:
    """Raise UsageError for a scale that a file or a grid names to no effect. scales: of the file."""
    own = table.get("scale", {})
    named = chain(table.get("scales", []), *map(_split, own))
    _check_known(named, scales, where, fix="name it in scales of [study]")
    if "factors" not in table and (lost := [key for key, changes in own.items() if "factors" in changes]):
        what = f"[scale.{lost[0]}.factors] has no [factors] to change"
        raise UsageError(what, where=where, fix="write it in the scale of a [[grid]]", id="study")


def _check_known(scales: Iterable[str], known: Collection[str], where: str, *, fix: str | None = None) -> None:
    for name in scales:
        if name not in known:
            raise unknown("scale", name, known, where=where, fix=fix)


@cache
def _common() -> dict[str, Any]:
    """Return scales.toml."""
    text = (resources.files("derivlang.studies") / "scales.toml").read_text("utf-8")
    return tomllib.loads(text, parse_float=TypedFloat)


def _split(names: str) -> list[str]:
    """Return the scales of a [scale."tiny,base"]."""
    return [name.strip() for name in names.split(",")]


def _of_scale(table: Tables, name: str) -> dict[str, Any]:
    """Return what the [scale.…] of a file or a grid have for a scale: what several scales share, then its own."""
    every = table.get("scale", {})
    merged: dict[str, Any] = {}
    for scales in sorted(every, key=lambda scales: "," not in scales):
        if name in _split(scales):
            for key, value in every[scales].items():
                merged[key] = _merged(merged.get(key, {}), value) if isinstance(value, dict) else value
    return merged


def _overlaid(table: Tables, name: str, seeds: int, common: Tables) -> dict[str, Any]:
    """Return a file or a grid at a scale: its own keys over what is common to all, its [scale.NAME] over both.

    seeds: the number of levels of `seed`, unless the scale has another one.
    """
    own = _of_scale(table, name)
    parts = {part: _merged(*(layer.get(part, {}) for layer in (common, table, own))) for part in _SCALED}
    if "seed" in parts["factors"]:
        parts["factors"]["seed"] = parts["factors"]["seed"][: own.get("seeds", seeds)]
    return {**table, **{part: merged for part, merged in parts.items() if merged}}


def _merged(*layers: Tables) -> dict[str, Any]:
    """Return the keys of all layers; a later layer has priority, and its `text` takes the place of a `source`."""
    merged: dict[str, Any] = {}
    for layer in layers:
        if any(key in layer for key in _TEXT):
            merged = {key: value for key, value in merged.items() if key not in _TEXT}
        merged |= layer
    return merged


def _has_zero_shot(tables: Tables) -> bool:
    """Return whether [evaluate] fine-tunes tasks on the source and tests them on the derived language."""
    evaluation = tables.get("evaluate", {})
    regimes = text_of(evaluation.get("regime", ",".join(USUAL_REGIMES)))
    return bool(tasks_in(evaluation)) and "zs" in names(regimes, "regime")


def _languages(blocks: Iterable[Tables], tables: Tables) -> dict[str, list[Any]]:
    """Return the languages of a study, for its controls: the levels of `t`, and of the factors that it names."""
    axes = {"t", *named_in(tables.get("cell", {}).get("t", ""))}
    levels: dict[str, list[Any]] = {}
    for block in blocks:
        for factor, some in block.get("factors", {}).items():
            if factor in axes:
                levels[factor] = list(dict.fromkeys([*levels.get(factor, []), *some]))
    return levels
