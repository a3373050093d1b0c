"""The sources that an evaluation reads: the sets of tasks, and the held-out text of the run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.core.parse_errors import parse_errors
from derivlang.engine.batches import Source
from derivlang.engine.job import Events, Job
from derivlang.engine.plan import source_files
from derivlang.evaluation.finetune_settings import MAX_LENGTH, SPLITS
from derivlang.evaluation.heldout import Heldout, check_files
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.named import NamedTask
from derivlang.evaluation.tasks.untuned import UntunedTask
from derivlang.evaluation.trained import PretrainedRun
from derivlang.evaluation.training_text import TrainingText
from derivlang.formats.progress import stage
from derivlang.sources.corpus import Corpus
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.listing import file_hash
from derivlang.store.record import digest
from derivlang.training.languages import DERIVED, SOURCE, Languages
from derivlang.training.languages.joint import SCRIPT_HINT
from derivlang.training.languages.readers import unknown_warning
from derivlang.training.run_folder import RUN


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """What an evaluation of a run reads, opened with the pipeline of its languages: the run's, or one of them twice."""

    trained: PretrainedRun
    options: EvaluateOptions
    events: Events
    languages: Languages

    def of(self, sides: tuple[int, int]) -> Sources:
        """Return the sources that are read in these of both languages."""
        return self if sides == (SOURCE, DERIVED) else replace(self, languages=self.languages.of(sides))

    def of_task(self, task: NamedTask) -> list[Source]:
        """Return the sources of a task. Raise DerivlangError if one cannot be opened."""
        if isinstance(task, UntunedTask):
            return [self._of_untuned(task)]
        assert isinstance(task, Task)
        # The first of two sets has train and dev. The test split of the second is found by `check_sources`.
        splits = [("train", "validation"), ()]
        if len(task.sources) == 1:
            splits = [() if task.is_own else (*SPLITS.values(),)]
        names = zip(task.sources, splits, strict=True)
        return [self._open(request_of(name, self.options), wanted) for name, wanted in names]

    def _of_untuned(self, task: UntunedTask) -> Source:
        request, corpus = task.find(request_of(task.source, self.options))
        task.check(corpus)  # before it may be parsed: a set of parses has no lines for messages
        return self._open(request, ())

    @property
    def heldout_length(self) -> int:
        """The maximum length of held-out sentences, in sub-words."""
        return min(self.trained.longest, self.options.heldout_length or MAX_LENGTH)

    def heldout(self) -> Heldout:
        """Return the held-out text of the run's source, with a warning if the model hardly knows it."""
        trained, options, languages = self.trained, self.options, self.languages
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
            self.events.warn(
                f"{corpus.name} has no held-out split: the sentences come from {where}, which the run was trained on"
            )
        reader = languages.readers[DERIVED]
        if reader.lexicon is not None:
            share = languages.unknown_percent(text.derived.ids)
            tokenizer = f"the tokenizer of {reader.tokenizer.folder}"
            if told := unknown_warning(share, "the derived language", tokenizer, SCRIPT_HINT):
                self.events.warn(told)
        return text

    def training_text(self) -> TrainingText:
        """Return the text that the run was trained on. Raise StoreError if its files are others now."""
        source, _ = self._of_run("training")
        settings = {"seq_len": self.trained.longest, **self.trained.facts["settings"]}
        with stage("reading training text"):
            return TrainingText.read(source, self.languages, self.options.ngram_sentences, settings)

    def _of_run(self, kind: Literal["heldout", "training"]) -> tuple[Source, str]:
        """Return the source of the run, and its split of held-out text or of training.

        Raise StoreError unless the split has the files that run.json recorded.
        """
        facts = self.trained.facts
        request = request_of(facts["source"], self.options, facts.get("reading"))
        corpus = find(request)
        split, what = {
            "heldout": (corpus.heldout, "held-out text"), "training": (corpus.splits[0], "training text")
        }[kind]  # fmt: skip
        files = source_files(Job(corpus, encoding=request.encoding), [split])
        check_files(facts.get(f"{kind}_files"), files, what, f"the source of {self.trained.folder}")
        return self._open(request, (split,)), split

    def _open(self, request: SourceRequest, splits: tuple[str, ...]) -> Source:
        self.trained.check_pipeline()
        pipeline, parser, parses = self.languages.pipeline, self.options.parser, self.options.parses
        try:
            return Source.open(pipeline, request, splits=splits, parser=parser, parses=parses, events=self.events)
        except UsageError as error:
            if error.id != "no-columns":
                raise
            fix = "give the file a header row with the names of its columns"  # this command has no --column-names
            raise DataError(error.what, where=error.where, fix=fix, id=error.id) from None


def request_of(name: str, options: EvaluateOptions, reading: dict[str, Any] | None = None) -> SourceRequest:
    """Return the request of a source by name. reading: the options with which the run read its text, from run.json."""
    settings: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in (reading or {}).items()
    }
    with parse_errors(f"{RUN}: reading", "way to read a source", error=StoreError, id="run"):
        return SourceRequest(name, data_dir=options.data_dir, **settings)


def digest_of(corpus: Corpus) -> str:
    """Return 16 hex digits of the files of a corpus."""
    return digest([file_hash(part.path) for part in corpus.parts])
