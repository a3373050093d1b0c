"""Objectives by name: the built-in ones, and those of other packages by entry point.

[project.entry-points."derivlang.objectives"]
mine = "my_package.mine:Mine"
"""

from __future__ import annotations

from derivlang.core.errors import UsageError
from derivlang.core.plugins import find_class, plug_ins
from derivlang.core.spec import read_spec
from derivlang.training.objectives.base import Objective

GROUP = "derivlang.objectives"
_HERE = "derivlang.training.objectives"
_BUILT_IN = {
    "align-mlm": f"{_HERE}.align_mlm:AlignMlm",
    "dict-mlm": f"{_HERE}.dict_mlm:DictMlm",
    "mlm": f"{_HERE}.mlm:Mlm",
    "tlm": f"{_HERE}.tlm:Tlm",
    "xlm": f"{_HERE}.xlm:Xlm",
}
_ADDED: dict[str, type[Objective]] = {}


def register_objective(objective: type[Objective]) -> type[Objective]:
    """Register an objective for this process. Works as a decorator, for notebooks and tests."""
    _ADDED[objective.name] = objective
    return objective


def objective_names() -> list[str]:
    return sorted({*_BUILT_IN, *_ADDED, *plug_ins(GROUP)})


def find_objective(name: str) -> type[Objective]:
    """Return the class of this name.

    Raise UsageError with similar names if there is none, or if a plug-in is not an Objective.
    """
    return find_class(name, Objective, GROUP, _BUILT_IN, _ADDED)


def read_objective(spec: str) -> Objective:
    """Return the objective of a spec, `name[:value][:key=value]...`. Raise UsageError for a wrong spec."""
    parts = read_spec(spec, "--objective", "align-mlm:alpha=10")
    if len(parts) != 1:
        raise UsageError(f"{spec!r} names {len(parts)} objectives", where="--objective", fix="give one", id="bad-spec")
    name, values, keyed = parts[0]
    return find_objective(name).from_values(values, keyed)
