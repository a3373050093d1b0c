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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.names import slug
from derivlang.core.settings import text_of
from derivlang.evaluation.settings import tasks_and_measures
from derivlang.studies.commands import LANGUAGES, NAMES_FILE, Level
from derivlang.training.language import Language, read_languages

RUNS = "runs"
Axis = tuple[Mapping[str, Level], ...]  # levels that move together: of one factor, or of the lists of a [[zip]]
_FORMULA = re.compile(r"\{([^{}]*)\}")
_INIT = re.compile(r"(?!hub:)(?P<runs>runs/)?(?P<cell>[^/@]*)(?P<step>@.*)?")
_OF_PAIR = re.compile(r"[A-Za-z]\w*-[A-Za-z]\w*=")  # of --pairs en-fr=FILE and --dictionary


@dataclass(frozen=True, slots=True)
class Grid:
    """A product of factors. name: of an optional grid, which is left out unless it is asked for, else "".

    axes: the factors. cell, evaluate: options of `pretrain` and `evaluate`, with formulas.
    """

    name: str
    axes: tuple[Axis, ...]
    cell: Mapping[str, Any]
    evaluate: Mapping[str, Any]

    @property
    def factors(self) -> dict[str, list[Level]]:
        """The levels of each factor, in their order."""
        return {name: [levels[name] for levels in axis] for axis in self.axes for name in axis[0]}


@dataclass(frozen=True, slots=True)
class Cell:
    """A run of a study and its evaluation.

    levels: of each factor. options, evaluation: of the two commands. needs: the cells whose runs it begins from.
    """

    name: str
    levels: Mapping[str, Level]
    options: Mapping[str, Any]
    evaluation: Mapping[str, Any]
    needs: tuple[str, ...] = ()


def cells_of(grid: Grid, shared: Mapping[str, Any], options: Collection[str], place: str) -> Iterator[Cell]:
    """Yield the cells of a grid.

    shared: options that factors and [cell] may change. options: names of the options that a factor of the same name
    sets. place: the file, for errors. Raise UsageError for a formula that names no factor.
    """
    if LANGUAGES in grid.cell:  # the first of them has the source
        shared = {key: value for key, value in shared.items() if key != "source"}
    for combination in itertools.product(*reversed(grid.axes)):
        levels = {name: level for some in reversed(combination) for name, level in some.items()}
        named = {name: level for name, level in levels.items() if name in options}
        cell = {key: filled(value, levels, f"{place} [cell] {key}") for key, value in grid.cell.items()}
        evaluation = {key: filled(value, levels, f"{place} [evaluate] {key}") for key, value in grid.evaluate.items()}
        yield Cell(
            ".".join(slug(text_of(level)) for level in levels.values()), levels, {**shared, **named, **cell}, evaluation
        )


def languages_of(cell: Cell) -> tuple[Language, ...]:
    """Return the languages of a cell's run, the source first."""
    if LANGUAGES in cell.options:
        return read_languages(cell.options[LANGUAGES])
    source, t = text_of(cell.options["source"]), text_of(cell.options["t"])
    text = text_of(cell.options.get("derived-source", ""))
    return Language(name="source", text=source), Language(name="derived", t=t, text=text)


