"""The cells of a study: every combination of a grid's factors, with formulas filled in, and what each begins from.

    t = ["trans", "inv"], seed = [1, 2]      trans.1  inv.1  trans.2  inv.2

The first factor varies fastest and the last one slowest. So with `seed` as the last factor, the first seed of every
condition comes before the second seed of any.

    init = "{t}.mlm.cold.1"            begins from the run of this cell; "{t}.mlm.cold.1@500" from its step 500

A name with `/`, such as "../other/RUN", and `hub:NAME` are not cells. A level stands in a name as in a folder's name:
`trans,inv` as trans-inv.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.names import slug
from derivlang.core.settings import text_of
from derivlang.evaluation.settings import tasks_and_measures
from derivlang.studies.commands import LANGUAGES, NAMES_FILE, PRETRAIN, Level
from derivlang.training.language import Language, read_languages

RUNS = "runs"
Axis = list[dict[str, Level]]  # levels that move together: of one factor, or of the lists of a [[zip]]
_FORMULA = re.compile(r"\{([^{}]*)\}")
_INIT = re.compile(r"(?!hub:)(?P<runs>runs/)?(?P<cell>[^/@]*)(?P<step>@.*)?")
_OF_PAIR = re.compile(r"[A-Za-z]\w*-[A-Za-z]\w*=")  # of --pairs en-fr=FILE and --dictionary


@dataclass(frozen=True, slots=True)
class Grid:
    """A product of factors. name: of an optional grid, which is left out unless it is asked for, else "".

    axes: the factors. cell, evaluate: options of `pretrain` and `evaluate`, with formulas.
    """

    name: str
    axes: list[Axis]
    cell: Mapping[str, Any]
    evaluate: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """A run of a study and its evaluation.

    levels: of each factor. options, evaluation: of the two commands. needs: the cell whose run it begins from, or "".
    """

    name: str
    levels: Mapping[str, Level]
    options: Mapping[str, Any]
    evaluation: Mapping[str, Any]
    needs: str = ""


def cells_of(grid: Grid, shared: Mapping[str, Any], place: str) -> Iterator[Cell]:
    """Yield the cells of a grid. A factor with the name of an option of `pretrain` sets it.

    shared: options that factors and [cell] may change. place: the file, for errors. Raise UsageError for a formula that
    names no factor.
    """
    if LANGUAGES in grid.cell:  # the first of them has the source
        shared = {key: value for key, value in shared.items() if key != "source"}
    for combination in itertools.product(*reversed(grid.axes)):
        levels = {name: level for some in reversed(combination) for name, level in some.items()}
        named = {name: level for name, level in levels.items() if name in PRETRAIN.options}
        cell = {key: filled(value, levels, f"{place} [cell] {key}") for key, value in grid.cell.items()}
        evaluation = {key: filled(value, levels, f"{place} [evaluate] {key}") for key, value in grid.evaluate.items()}
        name = ".".join(slug(text_of(level)) for level in levels.values())
        yield Cell(name, levels, {**shared, **named, **cell}, evaluation)


def filled(value: Any, levels: Mapping[str, Level], where: str) -> Any:
    """Return a value with `{factor}` replaced by the factor's level; a text that is one formula is the level itself.

    Raise UsageError for a formula that names no factor and for a brace without its partner.
    """
    if isinstance(value, list):
        return [filled(one, levels, where) for one in value]
    if not isinstance(value, str):
        return value
    for name in named_in(value):
        if name not in levels:
            raise unknown("factor", name, levels, where=where)
    if set(_FORMULA.sub("", value)) & set("{}"):
        raise UsageError(f"{value!r} has a brace without its partner", where=where, fix="write {factor}", id="study")
    whole = _FORMULA.fullmatch(value)
    return levels[whole[1]] if whole else _FORMULA.sub(lambda match: text_of(levels[match[1]]), value)


def named_in(value: Any) -> list[str]:
    """Return the factors that the formulas of a value name."""
    texts = value if isinstance(value, list) else [value]
    return [name for text in texts if isinstance(text, str) for name in _FORMULA.findall(text)]


def linked(cells: Iterable[Cell], place: str) -> list[Cell]:
    """Return the cells with what they need, and with the paths of these runs in place of the names.

    place: the file, for errors. Raise UsageError for a name that is not a cell, and for cells that need each other.
    """
    by_name = {cell.name: cell for cell in cells}
    for cell in by_name.values():
        given = cell.options.get("init")
        match = _INIT.fullmatch(given) if isinstance(given, str) else None
        if match and (not match["runs"] or match["cell"] in by_name):  # else it is a run or a checkpoint from elsewhere
            name = slug(match["cell"])
            if name not in by_name:
                fix = f"give a cell, or a path with a /, such as ./{match['cell']}"
                raise unknown("cell", name, by_name, where=f"{place}: cell {cell.name}: init", fix=fix)
            options = {**cell.options, "init": f"{RUNS}/{name}{match['step'] or ''}"}
            by_name[cell.name] = replace(cell, options=options, needs=name)
    for name in by_name:
        chain_of(name, by_name, place)
    return list(by_name.values())


def chain_of(name: str, cells: Mapping[str, Cell], place: str = "") -> list[str]:
    """Return a cell, the cell that it begins from, the one that this begins from, and so on.

    cells: by name; others are taken as there. Raise UsageError for cells that begin from each other.
    """
    chain = [name]
    while (needed := cells[chain[-1]].needs) in cells:
        if needed in chain:
            circle = chain[chain.index(needed) :]
            what = f"the cells {', '.join(circle)} begin from each other"
            if len(circle) == 1:
                what = f"the cell {needed} begins from itself"
            raise UsageError(what, where=place, fix="let one begin anew", id="study")
        chain.append(needed)
    return chain


def languages_of(cell: Cell) -> tuple[Language, ...]:
    """Return the languages of a cell's run, the source first."""
    if LANGUAGES in cell.options:
        return read_languages(cell.options[LANGUAGES])
    source, t, text = (text_of(cell.options.get(key, "")) for key in ("source", "t", "derived-source"))
    return Language(name="source", text=source), Language(name="derived", t=t, text=text)


def tasks_in(evaluation: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the tasks of an evaluation's options, without measures."""
    return tasks_and_measures(text_of(evaluation.get("task", "none")))[0]


def with_texts(options: Mapping[str, Any], change: Callable[[str, str], str]) -> dict[str, Any]:
    """Return options with other texts: paths, for example.

    change: called with an option and a text of its value; of a language with `source`, `t` and `tokenizer`, of
    --dictionary en-fr=FILE with FILE.
    """

    def changed(key: str, value: Any) -> Any:
        if key == LANGUAGES:
            return [str(of_language(one)) for one in read_languages(value)]
        if isinstance(value, list):
            return [changed(key, one) for one in value]
        if not isinstance(value, str):
            return value
        pair = _OF_PAIR.match(value) if key in NAMES_FILE else None
        names = pair[0] if pair else ""
        return names + change(key, value.removeprefix(names))

    def of_language(one: Language) -> Language:
        text, t, tokenizer = change("source", one.text), change("t", one.t), change("tokenizer", one.tokenizer)
        return replace(one, text=text, t=t, tokenizer=tokenizer)

    return {key: changed(key, value) for key, value in options.items()}


def texts_of(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the texts of options, each with the option, as `with_texts` has them."""
    texts: list[tuple[str, str]] = []

    def note(key: str, text: str) -> str:
        texts.append((key, text))
        return text

    with_texts(options, note)
    return texts
