"""The text that an evaluation reads, in both languages: read and encoded once for all tasks and checkpoints.

    --task pos,dep,xnli --every-checkpoint      one reading of the treebank, one of XNLI, one of held-out text

The languages of a run are the same at every checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.engine.batches import Source
from derivlang.evaluation.heldout import Heldout
from derivlang.evaluation.sets import Sets, check_sources, other_labels
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.sources import Sources
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.named import NamedTask
from derivlang.evaluation.training_text import TrainingText
from derivlang.formats.progress import stage
from derivlang.training.languages import DERIVED, SOURCE

if TYPE_CHECKING:
    import torch

    from derivlang.evaluation.trained import PretrainedRun


class EncodedText:
    """The sets of some tasks, and held-out text. Sets are read when they are first asked for.

    A task has its set in both languages, or, if its name gives the target one, a set in each.

    keep: whether they are asked for again, by another checkpoint. Raise DerivlangError if a task's sources lack
    something.
    """

    def __init__(self, sources: Sources, tasks: Sequence[NamedTask], *, keep: bool):
        self._sources, self._keep = sources, keep
        self._opened: dict[NamedTask, list[Source]] = {}
        self._sharing: dict[tuple[Any, ...], list[Task]] = {}  # the tasks of the same sources, which are read together
        self._sets: dict[Task, Sets] = {}
        for task in tasks:
            if not isinstance(task, Task):
                self._opened[task] = sources.of_task(task)
            elif len({self._open(part) for part in self._parts(task)}) > 1:
                raise other_labels(task)

    def _open(self, task: Task) -> tuple[str, ...]:
        """Open the sources of a task, and return its labels."""
        others = self._sharing.setdefault(self._place(task), [])
        self._opened[task] = self._opened[others[0]] if others else self._sources.of(self._place(task)[0]).of_task(task)
        others.append(task)
        return check_sources(task, [source.corpus for source in self._opened[task]])[1]

    def _parts(self, task: Task) -> list[Task]:
        """Return the task, and the task on the target's own set, if it has one."""
        own = task.own.get(self._sources.trained.target_name)
        return [task] if own is None else [task, own]

    def _place(self, task: Task) -> tuple[tuple[int, int], tuple[str, ...]]:
        """Return the languages in which the sources of a task are read, and these."""
        sides = (DERIVED,) * 2 if task.is_own else (SOURCE, (DERIVED, SOURCE)[len(self._parts(task)) - 1])
        return sides, task.sources

    def sources_of(self, task: NamedTask) -> list[Source]:
        """Return the sources of a task, opened, in the order of their names."""
        parts: Sequence[NamedTask] = self._parts(task) if isinstance(task, Task) else [task]
        return [source for part in parts for source in self._opened[part]]

    def sets_of(self, task: Task) -> Sets:
        """Return the sets of a task. Raise DerivlangError as of `Sets.read`."""
        ours, *own = map(self._read, self._parts(task))
        return own[0].beside(ours) if own else ours

    def _read(self, task: Task) -> Sets:
        if task not in self._sets:
            options, place = self._sources.options, self._place(task)
            together = self._sharing[place]
            with stage(f"reading {', '.join(each.name for each in together)}"):
                read = Sets.read(
                    self._sources.of(place[0]).languages,
                    together,
                    self._opened[task],
                    mixed="cs" in options.regimes,
                    predictions=options.predictions,
                )
            self._sets |= dict(zip(together, read, strict=True))
        return self._sets[task] if self._keep else self._sets.pop(task)

    @property
    def heldout_length(self) -> int:
        """The maximum length of held-out sentences, in sub-words."""
        return self._sources.heldout_length

    @cached_property
    def heldout(self) -> Heldout:
        """The held-out text of the run's source. Raise DerivlangError as of `Sources.heldout`."""
        return self._sources.heldout()

    @cached_property
    def training(self) -> TrainingText:
        """The text that the run was trained on. Raise DerivlangError as of `Sources.training_text`."""
        return self._sources.training_text()


@dataclass(frozen=True, slots=True, eq=False)
class OpenedRun:
    """A run, or a checkpoint of it, that is evaluated on a target. made: the files of fine-tunings made so far."""

    trained: PretrainedRun
    options: EvaluateOptions
    tasks: Sequence[NamedTask]
    text: EncodedText
    device: torch.device
    made: set[Path] = field(default_factory=set)
