"""The score columns of a report: always those of the paper's three tasks, and those of other sets that runs have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from derivlang.evaluation.metrics import METRICS, Metric
from derivlang.evaluation.report import published
from derivlang.evaluation.report.published import Line

TASKS = ("xnli", "ner", "pos")  # the paper's order
REGIMES = (("sup", "SUP"), ("zs", "ZS"), ("delta", "Δ"))
DEV = "dev-"  # prefix of regimes on the derived dev set
ON_DEV = tuple((f"{DEV}{name}", title) for name, title in REGIMES)
_HEADLINE = {"xnli": ("accuracy",), "ner": ("f1",), "pos": ("seqeval_f1", "accuracy")}
_NAMES = {"seqeval_f1": "seqeval F1", "macro_f1": "macro F1", "f1": "F1"}


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
        return " ".join(filter(None, [kind.upper(), which, _NAMES.get(self.name, self.name)]))

    @property
    def id(self) -> str:
        """The name in file names."""
        return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in f"{self.task}-{self.name}")

    @property
    def printed(self) -> bool:
        """Whether the paper reports it."""
        return published.METRIC.get(self.task) == self.name

    def of(self, line: Line, regime: str) -> float | None:
        """Return the number that the paper prints, or None."""
        place = [name for name, _ in REGIMES].index(regime.removeprefix(DEV))
        return line[self.task][place] if self.printed else None


def columns(tasks: Iterable[str], *, headline: bool = False) -> tuple[Column, ...]:
    """Return all metrics of these tasks, or (headline) those of the main tables. Unknown kinds of tasks have none."""
    out = []
    for task in tasks:
        kind = task.partition(":")[0]
        found = {metric.name: metric for metric in METRICS.get(kind, ())}
        out += [Column(task, found[name]) for name in (_HEADLINE.get(kind, ()) if headline else found)]
    return tuple(out)
