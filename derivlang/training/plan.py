"""The plan of a run: what to train, on what, and where; of options for the command and for `derivlang.pretrain` alike.

    a given option  >  the value in the model's config  >  the default

options: values by the name of the setting; None: not given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.messages import warn
from derivlang.core.settings import declared, given
from derivlang.lexical.settings import warn_of_fractions
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.training import run_folder
from derivlang.training.begun_from import checkpoint_folder, config_of, has_language_ids, with_tokenizer
from derivlang.training.config import ModelConfig
from derivlang.training.devices import can_compile, has_bf16, only_main_warns, use_threads
from derivlang.training.language import Language, named_pairs, read_languages
from derivlang.training.languages import tokenizer_of
from derivlang.training.objectives.base import Objective
from derivlang.training.objectives.registry import read_objective
from derivlang.training.settings import CHOSEN, RunPaths, SessionSettings, TrainingSettings

_SPEC = "identity"  # of sentence pairs without a source
_FILES = ("dictionary", "pairs")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is to be trained, on what, and where.

    settings: with the objective and the spec in their usual spelling; model_config: of the model that they name. Both
    as `settings_of` gives them. request: None for an objective that reads only the pairs of a file. resume: whether a
    run that is there goes on; before: its record. force: whether one is replaced.
    """

    settings: TrainingSettings
    model_config: ModelConfig
    request: SourceRequest | None
    paths: RunPaths
    session: SessionSettings = SessionSettings()
    resume: bool = False
    force: bool = False
    before: dict[str, Any] | None = None

    @property
    def objective(self) -> Objective:
        return read_objective(self.settings.objective)


@only_main_warns()
def plan_of(
    settings: TrainingSettings,
    model_config: ModelConfig,
    request: SourceRequest | None,
    out: Path,
    session: SessionSettings,
    options: Mapping[str, Any],
    *,
    resume: bool,
    force: bool,
) -> RunPlan:
    """Return the plan of a run, and warn of an option without effect.

    settings, model_config, session: as of `settings_of`. Raise DerivlangError for options that do not fit a file that
    they name.
    """
    before = run_folder.read(out) if resume and (out / run_folder.RUN).exists() else None
    # The run that it began from, which may be gone, may have had the language of each position.
    recorded = (before or {}).get("settings", {}).get("language_ids")
    if options.get("language_ids") is None and isinstance(recorded, bool):
        settings = replace(settings, language_ids=recorded)
    paths = RunPaths(run=out, **given(RunPaths, options))
    _check_size(options["vocab_size"], with_tokenizer(paths, settings, before).tokenizer)
    plan = RunPlan(settings, model_config, request, paths, session, resume, force, before)
    # The cells of a study, which give factors, share settings: nothing is said of these.
    for name, one in CHOSEN.items() if not options["factor"] else ():
        if name not in plan.objective.reads() and options[one.name] is not None:
            warn(f"{plan.objective.name} has no {one.subject}, so {one.option} has no effect on the training")
    if not options["factor"]:
        warn_of_fractions(TrainingSettings, options)
    if paths.dictionary and not options["factor"] and not plan.objective.dictionary:
        warn(f"{plan.objective.name} reads no dictionary, so --dictionary does not change the training")
    return plan


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


def settings_of(
    source: str | None, options: Mapping[str, Any]
) -> tuple[TrainingSettings, ModelConfig, SessionSettings]:
    """The settings, the model's description and how the run goes, of options by name; None: not asked for.

    source: None if it is not given, as the option `spec` may be: an objective may read only the pairs of a file. Set
    the number of torch threads as well. Raise UsageError for wrong values.
    """
    session = SessionSettings(**given(SessionSettings, options))
    precision = session.precision if session.precision != "auto" else "bf16" if has_bf16() else "fp32"
    settings, model_config = _settings(source, {**options, "precision": precision})
    use_threads(session.threads, model_config.width)
    if session.tracker:
        _check_trackers(tuple(session.tracker))
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return (
        settings,
        model_config,
        replace(session, compile=can_compile() if session.compile is None else session.compile),
    )


