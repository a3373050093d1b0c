"""The plan of a run: what to train, on what, and where; of options for the command and for `derivlang.pretrain`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.settings import declared, given
from derivlang.sources.request import SourceRequest
from derivlang.store.record import digest
from derivlang.training import run_folder
from derivlang.training.begun_from import with_tokenizer
from derivlang.training.config import ModelConfig
from derivlang.training.languages import tokenizer_of
from derivlang.training.objectives.base import Objective
from derivlang.training.objectives.registry import read_objective
from derivlang.training.settings import Duration, RunPaths, TrainingSettings


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is to be trained, on what, and where.

    settings: with the objective and the spec in their usual spelling; model_config: of the model that they name. Both
    as `options.settings_of` gives them. request: None for an objective that reads only the pairs of a file.
    """

    settings: TrainingSettings
    model_config: ModelConfig
    request: SourceRequest | None
    paths: RunPaths
    duration: Duration = Duration()

    @property
    def objective(self) -> Objective:
        return read_objective(self.settings.objective)

    @property
    def fingerprint(self) -> str:
        """16 hex digits of what is asked, without the run's folder: equal for the same command."""
        paths = replace(self.paths, run=Path())
        return digest([self.settings, self.request, paths, self.duration, self.model_config])


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
    paths = RunPaths(run=out, parser=options.get("parser"), parses=options.get("parses"), **given(RunPaths, options))
    _check_size(options["vocab_size"], with_tokenizer(paths, settings, before).tokenizer)
    plan = RunPlan(settings, model_config, request, paths, Duration(**given(Duration, options)))
    _warn_of_unread(options, plan.objective, warn)
    return plan


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
    for one in declared(TrainingSettings).values() if not options["factor"] else ():
        if one.subject and one.name not in objective.reads() and options[one.name] is not None:
            warn(f"{objective.name} has no {one.subject}, so {one.option} has no effect")
