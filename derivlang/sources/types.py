"""The types of the columns of a source: one for each column, which keeps the values of all files of all splits.

Files are looked at before the first row is derived, so the shards of a set have the same columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from derivlang.core.errors import DataError, DerivlangError
from derivlang.core.unify import field_of, plain, types_differ, unified
from derivlang.formats.base import Format
from derivlang.formats.parquet import class_names
from derivlang.formats.rows import ROWS_PER_TABLE
from derivlang.sources.corpus import CorpusFile

_FEW = 100  # rows


def types_of_files(
    format: Format, parts: Iterable[CorpusFile], encoding: str, options: Mapping[str, Any]
) -> dict[CorpusFile, pa.Schema]:
    """Return the columns of each file. A file that cannot be read is an error later, if its split is made."""
    found: dict[CorpusFile, pa.Schema] = {}
    for part in parts:
        with suppress(DerivlangError):
            rows = _FEW if found else ROWS_PER_TABLE  # many small files are not read twice
            found[part] = format.types_of(part.path, encoding, options, rows=rows)
    return found


def unify(found: Mapping[CorpusFile, pa.Schema]) -> pa.Schema:
    """Return the columns of all files, in the order in which they are met, with the note of the first file.

    Raise DataError types-differ for types that no type unites, and for other classes; column-names.
    """
    kinds: dict[str, tuple[pa.DataType, CorpusFile]] = {}  # and the file that made it so wide
    classes: dict[str, tuple[tuple[str, ...], CorpusFile]] = {}
    for part, schema in found.items():
        if twice := [name for name in schema.names if schema.names.count(name) > 1]:
            raise DataError(
                f"two columns have the name {twice[0]!r}",
                where=str(part.path),
                fix="give each column a different name",
                id="column-names",
            )
        for field in schema:
            kind, (known, other) = plain(field.type), kinds.get(field.name, (pa.null(), part))
            wider = unified(known, kind)
            if wider is None:
                raise types_differ(field.name, kind, known, str(part.path), other.name)
            kinds[field.name] = (wider, other if wider == known else part)
        for name, names in class_names(schema).items():
            known_names, other = classes.setdefault(name, (names, part))
            if names != known_names:
                raise DataError(
                    f"the classes of {name!r} are {', '.join(names)}, but {', '.join(known_names)} in {other.name}",
                    where=str(part.path),
                    fix="give all files the same classes, or make the files one by one",
                    id="types-differ",
                )
    metadata = next((schema.metadata for schema in found.values() if class_names(schema)), None)
    return pa.schema([field_of(name, kind, part.name) for name, (kind, part) in kinds.items()], metadata)
