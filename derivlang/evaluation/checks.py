"""Whether a run can be evaluated as asked: checks before anything is read or trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from derivlang.core.errors import UsageError
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.tasks.base import PairTask, Task
from derivlang.evaluation.tasks.named import NamedTask
from derivlang.evaluation.tasks.registry import tuned_tasks
from derivlang.evaluation.tasks.untuned import UntunedTask
from derivlang.training.frozen_parts import check_layers

if TYPE_CHECKING:  # studies check their tasks without torch
    from derivlang.evaluation.trained import PretrainedRun


def check_asked(trained: PretrainedRun, options: EvaluateOptions) -> None:
    """Raise UsageError if a regime does not suit a task, or if the model cannot do a task."""
    check_mixed(options)
    for task in options.tasks:
        _check_model(trained, task)


def with_seen_regimes(trained: PretrainedRun, options: EvaluateOptions, warn: Callable[[str], None]) -> EvaluateOptions:
    """Return the options without regimes that fine-tune on the source, if the model has never seen the source.

    warn: called with what was left out. Raise UsageError if no regime is left.
    """
    unseen = [regime for regime in options.regimes if regime != "sup"]
    if trained.has_seen_source or not unseen or not any(isinstance(task, Task) for task in options.tasks):
        return options
    why = f"{trained.folder} was trained only on the derived language (--languages derived)"
    if len(unseen) == len(options.regimes):
        raise UsageError(
            f"{why}, so it is not fine-tuned on the source",
            where="--regime",
            fix="give --regime sup, or train on both languages",
            id="unseen-source",
        )
    warn(f"{why}, so regimes that fine-tune on the source are left out: {', '.join(unseen)}")
    return replace(options, regimes=("sup",))


def check_mixed(options: EvaluateOptions) -> None:
    """Raise UsageError for the regime cs if a fine-tuned task has no mixed pairs, or if two do not fit into a batch."""
    tuned = [task for task in options.tasks if isinstance(task, Task)]
    for task in tuned if "cs" in options.regimes else ():
        if not isinstance(task, PairTask):
            names = ", ".join(sorted(name for name, kind in tuned_tasks().items() if issubclass(kind, PairTask)))
            raise UsageError(
                f"cs mixes the two sides of pairs, which {task.kind} does not have",
                where="--regime",
                fix=f"leave out cs, or evaluate apart the tasks that have pairs: {names}",
                id="no-pairs",
            )
        if task.settings.batch_size % 2:
            raise UsageError(
                f"cs puts the two mixed pairs of an example into one batch; got {task.settings.batch_size}",
                where="--batch-size",
                fix="give an even number",
                id="bad-value",
            )


def _check_model(trained: PretrainedRun, task: NamedTask) -> None:
    """Raise UsageError if the model cannot do the task."""
    if isinstance(task, UntunedTask):
        if not trained.has_lm_head:
            raise UsageError(
                f"the model of {trained.folder} has no language-model head, which {task.kind} needs",
                where="--task",
                fix="leave it out",
                id="no-head",
            )
    elif trained.causal and isinstance(task, Task) and not task.causal:
        suited = ", ".join(sorted(name for name, kind in tuned_tasks().items() if kind.causal))
        raise UsageError(
            f"{task.kind} needs an encoder, but the model of {trained.folder} is causal ({trained.config.model_type})",
            where="--task",
            fix=f"leave it out; {suited}, blimp:FILE and --measure perplexity,surprisal suit causal models",
            id="causal-model",
        )


def fitting(tasks: Sequence[NamedTask], trained: PretrainedRun) -> list[NamedTask]:
    """Return the tasks with rows that fit into the model, and labels where its states have seen what they label.

    The published length is lowered if necessary. Raise UsageError for a length that the user gave.
    """
    return [_fitting(task, trained) if isinstance(task, Task) else task for task in tasks]


def _fitting(task: Task, trained: PretrainedRun) -> Task:
    task, longest = replace(task, last=trained.causal), trained.longest
    check_layers(task.settings.freeze, trained.config.num_hidden_layers)
    if task.settings.max_length <= longest:
        return task
    if task.settings.max_length == task.defaults.max_length:
        return task.with_settings(max_length=longest)
    raise UsageError(
        f"the model takes rows of at most {longest} sub-words", where="--max-length", fix="lower it", id="bad-value"
    )


def why_not_measured(name: str, measure: Measure, trained: PretrainedRun) -> str:
    """Return why a measure has to be left out for this model, "" if it suits it."""
    if measure.needs_head and not trained.has_lm_head:
        return f"the model has no language-model head, so there is no {name}"
    if measure.needs_causal and not (trained.causal and trained.has_lm_head):
        return f"{name} needs a causal language model, so there is none of this {trained.config.model_type}"
    if measure.needs_training_text and (why := _unread_text(trained.facts)):
        return f"{name} needs the text that both languages were trained on, but {why}"
    if measure.needs_twin and not trained.languages.are_mapped:
        return f"{name} needs a tokenizer with a twin, so there is none of these languages"
    return ""


def _unread_text(facts: Mapping[str, Any]) -> str:
    """Return why the text of a run's training cannot be read as one text of both languages, "" if it can."""
    if "checkpoint" in facts:
        return "the model was trained elsewhere"
    if facts.get("init"):
        return "the model begins from another run, with a text of its own"
    settings = facts["settings"]
    return next((f"each has another one ({option})" for name, option in _TWO_TEXTS.items() if settings.get(name)), "")


_TWO_TEXTS = {"halves": "--halves", "derived_source": "--derived-source"}
