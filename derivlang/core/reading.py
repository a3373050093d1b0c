"""Batches of input columns: words and text, labels checked against their words, adjacent equal texts once.

to_batch(table, schema, split, ...)      table: R rows of a labelled file or hub set
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int32, Int64, lengths_of, offsets_of
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch, build
from derivlang.core.errors import LayerError
from derivlang.core.layers import Layer
from derivlang.core.layers.answers import Answers
from derivlang.core.layers.gaps import Gaps
from derivlang.core.layers.spans import Spans
from derivlang.core.layers.tree import NODES, Nodes, Tree
from derivlang.core.layers.values import Values
from derivlang.core.layers.words import Words
from derivlang.core.schema import Field, Schema, Side
from derivlang.core.trees import first_fault

# What an inserted word gets in columns of these names; elsewhere `_`.
FILLERS = {"upos": "X", "xpos": "X", "pos": "X", "pos_tags": "X"}
_SAME_LABEL = {"contradictory": "contradiction"}

Where = Callable[[int, int | None], str]  # (row, word or None) -> "file:line"


@dataclass(frozen=True, slots=True)
class Splits:
    """Words of some texts, as a splitter gives them: codes into types, unit offsets, gaps."""

    words: Int32
    types: pa.Array
    units: Int64
    gaps: Gaps


SplitTexts = Callable[[list[str]], Splits]


def to_batch(
    table: pa.Table,
    schema: Schema,
    split: SplitTexts,
    *,
    documents: Int64,
    where: Where,
    counts: Counter[str],
    repair_tags: bool = False,
) -> Batch:
    """A batch of R rows, sentences still to be split.

    split: the tokenizer of raw text. where: names a row or word for errors. counts: what was repaired or
    widened is added. Raises LayerError where labels do not fit their words.
    """
    parts = [_side_words(table, side, split, where) for side in schema.sides]
    shifts = offsets_of(np.array([len(part[0].units) - 1 for part in parts]))[:-1]
    records = np.asarray(np.stack([part[1] for part in parts], axis=1) + shifts, np.int32)
    merged = _concat([part[0] for part in parts])
    batch = build(
        merged.words,
        merged.types,
        merged.units,
        records,
        documents,
        sides=tuple(side.name for side in schema.sides),
        gaps=merged.gaps if any(side.words is None for side in schema.sides) else None,
    )
    layers = _layers(table, schema, batch, where, counts, repair_tags)
    return replace(batch, layers=layers)


def _side_words(table: pa.Table, side: Side, split: SplitTexts, where: Where) -> tuple[Splits, Int64]:
    """The words of a side and the unit of each row; adjacent rows of one text share a unit."""
    if side.words is not None:
        column = whole(table[side.words])
        if column.null_count or column.flatten().null_count:
            row = next(i for i, words in enumerate(column.to_pylist()) if words is None or None in words)
            raise LayerError(f"null in the words of {side.words}", where=where(row, None), id="null-words")
        flat = column.flatten().dictionary_encode()
        types = flat.dictionary.cast(pa.string())
        empty = pc.index(types, "").as_py()
        codes = to_numpy(flat.indices).astype(np.int32)
        units = offsets_of(to_numpy(pc.list_value_length(column)))
        if empty >= 0:
            at = int(np.flatnonzero(codes == empty)[0])
            row = int(np.searchsorted(units, at, "right")) - 1
            raise LayerError(
                f"word {at - int(units[row]) + 1} of {side.words} is empty",
                where=where(row, at - int(units[row])),
                id="empty-word",
            )
        none = np.zeros(0, np.int32)
        gaps = Gaps(string_array([" ", "", "\n"]), none, none, np.zeros(0, np.int64), none)
        return Splits(codes, types, units, gaps), np.arange(len(column))
    column = whole(table[side.text])
    if column.null_count:
        row = int(np.flatnonzero(to_numpy(column.is_null()))[0])
        raise LayerError(f"no text in {side.text}", where=where(row, None), id="null-text")
    texts = column.cast(pa.string())
    new = np.ones(len(texts), bool)
    new[1:] = to_numpy(pc.not_equal(texts[1:], texts[:-1]))
    return split(texts.filter(to_arrow(new)).to_pylist()), np.cumsum(new) - 1


def _concat(parts: list[Splits]) -> Splits:
    if len(parts) == 1:
        return parts[0]
    types = pa.concat_arrays([part.types for part in parts]).dictionary_encode()
    strings = pa.concat_arrays([part.gaps.strings for part in parts]).dictionary_encode()
    recode, regap = (to_numpy(e.indices).astype(np.int32) for e in (types, strings))
    type_at = offsets_of(np.array([len(part.types) for part in parts]))
    gap_at = offsets_of(np.array([len(part.gaps.strings) for part in parts]))
    word_at = offsets_of(np.array([len(part.words) for part in parts]))
    words, units, lead, trail, at, inner = [], [np.zeros(1, np.int64)], [], [], [], []
    for i, part in enumerate(parts):
        n = len(part.units) - 1
        words.append(recode[part.words + type_at[i]])
        units.append(part.units[1:] + word_at[i])
        known = len(part.gaps.lead) == n
        lead.append(regap[part.gaps.lead + gap_at[i]] if known else np.ones(n, np.int32))
        trail.append(regap[part.gaps.trail + gap_at[i]] if known else np.ones(n, np.int32))
        at.append(part.gaps.at + word_at[i])
        inner.append(regap[part.gaps.inner + gap_at[i]])
    gaps = Gaps(strings.dictionary, *(np.concatenate(a) for a in (lead, trail, at, inner)))
    return Splits(np.concatenate(words), types.dictionary, np.concatenate(units), gaps)


def _layers(
    table: pa.Table, schema: Schema, batch: Batch, where: Where, counts: Counter[str], repair: bool
) -> dict[str, Layer]:
    """The layers of an input table; class labels may still be names."""
    columns = {name: whole(table[name]) for name in table.column_names}
    per_word = [f for f in schema.fields if f.kind in ("tags", "misc", "entities", "tree")]
    names = [f.input for f in per_word if f.kind != "tree"]
    if any(f.kind == "tree" for f in per_word):
        names += [name for name in ("head", "deprel", "deps") if name in columns]
    sizes = lengths_of(batch.unit_words)[batch.records[:, 0]]
    for name in names:
        column = columns[name]
        lengths = to_numpy(pc.list_value_length(column).fill_null(-1))
        wrong = np.flatnonzero(lengths != sizes)
        if wrong.size or len(schema.sides) > 1:
            row = int(wrong[0]) if wrong.size else 0
            raise LayerError(
                f"{int(sizes[row])} words but {int(lengths[row])} values in {name}",
                where=where(row, None),
                fix="every word needs exactly one value",
                id="label-length",
            )

    def locate(word: int) -> str:
        unit = int(np.searchsorted(batch.unit_words, word, "right")) - 1
        return where(unit, word - int(batch.unit_words[unit]))

    layers: dict[str, Layer] = {}
    columns |= {f.column: columns[f.given] for f in schema.fields if f.given is not None}
    if any(f.kind == "tree" for f in per_word):
        _check_tree(columns, batch, locate)
    for field in schema.fields:
        column = columns.get(field.column)
        if field.kind in ("tags", "entities") and field.classes is not None:
            assert column is not None
            codes = _class_codes(field, column.flatten(), locate)
            if field.kind == "entities":
                layers[field.column] = Spans.from_tags(
                    field.column, codes, field.classes, batch.unit_words, where=locate, repair=repair, counts=counts
                )
            else:
                values = string_array(field.classes)
                layers[field.column] = Words(field.column, codes, values, FILLERS.get(field.column, "_"), field.classes)
        elif field.kind == "value" and field.classes is not None:
            assert column is not None
            values = _class_codes(field, column, lambda row: where(row, None), missing="-")
            layers[field.column] = Values(field.column, to_arrow(values.astype(np.int64)))
        else:
            layers |= read_layer(field, columns, batch, counts)
    return layers


def _check_tree(columns: dict[str, pa.Array], batch: Batch, locate: Callable[[int], str]) -> None:
    """Heads are numbers of words of their unit, and make a tree; LayerError names the first that do not."""
    flat = columns["head"].flatten()
    if flat.null_count or not pa.types.is_integer(flat.type):
        at = int(np.flatnonzero(to_numpy(flat.is_null()))[0]) if flat.null_count else 0
        raise LayerError("a head must be the number of a word, 0 for the root", where=locate(at), id="head-range")
    fault = first_fault(to_numpy(flat).astype(np.int32), batch.unit_words)
    if fault is not None:
        word, what, id = fault
        raise LayerError(f"the word has {what}", where=locate(word), fix="correct the tree", id=id)


def read_layer(field: Field, columns: dict[str, pa.Array], batch: Batch, counts: Counter[str]) -> dict[str, Layer]:
    """The layers that have one form on the way in and out."""
    name = field.column
    if field.kind == "tree":
        head = to_numpy(columns["head"].flatten()).astype(np.int32)
        deps = columns["deps"].flatten().to_pylist() if "deps" in columns else None
        nodes = {
            key: Nodes.read(columns[key].cast(NODES), batch.unit_words)
            for key in ("mwt", "empty_nodes")
            if key in columns
        }
        deprel = Words.of("deprel", columns["deprel"].flatten(), filler="dep")
        tree = Tree(head, deprel, None if deps is None else tuple(deps), nodes.get("mwt"), nodes.get("empty_nodes"))
        return {name: tree}
    if field.kind == "answers":
        side = next(i for i, s in enumerate(batch.sides) if s == "context" or len(batch.sides) == 1)
        return {name: Answers.read(name, columns[name], batch, side, counts)}
    if field.kind == "value":
        return {name: Values(name, columns[name])}
    filler = FILLERS.get(name, "_")
    return {name: Words.of(name, columns[name].flatten(), filler=filler, spaces=field.kind == "misc")}


_UD_V1 = "CONJ is a tag of Universal Dependencies version 1, for CCONJ: take a release of version 2"


def _class_codes(field: Field, flat: pa.Array, where: Callable[[int], str], missing: str | None = None) -> Int32:
    """int32[n]: class numbers of names or numbers; `missing` is -1; LayerError names an unknown one."""
    assert field.classes is not None
    if pa.types.is_dictionary(flat.type) and pa.types.is_integer(flat.type.value_type):
        flat = flat.cast(flat.type.value_type)
    if pa.types.is_integer(flat.type):
        codes = to_numpy(flat.fill_null(-1)).astype(np.int32)
        known = {i: i for i in range(-1 if missing else 0, len(field.classes))}
        bad = np.flatnonzero(~np.isin(codes, list(known)))
    else:
        encoded = flat.dictionary_encode()
        numbers = {name: i for i, name in enumerate(field.classes)}
        names = [_SAME_LABEL.get(n, n) if field.kind == "value" else n for n in encoded.dictionary.to_pylist()]
        table = np.array([-1 if n == missing else numbers.get(n, -2) for n in names] + [-2], np.int32)
        codes = np.asarray(table[to_numpy(encoded.indices.fill_null(len(names)))], np.int32)
        bad = np.flatnonzero(codes == -2)
    if bad.size:
        at = int(bad[0])
        raise LayerError(
            f"{field.column} is {flat[at].as_py()!r}, which is none of {', '.join(field.classes)}",
            where=where(at),
            fix=_UD_V1 if (field.column, flat[at].as_py()) == ("upos", "CONJ") else None,
            id="unknown-label",
        )
    return np.asarray(codes, np.int32)


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column
