"""A task's three sets as examples in both languages of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.errors import DataError, UsageError
from derivlang.core.messages import counted, warn
from derivlang.engine.batches import Source
from derivlang.evaluation.examples import Examples, Instances, by_unit, numbered, unit_of, with_documents
from derivlang.evaluation.finetune_settings import SPLITS
from derivlang.evaluation.predictions import ToldRows, told_rows
from derivlang.evaluation.scores import Score, ScoredSet, set_hash
from derivlang.evaluation.set_names import short_name
from derivlang.evaluation.tasks.base import NamedTask, PairTask, Task
from derivlang.sources.corpus import Corpus
from derivlang.store.record import digest
from derivlang.training.languages import SOURCE, Languages

_MANY_LOST = 0.05  # of the labels of a split: what a score of the others no longer stands for


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """The examples of a task's three splits.

    key: digest of everything that they are made from. numbers: of the rows and labels of test, for the record;
    `in_train` are rows with the words of a row of train, `in_whole_train` of a row of the whole split, of which train
    may be a part. scored: of test and dev, the set and the unit of each row, int64[S] or None if every row is one
    (`examples.py`). words: how the text was split into words (`Corpus.word_rule`). mixed: the mixed pairs of train,
    two neighbouring rows each, or None; told: the rows of test for people, by language, if asked for. ours: the sets of
    the source, if the target has sets of its own; None: these.
    """

    train: Examples
    dev: Examples
    test: Examples
    key: str
    numbers: Mapping[str, int]
    scored: Mapping[str, tuple[ScoredSet, Int64 | None]]
    words: str
    mixed: Instances | None = None
    told: Mapping[int, ToldRows] = field(default_factory=dict)
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
        sides = (ours.train.source, theirs.train.source), (ours.dev.source, theirs.dev.source)
        columns = [(getattr(a, one.name), getattr(b, one.name)) for a, b in sides for one in fields(Instances)]
        return ours.train.classes == theirs.train.classes and all(np.array_equal(*both) for both in columns)

    @classmethod
    def read(
        cls,
        languages: Languages,
        task: Task,
        sources: Sequence[Source],
        *,
        mixed: bool = False,
        predictions: bool = False,
    ) -> Sets:
        """Read the three splits of a task's sources: one, or one for train and dev and one for test.

        mixed: whether train is wanted as mixed pairs, too, which a PairTask has. predictions: whether to keep the words
        of test.
        Raise DataError if a split or the labels are missing, UsageError if the task asks for more examples than exist.
        """
        corpora = [source.corpus for source in sources]
        found, classes = check_sources(task, corpora)
        parts = {name: (sources[number], split) for name, (number, split) in found.items()}
        splits: dict[str, Examples] = {}
        whole_train, pairs, told = np.zeros(0, np.uint64), None, dict[int, ToldRows]()
        for name, (source, split) in parts.items():
            made: list[Examples] = []
            made_pairs: list[Examples] = []
            for batch in with_documents(source.batches(split)):
                rows = task.rows(batch, languages)
                made.append(task.examples(rows, classes))
                if not (predictions and name == "test"):
                    made[-1] = replace(made[-1], origin=None)  # or it would keep the batch
                if mixed and name == "train" and isinstance(task, PairTask):
                    made_pairs.append(replace(task.examples(rows.mixed(), classes), origin=None))
            every, place = Examples.joined(made), (source.corpus.name, split)
            _warn_of_cut_labels(every, task, place)
            if name == "train":
                every = every.learnable()
                whole_train = every.keys
            if made_pairs:
                pairs = Examples.joined(made_pairs).learnable().first(task.settings.train_examples).interleaved()
            if predictions and name == "test":
                told = told_rows(made, languages)
            splits[name] = _taken(task, every, name, place)
        for name in SPLITS.keys() - splits.keys():  # of a target's own set
            splits[name] = splits["test"].take(np.zeros(0, np.int64))
        train, dev, test = (splits[name] for name in SPLITS)
        return cls(
            train,
            dev,
            test,
            key=_key(languages, task, sources, list(parts.values())),
            numbers={
                "cut": int(test.truncated.sum()),
                "labels": len(test.source.gold) + test.unscored,
                "unscored": test.unscored,
                "cut_answers": int(test.wrong.sum()),
                "in_train": int(np.isin(test.keys, train.keys).sum()),
                "in_whole_train": int(np.isin(test.keys, whole_train).sum()),
            },
            scored={
                "dev": _scored(dev, short_name(task.sources[0]), corpora[0]),
                "test": _scored(test, short_name(task.sources[-1]), corpora[-1]),
            },
            words=", ".join(dict.fromkeys(corpus.word_rule for corpus in corpora)),
            mixed=pairs,
            told=told,
        )


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


def _taken(task: Task, every: Examples, name: str, place: tuple[str, str]) -> Examples:
    """Return the examples that a task asks for. name: of the set. place: its corpus and split, for messages.

    Raise UsageError if there are fewer than asked for, DataError if none is labelled in one of the languages.
    """
    n = {"train": task.settings.train_examples, "dev": task.settings.dev_examples}.get(name)
    if task.is_own and n:  # the number is of the source's
        n = min(n, every.n_rows)
    if n is not None and n > every.n_rows:
        raise UsageError(
            f"{task.name} has only {every.n_rows:,} examples, got {n:,}", where=f"--{name}-examples", id="bad-value"
        )
    some = every.first(n)
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


def other_labels(task: NamedTask) -> DataError:
    """Return the error for sets of a task that do not belong together."""
    return DataError(f"the sets of {task.name} have different labels", where="--task", id="no-labels")
