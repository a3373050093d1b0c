"""Objectives by name: the built-in ones, and objectives from other packages (entry points `derivlang.objectives`)."""

from __future__ import annotations

from derivlang.core.errors import UsageError
from derivlang.core.plugins import Registry
from derivlang.core.spec import read_spec
from derivlang.training.objectives.base import Objective

OBJECTIVES: Registry[type[Objective]] = Registry(
    "objective",
    Objective,
    {
        "align-mlm": "derivlang.training.objectives.align_mlm:AlignMlm",
        "clm": "derivlang.training.objectives.clm:Clm",
        "dict-mlm": "derivlang.training.objectives.dict_mlm:DictMlm",
        "dict-tlm": "derivlang.training.objectives.dict_tlm:DictTlm",
        "mlm": "derivlang.training.objectives.mlm:Mlm",
        "ppa": "derivlang.training.objectives.ppa:Ppa",
        "tlm": "derivlang.training.objectives.tlm:Tlm",
        "weam": "derivlang.training.objectives.weam:Weam",
        "xlm": "derivlang.training.objectives.xlm:Xlm",
        "xlm-align": "derivlang.training.objectives.xlm_align:XlmAlign",
    },
    of_classes=True,
    overrides=("loss",),
)
objective_names = OBJECTIVES.names
find_objective = OBJECTIVES.find


def register_objective(objective: type[Objective]) -> type[Objective]:
    """Register an objective for this process. Works as a decorator, for notebooks and tests."""
    return OBJECTIVES.add(getattr(objective, "name", ""), objective)


def read_objective(spec: str) -> Objective:
    """Return the objective of a spec, `name[:value][:key=value]...`. Raise UsageError for a wrong spec."""
    parts = read_spec(spec, "--objective", "align-mlm:alpha=10")
    if len(parts) != 1:
        raise UsageError(f"{spec!r} names {len(parts)} objectives", where="--objective", fix="give one", id="bad-spec")
    name, values, keyed = parts[0]
    return find_objective(name).from_values(values, keyed)
