"""Batches from tables: of the columns of a labelled file or hub set (`to_batch`), and of output rows (`from_table`).

Adjacent equal texts of a labelled table are stored once:

    context, question           units               records
    "a b", "who ?"              a b                 [0, 1]
    "a b", "why ?"        ->    who ?, why ?        [0, 2]

From output rows come the source batch, the derived batch and the order:

    from_table(table, schema, lexicon)   ->  source, derived, order

The source is computed from the derived words by the inverse order and lexicon. Labels that the inverse does not restore
exactly come from the columns `source_<label>`. A row of the spec `trans,inv`:

    tokens [ᲐᲪᲚ, ტო], order [1, 0]   --inverse order-->   [ტო, ᲐᲪᲚ]   --inverse lexicon-->   source [to, ACL]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int32, Int64, lengths_of, offsets_of, owners
from derivlang.core.arrow import decoded, list_array, scalar, string_array, to_arrow, to_numpy, whole
from derivlang.core.bare_batch import read_groups
from derivlang.core.batch import Batch, build, realign
from derivlang.core.columns import conform
from derivlang.core.errors import LayerError
from derivlang.core.gaps import NOTHING, USUAL, Gaps
from derivlang.core.layers.base import Labels, Layer, Locate, find_layer
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.schema import Schema, Side


@dataclass(frozen=True, slots=True)
class Splits:
    """Words of some texts, as a splitter gives them: codes into types, unit offsets, gaps."""

    words: Int32
    types: pa.Array
    units: Int64
    gaps: Gaps


# (Arrow strings, a function that names the place of a text for errors) -> their words
SplitTexts = Callable[[pa.StringArray, Callable[[int], str]], Splits]


def to_batch(
    table: pa.Table,
    schema: Schema,
    split: SplitTexts,
    *,
    documents: Int64,
    where: Locate,
    counts: Counter[str],
    repair_tags: bool = False,
    no_null_strings: bool = False,
    shares: bool = True,
    whole_trees: bool = False,
) -> Batch:
    """Return a batch of R rows; each unit is one sentence, to be split later.

    split: the tokenizer of raw text. where: names a row or word for errors. counts: what is repaired or widened is
    added. no_null_strings, whole_trees: as in Labels. shares: whether adjacent rows with the same text share its unit.
    Raise LayerError where labels do not fit their words.
    """
    parts = [_side_words(table, side, split, where, shares) for side in schema.sides]
    shifts = offsets_of(np.array([len(part[0].units) - 1 for part in parts]))[:-1]
    records = np.asarray(np.stack([part[1] for part in parts], axis=1) + shifts, np.int32)
    merged = joined([part[0] for part in parts])
    batch = build(
        merged.words,
        merged.types,
        merged.units,
        records,
        documents,
        sides=tuple(side.name for side in schema.sides),
        gaps=merged.gaps if any(side.words is None for side in schema.sides) else None,
        keys=np.zeros(0, np.uint64),  # the keys of sentences are made when the units are split into sentences
    )
    columns = {name: whole(table[name]) for name in table.column_names}
    columns |= {field.column: columns[field.given] for field in schema.fields if field.given is not None}
    labels = Labels(columns, batch, where, repair_tags, counts, no_null_strings, whole_trees)
    return replace(batch, layers={f.column: find_layer(f.kind).read(f, labels) for f in schema.fields})


def _side_words(table: pa.Table, side: Side, split: SplitTexts, where: Locate, shares: bool) -> tuple[Splits, Int64]:
    """Return the words of a side and the unit of each row."""
    if side.words is not None:
        column = conform(whole(table[side.words]), pa.list_(pa.string()), side.words, lambda row: where(row, None))
        if column.null_count or column.flatten().null_count:
            row = next(i for i, words in enumerate(column.to_pylist()) if words is None or None in words)
            raise LayerError(f"null in the words of {side.words}", where=where(row, None), id="null-words")
        flat = column.flatten().dictionary_encode()
        types = flat.dictionary
        empty = pc.index(types, scalar("")).as_py()
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
        usual = np.full(len(column), NOTHING, np.int32)
        gaps = Gaps(string_array(USUAL), usual, usual, np.zeros(0, np.int64), np.zeros(0, np.int32))
        return Splits(codes, types, units, gaps), np.arange(len(column))
    name = str(side.text)
    column = conform(whole(table[name]), pa.string(), name, lambda row: where(row, None))
    if column.null_count:
        row = int(np.flatnonzero(to_numpy(column.is_null()))[0])
        raise LayerError(f"no text in {name}", where=where(row, None), fix="leave the row out", id="null-text")
    new = np.ones(len(column), bool)
    if shares:
        new[1:] = to_numpy(pc.not_equal(column[1:], column[:-1]))
    texts = column if new.all() else column.filter(to_arrow(new))
    return split(texts, lambda text: where(int(np.flatnonzero(new)[text]), None)), np.cumsum(new) - 1


def joined(parts: list[Splits]) -> Splits:
    """Return the words of all parts, such as sides, as one: tables are merged, codes and offsets shifted."""
    if len(parts) == 1:
        return parts[0]
    gaps = [part.gaps for part in parts]
    words, types = _merged([(part.words, part.types) for part in parts])
    (lead, strings), (trail, _), (inner, _) = (
        _merged([(codes, gap.strings) for codes, gap in zip(some, gaps, strict=True)])
        for some in zip(*((gap.lead, gap.trail, gap.inner) for gap in gaps), strict=True)
    )
    before = offsets_of(np.array([len(part.words) for part in parts]))[:-1]
    at = np.concatenate([gap.at + n for gap, n in zip(gaps, before, strict=True)])
    units = offsets_of(np.concatenate([lengths_of(part.units) for part in parts]))
    return Splits(words, types, units, Gaps(strings, lead, trail, at, inner))


def _merged(parts: list[tuple[Int32, pa.Array]]) -> tuple[Int32, pa.Array]:
    """Return the codes of all parts, and the strings that they index.

    0 1 into [a, b] and 0 1 into [b, c]   ->   0 1 1 2 into [a, b, c]
    """
    some = [pa.DictionaryArray.from_arrays(to_arrow(codes), strings, safe=False) for codes, strings in parts]
    merged = pa.concat_arrays(some)
    return to_numpy(merged.indices), merged.dictionary


def from_table(
    table: pa.Table, schema: Schema, lexicon: Lexicon, *, stored_source: bool = False
) -> tuple[Batch, Batch, Order]:
    """Return (source, derived, order) of R output rows.

    If no word was deleted and the lexicon has an inverse, the source words are computed from only the derived words.
    Otherwise, or with stored_source, they come from the column `source`. Raise LayerError if the columns do not fit
    together, or if the source can neither be computed nor read.
    """
    table = table.combine_chunks()
    n = table.num_rows
    columns = {name: whole(table[name]) for name in table.column_names}
    sides = schema.sides

    def stack(part: str) -> pa.Array:
        arrays = [columns[side.column(part)] for side in sides]
        return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)

    # Another program may have written them as other numbers: 1.0 is a word's number, NaN means no word.
    order_lists, stored = (stack(part).cast(pa.list_(pa.int32())) for part in ("order", "sentences"))
    if sides[0].column("tokens") in columns:
        tokens = stack("tokens")
    else:  # the column may be left out if the order is a permutation, because the source then determines it
        tokens = _tokens_of(stack("source"), order_lists, lexicon)
    units = offsets_of(to_numpy(pc.list_value_length(tokens)))
    if not np.array_equal(offsets_of(to_numpy(pc.list_value_length(order_lists))), units):
        raise LayerError("the columns tokens and order differ in length", id="row-lengths")
    words, types = _encoded(tokens)
    # Units are stacked by side: two rows of two sides have the records [[0, 2], [1, 3]].
    records = np.arange(n * len(sides), dtype=np.int32).reshape(len(sides), n).T.copy()
    documents = to_numpy(columns["document"]) if "document" in columns else np.zeros(n, np.int64)
    derived = build(
        words,
        types,
        units,
        records,
        documents,
        sides=tuple(side.name for side in sides),
        running=schema.running,
    )
    local = to_numpy(order_lists.flatten()).astype(np.int64)
    given = stack("source") if sides[0].column("source") in columns else None
    sizes, sentences = _read_sentences(stored, local, units)
    if given is None and (sizes > lengths_of(units)).any():
        raise LayerError("words were deleted, and the source is not stored", id="row-order")
    if given is not None and not np.array_equal(to_numpy(pc.list_value_length(given)), sizes):
        raise LayerError("the source words and the order differ in length", id="row-order")
    # The sizes now equal lengths of columns in memory, so a damaged file cannot cause a huge allocation below.
    source_units = offsets_of(sizes)
    if (local >= sizes[owners(units)]).any() or (local < -1).any():
        raise LayerError("an order points outside its row", id="row-order")
    # Orders are stored by row, from 0; the order of a batch counts through: [1, 0], [0, 1] -> [1, 0, 2, 3].
    index = np.where(local < 0, -1, local + source_units[:-1][owners(units)]).astype(np.int32)
    inserted = types.take(to_arrow(derived.words[local < 0]))
    order = Order(
        index,
        units,
        np.zeros(len(units) - 1, np.int32),
        int(source_units[-1]),
        inserted if len(inserted) else None,
        np.zeros(len(inserted), np.int32) if len(inserted) else None,
    ).check()
    layers = _read_layers(columns, schema, derived)
    derived = replace(derived, layers=layers)
    if not (order.n_deleted or stored_source or not lexicon.injective):
        given = None
    source, back = _undo(derived, order, source_units, sentences, lexicon, given)
    if side_gaps := [side.column("gaps") for side in sides if side.column("gaps") in columns]:
        source = replace(
            source, gaps=Gaps.read(pa.concat_arrays([columns[n] for n in side_gaps]), source.unit_words, source.lines)
        )
    if any(side.column("groups") in columns for side in sides):
        none = pa.nulls(n, pa.list_(pa.int32()))
        stored_groups = pa.concat_arrays([columns.get(side.column("groups"), none).cast(none.type) for side in sides])
        source = replace(source, grouped=read_groups(stored_groups, source.unit_words))
    return replace(source, layers=_restore(columns, schema, source, back)), derived, order


def _tokens_of(source: pa.Array, order_lists: pa.Array, lexicon: Lexicon) -> pa.Array:
    """Return list<string>[U], the derived words: the order applied to the image of the source words.

    Raise LayerError if an order is not a permutation of its row.
    """
    words, types = _encoded(source)
    image = lexicon.apply(types)
    units = offsets_of(to_numpy(pc.list_value_length(order_lists)))
    index = to_numpy(order_lists.flatten()) + units[:-1][owners(units)]
    if len(index) != len(words) or (index < 0).any() or (index >= len(words)).any():
        raise LayerError("an order points outside its row", id="row-order")
    return list_array(units, image.take(to_arrow(words[index])))


def _encoded(lists: pa.Array) -> tuple[Int32, pa.Array]:
    """Return (int32[N], the type of each word; strings, the types) of lists of words."""
    encoded = lists.flatten().dictionary_encode()
    types = encoded.dictionary.cast(pa.string())  # from large strings, perhaps
    return to_numpy(encoded.indices).astype(np.int32), types


def _undo(
    derived: Batch,
    order: Order,
    source_units: Int64,
    sentences: tuple[Int64, Int32],
    lexicon: Lexicon,
    given: pa.Array | None,
) -> tuple[Batch, dict[str, Layer]]:
    """Return the source without layers and gaps, and the derived layers under the inverse order.

    source_units: int64[U + 1], word offsets. sentences: (offsets, tails) of the source. given: the stored source words,
    None if they are to be computed.
    """
    n = len(source_units) - 1
    back: dict[str, Layer] = {}
    flat = replace(derived, sentences=order.sentences, units=np.arange(n + 1), tails=np.zeros(n, np.int32))
    words, types = flat.words, flat.types
    if order.n_derived:
        inverse = order.invert_padded(source_units, np.zeros(n, np.int32), source_units, order.sentences)
        one_way = lexicon.is_identity or not lexicon.injective
        labels = lexicon.of_labels.invert()
        undone = realign(flat, inverse, None if one_way else lexicon.invert().apply(derived.types), labels=labels)
        words, types, back = undone.words, undone.types, dict(undone.layers)
    if given is not None:
        words, types = _encoded(given)
    elif not lexicon.injective:
        raise LayerError("the lexicon has no inverse, and the source is not stored", id="row-order")
    source = build(
        words,
        types,
        source_units,
        derived.records,
        derived.documents,
        sides=derived.sides,
        running=derived.running,
        sentences=sentences,
    )
    return source, back


def _restore(columns: dict[str, pa.Array], schema: Schema, source: Batch, back: dict[str, Layer]) -> dict[str, Layer]:
    """Return the source's layers: the layers of `back`, with `source_<label>` in the rows where it is not null.

    source_ner_tags [null, [1, 2]] and, in back, ner_tags [[0], [1, 1]]   ->   ner_tags [[0], [1, 2]]
    """
    given = {
        name.removeprefix("source_"): column
        for name, column in columns.items()
        if name.startswith("source_") and schema.field(name) is None
    }
    undone: dict[str, pa.Array] = {}
    for layer in back.values():
        undone |= layer.columns(source)
    fixed = dict(columns)
    for label, column in given.items():
        # Without derived words there is no inverse: rows without words keep the labels that they have.
        fixed[label] = _coalesced(column, undone.get(label, columns.get(label, column)))
    for name, column in undone.items():
        if f"source_{name}" not in columns:
            fixed[name] = column
    return _read_layers(fixed, schema, source)


def _coalesced(first: pa.Array, second: pa.Array) -> pa.Array:
    """Return the rows of the first column; where they are null, the rows of the second."""
    if first.null_count in (0, len(first)):
        return second if first.null_count else first
    second = decoded(second)
    return pc.coalesce(decoded(first).cast(second.type), second)


def _read_layers(columns: Mapping[str, pa.Array], schema: Schema, batch: Batch) -> dict[str, Layer]:
    """Return the layers of the schema."""
    labels = Labels(columns, batch, stored=True)
    return {field.column: find_layer(field.kind).read(field, labels) for field in schema.layer_fields}


def _read_sentences(stored: pa.Array, local: Int64, units: Int64) -> tuple[Int64, tuple[Int64, Int32]]:
    """Return int64[U], how many source words a unit has, and the sentences: offsets int64[S + 1], tails int32[S].

    stored: the column `sentences`, pairs of words and tail; an empty list is one sentence of the words that the order
    takes, with a tail of one word. local: the orders of all units. units: their offsets.

    stored [3, 1, 2, 0], [] with orders [4, 1, 2, 0], [1, -1, 0]   ->   5, 2 (one was deleted); [0, 3, 5, 7], [1, 0, 1]
    """
    lengths, flat = to_numpy(pc.list_value_length(stored)), to_numpy(stored.flatten())
    if (lengths % 2).any() or (flat < 0).any() or (flat[1::2] > flat[0::2]).any():
        raise LayerError("sentences are not pairs of a number of words and a shorter tail", id="row-sentences")
    told, kept = lengths > 0, offsets_of(local >= 0)
    sums, at = offsets_of(flat[0::2]), offsets_of(lengths // 2)
    sizes = np.where(told, sums[at[1:]] - sums[at[:-1]], kept[units[1:]] - kept[units[:-1]])
    counts = np.where(told, lengths // 2, sizes > 0)
    words, of_told = np.repeat(sizes, counts), np.repeat(told, counts)
    tails = np.ones(len(words), np.int32)
    words[of_told], tails[of_told] = flat[0::2], flat[1::2]
    return sizes, (offsets_of(words), tails)
