"""The text that an evaluation reads, in both languages: read and encoded once for all tasks and checkpoints.

    --task pos,dep,xnli --every-checkpoint      one reading of the treebank, one of XNLI, one of held-out text

The languages of a run are the same at every checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from derivlang.engine.batches import Source
from derivlang.evaluation.heldout import Heldout
from derivlang.evaluation.sets import Sets, check_sources
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.sources import Sources
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.named import NamedTask
from derivlang.evaluation.training_text import TrainingText
from derivlang.formats.progress import stage

if TYPE_CHECKING:
    import torch

    from derivlang.evaluation.trained import PretrainedRun


class EncodedText:
    """The sets of some tasks, and held-out text. Sets are read when they are first asked for.

    keep: whether they are asked for again, by another checkpoint. Raise DerivlangError if a task's sources lack
    something.
    """

    def __init__(self, sources: Sources, tasks: Sequence[NamedTask], *, keep: bool):
        self._sources, self._keep = sources, keep
        self._opened: dict[NamedTask, list[Source]] = {}
        self._sharing: dict[tuple[str, ...], list[Task]] = {}  # the tasks of the same sources, which are read together
        self._sets: dict[Task, Sets] = {}
        for task in tasks:
            if not isinstance(task, Task):
                self._opened[task] = sources.of_task(task)
                continue
            others = self._sharing.setdefault(task.sources, [])
            self._opened[task] = self._opened[others[0]] if others else sources.of_task(task)
            check_sources(task, [source.corpus for source in self._opened[task]])
            others.append(task)

    def sources_of(self, task: NamedTask) -> list[Source]:
        """Return the sources of a task, opened."""
        return self._opened[task]

    def sets_of(self, task: Task) -> Sets:
        """Return the sets of a task. Raise DerivlangError as of `Sets.read`."""
        if task not in self._sets:
            options, together = self._sources.options, self._sharing[task.sources]
            with stage(f"reading {', '.join(each.name for each in together)}"):
                read = Sets.read(
                    self._sources.trained.languages,
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
