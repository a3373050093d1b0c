"""The score columns of a report: of the tasks that runs have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from derivlang.evaluation.metrics import Metric
from derivlang.evaluation.report.published import METRIC, Line
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.registry import TASKS

REGIMES = (("sup", "SUP"), ("zs", "ZS"), ("delta", "Δ"))
MIXED = ("cs", "CS")  # shown where a run has it
DEV = "dev-"  # prefix of regimes on the derived dev set


@dataclass(frozen=True, slots=True)
class Column:
    """A metric of a task."""

    task: str
    metric: Metric

    @property
    def name(self) -> str:
        return self.metric.name

    @property
    def title(self) -> str:
        kind, _, which = self.task.partition(":")
        return " ".join(filter(None, [kind.upper(), which, self.metric.title or self.name]))

    @property
    def id(self) -> str:
        """The name in file names, in ASCII; another letter is its code point: `pos:é` gives `pos-e9-accuracy`."""
        parts = (c if c.isascii() else f"{ord(c):x}" for c in f"{self.task}-{self.name}")
        return "".join(part if part.isalnum() or part in "-_" else "-" for part in parts)

    @property
    def printed(self) -> bool:
        """Whether the paper reports it."""
        return METRIC.get(self.task) == self.name

    def of(self, line: Line, regime: str) -> float | None:
        """Return the number that the paper prints, or None."""
        places = {name: place for place, (name, _) in enumerate(REGIMES)}
        name = regime.removeprefix(DEV)
        return line[self.task][places[name]] if self.printed and name in places else None


def regimes_of(*, mixed: bool, dev: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the regimes of a table with their titles. mixed: with CS. dev: on the derived dev set."""
    found = (*REGIMES, MIXED) if mixed else REGIMES
    return tuple((f"{DEV}{name}", title) for name, title in found) if dev else found


def columns(tasks: Iterable[str], *, headline: bool = False, published: bool = True) -> tuple[Column, ...]:
    """Return all metrics of these tasks, or (headline) those of the main tables: the paper's, and the task's headline.

    published: whether the main tables have the paper's metric, too.

    Tasks without fine-tuning, and those of packages that are not installed, have none.
    """
    out = []
    for name in tasks:
        kind = name.partition(":")[0]
        if kind not in TASKS:
            continue
        task = TASKS.find(kind)
        if not issubclass(task, Task):
            continue
        metrics = {metric.name: metric for metric in task.metrics}
        main = dict.fromkeys([*([METRIC.get(kind, task.headline)] if published else []), task.headline])
        shown = main if headline else metrics
        out += [Column(name, metrics[metric]) for metric in shown]
    return tuple(out)
