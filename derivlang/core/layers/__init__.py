"""Annotation layers: each kind is one file, follows an order in one method, and knows its own columns.

words     one value a word (tags, lemmas)         spans     entities in BIO / IOB2
tree      heads, relations, multiword tokens      answers   character spans of SQuAD-style sets
values    one value a record (labels, ids)        gaps      the source's white space (never moves)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from derivlang.core.arrays import Bool
from derivlang.core.arrow import list_array, to_arrow

if TYPE_CHECKING:
    from derivlang.core.batch import Batch, Move, Policies


class Layer(Protocol):
    """An annotation of a batch."""

    def realign(self, move: Move) -> Layer:
        """The layer in the derived order; adds to `move.counts` what is lost or changed, by reason."""
        ...

    def columns(self, batch: Batch) -> dict[str, pa.Array]:
        """Arrow columns of R rows, by name; `batch` is the batch that the layer annotates."""
        ...

    def group(self, batch: Batch, policies: Policies, inside: Bool) -> None:
        """Set `inside[i]` where word i continues a group that counts as one word under these policies."""
        ...


def side_columns(name: str, batch: Batch, values: pa.Array, side: int | None) -> dict[str, pa.Array]:
    """Per-word values [N] as the column of one side; None: a column for each side, `premise_upos`."""
    if side is not None:
        return {name: record_lists(batch, values, side)}
    return {
        f"{prefix}_{name}" if prefix else name: record_lists(batch, values, number)
        for number, prefix in enumerate(batch.sides)
    }


def record_lists(batch: Batch, values: pa.Array, side: int = 0) -> pa.Array:
    """list<value>[R]: per-word values [N] as one list a record, of one side."""
    units = list_array(batch.unit_words, values)
    rows = batch.records[:, side]
    if len(rows) == len(units) and (rows[1:] > rows[:-1]).all():
        return units
    return units.take(to_arrow(rows))