def tasks_in(evaluation: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the tasks of an evaluation's options, without measures."""
    return tasks_and_measures(text_of(evaluation.get("task", "none")))[0]


def with_paths(key: str, value: Any, change: Callable[[str, str], str]) -> Any:
    """Return the value of an option with other paths. change: called with the option and a text that may be a path."""
    if key == LANGUAGES:
        some = [(one, change("source", one.text), change("tokenizer", one.tokenizer)) for one in read_languages(value)]
        return [str(replace(one, text=text, tokenizer=tokenizer)) for one, text, tokenizer in some]
    if isinstance(value, list):
        return [with_paths(key, one, change) for one in value]
    if not isinstance(value, str):
        return value
    names = pair_in(key, value)
    return names + change(key, value.removeprefix(names))


def pair_in(key: str, value: str) -> str:
    """Return what names the languages of a file: en-fr= of --dictionary en-fr=FILE, "" if nothing does."""
    found = _OF_PAIR.match(value) if key in NAMES_FILE else None
    return found[0] if found else ""


def texts_of(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts of the value of an option, each with the option; of a language, of its settings.

    Of --dictionary en-fr=FILE it is FILE.
    """
    if key == LANGUAGES:
        for one in read_languages(value):
            yield from (("source", one.text), ("t", one.t), ("tokenizer", one.tokenizer))
    else:
        texts = (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str))
        yield from ((key, text.removeprefix(pair_in(key, text))) for text in texts)


def filled(value: Any, levels: Mapping[str, Level], where: str) -> Any:
    """Return a value with `{factor}` replaced by the factor's level; a text that is one formula is the level itself.

    Raise UsageError for a formula that names no factor and for a brace without its partner.
    """
    if isinstance(value, list):
        return [filled(one, levels, where) for one in value]
    if not isinstance(value, str):
        return value
    for name in _FORMULA.findall(value):
        if name not in levels:
            raise unknown("factor", name, levels, where=where)
    if set(_FORMULA.sub("", value)) & set("{}"):
        raise UsageError(f"{value!r} has a brace without its partner", where=where, fix="write {factor}", id="study")
    if whole := _FORMULA.fullmatch(value):
        return levels[whole[1]]
    return _FORMULA.sub(lambda match: text_of(levels[match[1]]), value)


def named_in(value: Any) -> set[str]:
    """Return the factors that the formulas of a value name."""
    texts = value if isinstance(value, list) else [value]
    return {name for text in texts if isinstance(text, str) for name in _FORMULA.findall(text)}


def linked(cells: Sequence[Cell], place: str) -> list[Cell]:
    """Return the cells with what they need, and with the paths of these runs in place of the names.

    place: the file, for errors. Raise UsageError for a name that is not a cell, and for cells that need each other.
    """
    names = {cell.name: None for cell in cells}
    linked_cells = []
    for cell in cells:
        given = cell.options.get("init")
        match = _INIT.fullmatch(given) if isinstance(given, str) else None
        if match is None or (match["runs"] and match["cell"] not in names):
            linked_cells.append(cell)  # a run or a checkpoint from elsewhere
            continue
        name = slug(match["cell"])
        if name not in names:
            fix = f"give a cell, or a path with a /, such as ./{match['cell']}"
            raise unknown("cell", name, names, where=f"{place}: cell {cell.name}: init", fix=fix)
        options = {**cell.options, "init": f"{RUNS}/{name}{match['step'] or ''}"}
        linked_cells.append(replace(cell, options=options, needs=(name,)))
    stages(linked_cells, place)
    return linked_cells


def stages(cells: Iterable[Cell], place: str = "") -> list[list[Cell]]:
    """Return the cells in stages, each in the given order: a cell comes one stage after the last one that it needs.

    Cells that are not given are taken as there. Raise UsageError for cells that need each other.

        b needs a, c needs b, d needs nothing  ->  [a, d], [b], [c]
    """
    by_name = {cell.name: cell for cell in cells}
    sorter = TopologicalSorter(
        {name: [need for need in cell.needs if need in by_name] for name, cell in by_name.items()}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        circle = error.args[1][:0:-1]  # of the first cell, of the one that it needs, and so on to the first
        what = f"the cells {', '.join(circle)} begin from each other"
        if len(circle) == 1:
            what = f"the cell {circle[0]} begins from itself"
        raise UsageError(what, where=place, fix="let one begin anew", id="study") from None
    in_stages = []
    while sorter.is_active():
        ready = set(sorter.get_ready())
        in_stages.append([cell for name, cell in by_name.items() if name in ready])
        sorter.done(*ready)
    return in_stages


def with_needs(names: Iterable[str], cells: Iterable[Cell]) -> set[str]:
    """Return the names of some cells and of all that these need."""
    wanted = set(names)
    for cell in itertools.chain.from_iterable(reversed(stages(cells))):
        if cell.name in wanted:
            wanted.update(cell.needs)
    return wanted
