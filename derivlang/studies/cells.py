"""The cells of a grid: every combination of its factors' levels, with formulas filled in.

    t = ["trans", "inv"], seed = [1, 2]      trans.1  inv.1  trans.2  inv.2

The first factor varies fastest and the last one slowest. So with `seed` as the last factor, the first seed of every
condition comes before the second seed of any.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.settings import text_of
from derivlang.core.slug import slug
from derivlang.studies.commands import Level

_FORMULA = re.compile(r"\{([^{}]*)\}")
Axis = tuple[Mapping[str, Level], ...]  # levels that move together: of one factor, or of the lists of a [[zip]]


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
    def n_cells(self) -> int:
        return math.prod(map(len, self.axes))

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
    for combination in itertools.product(*reversed(grid.axes)):
        levels = {name: level for some in reversed(combination) for name, level in some.items()}
        named = {name: level for name, level in levels.items() if name in options}
        cell = {key: filled(value, levels, f"{place} [cell] {key}") for key, value in grid.cell.items()}
        evaluation = {key: filled(value, levels, f"{place} [evaluate] {key}") for key, value in grid.evaluate.items()}
        yield Cell(
            ".".join(slug(text_of(level)) for level in levels.values()), levels, {**shared, **named, **cell}, evaluation
        )


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
