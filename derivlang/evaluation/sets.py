"""A task's three sets as examples in both languages of a run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from derivlang.core.errors import DataError, UsageError
from derivlang.engine.batches import Source
from derivlang.evaluation.examples import Examples, examples
from derivlang.evaluation.tasks import SPLITS, Task
from derivlang.training.languages import Languages


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """The examples of a task's three splits. key: digest of everything that they are made from."""

    train: Examples
    dev: Examples
    test: Examples
    key: str

    @classmethod
    def read(cls, languages: Languages, task: Task, source: Source) -> Sets:
        """Read the three splits of a task's source.

        Raise DataError if a split or the labels are missing, UsageError if the task asks for more examples than exist.
        """
        missing = [name for name in SPLITS.values() if name not in source.corpus.splits]
        if missing:
            raise DataError(
                f"{source.corpus.name} lacks {' and '.join(missing)}",
                fix="provide all of train (for training), validation (to choose the epoch) and test (for scores)",
                id="missing-split",
            )
        classes = next((f.classes for f in source.corpus.schema.fields if f.column == task.layer), None)
        if classes is None:
            raise DataError(f"{source.corpus.name} has no labels {task.layer}", where="--task", id="no-labels")
        classes = tuple(name for name in classes if name != "_")  # words without a tag are not predicted
        found = {}
        wanted = {"train": task.settings.train_examples, "dev": task.settings.dev_examples, "test": None}
        for name, split in SPLITS.items():
            parts = [examples(batch, languages, task, classes) for batch in source.batches(split)]
            all_of_it, n = Examples.joined(parts), wanted[name]
            if not all_of_it.n_rows:
                raise DataError(f"{source.corpus.name} has no example in {split}", id="no-examples")
            if n is not None and n > all_of_it.n_rows:
                raise UsageError(
                    f"{task.name} has only {all_of_it.n_rows:,} examples, got {n:,}",
                    where=f"--{name}-examples",
                    id="bad-value",
                )
            found[name] = all_of_it if n is None else all_of_it.first(n)
        key = {
            "files": source.files(list(SPLITS.values())),
            "parsed": source.corpus.options.get("parser"),
            "pipeline": languages.pipeline.fingerprint(format=1),  # as in earlier versions, whose cells stay valid
            "tokenizer": languages.tokenizer.fingerprint(),
            "twin": dict(languages.twin.tokenizer.recipe),
            "task": task.kind,
        }
        return cls(**found, key=digest(key))


def digest(value: Any) -> str:
    """Return 16 hex digits that identify a value by its JSON."""
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
