"""The settings of a run from options, for the command and for `derivlang.pretrain` alike.

    a given option  >  the value in the model's config  >  the default

A warning names options without effect. options: the values by
`Declared.key`, None for what was not given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.settings import declared, given
from derivlang.pipeline import Pipeline
from derivlang.training.begun_from import has_language_ids
from derivlang.training.config import ModelConfig
from derivlang.training.devices import can_compile, has_bf16, use_threads
from derivlang.training.foreign import checkpoint_folder, config_of
from derivlang.training.language import Language, read_languages
from derivlang.training.objectives.registry import read_objective
from derivlang.training.pairs_only import SPEC, check_text
from derivlang.training.settings import Duration, LogSettings, Machine, Precision, TrainingSettings


def settings_of(source: str | None, options: Mapping[str, Any]) -> tuple[TrainingSettings, ModelConfig, LogSettings]:
    """The settings, the model's description and the log settings, of options by name; None: not asked for.

    source: None if it is not given, as the option `spec` may be: an objective may read only the pairs of a file. Set
    the number of torch threads as well. Raise UsageError for wrong values.
    """

    machine = Machine(**given(Machine, options))
    settings, model_config = asked_settings(source, options, auto="bf16" if has_bf16() else "fp32")
    use_threads(machine.threads, model_config.width)
    log_settings = LogSettings(
        **given(LogSettings, options), compile=can_compile() if machine.compile is None else machine.compile
    )
    if log_settings.tracker:
        from derivlang.training.trainer import check_trackers  # imported late: it loads torch

        check_trackers(tuple(log_settings.tracker))
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return settings, model_config, log_settings


def with_languages(source: str | None, options: dict[str, Any]) -> str | None:
    """Return the source of a run; --language gives it with others, or is changed to the short form of two languages.

    Languages with texts of their own, and those that a file names, as --pairs en-fr=FILE, have no short form. options:
    by name, changed in place. Raise UsageError for languages that are wrong.
    """
    if not options.get("language"):
        return source
    asked = read_languages(options["language"])
    first, second = asked[:2]
    parts = first.part, second.part
    short = [Language(name=first.name, text=first.text, part=first.part)]
    short.append(Language(name=second.name, t=second.t, part=second.part))
    halves = parts == ("1/2", "2/2")
    named = options.get("dictionary") or any("=" in str(file) for file in options.get("pairs") or ())
    if list(asked) == short and (halves or not any(parts)) and not named:
        options |= {"language": (), "halves": halves or None}
    else:
        options["language"] = tuple(map(str, asked))
    options["spec"] = second.t
    return first.text


def check_options(source: str | None, options: Mapping[str, Any]) -> None:
    """Raise UsageError for wrong values, as `settings_of`, without loading torch."""
    asked_settings(source, options, auto="fp32")
    LogSettings(**given(LogSettings, options))
    Duration(**given(Duration, options))


def asked_settings(
    source: str | None, options: Mapping[str, Any], *, auto: Precision
) -> tuple[TrainingSettings, ModelConfig]:
    """Return what `settings_of` does but for the log. auto: the precision that `--precision auto` stands for."""
    asked, machine = given(TrainingSettings, options), Machine(**given(Machine, options))
    asked.pop("precision", None)  # `Machine` has its own, which may be auto
    elsewhere = None if options.get("init") is None else checkpoint_folder(options["init"])
    if elsewhere is None:
        model_config = ModelConfig.read(asked["model"])
        described = _described(model_config, asked["model"])
    else:
        model_config, tied = _of_checkpoint(elsewhere, asked, options["init"])
        described = {**model_config.training, "tie": tied}
    if options.get("tokens") is not None or options.get("epochs") is not None:
        described["steps"] = None  # they follow from the data
    elif asked.get("steps", described.get("steps")) is None:
        raise UsageError(
            f"the model {asked['model']} does not say how long to train",
            where="--steps",
            fix="give --steps",
            id="usage",
        )
    objective = read_objective(asked["objective"])
    check_text(objective, options, source=source is not None, spec=options["spec"] is not None)
    if options.get("init") is None:
        told = objective.gets_language_ids(model_config)
    else:  # as the model that it begins from
        told = elsewhere is None and has_language_ids(options["init"])
    values = {
        "language_ids": told,
        **described,
        **asked,
        "objective": str(objective),
        "precision": auto if machine.precision == "auto" else machine.precision,
    }
    spec = SPEC if options["spec"] is None else options["spec"]
    return TrainingSettings(source=source or "", spec=str(Pipeline.parse(spec)), **values), model_config


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
    settings = dict(model_config.training)
    for name in {"dict_coverage", "parallel"} & settings.keys():  # 12.5 and "1/3" are both percents
        settings[name] = str(settings[name])
    return settings
