"""`map_dataset` on a stream that several processes read: each row is read once, and no two rows share a number."""

from __future__ import annotations

from typing import Any

import datasets
import pytest
from datasets.distributed import split_dataset_by_node

from derivlang import map_dataset

ROWS = [f"Row {i} of the text has some words ." for i in range(25)]


def parts(shards: int, nodes: int, workers: int) -> list[list[dict[str, Any]]]:
    """The rows that each node reads, with some workers of a DataLoader."""
    stream = datasets.Dataset.from_dict({"text": ROWS}).to_iterable_dataset(num_shards=shards)
    found = []
    for rank in range(nodes):
        part = split_dataset_by_node(stream, rank, nodes) if nodes > 1 else stream
        mapped = map_dataset(part, "perm:seed=3", words="space")
        if workers:
            torch = pytest.importorskip("torch")
            mapped = torch.utils.data.DataLoader(mapped, batch_size=None, num_workers=workers)
        found.append(list(mapped))
    return found


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("shards", "nodes"), [(1, 1), (4, 1), (4, 2), (4, 3), (6, 3), (1, 2)])
def test_no_two_rows_share_a_number(shards: int, nodes: int, workers: int) -> None:
    rows = [row for part in parts(shards, nodes, workers) for row in part]
    assert sorted(" ".join(row["source"]) for row in rows) == sorted(ROWS)
    assert len({int(row["document"]) for row in rows}) == len(ROWS)
    for row in rows:
        assert [row["source"][int(i)] for i in row["order"]] == row["tokens"]


def test_one_process_counts_rows() -> None:
    ((*rows,),) = parts(4, 1, 0)
    whole = map_dataset(datasets.Dataset.from_dict({"text": ROWS}), "perm:seed=3", words="space")
    assert rows == whole.to_list()
