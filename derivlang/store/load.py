"""A derived set read back: batches of source, derived words and order, by the inverse order and lexicon."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from derivlang.core.batch import Batch
from derivlang.core.errors import LayerError, StoreError
from derivlang.core.order import Order
from derivlang.core.rows import from_table
from derivlang.store.manifest import Derived
from derivlang.store.shards import read_shard


@dataclass(frozen=True, slots=True)
class Loaded:
    """A row group: R rows as columns, and the batches that they are."""

    file: str
    first_row: int
    table: pa.Table
    source: Batch
    derived: Batch
    order: Order


def load(derived: Derived, split: str) -> Iterator[Loaded]:
    """The row groups of a split, in order. StoreError names a damaged file."""
    for shard in derived.shards(split):
        row = 0
        for table in read_shard(derived.folder / shard["file"]):
            try:
                source, image, order = from_table(table, derived.schema, derived.lexicon)
            except (LayerError, KeyError, ValueError, IndexError, pa.ArrowException) as error:
                what = error.what if isinstance(error, LayerError) else f"{type(error).__name__}: {error}"
                raise StoreError(
                    f"rows {row} to {row + table.num_rows - 1} do not fit together: {what}",
                    where=str(derived.folder / shard["file"]),
                    fix="`derivlang verify` names the first bad row; make the set again",
                    id="damaged",
                ) from error
            yield Loaded(shard["file"], row, table, source, image, order)
            row += table.num_rows
