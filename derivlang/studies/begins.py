"""Cells that begin from the runs of other cells of the study.

    init = "{t}.mlm.cold.1"            the run of this cell; "{t}.mlm.cold.1@500" its checkpoint of step 500
    embeddings = "from={t}.cold"       its embeddings

A name with `/`, such as "../other/RUN", and `hub:NAME` are not cells. A level stands in a name as in a folder's name:
`trans,inv` as trans-inv.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from derivlang.core.errors import UsageError, unknown
from derivlang.core.slug import slug
from derivlang.studies.cells import Cell

RUNS = "runs"
_OPTIONS = {"init": "", "embeddings": "from="}  # options that name a run, and what precedes the name
_HUB = "hub:"


def linked(cells: Sequence[Cell], place: str) -> list[Cell]:
    """Return the cells with what they need, and with the paths of these runs in place of the names.

    place: the file, for errors. Raise UsageError for a name that is not a cell, and for cells that need each other.
    """
    names = [cell.name for cell in cells]
    known, linked_cells = set(names), []
    for cell in cells:
        options, needs = dict(cell.options), []
        for key, before in _OPTIONS.items():
            given = options.get(key)
            if not isinstance(given, str) or not given.startswith(before):
                continue
            run, at, step = given.removeprefix(before).partition("@")
            inside = run.removeprefix(f"{RUNS}/")
            if given.startswith(_HUB) or ("/" in inside) or (inside != run and inside not in known):
                continue  # a run or a checkpoint from elsewhere
            name = slug(inside)
            if name not in known:
                fix = f"give a cell, or a path with a /, such as ./{run}"
                raise unknown("cell", name, names, where=f"{place}: cell {cell.name}: {key}", fix=fix)
            options[key] = f"{before}{RUNS}/{name}{at}{step}"
            needs.append(name)
        linked_cells.append(replace(cell, options=options, needs=tuple(dict.fromkeys(needs))))
    stages(linked_cells, place)
    return linked_cells


def stages(cells: Iterable[Cell], place: str = "") -> list[list[Cell]]:
    """Return the cells in stages, each in the given order: a cell comes one stage after the last one that it needs.

    Cells that are not given are taken as there. Raise UsageError for cells that need each other.

        b needs a, c needs b, d needs nothing  ->  [a, d], [b], [c]
    """
    left, in_stages = {cell.name: cell for cell in cells}, []
    while left:
        ready = [cell for cell in left.values() if not any(need in left for need in cell.needs)]
        if not ready:
            raise UsageError(_circle(left), where=place, fix="let one begin anew", id="study")
        for cell in ready:
            del left[cell.name]
        in_stages.append(ready)
    return in_stages


def with_needs(names: Iterable[str], cells: Mapping[str, Cell]) -> set[str]:
    """Return the names of some cells and of all that these need."""
    wanted: set[str] = set()
    left = list(names)
    while left:
        if (name := left.pop()) not in wanted:
            wanted.add(name)
            left += cells[name].needs
    return wanted


def _circle(left: Mapping[str, Cell]) -> str:
    """Return what is wrong with cells each of which needs one of them."""
    path: list[str] = [next(iter(left))]
    while path[-1] not in path[:-1]:
        path.append(next(need for need in left[path[-1]].needs if need in left))
    circle = path[path.index(path[-1]) : -1]
    if len(circle) == 1:
        return f"the cell {circle[0]} begins from itself"
    return f"the cells {', '.join(circle)} begin from each other"
