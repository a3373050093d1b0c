"""From options to a run's settings: what was asked for, else what the model's description says, else the defaults."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.training.devices import can_compile, has_bf16
from derivlang.training.model import Design
from derivlang.training.objectives.registry import read_objective
from derivlang.training.processes import use_threads
from derivlang.training.settings import Settings

_OWN = ("source", "spec", "objective", "model", "language_ids", "precision")


def settings_of(source: str, options: Mapping[str, Any]) -> tuple[Settings, Design, dict[str, Any]]:
    """(settings, the model's description, the fields of `Watch`) of options by name; None: not asked for.

    Sets the threads of torch. Raises UsageError.
    """
    design = Design.read(options["model"])
    names = [field.name for field in dataclasses.fields(Settings) if field.name not in _OWN]
    for name in design.training:
        if name not in names:
            raise unknown("setting of [training]", name, names, where=options["model"])
    described = dict(design.training)
    for name in {"coverage", "parallel"} & described.keys():  # 12.5 and "1/3" are both percents
        described[name] = str(described[name])
    given = {name: options[name] for name in names if options.get(name) is not None}
    if options.get("tokens") is not None or options.get("epochs") is not None:
        described["steps"] = 1  # they follow from the data
    use_threads(options.get("threads"), design.width)
    precision = options.get("precision") or "auto"
    if precision == "auto":
        precision = "bf16" if has_bf16() else "fp32"
    asked = options.get("language_ids")
    objective = read_objective(options["objective"])
    settings = Settings(
        source=source,
        spec=options["spec"],
        objective=str(objective),
        model=options["model"],
        language_ids=objective.language_ids and design.token_types if asked is None else asked,
        precision=precision,
        **{**described, **given},
    )
    compiled = options.get("compiled")
    watch = {
        "log_every": options.get("log_every") or 50,
        "save_every": options.get("save_every"),
        "keep": options.get("keep") or 2,
        "compile": can_compile() if compiled is None else compiled,
        "tensorboard": options.get("tensorboard"),
    }
    if watch["tensorboard"] is not None:
        try:
            import_module("torch.utils.tensorboard")
        except ImportError:
            raise UsageError(
                "TensorBoard is not installed",
                where="--tensorboard",
                fix="pip install tensorboard",
                id="missing-package",
            ) from None
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return settings, design, watch
