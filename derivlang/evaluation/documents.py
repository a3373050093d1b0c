"""Documents: the groups of examples that a bootstrap over a test set draws as one.

Sentences of a document are alike, so a resample of sentences gives intervals that are too narrow. A document is

    CoNLL-U            the sentences from one comment `# newdoc` to the next
    a set of two sides the rows with the same first side: the premise of XNLI, the context of SQuAD
    any other set      a row

`RUN/evaluation/TASK.documents.npz` has the document of each row of counts of test and of dev, int32[S], numbered from 0
in the order of first rows. There is no file if every row of both is a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.arrays import Bool, Int64
from derivlang.core.batch import Batch
from derivlang.core.layers.values import Values
from derivlang.store.files import writing

_BEGIN = re.compile(r"#\s*newdoc\b")
_SIDES = {"premise": "premise", "context": "context"}  # other first sides are sentences


def with_documents(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield the batches of a split with the documents above as `documents`; the numbers are not consecutive.

    A set without `# newdoc` has one document, 0, which stands for every row (`numbered`).
    """
    begun = 0
    for batch in batches:
        if len(batch.sides) > 1:
            yield replace(batch, documents=batch.unit_keys[batch.records[:, 0]].astype(np.int64))
        else:
            numbers = begun + np.cumsum(_begins(batch), dtype=np.int64)
            begun = int(numbers[-1]) if len(numbers) else begun
            yield replace(batch, documents=numbers)


def numbered(documents: Int64) -> Int64 | None:
    """Return int64[S], documents numbered from 0 in the order of their first rows; None if every row is a document.

    A single document cannot be resampled, so its rows are taken instead.

    5 5 9 5 2   ->   0 0 1 0 2
    """
    _, first, number = np.unique(documents, return_index=True, return_inverse=True)
    if len(first) in (1, len(documents)):
        return None
    return np.asarray(np.argsort(np.argsort(first))[number], np.int64)


def unit_of(sides: tuple[str, ...], documents: Int64 | None) -> str:
    """Return what a document of a set is called; sentence or pair if every row is one (`ROWS`)."""
    if len(sides) > 1:
        return "pair" if documents is None else _SIDES.get(sides[0], "first sentence")
    return "sentence" if documents is None else "document"


def write_documents(path: Path, splits: Mapping[str, Int64]) -> dict[str, Int64 | None]:
    """Write the documents of splits and return them, numbered; remove the file if every row is a document.

    splits: name -> int64[S], equal for rows of one document.
    """
    found = {name: numbered(documents) for name, documents in splits.items()}
    if all(numbers is None for numbers in found.values()):
        path.unlink(missing_ok=True)
        return found
    arrays: dict[str, Any] = {
        name: (np.arange(len(splits[name])) if numbers is None else numbers).astype(np.int32)
        for name, numbers in found.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as stream:
        np.savez_compressed(stream, **arrays)
    return found


def _begins(batch: Batch) -> Bool:
    """Return bool[R]: the rows of CoNLL-U that begin a document."""
    layer = batch.layers.get("comments")
    if not isinstance(layer, Values):
        return np.zeros(batch.n_records, bool)
    comments = (found if isinstance(found, list) else [] for found in layer.values.to_pylist())
    return np.array([any(_BEGIN.match(str(line)) for line in lines) for lines in comments], bool)
