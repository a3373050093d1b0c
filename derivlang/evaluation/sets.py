"""A task's three sets as examples in both languages of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from derivlang.core.arrays import Int64, UInt64
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, UsageError
from derivlang.core.messages import counted, warn
from derivlang.engine.batches import Source
from derivlang.evaluation.documents import by_unit, numbered, unit_of, with_documents
from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.finetune_settings import SPLITS
from derivlang.evaluation.scores import Score, ScoredSet, set_hash
from derivlang.evaluation.set_names import short_name
from derivlang.evaluation.tasks.base import PairTask, Task
from derivlang.evaluation.told_rows import ToldRows
from derivlang.sources.corpus import Corpus
from derivlang.store.record import digest
from derivlang.training.languages import SOURCE, Languages

_MANY_LOST = 0.05  # of the labels of a split: what a score of the others no longer stands for


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """The examples of a task's three splits.

    key: digest of everything that they are made from. in_train: number of rows of test with the words of a row of
    train; in_whole_train: of a row of the whole split; train may be a part of it. scored: of test and dev, the set
    and the unit of each row, int64[S] or None if every row is one (`documents.py`). words: how the text was split into
    words (`Corpus.word_rule`). mixed: the mixed pairs of train, two neighbouring rows each; told: the rows of test, for
    people; None if not asked for. ours: the sets of the source, if the target has sets of its own; None: these.
    """

    train: Examples
    dev: Examples
    test: Examples
    key: str
    in_train: int
    in_whole_train: int
    scored: Mapping[str, tuple[ScoredSet, Int64 | None]]
    words: str
    mixed: Instances | None = None
    told: ToldRows | None = None
    ours: Sets | None = None

    def of(self, language: int) -> Sets:
        """Return the sets of a language, by its number."""
        return self.ours if language == SOURCE and self.ours is not None else self

    def beside(self, ours: Sets) -> Sets:
        """Return the sets of a target beside the source's."""
        words = ", ".join(dict.fromkeys([ours.words, self.words]))
        return replace(self, ours=ours, key=digest([self.key, ours.key]), words=words)

    def scores(self, split: str, counts: Mapping[str, Int64], regime: str, seed: int | None = None) -> list[Score]:
        """Return the score of each metric. counts: int64[S, k] by metric, of the rows of a split. seed: of the cell."""
        scored, units = self.scored[split]
        told: dict[str, Any] = {"regime": regime, "split": split, "ft_seed": seed, "set": scored}
        return [Score(name, by_unit(by_row, units), **told) for name, by_row in counts.items()]

    def learns_as(self, other: Sets) -> bool:
        """Return whether the source has the same training and dev sets in both, so that one fine-tuning is enough."""
        ours, theirs = (sets.of(SOURCE) for sets in (self, other))
        sides = ((sets.train.source, sets.dev.source) for sets in (ours, theirs))
        return ours.train.classes == theirs.train.classes and all(a.equals(b) for a, b in zip(*sides, strict=True))

    @property
    def told_of_test(self) -> dict[str, int]:
        """Numbers of the test set's rows and labels, for the record."""
        test = self.test
        return {
            "cut": int(test.truncated.sum()),
            "labels": len(test.source.gold) + test.unscored,
            "unscored": test.unscored,
            "cut_answers": int(test.wrong.sum()),
            "in_train": self.in_train,
            "in_whole_train": self.in_whole_train,
        }

    @classmethod
    def read(
        cls,
        languages: Languages,
        tasks: Sequence[Task],
        sources: Sequence[Source],
        *,
        mixed: bool = False,
        predictions: bool = False,
    ) -> list[Sets]:
        """Read the three splits of the sources that some tasks share: one, or one for train and dev and one for test.

        Each split is read once. mixed: whether train is wanted as mixed pairs, too, which a PairTask has. predictions:
        whether to keep the words of test.
        Raise DataError if a split or the labels are missing, UsageError if a task asks for more examples than exist.
        """
        corpora = [source.corpus for source in sources]
        found = [check_sources(task, corpora) for task in tasks]
        parts = {name: (sources[number], split) for name, (number, split) in found[0][0].items()}  # of all tasks
        splits: dict[str, list[_Taken]] = {}
        for name, (source, split) in parts.items():
            wanted = {"mixed": mixed and name == "train", "predictions": predictions and name == "test"}
            readers = [
                _SplitReader(task, languages, classes, **wanted)
                for task, (_, classes) in zip(tasks, found, strict=True)
            ]
            for batch in with_documents(source.batches(split)):
                for reader in readers:
                    reader.add(batch)
            splits[name] = [reader.taken(name, (source.corpus.name, split)) for reader in readers]
        for name in SPLITS.keys() - splits.keys():  # of a target's own set
            none = np.zeros(0, np.int64)
            splits[name] = [replace(one, examples=one.examples.take(none), keys=one.keys[:0]) for one in splits["test"]]
        keys = (_key(languages, task, sources, list(parts.values())) for task in tasks)
        taken = zip(*(splits[name] for name in SPLITS), strict=True)
        return [cls._of(*each, corpora) for each in zip(tasks, keys, taken, strict=True)]

    @classmethod
    def _of(cls, task: Task, key: str, taken: Sequence[_Taken], corpora: Sequence[Corpus]) -> Sets:
        """Return the sets of a task. taken: of train, dev and test. corpora: all that were read."""
        train, dev, test = taken
        return cls(
            train.examples,
            dev.examples,
            test.examples,
            key=key,
            in_train=_n_shared(test.examples, train.examples.keys),
            in_whole_train=_n_shared(test.examples, train.keys),
            scored={
                "dev": _scored(dev.examples, short_name(task.sources[0]), corpora[0]),
                "test": _scored(test.examples, short_name(task.sources[-1]), corpora[-1]),
            },
            words=", ".join(dict.fromkeys(corpus.word_rule for corpus in corpora)),
            mixed=train.mixed,
            told=test.told,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Taken:
    """The examples that a task takes of a split. keys: of the whole split. mixed, told: as in `Sets`."""

    examples: Examples
    keys: UInt64
    mixed: Instances | None
    told: ToldRows | None


class _SplitReader:
    """Makes the examples of a split for a task, batch by batch. mixed, predictions: as of `Sets.read`."""

    def __init__(self, task: Task, languages: Languages, classes: tuple[str, ...], *, mixed: bool, predictions: bool):
        self._task, self._languages, self._classes = task, languages, classes
        self._mixed, self._predictions = mixed, predictions
        self._examples: list[Examples] = []
        self._pairs: list[Examples] = []
        self._told: list[ToldRows] = []
        self._begun = 0

    def add(self, batch: Batch) -> None:
        """Add the examples of a batch."""
        task, languages, classes = self._task, self._languages, self._classes
        made = task.examples(batch, languages, classes)
        if self._predictions:
            self._told.append(ToldRows.of(made, languages, self._begun))
        self._examples.append(replace(made, origin=None))  # or it would keep the batch
        self._begun += batch.n_records
        if self._mixed and isinstance(task, PairTask):
            self._pairs.append(replace(task.mixed(batch, languages, classes), origin=None))

    def taken(self, name: str, place: tuple[str, str]) -> _Taken:
        """Return the examples that the task asks for, of train only those to learn from.

        name: of the set. place: its corpus and split, for messages. Errors as of `_taken`.
        """
        settings, every = self._task.settings, Examples.joined(self._examples)
        _warn_of_cut_labels(every, self._task, place)
        limit = {"train": settings.train_examples, "dev": settings.dev_examples}.get(name)
        if name == "train":
            every = every.learnable()
        if self._task.is_own and limit:  # the number is of the source's
            limit = min(limit, every.n_rows)
        pairs = None
        if self._pairs:
            pairs = _first(Examples.joined(self._pairs).learnable(), limit).interleaved()
        told = ToldRows.joined(self._told) if self._told else None
        return _Taken(_taken(every, limit, self._task.name, name, place), every.keys, pairs, told)


def _key(languages: Languages, task: Task, sources: Sequence[Source], parts: Sequence[tuple[Source, str]]) -> str:
    """Return the digest of everything that the examples are made from. parts: the source and the split of each set."""
    used = {id(source): [split for one, split in parts if one is source] for source in sources}
    return digest(
        {
            "files": [file for source in sources for file in source.files(used[id(source)])],
            "parsed": sources[0].corpus.options.get("parser"),
            "pipeline": languages.fingerprint(),
            **languages.signature,
            "task": task.kind,
        }
    )


def _warn_of_cut_labels(every: Examples, task: Task, place: tuple[str, str]) -> None:
    """Warn if the cut of long rows costs a split a share of its labels that matters. place: its corpus and split."""
    labels = len(every.source.gold) + every.unscored
    lost = every.unscored + int((every.source.gold < 0).any(axis=1).sum())
    if every.truncated.any() and lost >= _MANY_LOST * labels:
        warn(
            f"{task.name}: {lost:,} of {counted(labels, 'label')} in {place[1]} of {place[0]} ({lost / labels:.0%}) "
            f"are in no row, since rows are cut at {task.settings.max_length} sub-words (--max-length)"
        )


def _n_shared(test: Examples, keys: UInt64) -> int:
    """Return the number of rows of test with one of these keys."""
    return int(np.isin(test.keys, keys).sum())


def _first(every: Examples, n: int | None) -> Examples:
    """Return the first n of a keyed ranking; None: all."""
    return every if n is None else every.first(n)


def _taken(every: Examples, n: int | None, task: str, name: str, place: tuple[str, str]) -> Examples:
    """Return the first n of the examples of a set; None: all. place: its corpus and split, for messages.

    Raise UsageError if there are fewer, DataError if none is labelled in one of the languages.
    """
    if n is not None and n > every.n_rows:
        raise UsageError(
            f"{task} has only {every.n_rows:,} examples, got {n:,}", where=f"--{name}-examples", id="bad-value"
        )
    some = _first(every, n)
    if not (len(some.source.gold) and len(some.derived.gold)):  # a row of words may have no label
        others = len(every.source.gold) and len(every.derived.gold)
        raise DataError(
            f"{place[0]} has no labelled example in {place[1]}"
            + (f" among the {n:,} of --{name}-examples" if others else ""),
            fix=f"give a larger --{name}-examples" if others else None,
            id="no-examples",
        )
    return some


def _scored(examples: Examples, name: str, corpus: Corpus) -> tuple[ScoredSet, Int64 | None]:
    """Return the set that scores of a split are of, and the unit of each row."""
    units = numbered(examples.documents)
    of_rows = np.arange(examples.n_rows) if units is None else units
    unit = unit_of(tuple(side.name for side in corpus.schema.sides), units)
    return ScoredSet(name, set_hash(examples.keys, of_rows), unit), units


def check_sources(task: Task, corpora: Sequence[Corpus]) -> tuple[dict[str, tuple[int, str]], tuple[str, ...]]:
    """Return for train, dev and test (the number of the corpus, the split), and the names of the labels.

    corpora: one or two; the second gives test, from its split of this name or its only split. Only test is needed of a
    target's own set. No row is read. Raise DataError if a split or the labels are missing, or if the corpora have
    different labels.
    """
    splits = corpora[-1].splits
    test = splits[0] if len(splits) == 1 and (task.is_own or len(corpora) > 1) else SPLITS["test"]
    wanted = {name: split for name, split in SPLITS.items() if split in splits} if task.is_own else SPLITS
    parts = {name: (0, split) for name, split in wanted.items() if split != test}
    parts["test"] = len(corpora) - 1, test
    for number, corpus in enumerate(corpora):
        missing = [split for owner, split in parts.values() if owner == number and split not in corpus.splits]
        if missing:
            raise DataError(
                f"{corpus.name} lacks {' and '.join(missing)}, needed for the task {task.kind}",
                fix="provide test"
                if task.is_own
                else "provide train (for training), validation (to choose the epoch) and test (for scores), "
                f"or name two sets: {task.kind}:TRAIN+TEST",
                id="missing-split",
            )
    classes, *others = (task.classes(corpus) for corpus in corpora)
    if any(other != classes for other in others):
        raise other_labels(task)
    return parts, classes


def other_labels(task: Task) -> DataError:
    """Return the error for sets of a task that do not belong together."""
    return DataError(f"the sets of {task.name} have different labels", where="--task", id="no-labels")
