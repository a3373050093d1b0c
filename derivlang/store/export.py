"""Derived sets in the formats of other tools, and undone to the format of their source.

text        a line for each row, or for each document; pairs and questions have a line for each side
jsonl       all columns, `key` as 16 hex digits, class labels by name (a JSON line has no place for a list of classes)
conllu      trees and tags; `# text` is rebuilt
pharaoh     word links i-j, source first, 0-based, sorted
tsv         token TAB tag, or the texts and the values of a row
csv         the texts and the values of a row, with a header
squad       question sets as JSON
bracketed   a tree in brackets for each row

A space inside a word (CoNLL-U allows it) becomes U+00A0 in `text`, so that the links of `pharaoh` fit its words. Such
words are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import owners
from derivlang.core.arrow import decoded, link_lines, list_array, scalar, string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.layers.base import side_columns
from derivlang.core.layers.spans import Spans
from derivlang.core.layers.tag_schemes import IOB2
from derivlang.core.messages import counted, warn
from derivlang.core.schema import Schema
from derivlang.formats import bracketed, conllu, delimited, jsonl, squad, tagged
from derivlang.formats.base import FORMATS as FILE_FORMATS
from derivlang.formats.base import NO_FILES, find_format, suffixes
from derivlang.formats.base import Format as FileFormat
from derivlang.formats.objects import closed
from derivlang.formats.opening import packing_of
from derivlang.store.files import held_file, writing
from derivlang.store.manifest import Derived, Loaded, load
from derivlang.store.settings import ExportOptions

# The format of a file, by its suffix: what --format need not say.
_BY_SUFFIX = {
    ".txt": "text",
    ".jsonl": "jsonl",
    ".conllu": "conllu",
    ".tsv": "tsv",
    ".csv": "csv",
    ".json": "squad",
    **dict.fromkeys(bracketed.FORMAT.suffixes, "bracketed"),
}


def format_of(options: ExportOptions, out: Path) -> str:
    """Return the format to write: as asked, or by the file's suffix. Raise UsageError if neither names one."""
    if options.format is not None:
        return options.format
    if out.suffix.lower() not in _BY_SUFFIX:
        stream = str(out) == "-"
        what = "standard output needs a format" if stream else f"the suffix {out.suffix!r} names no format"
        raise UsageError(
            what,
            where="export" if stream else "-o",
            fix=f"--format NAME, or name the file {', '.join(_BY_SUFFIX)}",
            id="missing-option",
        )
    return _BY_SUFFIX[out.suffix.lower()]


def export(folder: Path, options: ExportOptions, out: Path) -> dict[str, Any]:
    """Write a split in another format.

    Return {"out", "rows", "spaces"}. spaces: the number of words with a space.
    """
    format = format_of(options, out)
    if out.is_dir():
        raise UsageError("is a folder", where=str(out), fix="name a file", id="output")
    own = [suffix for suffix, name in _BY_SUFFIX.items() if name == format]
    refuse_other_suffix(f"the format {format}", list(dict.fromkeys([*own, ".txt", ".tokens"])), out)  # .txt is any text
    derived = Derived(folder)
    split = derived.choose_split(options.split)
    _refuse_unfit(derived.schema, format, options)
    spaces = 0

    def counted_group(group: Loaded) -> Loaded:
        nonlocal spaces
        side = group.source if options.source else group.derived
        spaces += int(to_numpy(pc.match_substring(side.types, " "))[side.words].sum())
        return group

    doing = f"export of {folder}, {format}"
    with held_file(out, doing, format, options), writing(out, replace=options.force) as stream:
        groups = map(counted_group, load(derived, split))  # map keeps no group, as a generator would
        _WRITERS[format](groups, derived.schema, options, stream)
    return {"out": str(out), "rows": _rows(derived, split), "spaces": spaces}


