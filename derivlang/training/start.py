"""A run's settings from options: a given option, else the value in the model's config, else the default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.settings import declared, given
from derivlang.pipeline import Pipeline
from derivlang.training.config import ModelConfig
from derivlang.training.devices import can_compile, has_bf16
from derivlang.training.foreign import checkpoint_folder, config_of
from derivlang.training.objectives.registry import read_objective
from derivlang.training.processes import use_threads
from derivlang.training.settings import LogSettings, Machine, TrainingSettings


def settings_of(source: str, options: Mapping[str, Any]) -> tuple[TrainingSettings, ModelConfig, LogSettings]:
    """The settings, the model's description and the log settings, of options by name; None: not asked for.

    Set the number of torch threads as well. Raise UsageError for wrong values.
    """
    asked, machine = given(TrainingSettings, options), Machine(**given(Machine, options))
    asked.pop("precision", None)  # that of `Machine`, which may be auto
    elsewhere = None if options.get("init") is None else checkpoint_folder(options["init"])
    if elsewhere is None:
        model_config = ModelConfig.read(asked["model"])
        described = _described(model_config, asked["model"])
    else:
        model_config, tied = _of_checkpoint(elsewhere, asked, options["init"])
        described = {**model_config.training, "tie": tied}
    if options.get("tokens") is not None or options.get("epochs") is not None:
        described["steps"] = 1  # they follow from the data
    use_threads(machine.threads, model_config.width)
    objective = read_objective(asked["objective"])
    precision = machine.precision
    if precision == "auto":
        precision = "bf16" if has_bf16() else "fp32"
    found = {
        "language_ids": objective.language_ids and model_config.token_types and elsewhere is None,
        **described,
        **asked,
        "objective": str(objective),
        "precision": precision,
    }
    settings = TrainingSettings(source=source, spec=str(Pipeline.parse(options["spec"])), **found)
    log_settings = LogSettings(
        **given(LogSettings, options), compile=can_compile() if machine.compile is None else machine.compile
    )
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return settings, model_config, log_settings


def _of_checkpoint(folder: Path, asked: dict[str, Any], name: str) -> tuple[ModelConfig, bool]:
    """Return the config of a checkpoint and whether its embeddings are tied; `asked["model"]` becomes its name.

    Raise UsageError if another model was asked for.
    """
    if asked["model"] != declared(TrainingSettings)["model"].default:
        raise UsageError(
            f"{name} is a model already, but --model {asked['model']} asks for another one",
            where="--model",
            fix="leave one of them out",
            id="other-model",
        )
    asked["model"] = name
    return config_of(folder, name)


def _described(model_config: ModelConfig, where: str) -> dict[str, Any]:
    """The settings of [training] in a model's description. Raise UsageError for an unknown name."""
    names = [one.name for one in declared(TrainingSettings).values() if one.in_file]
    for name in model_config.training:
        if name not in names:
            raise unknown("setting of [training]", name, names, where=where)
    found = dict(model_config.training)
    for name in {"coverage", "parallel"} & found.keys():  # 12.5 and "1/3" are both percents
        found[name] = str(found[name])
    return found
