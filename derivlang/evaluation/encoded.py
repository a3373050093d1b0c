"""The text that an evaluation reads, in both languages: read and encoded once for all checkpoints.

    --task pos,xnli --every-checkpoint      one reading of the treebank, one of XNLI, one of held-out text

The languages of a run are the same at every checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from derivlang.core.errors import DataError, StoreError, UsageError, parse_errors
from derivlang.engine.batches import Source
from derivlang.engine.job import Events, Job
from derivlang.engine.plan import source_files
from derivlang.evaluation.finetune_settings import MAX_LENGTH, SPLITS
from derivlang.evaluation.heldout import Heldout, TrainingText, check_files, training_text
from derivlang.evaluation.sets import Sets, check_sources, other_labels
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.tasks.base import NamedTask, Task, UntunedTask
from derivlang.evaluation.trained import PretrainedRun
from derivlang.formats.progress import stage
from derivlang.sources.corpus import Corpus
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.record import digest, file_hash
from derivlang.training.languages import DERIVED, SOURCE, Languages
from derivlang.training.languages.joint import SCRIPT_HINT
from derivlang.training.languages.readers import unknown_warning
from derivlang.training.run_folder import RUN

if TYPE_CHECKING:
    import torch

    from derivlang.evaluation.trained import PretrainedRun


class EncodedText:
    """The sets of some tasks, and held-out text of the run. They are read when they are first asked for.

    A task has its set in both languages, or, if its name gives the target one, a set in each.

    trained: any checkpoint of the run. keep: whether they are asked for again, by another checkpoint. Raise
    DerivlangError if a task's sources lack something.
    """

    def __init__(self, trained: PretrainedRun, options: EvaluateOptions, events: Events, *, keep: bool):
        self._trained, self._options, self._events, self._keep = trained, options, events, keep
        self._opened: dict[NamedTask, list[Source]] = {}
        self._sets: dict[Task, Sets] = {}
        for task in options.tasks:
            labels = set()
            for part in self._parts(task):
                self._opened[part] = self._open_task(part)
                if isinstance(part, Task):
                    labels.add(check_sources(part, [source.corpus for source in self._opened[part]])[1])
            if len(labels) > 1:
                raise other_labels(task)

    def _parts(self, task: NamedTask) -> list[NamedTask]:
        """Return the task, and the task on the target's own set, if it has one."""
        own = task.own.get(self._trained.target_name) if isinstance(task, Task) else None
        return [task] if own is None else [task, own]

    def _languages(self, task: NamedTask) -> Languages:
        """Return the languages in which the sources of a task are read: the run's, or one of them twice."""
        if isinstance(task, Task) and task.is_own:
            return self._trained.languages.of((DERIVED, DERIVED))
        return self._trained.languages if len(self._parts(task)) == 1 else self._trained.languages.of((SOURCE, SOURCE))

    def _open_task(self, task: NamedTask) -> list[Source]:
        """Return the sources of a task. Raise DerivlangError if one cannot be opened."""
        languages = self._languages(task)
        if isinstance(task, UntunedTask):
            request, corpus = task.find(request_of(task.source, self._options))
            task.check(corpus)  # before it may be parsed: a set of parses has no lines for messages
            return [self._open(languages, request, ())]
        assert isinstance(task, Task)
        # The first of two sets has train and dev. The test split of the second is found by `check_sources`.
        splits = [("train", "validation"), ()]
        if len(task.sources) == 1:
            splits = [() if task.is_own else (*SPLITS.values(),)]
        names = zip(task.sources, splits, strict=True)
        return [self._open(languages, request_of(name, self._options), wanted) for name, wanted in names]

    def sources_of(self, task: NamedTask) -> list[Source]:
        """Return the sources of a task, opened, in the order of their names."""
        return [source for part in self._parts(task) for source in self._opened[part]]

    def sets_of(self, task: Task) -> Sets:
        """Return the sets of a task. Raise DerivlangError as of `Sets.read`."""
        ours, *own = (self._read(part) for part in self._parts(task) if isinstance(part, Task))
        return own[0].beside(ours) if own else ours

    def _read(self, task: Task) -> Sets:
        if task not in self._sets:
            wanted = {"mixed": "cs" in self._options.regimes, "predictions": self._options.predictions}
            with stage(f"reading {task.name}"):
                self._sets[task] = Sets.read(self._languages(task), task, self._opened[task], **wanted)
        return self._sets[task] if self._keep else self._sets.pop(task)

    @property
    def heldout_length(self) -> int:
        """The maximum length of held-out sentences, in sub-words."""
        return min(self._trained.longest, self._options.heldout_length or MAX_LENGTH)

    @cached_property
    def heldout(self) -> Heldout:
        """The held-out text of the run's source, with a warning if the model hardly knows it."""
        trained, options, languages = self._trained, self._options, self._trained.languages
        if not trained.facts["source"]:
            raise UsageError(
                f"{trained.folder} was trained only on sentence pairs, so there is no held-out text",
                where="--measure",
                fix="give --measure none, and tasks with --task",
                id="no-text",
            )
        source, split = self._of_run("heldout")
        corpus = source.corpus
        # Without such a split, rows that --limit kept out of the training are held out.
        is_training = split == corpus.splits[0] and "checkpoint" not in trained.facts
        limit = ((trained.facts.get("settings") or {}).get("limit") or 0) if is_training else 0
        with stage("reading held-out text"):
            read = partial(Heldout.read, source, split, languages, max(options.pairs, options.sentences))
            try:
                text = read(self.heldout_length, limit)
            except DataError as error:
                if not limit or error.id != "no-sentences":
                    raise
                limit, text = 0, read(self.heldout_length)
        if is_training:
            where = f"{split}, after the first {limit:,} rows" if limit else split
            self._events.warn(
                f"{corpus.name} has no held-out split: the sentences come from {where}, which the run was trained on"
            )
        reader = languages.readers[DERIVED]
        if reader.lexicon is not None:
            share = languages.unknown_percent(text.derived.ids)
            tokenizer = f"the tokenizer of {reader.tokenizer.folder}"
            if told := unknown_warning(share, "the derived language", tokenizer, SCRIPT_HINT):
                self._events.warn(told)
        return text

    @cached_property
    def training(self) -> TrainingText:
        """The text that the run was trained on. Raise StoreError if its files are others now."""
        source, _ = self._of_run("training")
        settings = {"seq_len": self._trained.longest, **self._trained.facts["settings"]}
        with stage("reading training text"):
            return training_text(source, self._trained.languages, self._options.ngram_sentences, settings)

    def _of_run(self, kind: Literal["heldout", "training"]) -> tuple[Source, str]:
        """Return the source of the run, and its split of held-out text or of training.

        Raise StoreError unless the split has the files that run.json recorded.
        """
        facts = self._trained.facts
        request = request_of(facts["source"], self._options, facts.get("reading"))
        corpus = find(request)
        split, what = {
            "heldout": (corpus.heldout, "held-out text"), "training": (corpus.splits[0], "training text")
        }[kind]  # fmt: skip
        files = source_files(Job(corpus, encoding=request.encoding), [split])
        check_files(facts.get(f"{kind}_files"), files, what, f"the source of {self._trained.folder}")
        return self._open(self._trained.languages, request, (split,)), split

    def _open(self, languages: Languages, request: SourceRequest, splits: tuple[str, ...]) -> Source:
        self._trained.check_pipeline()
        parser, parses = self._options.parser, self._options.parses
        try:
            return Source.open(
                languages.pipeline, request, splits=splits, parser=parser, parses=parses, events=self._events
            )
        except UsageError as error:
            if error.id != "no-columns":
                raise
            fix = "give the file a header row with the names of its columns"  # this command has no --column-names
            raise DataError(error.what, where=error.where, fix=fix, id=error.id) from None


@dataclass(frozen=True, slots=True, eq=False)
class OpenedRun:
    """A run, or a checkpoint of it, that is evaluated on a target. made: the files of fine-tunings made so far."""

    trained: PretrainedRun
    options: EvaluateOptions
    text: EncodedText
    device: torch.device
    made: set[Path] = field(default_factory=set)


def request_of(name: str, options: EvaluateOptions, reading: dict[str, Any] | None = None) -> SourceRequest:
    """Return the request of a source by name. reading: how the run read its text, from run.json."""
    settings: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in (reading or {}).items()
    }
    with parse_errors(f"{RUN}: reading", "way to read a source", error=StoreError, id="run"):
        return SourceRequest(name, data_dir=options.data_dir, **settings)


def digest_of(corpus: Corpus) -> str:
    """Return 16 hex digits of the files of a corpus."""
    return digest([file_hash(part.path) for part in corpus.parts])
