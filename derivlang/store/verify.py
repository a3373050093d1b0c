"""Verify: a derived folder against its own manifest: files, counts, orders, labels, keys, and the way back.

Every row is derived anew from its source and compared, column by column, and its source is undone from its
derived words; the first row that differs is named, with the column that does not fit the others.

What it cannot see but by the file's hash: a document's number, and a label that moved and is stored once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrow import to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import DerivlangError, LayerError
from derivlang.core.order import Order
from derivlang.core.rows import differs, from_table, to_table
from derivlang.store.manifest import LEXICON, NAME, Derived
from derivlang.store.shards import read_shard

# Where a row cannot even be put together: the column to name for each kind of fault.
_COLUMN_OF = {"row-lengths": "tokens", "row-order": "order", "order": "order", "class": None, "label-length": None}
Problem = dict[str, Any]


def verify(folder: Path, progress: Callable[[int], None] = lambda rows: None) -> dict[str, Any]:
    """{"ok", "splits": {name: {"rows", "tokens"}}, "problems": [{"file", "row", "column", "what"}]}.

    At most one problem a file, the first. Raises StoreError only where there is no manifest to go by.
    """
    derived = Derived(folder)
    problems: list[Problem] = []
    lexicon = derived.lexicon_text()
    if derived.pipeline.fingerprint(lexicon) != derived.manifest["fingerprint"]:
        file = LEXICON if lexicon else NAME
        problems.append(_problem(file, "the fingerprint is not that of the spec and the lexicon"))
    splits: dict[str, Any] = {}
    for split in derived.splits:
        found: list[Problem] = []
        counts = {"documents": 0, "sentences": 0, "tokens": 0}
        rows = 0
        for shard in derived.shards(split):
            fault, seen = _check_shard(derived, shard, progress)
            found += fault
            rows += seen.pop("rows")
            counts = {name: counts[name] + seen[name] for name in counts}
        if not found:
            found += _check_counts(derived.manifest["splits"][split], counts)
        splits[split] = {"rows": rows, "tokens": counts["tokens"]}
        problems += found
    return {"ok": not problems, "out": str(folder), "splits": splits, "problems": problems}


def _check_shard(
    derived: Derived, shard: dict[str, Any], progress: Callable[[int], None]
) -> tuple[list[Problem], dict[str, int]]:
    """At most one problem, and what the shard holds. A row is named before a hash is."""
    file, path = shard["file"], derived.folder / shard["file"]
    seen = {"rows": 0, "documents": 0, "sentences": 0, "tokens": 0}
    if not path.exists():
        return [_problem(file, "the file is missing")], seen
    last = -1
    try:
        for table in read_shard(path):
            problem = _check_rows(derived, file, seen["rows"], table)
            if problem is not None:
                return [problem], seen
            documents = to_numpy(table["document"])
            seen["documents"] += int((np.diff(documents, prepend=last) != 0).sum())
            last = int(documents[-1])
            seen["rows"] += table.num_rows
            for side in derived.schema.sides:
                sentences = to_numpy(pc.list_value_length(table[side.column("sentences")]))
                words = to_numpy(pc.list_value_length(table[side.column("order")]))
                seen["sentences"] += int(np.where(sentences > 0, sentences // 2, words > 0).sum())
                seen["tokens"] += int(words.sum())
            progress(table.num_rows)
    except DerivlangError as error:
        return [_problem(file, error.what)], seen
    with path.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != shard["sha256"]:
            return [_problem(file, "the file's hash is not the one in the manifest")], seen
    told = {"rows": shard.get("rows"), "words": shard.get("words"), "bytes": shard.get("bytes")}
    true = {"rows": seen["rows"], "words": seen["tokens"], "bytes": path.stat().st_size}
    wrong = [f"{true[name]} {name}, but the manifest says {told[name]}" for name in told if told[name] != true[name]]
    return ([_problem(file, wrong[0])] if wrong else []), seen


def _check_counts(entry: dict[str, Any], counts: dict[str, int]) -> list[Problem]:
    wrong = [name for name in counts if entry.get(name) != counts[name]]
    return [_problem(NAME, f"{counts[n]} {n}, but the manifest says {entry.get(n)}") for n in wrong[:1]]


def _check_rows(derived: Derived, file: str, first_row: int, table: pa.Table) -> Problem | None:
    """The first row of a group that is not what its source gives, with the column to blame."""
    try:
        row, columns = _first_difference(derived, table)
    except (LayerError, KeyError, ValueError, IndexError, pa.ArrowException) as error:
        if table.num_rows > 1:  # some row cannot be put together: find it
            half = table.num_rows // 2
            return _check_rows(derived, file, first_row, table.slice(0, half)) or _check_rows(
                derived, file, first_row + half, table.slice(half)
            )
        what = error.what if isinstance(error, LayerError) else f"{type(error).__name__}: {error}"
        column = _COLUMN_OF.get(error.id) if isinstance(error, LayerError) else None
        return {"file": file, "row": first_row, "column": column, "what": what}
    if row is None:
        return None
    what = "not what the source and the pipeline give"
    column = _to_blame(derived, table.slice(row, 1), columns)
    return {"file": file, "row": first_row + row, "column": column, "what": what}


def _first_difference(derived: Derived, table: pa.Table) -> tuple[int | None, list[str]]:
    """The first row that differs from what its stored source gives, and the columns that do."""
    source, image, order = from_table(table, derived.schema, derived.lexicon, stored_source=True)
    expected = _derive_again(derived, source)
    wrong: dict[str, int] = {}
    for name in table.column_names:
        if name not in expected:
            return 0, [name]
        rows = np.flatnonzero(differs(_plain(table[name].combine_chunks()), _plain(expected[name])))
        if rows.size:
            wrong[name] = int(rows[0])
    if (
        not order.n_deleted and derived.lexicon.injective
    ):  # the way back: the source's words from the derived ones alone
        rows = np.flatnonzero(_not_undone(derived, source, image, order))
        if rows.size:
            wrong.setdefault("tokens", int(rows[0]))
    if not wrong:
        return None, []
    row = min(wrong.values())
    return row, [name for name in wrong if wrong[name] == row]


def _derive_again(derived: Derived, source: Batch) -> dict[str, pa.Array]:
    again = derived.pipeline.derive(source, derived.lexicon, policies=derived.policies, split=False)
    return to_table(
        again.source,
        again.derived,
        again.order,
        derived.schema,
        has_order=derived.pipeline.has_order,
        exact=derived.pipeline.is_permutation,
        policies=derived.policies,
    )


def _not_undone(derived: Derived, source: Batch, image: Batch, order: Order) -> Any:
    """bool[R]: rows whose source words are not what the inverse order and lexicon give."""
    types = derived.lexicon.invert().apply(image.types)
    back = types.take(to_arrow(image.words.take(order.places(), mode="clip")))
    same = to_numpy(pc.equal(back, source.strings()))
    bad = np.concatenate([[0], np.cumsum(~same)])
    units = bad[source.unit_words[1:]] > bad[source.unit_words[:-1]]
    return units[source.records].any(axis=1)


def _to_blame(derived: Derived, row: pa.Table, columns: list[str]) -> str:
    """The column of a bad row that does not fit the others: source, order, tokens, then the first in the file."""
    if "key" in columns and "key" in row.column_names:
        undone = _undone_key(derived, row)
        # Without a way back the key is that of the stored source: if that was changed, the words fit it no more.
        one_way = not derived.lexicon.injective and len(columns) > 1
        if one_way or (undone is not None and undone == row["key"][0].as_py()):
            for side in derived.schema.sides:
                if side.column("tokens") in columns:
                    return side.column("source")
            return side.column("source")
        if columns == ["key"]:
            return "key"
    for part in ("order", "tokens"):
        for side in derived.schema.sides:
            if side.column(part) in columns:
                return side.column(part)
    return str(next(name for name in row.column_names if name in columns))


def _undone_key(derived: Derived, row: pa.Table) -> int | None:
    """The key of the source that the derived words alone give, or None where they give none."""
    try:
        source, _, _ = from_table(row, derived.schema, derived.lexicon)
    except (LayerError, ValueError, IndexError):
        return None
    return int(source.record_keys[0])


def _plain(column: pa.Array) -> pa.Array:
    """Without dictionaries, which compare by code."""
    kind = column.type
    if pa.types.is_list(kind) and pa.types.is_dictionary(kind.value_type):
        return column.cast(pa.list_(kind.value_type.value_type))
    return column


def _problem(file: str, what: str) -> Problem:
    return {"file": file, "row": None, "column": None, "what": what}
