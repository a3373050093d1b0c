"""A task's three sets as examples in both languages of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from derivlang.core.arrays import Int64, UInt64
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, UsageError
from derivlang.engine.batches import Source
from derivlang.evaluation.documents import by_unit, numbered, unit_of, with_documents
from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.finetune_settings import SPLITS
from derivlang.evaluation.predictions import ToldRows
from derivlang.evaluation.scores import Score, ScoredSet, set_hash
from derivlang.evaluation.tasks.base import PairTask, Task
from derivlang.evaluation.tasks.named import short_name
from derivlang.sources.corpus import Corpus
from derivlang.store.record import digest
from derivlang.training.languages import Languages


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """The examples of a task's three splits.

    key: digest of everything that they are made from. in_train: number of rows of test with the words of a row of
    train; in_whole_train: of a row of the whole split; train may be a part of it. scored: of test and dev, the set
    and the unit of each row, int64[S] or None if every row is one (`documents.py`). words: how the text was split into
    words (`Corpus.word_rule`). mixed: the mixed pairs of train, two neighbouring rows each; told: the rows of test, for
    people; None if not asked for.
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

    def scores(self, split: str, counts: Mapping[str, Int64], regime: str, seed: int | None = None) -> list[Score]:
        """Return the score of each metric. counts: int64[S, k] by metric, of the rows of a split. seed: of the cell."""
        scored, units = self.scored[split]
        told: dict[str, Any] = {"regime": regime, "split": split, "ft_seed": seed, "set": scored}
        return [Score(name, by_unit(by_row, units), **told) for name, by_row in counts.items()]

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
        task: Task,
        sources: Sequence[Source],
        *,
        mixed: bool = False,
        predictions: bool = False,
    ) -> Sets:
        """Read the three splits of a task's sources: one source, or one for train and dev and another for test.

        mixed: whether train is wanted as mixed pairs, too, which a PairTask has. predictions: whether to keep the words
        of test.
        Raise DataError if a split or the labels are missing, UsageError if the task asks for more examples than exist.
        """
        corpora = [source.corpus for source in sources]
        numbers, classes = check_sources(task, corpora)
        parts = {name: (sources[number], split) for name, (number, split) in numbers.items()}
        limits = {"train": task.settings.train_examples, "dev": task.settings.dev_examples, "test": None}
        examples: dict[str, Examples] = {}
        mixed_pairs: Instances | None = None
        told: ToldRows | None = None
        for name, (source, split) in parts.items():
            every, pairs, rows = _read_split(
                source.batches(split),
                languages,
                task,
                classes,
                mixed=mixed and name == "train",
                predictions=predictions and name == "test",
            )
            if name == "train":
                every = every.learnable()
                whole_train = every.keys
            examples[name] = _taken(every, limits[name], task.name, name, (source.corpus.name, split))
            if pairs is not None:
                mixed_pairs = _first(pairs.learnable(), limits[name]).interleaved()
            if rows is not None:
                told = rows
        names = {"dev": short_name(task.sources[0]), "test": short_name(task.sources[-1])}
        of_split = {"dev": corpora[0], "test": corpora[-1]}
        return cls(
            **examples,
            key=_key(languages, task, sources, list(parts.values())),
            in_train=_n_shared(examples["test"], examples["train"].keys),
            in_whole_train=_n_shared(examples["test"], whole_train),
            scored={split: _scored(examples[split], name, of_split[split]) for split, name in names.items()},
            words=", ".join(dict.fromkeys(corpus.word_rule for corpus in corpora)),
            mixed=mixed_pairs,
            told=told,
        )


def _read_split(
    batches: Iterable[Batch],
    languages: Languages,
    task: Task,
    classes: tuple[str, ...],
    *,
    mixed: bool,
    predictions: bool,
) -> tuple[Examples, Examples | None, ToldRows | None]:
    """Return (the examples of a split, its mixed pairs, its rows for people); None for what is not wanted."""
    examples: list[Examples] = []
    pairs: list[Examples] = []
    told: list[ToldRows] = []
    begun = 0
    for batch in with_documents(batches):
        made = task.examples(batch, languages, classes)
        if predictions:
            told.append(ToldRows.of(made, languages, begun))
        examples.append(replace(made, origin=None))  # or it would keep the batch
        begun += batch.n_records
        if mixed and isinstance(task, PairTask):
            pairs.append(replace(task.mixed(batch, languages, classes), origin=None))
    return (
        Examples.joined(examples),
        Examples.joined(pairs) if pairs else None,
        ToldRows.joined(told) if told else None,
    )


def _key(languages: Languages, task: Task, sources: Sequence[Source], parts: Sequence[tuple[Source, str]]) -> str:
    """Return the digest of everything that the examples are made from. parts: the source and the split of each set."""
    used = {id(source): [split for one, split in parts if one is source] for source in sources}
    return digest(
        {
            "files": [file for source in sources for file in source.files(used[id(source)])],
            "parsed": sources[0].corpus.options.get("parser"),
            "pipeline": languages.first_fingerprint(),
            **languages.signature,
            "task": task.kind,
        }
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

    corpora: one or two; the second gives test, from its split of this name or its only split. No row is read. Raise
    DataError if a split or the labels are missing, or if the corpora have different labels.
    """
    parts = {name: (0, split) for name, split in SPLITS.items()}
    if len(corpora) > 1:
        splits = corpora[1].splits
        parts["test"] = 1, splits[0] if len(splits) == 1 else SPLITS["test"]
    for number, corpus in enumerate(corpora):
        missing = [split for owner, split in parts.values() if owner == number and split not in corpus.splits]
        if missing:
            raise DataError(
                f"{corpus.name} lacks {' and '.join(missing)}, needed for the task {task.kind}",
                fix="provide train (for training), validation (to choose the epoch) and test (for scores), "
                f"or name two sets: {task.kind}:TRAIN+TEST",
                id="missing-split",
            )
    classes, *others = (task.classes(corpus) for corpus in corpora)
    if any(other != classes for other in others):
        raise DataError(f"the sets of {task.name} have different labels", where="--task", id="no-labels")
    return parts, classes
