"""Tasks by name: the built-in ones, and those of other packages (entry points `derivlang.tasks`).

Help pages import this module, which therefore imports nothing heavy.
"""

from __future__ import annotations

from derivlang.core.errors import UsageError
from derivlang.core.plugins import Registry
from derivlang.evaluation.tasks.base import Task

TASKS: Registry[type[Task]] = Registry(
    "task",
    Task,
    {
        "dep": "derivlang.evaluation.tasks.dep:Dependencies",
        "ner": "derivlang.evaluation.tasks.ner:NamedEntities",
        "pawsx": "derivlang.evaluation.tasks.pawsx:Paraphrases",
        "pos": "derivlang.evaluation.tasks.pos:PartsOfSpeech",
        "qa": "derivlang.evaluation.tasks.qa:Questions",
        "xnli": "derivlang.evaluation.tasks.xnli:Inference",
    },
    of_classes=True,
)
task_names = TASKS.names
find_task = TASKS.find


def register_task(task: type[Task]) -> type[Task]:
    """Register a task for this process. Works as a decorator, for notebooks and tests."""
    return TASKS.add(task.kind, task)


def task_of(name: str) -> Task:
    """Return the task of a name such as `pos` or `pos:French-GSD`. Raise UsageError with similar names otherwise."""
    kind, colon, argument = name.partition(":")
    found = find_task(kind)
    if colon and not all(argument.split("+")):
        raise UsageError(
            f"{name!r} names no set after the colon", where="--task", fix="write e.g. pos:French-GSD", id="usage"
        )
    if argument.count("+") > 1:
        raise UsageError(
            f"{name!r} names more than two sets",
            where="--task",
            fix="write TRAIN+TEST: the set of train and dev, and the set of test",
            id="usage",
        )
    return found(name)
