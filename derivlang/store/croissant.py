"""Croissant metadata of a set (mlcommons.org/croissant/1.0): what other tools read beside the card.

Each shard is a file with its SHA-256, each split a file set and a record set. The columns and their types come from
the shards. Croissant has no name for a map, so such columns are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from glob import escape
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.core.arrow import is_string
from derivlang.core.errors import StoreError
from derivlang.core.parse_errors import parse_errors
from derivlang.store.manifest import Derived, counts_of, document_of

_PARQUET = "application/x-parquet"
# The context that the specification prescribes.
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{
        name: f"cr:{name}"
        for name in (
            "citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty", "fileSet",
            "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
            "references", "regex", "repeated", "replace", "separator", "source", "subField", "transform",
        )
    },
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
}  # fmt: skip


def croissant(derived: Derived, url: str) -> bytes:
    """Return the text of croissant.json. url: of the page of the set. Raise StoreError for an unreadable shard.

    Columns whose type has no name there are left out.
    """
    manifest = derived.manifest
    source = manifest["source"]
    name = " ".join(source["name"].split())
    cited = {"citeAs": source["citation"]} if source["citation"] else {}
    metadata = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"{name} under {manifest['spec']}",
        "description": f"A derived language, made by derivlang from {name} with the transforms {manifest['spec']}: "
        "each row has a sentence of the source, the derived one, and the word links between them.",
        "url": url,
        "license": source["licence"],
        **cited,
        "version": "1.0.0",
        "inLanguage": source["language"],
        "keywords": ["derivlang", "derived-language"],
        "distribution": [one for split in derived.splits for one in _files(derived, split)],
        "recordSet": [_records(derived, split) for split in derived.splits if derived.shards(split)],
    }
    return f"{json.dumps(metadata, ensure_ascii=False, indent=1)}\n".encode()


def _files(derived: Derived, split: str) -> Iterator[dict[str, Any]]:
    """Yield a file for each shard of a split, then the file set that has them all."""
    shards = derived.shards(split)
    for shard in shards:
        yield {
            "@type": "cr:FileObject",
            "@id": shard["file"],
            "name": shard["file"],
            "contentUrl": shard["file"],
            "contentSize": f"{shard['bytes']} B",
            "encodingFormat": _PARQUET,
            "sha256": shard["sha256"],
        }
    if shards:
        yield {
            "@type": "cr:FileSet",
            "@id": f"files-{split}",
            "name": f"files-{split}",
            "encodingFormat": _PARQUET,
            "includes": [escape(shard["file"]) for shard in shards],  # {split}-* may match another split's
        }


def _records(derived: Derived, split: str) -> dict[str, Any]:
    """Return the record set of a split."""
    path = derived.folder / derived.shards(split)[0]["file"]
    with parse_errors(str(path), "Parquet file", error=StoreError, id="damaged"):
        schema = pq.read_schema(path)
    counts = counts_of(derived.manifest["splits"][split], document_of(derived.manifest))
    fields = [_field(split, (column.name,), column.type) for column in schema]
    return {
        "@type": "cr:RecordSet",
        "@id": split,
        "name": split,
        "description": f"The split {split}: {', '.join(f'{count:,} {noun}' for noun, count in counts.items())}.",
        "field": [field for field in fields if field],
    }


def _field(split: str, path: tuple[str, ...], kind: pa.DataType) -> dict[str, Any] | None:
    """Return a field, None if Croissant has no name for its type. path: a column, and what is inside it."""
    name = "/".join((split, *path))
    field: dict[str, Any] = {"@type": "cr:Field", "@id": name, "name": name}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        field["repeated"] = True
        kind = kind.value_type
    if pa.types.is_struct(kind):
        inner = [_field(split, (*path, one.name), one.type) for one in kind]
        return {**field, "subField": [one for one in inner if one]}
    if (named := _type(kind)) is None:
        return None
    source: dict[str, Any] = {"fileSet": {"@id": f"files-{split}"}, "extract": {"column": path[0]}}
    if path[1:]:
        source["transform"] = [{"jsonPath": one} for one in path[1:]]
    return {**field, "dataType": named, "source": source}


def _type(kind: pa.DataType) -> str | None:
    """Return the name of a type of single values, None if there is none."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if is_string(kind):
        return "sc:Text"
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    if pa.types.is_floating(kind):
        return "sc:Float"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "sc:Date"
    return None
