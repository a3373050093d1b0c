"""A task's three sets as examples in both languages of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from derivlang.core.errors import DataError, UsageError
from derivlang.engine.batches import Source
from derivlang.evaluation.documents import numbered, unit_of, with_documents
from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.finetune_settings import SPLITS
from derivlang.evaluation.tasks.base import PairTask, Task
from derivlang.sources.corpus import Corpus
from derivlang.store.record import digest
from derivlang.training.languages import Languages


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """The examples of a task's three splits.

    key: digest of everything that they are made from. in_train: number of rows of test with the words of a row of
    train; in_whole_train: of a row of the whole split, of which train may be a part. unit: what a document of test is
    called (`documents.unit_of`). words: how the text was split into words (`Corpus.word_rule`). mixed: the mixed pairs
    of train, two neighbouring rows each; None if not asked for.
    """

    train: Examples
    dev: Examples
    test: Examples
    key: str
    in_train: int
    in_whole_train: int
    unit: str
    words: str
    mixed: Instances | None = None

    @classmethod
    def read(cls, languages: Languages, task: Task, sources: Sequence[Source], *, mixed: bool = False) -> Sets:
        """Read the three splits of a task's sources: one, or that of train and dev and that of test.

        mixed: whether train is wanted as mixed pairs, too, which a PairTask has.
        Raise DataError if a split or the labels are missing, UsageError if the task asks for more examples than exist.
        """
        corpora = [source.corpus for source in sources]
        parts = {name: (sources[number], split) for name, (number, split) in parts_of(task, corpora).items()}
        classes, *others = (task.classes(corpus) for corpus in corpora)
        if any(other != classes for other in others):
            raise DataError(f"the sets of {task.name} have different labels", where="--task", id="no-labels")
        found: dict[str, Examples] = {}
        mixed_pairs: Instances | None = None
        wanted = {"train": task.settings.train_examples, "dev": task.settings.dev_examples, "test": None}
        for name, (source, split) in parts.items():
            read, pairs = [], []
            for batch in with_documents(source.batches(split)):
                read.append(task.examples(batch, languages, classes))
                if mixed and name == "train" and isinstance(task, PairTask):
                    pairs.append(task.mixed(batch, languages, classes))
            all_of_it, n = Examples.joined(read), wanted[name]
            if n is not None and n > all_of_it.n_rows:
                raise UsageError(
                    f"{task.name} has only {all_of_it.n_rows:,} examples, got {n:,}",
                    where=f"--{name}-examples",
                    id="bad-value",
                )
            found[name] = one = all_of_it if n is None else all_of_it.first(n)
            if not (len(one.source.gold) and len(one.derived.gold)):  # a row of words may have no label
                some = len(all_of_it.source.gold) and len(all_of_it.derived.gold)
                raise DataError(
                    f"{source.corpus.name} has no labelled example in {split}"
                    + (f" among those of --{name}-examples {n:,}" if some else ""),
                    fix=f"give a larger --{name}-examples" if some else None,
                    id="no-examples",
                )
            if name == "train":
                whole_train = all_of_it.keys
                if pairs:
                    every = Examples.joined(pairs)
                    mixed_pairs = (every if n is None else every.first(n)).interleaved()
        used = {id(source): [split for one, split in parts.values() if one is source] for source in sources}
        key = {
            "files": [file for source in sources for file in source.files(used[id(source)])],
            "parsed": corpora[0].options.get("parser"),
            "pipeline": languages.pipeline.fingerprint(format=1),  # as in earlier versions, whose cells stay valid
            **languages.signature,
            "task": task.kind,
        }
        test = found["test"]
        in_train, in_whole_train = (int(np.isin(test.keys, keys).sum()) for keys in (found["train"].keys, whole_train))
        unit = unit_of(tuple(side.name for side in corpora[-1].schema.sides), numbered(test.documents))
        words = ", ".join(dict.fromkeys(corpus.word_rule for corpus in corpora))
        return cls(
            **found,
            key=digest(key),
            in_train=in_train,
            in_whole_train=in_whole_train,
            unit=unit,
            words=words,
            mixed=mixed_pairs,
        )


def parts_of(task: Task, corpora: Sequence[Corpus]) -> dict[str, tuple[int, str]]:
    """Return for train, dev and test the number of the corpus, of one or two, and the split.

    Raise DataError if a split is missing. The second corpus gives test: its split of this name, or its only one.
    """
    parts = {name: (0, split) for name, split in SPLITS.items()}
    if len(corpora) > 1:
        splits = corpora[1].splits
        parts["test"] = 1, splits[0] if len(splits) == 1 else SPLITS["test"]
    for number, corpus in enumerate(corpora):
        missing = [split for owner, split in parts.values() if owner == number and split not in corpus.splits]
        if not missing:
            continue
        raise DataError(
            f"{corpus.name} lacks {' and '.join(missing)}, needed for the task {task.kind}",
            fix="provide train (for training), validation (to choose the epoch) and test (for scores), "
            f"or name two sets: {task.kind}:TRAIN+TEST",
            id="missing-split",
        )
    return parts
