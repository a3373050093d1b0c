"""Whether a run can be evaluated as asked, and on what: checks before anything is read or trained.

On each target of a run, sets are derived for it, or sets and files are in its language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.core.errors import UsageError, unknown
from derivlang.evaluation.columns import SIDES
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.registry import file_of, measure_of
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.tasks.base import OWN, NamedTask, Task, UntunedTask
from derivlang.evaluation.tasks.registry import tuned_tasks
from derivlang.sources.named import named_source
from derivlang.training import run_folder
from derivlang.training.language import Language, read_languages
from derivlang.training.settings import check_layers

if TYPE_CHECKING:
    from derivlang.evaluation.trained import PretrainedRun


def suited(trained: PretrainedRun, options: EvaluateOptions, warn: Callable[[str], None]) -> EvaluateOptions:
    """Return the options as they suit a run.

    Rows fit into the model, and labels are where its states have seen what they label. Regimes that fine-tune on the
    source are left out, with a warning, if the model has never seen the source. Raise UsageError if the model cannot do
    a task or if no regime is left, DerivlangError for a file of a measure that is missing or damaged.
    """
    for task in options.tasks:
        _check_model(trained, task)
    options = _with_seen_regimes(trained, options, warn)
    tasks = tuple(_fitting(task, trained) if isinstance(task, Task) else task for task in options.tasks)
    for name in options.measures:
        measure_of(name, trained.target_name).check(trained.languages)
    return replace(options, tasks=tasks)


def _with_seen_regimes(
    trained: PretrainedRun, options: EvaluateOptions, warn: Callable[[str], None]
) -> EvaluateOptions:
    """Return the options without regimes that fine-tune on the source, if the model has never seen the source.

    warn: called with what was left out. Raise UsageError if no regime is left.
    """
    unseen = [regime for regime in options.regimes if regime != "sup"]
    facts = trained.facts
    # Weights that it began from may have seen the source.
    has_seen_source = (facts.get("settings") or {}).get("languages") != "derived" or facts.get("init")
    if has_seen_source or not unseen or not any(isinstance(task, Task) for task in options.tasks):
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


def _fitting(task: Task, trained: PretrainedRun) -> Task:
    """Return the task with rows that fit into the model. The published length is lowered if necessary.

    Raise UsageError for a length that the user gave.
    """
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
    if "head" in measure.needs and not trained.has_lm_head:
        return f"the model has no language-model head, so there is no {name}"
    if "causal" in measure.needs and not (trained.causal and trained.has_lm_head):
        return f"{name} needs a causal language model, so there is none of this {trained.config.model_type}"
    if "training text" in measure.needs and (why := _unread_text(trained.facts)):
        return f"{name} needs the text that both languages were trained on, but {why}"
    if "twin" in measure.needs and not trained.languages.are_mapped:
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


def targets_of(
    folder: Path, target: str | None, options: EvaluateOptions, warn: Callable[[str], None]
) -> dict[str, EvaluateOptions]:
    """Return the options for each target of a run, by name. The name is "" if the run has no --language.

    target: the one to evaluate; None for all. The options of a target lack what cannot be evaluated on it: files in
    other languages. Nothing is derived for a target with a text of its own and no transforms, so it keeps only the
    sets and files that name it, and is left out if none does. warn: called with what is left out.

    Raise UsageError for a language that the run lacks, for a given set of a target whose sets are derived, for a task
    whose default set is in another language than the source, and if nothing is left.
    """
    facts = run_folder.read(folder)
    several = facts["settings"].get("language")
    source, *languages = read_languages(several) if several else (Language(name=name) for name in SIDES)
    _check_defaults(options, facts, source)
    names = [one.name for one in languages]
    if target and not (several and target in names):
        return {target: options}  # refused when the run is read
    for name in (name for task in options.tasks if isinstance(task, Task) for name in task.own):
        if name == source.name:
            fix = f"write its sets first, without {name}=, as in pos:SET+{names[0]}=SET"
            raise UsageError(f"{name} is the source, not a target", where="--task", fix=fix, id="languages")
        if name not in names:
            raise unknown("target", name, names, where="--task")
    for file in filter(None, map(file_of, options.measures)):
        sides = file[1]
        if len({*sides}) < 2 or {*sides} - {*names} != {source.name} if sides else len(names) > 1 and not target:
            raise UsageError(
                f"{'-'.join(sides)} are not the source and a target" if sides else "a file of which two languages?",
                where="--measure",
                fix=f"name {source.name} and one of {', '.join(names)}, as in links:{source.name}-{names[0]}=FILE",
                id="languages",
            )
    asked = {one: _for(one, options) for one in languages if target in (None, one.name)}
    found = {one: some for one, some in asked.items() if some.tasks or some.measures}
    if not found:
        raise _nothing(next(iter(asked)))
    if unnamed := [one.name for one in asked if one not in found and _is_natural(one)]:
        told = f"name one, e.g. pos:{unnamed[0]}=SET"
        warn(f"{' and '.join(unnamed)}: not evaluated, as a text of its own has no derived sets: {told}")
    for one, some in found.items():
        left = [task.label for task in options.tasks if task not in some.tasks]
        left += [name for name in options.measures if name not in some.measures and file_of(name) is None]
        if left:
            warn(f"{one.name}: left out, as a text of its own is not parallel to the source's: {', '.join(left)}")
    return {one.name if several else "": some for one, some in found.items()}


def _check_defaults(options: EvaluateOptions, facts: Mapping[str, Any], source: Language) -> None:
    """Raise UsageError for a task without a set whose default set is in another language than the run's source.

    facts: of run.json. The language is of the source's word rules, or of the set of a named source.
    """
    told = source.lang or (facts.get("reading") or {}).get("lang") or _language_of(str(facts.get("source") or ""))
    for task in options.tasks:
        if not isinstance(task, Task) or any(not OWN.match(name) for name in task.sets):
            continue
        default = _language_of(f"{task.source}:{task.default}")
        if told and default and told != default:
            raise UsageError(
                f"the source of the run is in {told!r}, but the default set of {task.kind}, "
                f"{task.kind}:{task.default}, is in {default!r}",
                where="--task",
                fix=f"name a set, as {task.kind}:SET; {task.kind}:{task.default} takes the default set",
                id="languages",
            )


def _language_of(name: str) -> str:
    """Return the code of the language of a named source, "" for a path."""
    named, argument = named_source(name)
    return "" if named is None else named.language_of(argument)


def _is_natural(language: Language) -> bool:
    """Return whether nothing in a language is derived from the source."""
    return bool(language.text) and language.t == "identity"


def _for(language: Language, options: EvaluateOptions) -> EvaluateOptions:
    """Return the options without what cannot be evaluated on a language; no tasks and no measures if nothing is left.

    Raise UsageError for a given set of a language whose sets are derived.
    """
    name, natural = language.name, _is_natural(language)
    named = tuple(task for task in options.tasks if isinstance(task, Task) and name in task.own)
    if named and not natural:
        raise UsageError(
            f"{named[0].name}: the sets of {name} are derived from the source's",
            where="--task",
            fix=f"leave out {name}=",
            id="no-set",
        )
    files = {one: file_of(one) for one in options.measures}
    of_files = (one for one, file in files.items() if (name in (file[1] or (name,)) if file else not natural))
    return replace(options, tasks=named if natural else options.tasks, measures=tuple(of_files))


def _nothing(language: Language) -> UsageError:
    """Return the error for a target on which nothing can be evaluated."""
    name = language.name
    if _is_natural(language):
        what = f"{name} has a text of its own, so no set can be derived for it, and none is given"
        fix = f"give a labelled set in it, --task pos:{name}=SET, or a file, --measure links:SOURCE-{name}=FILE"
        return UsageError(what, where="--task", fix=fix, id="no-set")
    what = f"there is nothing to evaluate for {name}, as the files are in other languages"
    return UsageError(what, where="--measure", fix=f"name a file in it, links:SOURCE-{name}=FILE", id="no-set")
