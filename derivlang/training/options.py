"""The settings of a run from options, for the command and for `derivlang.pretrain` alike.

    a given option  >  the value in the model's config  >  the default

A warning names options without effect. options: the values by
`Declared.key`, None for what was not given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.settings import declared, given
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.training import run_folder
from derivlang.training.config import ModelConfig
from derivlang.training.devices import can_compile, has_bf16
from derivlang.training.foreign import checkpoint_folder, config_of
from derivlang.training.init_weights import has_language_ids, with_tokenizer
from derivlang.training.languages import tokenizer_of
from derivlang.training.objectives.base import Objective
from derivlang.training.objectives.registry import read_objective
from derivlang.training.pairs_only import SPEC, check_text
from derivlang.training.processes import use_threads
from derivlang.training.run import RunPlan
from derivlang.training.settings import Duration, LogSettings, Machine, RunPaths, TrainingSettings


def settings_of(source: str | None, options: Mapping[str, Any]) -> tuple[TrainingSettings, ModelConfig, LogSettings]:
    """The settings, the model's description and the log settings, of options by name; None: not asked for.

    source: None if it is not given, as the option `spec` may be: an objective may read only the pairs of a file. Set
    the number of torch threads as well. Raise UsageError for wrong values.
    """
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
        described["steps"] = 1  # they follow from the data
    use_threads(machine.threads, model_config.width)
    objective = read_objective(asked["objective"])
    check_text(objective, options, source=source is not None, spec=options["spec"] is not None)
    precision = machine.precision
    if precision == "auto":
        precision = "bf16" if has_bf16() else "fp32"
    if options.get("init") is None:
        told = objective.gets_language_ids(model_config)
    else:  # as the model that it begins from
        told = elsewhere is None and has_language_ids(options["init"])
    values = {
        "language_ids": told,
        **described,
        **asked,
        "objective": str(objective),
        "precision": precision,
    }
    spec = SPEC if options["spec"] is None else options["spec"]
    settings = TrainingSettings(source=source or "", spec=str(Pipeline.parse(spec)), **values)
    log_settings = LogSettings(
        **given(LogSettings, options), compile=can_compile() if machine.compile is None else machine.compile
    )
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return settings, model_config, log_settings


def _as_before(
    settings: TrainingSettings, options: Mapping[str, Any], before: Mapping[str, Any] | None
) -> TrainingSettings:
    """Return the settings with the language ids of a run to resume, unless the user asked for some.

    before: its record. Its version may have had another default, and a run that it began from may be gone.
    """
    recorded = (before or {}).get("settings", {}).get("language_ids")
    if options.get("language_ids") is not None or not isinstance(recorded, bool):
        return settings
    return replace(settings, language_ids=recorded)


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
    for name in {"coverage", "parallel"} & settings.keys():  # 12.5 and "1/3" are both percents
        settings[name] = str(settings[name])
    return settings


def _check_size(vocab_size: int | None, tokenizer: Path | None) -> None:
    """Raise UsageError if a tokenizer that is there has another size. None: not asked for; still to be trained."""
    if vocab_size is None or tokenizer is None or tokenizer_of(tokenizer).size == vocab_size:
        return
    raise UsageError(
        f"{tokenizer} has {tokenizer_of(tokenizer).size:,} entries",
        where="--vocab-size",
        fix="leave out --vocab-size; to train a tokenizer, leave out --tokenizer, or give --embeddings new with --init",
        id="other-tokenizer",
    )


def _warn_of_unread(options: Mapping[str, Any], objective: Objective, warn: Callable[[str], None]) -> None:
    """Warn of a setting that the objective does not read.

    The cells of a study, which give factors, share settings: nothing is said of these.
    """
    for one in declared(TrainingSettings).values() if not options["factors"] else ():
        if one.subject and one.name not in objective.reads() and options[one.key] is not None:
            warn(f"{objective.name} has no {one.subject}, so {one.option} has no effect")


def plan_of(
    settings: TrainingSettings,
    model_config: ModelConfig,
    request: SourceRequest | None,
    out: Path,
    options: Mapping[str, Any],
    *,
    resume: bool,
    warn: Callable[[str], None],
) -> RunPlan:
    """Return the plan of a run, for the command and for `derivlang.pretrain` alike.

    settings, model_config: as of `settings_of`. resume: whether a run in `out` goes on. warn: called for an option
    without effect. Raise DerivlangError for options that do not fit a file that they name.
    """
    before = run_folder.read(out) if resume and (out / run_folder.RUN).exists() else None
    settings = _as_before(settings, options, before)
    paths = RunPaths(out, parser=options.get("parser"), parses=options.get("parses"), **given(RunPaths, options))
    _check_size(options["vocab_size"], with_tokenizer(paths, settings, before).tokenizer)
    plan = RunPlan(settings, model_config, request, paths, Duration(**given(Duration, options)))
    _warn_of_unread(options, plan.objective, warn)
    return plan