def _check_trackers(asked: tuple[str, ...]) -> None:
    """Raise UsageError for a tracker that `accelerate` does not know, or whose package is not installed.

    asked: NAME=PROJECT each.
    """
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers

    for name in (one.partition("=")[0] for one in asked):
        if name not in LOGGER_TYPE_TO_CLASS:
            raise unknown("experiment tracker", name, LOGGER_TYPE_TO_CLASS, where="--tracker", id="unknown-tracker")
        if name not in map(str, get_available_trackers()):
            raise UsageError(
                f"{name} is not installed", where="--tracker", fix=f"pip install {name}", id="missing-package"
            )


def with_languages(source: str | None, options: dict[str, Any]) -> str | None:
    """Return the source of a run; --language gives it with others, or is changed to the short form of two languages.

    Languages with texts of their own, and those that a file names, as --pairs en-fr=FILE, have no short form. options:
    by name, changed in place. Raise UsageError for languages that are wrong.
    """
    if not options.get("language"):
        return source
    asked = read_languages(options["language"])
    if asked[0].lang:  # the others keep the run's
        lang = options.get("lang") or ""
        asked = tuple(replace(one, lang=one.lang or (lang if one.text else "")) for one in asked)
        options["lang"] = asked[0].lang
    first, second = asked[:2]
    parts = first.part, second.part
    short = (
        Language(name=first.name, text=first.text, part=first.part),
        Language(name=second.name, t=second.t, part=second.part),
    )
    halves = parts == ("1/2", "2/2")
    named = options.get("dictionary") or any("=" in str(file) for file in options.get("pairs") or ())
    if asked == short and (halves or not any(parts)) and not named:
        options |= {"language": (), "halves": halves or None}
    else:
        options["language"] = tuple(map(str, asked))
        for name in _FILES:
            named_pairs(options.get(name) or (), asked, f"--{name}")
    options["spec"] = second.t
    return first.text


def check_options(source: str | None, options: Mapping[str, Any]) -> None:
    """Raise UsageError for wrong values, as `settings_of`, without loading torch."""
    _settings(source, {**options, "precision": "fp32"})
    SessionSettings(**given(SessionSettings, options))


def _settings(source: str | None, options: Mapping[str, Any]) -> tuple[TrainingSettings, ModelConfig]:
    """Return what `settings_of` does, without the log. options: with a precision other than auto."""
    asked = given(TrainingSettings, options)
    elsewhere = None if options.get("init") is None else checkpoint_folder(options["init"])
    if elsewhere is None:
        model_config = ModelConfig.read(asked["model"])
    elif asked["model"] != declared(TrainingSettings)["model"].default:
        raise UsageError(
            f"{options['init']} is a model already, but --model {asked['model']} asks for another one",
            where="--model",
            fix="leave one of them out",
            id="other-model",
        )
    else:
        asked["model"] = options["init"]
        model_config = config_of(elsewhere, options["init"])
    described = dict(model_config.training)
    names = [one.name for one in declared(TrainingSettings).values() if one.in_file]
    for name in described:
        if name not in names:
            raise unknown("setting of [training]", name, names, where=asked["model"])
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
    _check_text(objective, options, source=source is not None, spec=options["spec"] is not None)
    if options.get("init") is None:
        told = objective.language_ids and model_config.takes_languages
    else:  # as the model that it begins from
        told = elsewhere is None and has_language_ids(options["init"])
    values = {"language_ids": told, **described, **asked, "objective": str(objective)}
    spec = _SPEC if options["spec"] is None else options["spec"]
    return TrainingSettings(source=source or "", spec=str(Pipeline.parse(spec)), **values), model_config


def _check_text(objective: Objective, options: Mapping[str, Any], *, source: bool, spec: bool) -> None:
    """Raise UsageError if a source or transforms are missing that the objective needs, or if options have no source.

    options: of `pretrain`. source, spec: whether they are given.
    """
    if source and spec:
        return
    if objective.reads_text({name for name in _FILES if options.get(name)}):
        pairs = "" if objective.reads_text(_FILES) else ", or sentence pairs with --pairs"
        raise UsageError(
            f"is missing: {objective.name} reads the text of a source and of its derived language",
            where="--t" if source else "--source",
            fix=f"give --source and --t{pairs}",
            id="missing-option",
        )
    for one in declared(SourceRequest).values() if not source else ():
        if one.option and options.get(one.name) not in (None, (), one.default):
            raise UsageError("has no effect without --source", where=one.option, fix="leave it out", id="unused-option")
    if not source and options.get("data_only"):
        raise UsageError("there is no text to encode without --source", where="--data-only", id="unused-option")
