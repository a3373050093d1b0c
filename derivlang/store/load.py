"""Reading derived sets: batches of source and derived words, and the orders between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from derivlang.core.batch import Batch
from derivlang.core.errors import LayerError, StoreError
from derivlang.core.from_table import from_table
from derivlang.core.order import Order
from derivlang.core.parse_errors import parse_errors
from derivlang.store.manifest import Derived
from derivlang.store.shards import read_shard


@dataclass(frozen=True, slots=True)
class Loaded:
    """A row group of a shard: its columns, and the batches that they describe."""

    first_row: int
    table: pa.Table
    source: Batch
    derived: Batch
    order: Order


def load(derived: Derived, split: str) -> Iterator[Loaded]:
    """Yield the row groups of a split, in order.

    StoreError with the name of a damaged file, before the first of its rows: a shard must have the hash that the
    manifest lists.
    """
    for shard in derived.shards(split):
        row = 0
        for table in read_shard(derived.folder / shard["file"], codes=True, sha256=shard["sha256"]):
            yield _loaded(derived, shard["file"], row, table)
            row += table.num_rows


def _loaded(derived: Derived, file: str, row: int, table: pa.Table) -> Loaded:
    """Return a row group. file: of the shard. row: its first one."""
    try:
        with parse_errors(file, "row", error=LayerError, id="row"):
            return Loaded(row, table, *from_table(table, derived.schema, derived.lexicon))
    except LayerError as error:
        raise StoreError(
            f"rows {row} to {row + table.num_rows - 1} do not fit together: {error.what}",
            where=str(derived.folder / file),
            fix="`derivlang verify` names the first bad row; make the set again",
            id="damaged",
        ) from error