def undo(folder: Path, split: str | None, out: Path, *, force: bool = False) -> dict[str, Any]:
    """Write the source of a split in UTF-8: plain text byte for byte, a labelled set in the format of its source.

    force: replace a file that holds something else. Raises UsageError for a file whose suffix is of another format.
    """
    derived = Derived(folder)
    name = derived.choose_split(split)
    source, given = derived.manifest["source"], {field.column: field.input for field in derived.schema.fields}
    format = find_format("text") if derived.schema.running else _format_of(derived, out)
    refuse_other_suffix(format.noun, format.suffixes, out)

    def tables() -> Iterator[pa.Table]:
        for group in load(derived, name):
            table = labelled(group.source, derived.schema, parses=False)  # the source has no trees of a parser
            table = _in_their_schemes(table, group.source, derived.schema)
            if format.name != "squad":  # two paragraphs may have the same context
                table = table.drop_columns(["document"])
            table = table.rename_columns([given.get(name, name) for name in table.column_names])
            yield closed(table, source.get("layout", {}))

    if not format.binary and not derived.is_utf8:
        warn(f"the file is written in UTF-8; the source is in {derived.manifest['encoding']}")
    with held_file(out, f"undo of {folder}", name), writing(out, replace=force) as stream:
        if format.write is not None:
            layout = {name: value for name, value in source.get("layout", {}).items() if name != "objects"}
            format.write(tables(), stream, **layout)
        else:
            for group in load(derived, name):
                stream.write("".join(group.source.texts().to_pylist()).encode())
    return {"out": str(out), "rows": _rows(derived, name), "format": format.name}


def _rows(derived: Derived, split: str) -> int:
    return sum(shard["rows"] for shard in derived.shards(split))


def _in_their_schemes(table: pa.Table, source: Batch, schema: Schema) -> pa.Table:
    """Return the table with the tags of entities in the scheme of the source."""
    for field in schema.fields:
        layer = source.layers.get(field.column)
        if field.given_classes is not None and isinstance(layer, Spans):
            tags = layer.tags_in(field.scheme or IOB2, field.given_classes, source.unit_words)
            for name, column in side_columns(field.column, source, tags).items():
                table = table.set_column(table.column_names.index(name), name, column)
    return table


def _format_of(derived: Derived, out: Path) -> FileFormat:
    """Return the format that `undo` writes: the source's format, or JSON lines if it has no files or no writer.

    Parquet files and sources without files become Parquet if the file is called so, else JSON lines.
    """
    name = derived.manifest["source"]["format"]
    if name in (*NO_FILES, "parquet"):
        return find_format("parquet" if out.suffix.lower() == ".parquet" else "jsonl")
    derived.require(FILE_FORMATS, name)
    format = find_format(name)
    return format if format.write is not None else find_format("jsonl")


def refuse_other_suffix(noun: str, own: Sequence[str], out: Path) -> None:
    """Raise UsageError for a file whose name promises another format, or a compressed file.

    noun: for what the file will hold. own: the suffixes that promise it, in lower case.
    """
    packed = packing_of(out)
    if packed or (out.suffix.lower() in suffixes() and out.suffix.lower() not in own):
        fix = f"leave {out.suffix} out" if packed else f"name the file {' or '.join(own)}"
        raise UsageError(
            f"the file would hold {noun}{', not compressed' if packed else ''}",
            where=str(out),
            fix=fix,
            id="output",
        )


def labelled(batch: Batch, schema: Schema, *, parses: bool = True) -> pa.Table:
    """Return the columns of a labelled set as its reader gives them: words or text, labels by name.

    parses: whether to include the layers of a parser.
    """
    columns: dict[str, pa.Array] = {"document": to_arrow(batch.documents)}
    texts, lists = batch.texts(), batch.unit_lists()
    for number, side in enumerate(schema.sides):
        rows = to_arrow(batch.records[:, number])
        if side.words is not None:
            columns[side.words] = lists.take(rows)
        if side.text is not None:
            columns[side.text] = texts.take(rows)
    for name, layer in batch.layers.items():
        if parses or schema.field(name) is not None:
            columns |= {name: decoded(column) for name, column in layer.columns(batch).items()}
    for field in schema.fields:
        if field.classes is not None and field.column in columns:
            columns[field.column] = _named(columns[field.column], field.classes)
    return pa.table(columns)


