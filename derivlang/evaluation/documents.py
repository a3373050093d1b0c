"""Documents: the groups of examples that an interval over a test set takes as one.

Sentences of a document are alike, so intervals over sentences are too narrow. A document is

    CoNLL-U            the sentences from one comment `# newdoc` to the next
    a set of two sides the rows with the same first side: the premise of XNLI, the context of SQuAD
    any other set      a row

The units of a set are its documents, or its rows if every row is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from derivlang.core.arrays import Bool, Int64
from derivlang.core.batch import Batch
from derivlang.core.layers.values import Values

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

    A single document has no variance, so its rows are taken instead.

    5 5 9 5 2   ->   0 0 1 0 2
    """
    _, first, number = np.unique(documents, return_index=True, return_inverse=True)
    if len(first) in (1, len(documents)):
        return None
    return np.asarray(np.argsort(np.argsort(first))[number], np.int64)


def unit_of(sides: tuple[str, ...], documents: Int64 | None) -> str:
    """Return what a unit of a set is called; sentence or pair if every row is one."""
    if len(sides) > 1:
        return "pair" if documents is None else _SIDES.get(sides[0], "first sentence")
    return "sentence" if documents is None else "document"


def by_unit(counts: Int64, documents: Int64 | None) -> Int64:
    """Return int64[U, k]: the sums of int64[S, k] by document, numbered from 0; unchanged if documents are None."""
    if documents is None:
        return counts
    out = np.zeros((int(documents.max(initial=-1)) + 1, counts.shape[1]), np.int64)
    np.add.at(out, documents, counts)
    return out


def _begins(batch: Batch) -> Bool:
    """Return bool[R]: the rows of CoNLL-U that begin a document."""
    layer = batch.layers.get("comments")
    if not isinstance(layer, Values):
        return np.zeros(batch.n_records, bool)
    comments = (values if isinstance(values, list) else [] for values in layer.values.to_pylist())
    return np.array([any(_BEGIN.match(str(line)) for line in lines) for lines in comments], bool)
