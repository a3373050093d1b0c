"""A task's three sets as examples in both languages of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
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
    """The examples of a task's three splits; key: of all that they are made of."""

    train: Examples
    dev: Examples
    test: Examples
    key: str

    @classmethod
    def read(cls, languages: Languages, task: Task, opened: Callable[[tuple[str, ...]], Source]) -> Sets:
        """opened: the task's source, some of its splits. Raises DataError where a split or the labels are missing, and
        UsageError where more examples are asked for than there are."""
        source = opened(tuple(SPLITS.values()))
        missing = [name for name in SPLITS.values() if name not in source.corpus.splits]
        if missing:
            raise DataError(
                f"{source.corpus.name} lacks {' and '.join(missing)}",
                fix="evaluation trains on train, chooses by validation, and reports test",
                id="missing-split",
            )
        classes = next((f.classes for f in source.corpus.schema.fields if f.column == task.layer), None)
        if classes is None:
            raise DataError(f"{source.corpus.name} has no labels {task.layer}", where="--task", id="no-labels")
        classes = tuple(name for name in classes if name != "_")  # a word without a tag is not asked for
        found = {}
        wanted = {"train": task.settings.train_examples, "dev": task.settings.dev_examples, "test": None}
        for name, split in SPLITS.items():
            parts = [examples(batch, languages, task, classes) for batch in source.batches(split)]
            all_of_it, n = Examples.joined(parts), wanted[name]
            if not all_of_it.n_rows:
                raise DataError(f"{source.corpus.name} has no example in {split}", id="no-examples")
            if n is not None and n > all_of_it.n_rows:
                raise UsageError(
                    f"{n:,} examples are asked for, but {task.name} has {all_of_it.n_rows:,}",
                    where=f"--{name}-examples",
                    id="bad-value",
                )
            found[name] = all_of_it if n is None else all_of_it.first(n)
        key = {
            "files": source.files(list(SPLITS.values())),
            "parsed": source.corpus.options.get("parser"),
            "pipeline": languages.pipeline.fingerprint(None),
            "tokenizer": languages.tokenizer.fingerprint(),
            "twin": dict(languages.twin.tokenizer.recipe),
            "task": task.kind,
        }
        return cls(**found, key=digest(key))


def digest(value: Any) -> str:
    """16 hex digits of what json can write."""
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