def _text(groups: Iterator[Loaded], schema: Schema, options: ExportOptions, out: BinaryIO) -> None:
    for group in groups:
        batch = group.source if options.source else group.derived
        lines = _lines(batch)
        if options.documents:
            documents = np.repeat(batch.documents, len(schema.sides))
            starts = np.flatnonzero(np.diff(documents, prepend=documents[:1] - 1))
            ends = np.append(starts[1:], len(lines))
            lines = [" ".join(lines[a:b]) for a, b in zip(starts, ends, strict=True)]
        out.write("".join(f"{line}\n" for line in lines).encode())


def _lines(batch: Batch) -> list[str]:
    """Return the text of each row's sides in turn, words joined by one space."""
    types = pc.replace_substring(batch.types, " ", "\u00a0")
    words = list_array(batch.unit_words, types.take(to_arrow(batch.words)))
    lines: list[str] = pc.binary_join(words.take(to_arrow(batch.records.ravel())), scalar(" ")).to_pylist()
    return lines


def _pharaoh(groups: Iterator[Loaded], schema: Schema, options: ExportOptions, out: BinaryIO) -> None:
    for group in groups:
        order, derived, source = group.order, group.derived, group.source
        # order.index [2, 0, 1] of one unit -> source words 2 0 1 at the derived positions 0 1 2 -> links 0-1 1-2 2-0
        position = np.flatnonzero(order.index >= 0)
        unit = owners(derived.unit_words)[position].astype(np.int64)
        word = order.index[position] - source.unit_words[unit]
        by = np.lexsort((word, unit))
        position, word, unit = position[by] - derived.unit_words[unit[by]], word[by], unit[by]
        links = link_lines(np.searchsorted(unit, np.arange(len(derived.units))), word, position)
        lines = links.take(to_arrow(derived.records.ravel())).to_pylist()
        out.write("".join(f"{line}\n" for line in lines).encode())


def _jsonl(groups: Iterator[Loaded], schema: Schema, options: ExportOptions, out: BinaryIO) -> None:
    def named(table: pa.Table) -> pa.Table:
        for number, name in enumerate(table.column_names):
            field = schema.field(name.removeprefix("source_")) if name != "source" else None
            if field is not None and field.classes is not None:
                table = table.set_column(number, name, _named(table[name].combine_chunks(), field.classes))
        return table

    jsonl.write(map(lambda group: named(group.table), groups), out)


def _conllu(groups: Iterator[Loaded], schema: Schema, options: ExportOptions, out: BinaryIO) -> None:
    emptied = 0

    def tables() -> Iterator[pa.Table]:
        nonlocal emptied
        for group in groups:
            batch = group.source if options.source else group.derived
            table, words, rows = labelled(batch, schema), schema.sides[0].words, to_arrow(batch.records[:, 0])
            columns = dict(zip(table.column_names, table.columns, strict=True))
            columns["tokens"] = batch.unit_lists().take(rows) if words is None else columns.pop(words)
            columns.setdefault("text", batch.texts().take(rows))
            if options.source and "comments" in columns:
                del columns["text"]  # `# text` is already among the source's comments
            table = pa.table(columns)
            full = table.filter(pc.greater(pc.list_value_length(table["tokens"]), scalar(0)))
            emptied += table.num_rows - full.num_rows
            yield full

    conllu.write(tables(), out)
    if emptied:
        warn(f"{counted(emptied, 'sentence')} without words left out: CoNLL-U cannot hold them")


def _tsv(groups: Iterator[Loaded], schema: Schema, options: ExportOptions, out: BinaryIO) -> None:
    tables = (labelled(group.source if options.source else group.derived, schema) for group in groups)
    tags = _tag_column(schema)
    if tags is None:
        plain, columns = _plain_columns(tables, schema)
        delimited.write(plain, out, columns=columns)
        return
    words = schema.sides[0].words
    renamed = (t.rename_columns(["tokens" if n == words else n for n in t.column_names]) for t in tables)
    tagged.write(renamed, out, tag_column=tags)


def _csv(groups: Iterator[Loaded], schema: Schema, options: ExportOptions, out: BinaryIO) -> None:
    tables = (labelled(group.source if options.source else group.derived, schema) for group in groups)
    plain, columns = _plain_columns(tables, schema)
    delimited.write_csv((table.select(columns) for table in plain), out, columns=columns, newline="\n")


