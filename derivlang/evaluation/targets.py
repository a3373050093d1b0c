"""What is evaluated on each target of a run: sets that are derived for it, or sets and files in its language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from derivlang.core.errors import UsageError, unknown
from derivlang.evaluation.columns import SIDES
from derivlang.evaluation.measures.registry import file_of
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.tasks.base import Task
from derivlang.training import run_folder
from derivlang.training.language import Language, read_languages


def targets_of(
    folder: Path, target: str | None, options: EvaluateOptions, warn: Callable[[str], None]
) -> dict[str, EvaluateOptions]:
    """Return the options for each target of a run, by name. The name is "" if the run has no --language.

    target: the one to evaluate; None for all. The options of a target lack what cannot be evaluated on it: files in
    other languages. Nothing is derived for a target with a text of its own and no transforms, so it keeps only the
    sets and files that name it, and is left out if none does. warn: called with what is left out.

    Raise UsageError for a language that the run lacks, for a given set of a target whose sets are derived, and if
    nothing is left.
    """
    several = run_folder.read(folder)["settings"].get("language")
    source, *languages = read_languages(several) if several else (Language(name=name) for name in SIDES)
    names = [one.name for one in languages]
    if target and not (several and target in names):
        return {target: options}  # refused when the run is read
    for name in (name for task in options.tasks if isinstance(task, Task) for name in task.own):
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
