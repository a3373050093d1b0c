"""Tasks by name: the built-in ones, and tasks from other packages (entry points `derivlang.tasks`).

Help pages import this module, which therefore imports nothing heavy.
"""

from __future__ import annotations

from derivlang.core.errors import UsageError
from derivlang.core.plugins import Registry
from derivlang.evaluation.tasks.base import OWN, NamedTask, Task

TASKS: Registry[type[NamedTask]] = Registry(
    "task",
    NamedTask,
    {
        "blimp": "derivlang.evaluation.tasks.blimp:MinimalPairs",
        "dep": "derivlang.evaluation.tasks.dep:Dependencies",
        "ner": "derivlang.evaluation.tasks.labelling:NamedEntities",
        "pawsx": "derivlang.evaluation.tasks.labelling:Paraphrases",
        "pos": "derivlang.evaluation.tasks.labelling:PartsOfSpeech",
        "qa": "derivlang.evaluation.tasks.qa:Questions",
        "xnli": "derivlang.evaluation.tasks.labelling:Inference",
    },
    of_classes=True,
)


def register_task(task: type[NamedTask]) -> type[NamedTask]:
    """Register a task for this process. Works as a decorator, for notebooks and tests."""
    return TASKS.add(task.kind, task)


def tuned_tasks() -> dict[str, type[Task]]:
    """Return the tasks that need fine-tuning, by name."""
    tasks = {name: TASKS.find(name) for name in TASKS.names()}
    return {name: task for name, task in tasks.items() if issubclass(task, Task)}


def task_of(name: str) -> NamedTask:
    """Return the task of a name such as `pos` or `pos:French-GSD`. Raise UsageError with similar names otherwise."""
    kind, colon, argument = name.partition(":")
    task_type = TASKS.find(kind)
    if not issubclass(task_type, Task):
        if not argument:
            demo = f" or {kind}:demo" if getattr(task_type, "demo", "") else ""
            raise UsageError(f"{name!r} names no set", where="--task", fix=f"write {kind}:FILE{demo}", id="usage")
        return task_type(name)
    if colon and not all(argument.replace("=", "+").split("+")):
        raise UsageError(
            f"{name!r} names no set after the colon", where="--task", fix="write e.g. pos:French-GSD", id="usage"
        )
    task = task_type(name)
    are_own = [OWN.match(given) is not None for given in task.sets]
    if are_own != sorted(are_own):
        target = next(iter(task.own))
        raise UsageError(
            f"{name!r} has a set of the source after {target}=SET",
            where="--task",
            fix=f"give a target one set, and write the source's sets first: {kind}:TRAIN+TEST+{target}=SET",
            id="usage",
        )
    if len(task.sources) > 2 or sum(are_own) > len(task.own):
        raise UsageError(
            f"{name!r} names more than two sets" if len(task.sources) > 2 else f"{name!r} gives a target two sets",
            where="--task",
            fix="write TRAIN+TEST, the set of train and dev and the set of test; TARGET=SET adds one for each target",
            id="usage",
        )
    return task