def _plain_columns(tables: Iterator[pa.Table], schema: Schema) -> tuple[Iterator[pa.Table], list[str]]:
    """Return the tables and their columns with one value per row: texts, then labels, but no lists and structs."""
    values = [field.column for field in schema.fields if field.kind == "value"]
    first = next(tables, None)
    if first is not None:
        values = [name for name in values if not pa.types.is_nested(first.schema.field(name).type)]
        tables = chain([first], tables)
    return tables, [*(side.text for side in schema.sides if side.text), *values]


def _squad(groups: Iterator[Loaded], schema: Schema, options: ExportOptions, out: BinaryIO) -> None:
    tables = (labelled(g.source if options.source else g.derived, schema) for g in groups)
    # Not every source has paragraphs as its documents: sources of the hub have rows.
    squad.write((table.drop_columns(["document"]) for table in tables), out)


def _bracketed(groups: Iterator[Loaded], schema: Schema, options: ExportOptions, out: BinaryIO) -> None:
    name = next(field.column for field in schema.fields if field.kind == "constituents")
    tables = (labelled(group.source if options.source else group.derived, schema) for group in groups)
    unread = bracketed.write_trees((table[name].combine_chunks() for table in tables), out)
    if unread:
        warn(
            f"{counted(unread, 'row')} cannot be read back from the file: without words, or beginning with a word "
            "outside of brackets"
        )


_WRITERS: dict[str, Callable[[Iterator[Loaded], Schema, ExportOptions, BinaryIO], None]] = {
    "text": _text,
    "jsonl": _jsonl,
    "conllu": _conllu,
    "pharaoh": _pharaoh,
    "tsv": _tsv,
    "csv": _csv,
    "squad": _squad,
    "bracketed": _bracketed,
}


def _tag_column(schema: Schema) -> str | None:
    """Return the tag column of a token-TAB-tag file: entities, else UPOS, else the first tags."""
    if schema.sides[0].words is None:
        return None
    kinds = [f for f in schema.fields if f.kind in ("entities", "tags")]
    kinds.sort(key=lambda f: (f.kind != "entities", f.column != "upos"))
    return kinds[0].column if kinds else None


def _refuse_unfit(schema: Schema, format: str, options: ExportOptions) -> None:
    """Raise UsageError if the set cannot be written in the format, or an option does not apply to the format."""
    texts = not schema.running and any(side.text for side in schema.sides)
    fits = {
        "conllu": len(schema.sides) == 1,
        "squad": any(f.kind == "answers" for f in schema.fields) and any(f.column == "id" for f in schema.fields),
        "bracketed": any(f.kind == "constituents" for f in schema.fields),
        "tsv": texts or _tag_column(schema) is not None,
        "csv": texts,
        "transformers": False,
    }
    if not fits.get(format, True):
        raise UsageError(
            f"this set does not fit the format {format}",
            where="-o" if options.format is None else "--format",
            fix="jsonl, text and pharaoh fit every set",
            id="unfit-format",
        )
    unfit = {
        "--source": options.source and format in ("jsonl", "pharaoh"),
        "--documents": options.documents and format != "text",
    }
    for option in (name for name, is_unfit in unfit.items() if is_unfit):
        raise UsageError(
            f"does not apply to the format {format}",
            where=option,
            fix=f"leave {option} out",
            id="unused-option",
        )


def _named(column: pa.Array, classes: tuple[str, ...]) -> pa.Array:
    """Return class numbers as names, and other columns as they are; -1 is `-`, and a null list stays null."""
    names = string_array([*classes, "-"])

    def name(codes: pa.Array) -> pa.Array:
        numbers = to_numpy(codes.fill_null(-1))
        return names.take(to_arrow(np.where(numbers < 0, len(classes), numbers)))

    if pa.types.is_list(column.type) and pa.types.is_integer(column.type.value_type):
        return pa.ListArray.from_arrays(column.offsets, name(column.values), mask=column.is_null())
    return name(column) if pa.types.is_integer(column.type) else column
