"""Verify: a derived folder against its own manifest: files, orders, labels, keys, and the way back.

Every row is derived anew from its source and compared, column by column; the first row that differs is named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.batch import Policies
from derivlang.core.errors import DerivlangError
from derivlang.core.schema import differs, to_table
from derivlang.store.load import Loaded, load
from derivlang.store.manifest import Derived


def verify(folder: Path, progress: Callable[[int], None] = lambda rows: None) -> dict[str, Any]:
    """{"ok", "splits": {name: {"rows", "tokens"}}, "problems": [{"file", "row", "column", "what"}]}.

    At most one problem a file, the first. Raises StoreError only where there is no manifest to go by.
    """
    derived = Derived(folder)
    problems: list[dict[str, Any]] = []
    splits: dict[str, Any] = {}
    for split in derived.splits:
        found = _check_files(derived, split)
        rows = tokens = 0
        try:
            for group in load(derived, split):
                rows += group.table.num_rows
                tokens += group.derived.n_words
                progress(group.table.num_rows)
                if not any(p["file"] == group.file and p["row"] is not None for p in found):
                    found += _check_rows(derived, group)
        except DerivlangError as error:
            file = str(error.where or "").removeprefix(f"{folder}/")
            if not any(p["file"] == file and p["row"] is not None for p in found):
                found.append({"file": file, "row": None, "column": None, "what": error.what})
        entry = derived.manifest["splits"][split]
        if not found and tokens != entry["tokens"]:
            what = f"{tokens} tokens, but the manifest says {entry['tokens']}"
            found.append({"file": "derivlang.json", "row": None, "column": None, "what": what})
        splits[split] = {"rows": rows, "tokens": tokens}
        problems += _one_a_file(found)
    return {"ok": not problems, "out": str(folder), "splits": splits, "problems": problems}


def _check_files(derived: Derived, split: str) -> list[dict[str, Any]]:
    found = []
    for shard in derived.shards(split):
        path = derived.folder / shard["file"]
        if not path.exists():
            found.append({"file": shard["file"], "row": None, "column": None, "what": "the file is missing"})
            continue
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != shard["sha256"]:
                what = "the file's hash is not the one in the manifest"
                found.append({"file": shard["file"], "row": None, "column": None, "what": what})
    return found


def _check_rows(derived: Derived, group: Loaded) -> list[dict[str, Any]]:
    """The first row of a group whose columns are not what its source gives."""
    policies = Policies(**derived.manifest["policies"])
    again = derived.pipeline.derive(group.source, derived.lexicon, policies=policies, split=False)
    expected = to_table(
        again.source,
        again.derived,
        again.order,
        derived.schema,
        has_order=derived.pipeline.has_order,
        policies=policies,
    )
    first: tuple[int, str] | None = None
    for name in group.table.column_names:
        column = group.table[name].combine_chunks()
        if name not in expected:
            return [_problem(group, 0, name, "a column that the manifest does not know")]
        wrong = np.flatnonzero(differs(_plain(column), _plain(expected[name])))
        if wrong.size and (first is None or wrong[0] < first[0]):
            first = int(wrong[0]), name
    if first is None:
        return []
    row, name = first
    return [_problem(group, row, name, "not what the source and the pipeline give")]


def _plain(column: pa.Array) -> pa.Array:
    """Without dictionaries, which compare by code."""
    kind = column.type
    if pa.types.is_list(kind) and pa.types.is_dictionary(kind.value_type):
        return column.cast(pa.list_(kind.value_type.value_type))
    return column


def _problem(group: Loaded, row: int, column: str, what: str) -> dict[str, Any]:
    return {"file": group.file, "row": group.first_row + row, "column": column, "what": what}


def _one_a_file(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The most telling problem of each file: one that names a row before one that does not."""
    best: dict[str, dict[str, Any]] = {}
    for problem in found:
        known = best.get(problem["file"])
        if known is None or (known["row"] is None and problem["row"] is not None):
            best[problem["file"]] = problem
    return list(best.values())
