"""Output rows of batches, and batches of output rows.

    to_table(source, derived, order, schema, ...)   ->  columns of R rows
    from_table(table, schema, lexicon)              ->  source, derived, order

`source_<label>` holds the source's own label in the rows where the way back would not give it (an entity taken
apart, a dissolved multiword token, a deleted word), and is null elsewhere. That is found by going back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of, offsets_of, owners, segment_any
from derivlang.core.arrow import list_array, string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch, Policies, build, realign
from derivlang.core.errors import LayerError
from derivlang.core.layers import Layer
from derivlang.core.layers.answers import Answers
from derivlang.core.layers.gaps import Gaps
from derivlang.core.layers.parse import read_parse
from derivlang.core.layers.spans import Spans
from derivlang.core.layers.tree import Tree
from derivlang.core.layers.values import Values
from derivlang.core.layers.words import Words
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.reading import FILLERS, read_layer, whole
from derivlang.core.schema import Schema


def to_table(
    source: Batch,
    derived: Batch,
    order: Order,
    schema: Schema,
    *,
    has_order: bool,
    exact: bool = False,
    policies: Policies | None = None,
) -> dict[str, pa.Array]:
    """The output columns, by name, R rows each. has_order, exact: has the pipeline an order, is it a permutation."""
    rows = [to_arrow(source.records[:, side]) for side in range(len(schema.sides))]
    out: dict[str, pa.Array] = {
        "document": to_arrow(source.documents),
        "key": to_arrow(source.record_keys),
    }
    plain = all(side.text is None for side in schema.sides)
    texts = None if plain else derived.texts()
    unit_columns = {
        "source": _word_lists(source),
        "tokens": _word_lists(derived),
        "order": _local_order(source, derived, order),
        "sentences": _sentence_column(source, order),
    }
    if source.gaps is not None:
        unit_columns["gaps"] = source.gaps.column(source)
    straight = len(schema.sides) == 1 and np.array_equal(source.records[:, 0], np.arange(len(source.units) - 1))
    for side, take in zip(schema.sides, rows, strict=True):
        if side.text is not None and texts is not None:
            out[side.text] = texts if straight else texts.take(take)
        for part, column in unit_columns.items():
            out[side.column(part)] = column if straight else column.take(take)
    for layer in derived.layers.values():
        out |= layer.columns(derived)
    return out | _kept_labels(source, derived, order, policies or Policies(), has_order, exact)


def from_table(
    table: pa.Table, schema: Schema, lexicon: Lexicon, *, stored_source: bool = False
) -> tuple[Batch, Batch, Order]:
    """(source, derived, order) of R output rows.

    The source comes by the inverse order and lexicon alone, where every source word is in the order and the lexicon
    has an inverse, else (or with stored_source, where it is there) from the `source` column. Raises LayerError where
    columns do not fit.
    """
    table = table.combine_chunks()
    n = table.num_rows
    columns = {name: whole(table[name]) for name in table.column_names}
    sides = schema.sides

    def stack(part: str) -> pa.Array:
        found = [columns[side.column(part)] for side in sides]
        return found[0] if len(found) == 1 else pa.concat_arrays(found)

    order_lists, stored = stack("order"), stack("sentences")
    if sides[0].column("tokens") in columns:
        tokens = stack("tokens")
    else:  # left out, as it follows from the source where the order is a permutation
        tokens = _tokens_of(stack("source"), order_lists, lexicon)
    units = offsets_of(to_numpy(pc.list_value_length(tokens)))
    if not np.array_equal(offsets_of(to_numpy(pc.list_value_length(order_lists))), units):
        raise LayerError("the columns tokens and order differ in length", id="row-lengths")
    encoded = tokens.flatten().dictionary_encode()
    records = np.arange(n * len(sides), dtype=np.int32).reshape(len(sides), n).T.copy()
    documents = to_numpy(columns["document"]) if "document" in columns else np.zeros(n, np.int64)
    derived = build(
        to_numpy(encoded.indices).astype(np.int32),
        encoded.dictionary,
        units,
        records,
        documents,
        sides=tuple(side.name for side in sides),
        running=schema.running,
    )
    local = to_numpy(order_lists.flatten()).astype(np.int64)
    deleted = _source_sizes(stored, local, units)
    source_units = offsets_of(deleted)
    if (local >= deleted[owners(units)]).any() or (local < -1).any():
        raise LayerError("an order points outside its row", id="row-order")
    index = np.where(local < 0, -1, local + source_units[:-1][owners(units)]).astype(np.int32)
    marks = encoded.dictionary.take(to_arrow(derived.words[local < 0]))
    order = Order(
        index,
        units,
        np.zeros(len(units) - 1, np.int32),
        int(source_units[-1]),
        marks if len(marks) else None,
        np.zeros(len(marks), np.int32) if len(marks) else None,
    ).check()
    sentences = _read_sentences(stored, source_units)
    layers = _read_layers(columns, schema, derived)
    derived = replace(derived, layers=layers)
    wanted = order.n_deleted or stored_source or not lexicon.injective
    given = stack("source") if wanted and sides[0].column("source") in columns else None
    source, back = _undo(derived, order, source_units, sentences, lexicon, given)
    if side_gaps := [side.column("gaps") for side in sides if side.column("gaps") in columns]:
        source = replace(source, gaps=Gaps.read(pa.concat_arrays([columns[name] for name in side_gaps]), source))
    return replace(source, layers=_restore(columns, schema, source, back)), derived, order


def _tokens_of(source: pa.Array, order_lists: pa.Array, lexicon: Lexicon) -> pa.Array:
    """list<string>: the derived words of rows whose source words are all in the order."""
    words = source.flatten().dictionary_encode()
    image = lexicon.apply(words.dictionary)
    units = offsets_of(to_numpy(pc.list_value_length(order_lists)))
    index = to_numpy(order_lists.flatten()) + units[:-1][owners(units)]
    if len(index) != len(words) or (index < 0).any() or (index >= len(words)).any():
        raise LayerError("an order points outside its row", id="row-order")
    codes = to_numpy(words.indices)[index]
    return list_array(units, image.take(to_arrow(codes)))


def _undo(
    derived: Batch,
    order: Order,
    source_units: Int64,
    sentences: tuple[Int64, Int32],
    lexicon: Lexicon,
    given: pa.Array | None,
) -> tuple[Batch, dict[str, Layer]]:
    """The source without its layers and gaps, and the layers that the way back gives. given: its words, stored."""
    n = len(source_units) - 1
    back: dict[str, Layer] = {}
    flat = replace(derived, sentences=order.sentences, units=np.arange(n + 1), tails=np.zeros(n, np.int32))
    words, types = flat.words, flat.types
    if order.n_derived:
        inverse = _back(order, source_units, np.zeros(n, np.int32), source_units, order.sentences)
        one_way = lexicon.is_identity or not lexicon.injective
        undone = realign(flat, inverse, None if one_way else lexicon.invert().apply(derived.types))
        words, types, back = undone.words, undone.types, dict(undone.layers)
    if given is not None:
        encoded = given.flatten().dictionary_encode()
        words, types = to_numpy(encoded.indices).astype(np.int32), encoded.dictionary
        if not np.array_equal(offsets_of(to_numpy(pc.list_value_length(given))), source_units):
            raise LayerError("the source words and the order differ in length", id="row-order")
    elif order.n_deleted or not lexicon.injective:
        why = "words were deleted" if order.n_deleted else "the lexicon has no inverse"
        raise LayerError(f"{why}, and the source is not stored", id="row-order")
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
    """The source's layers: the way back, and `source_<label>` in the rows that have one."""
    undone: dict[str, pa.Array] = {}
    for layer in back.values():
        undone |= layer.columns(source)
    fixed = dict(columns)
    for name, column in list(columns.items()):
        if not name.startswith("source_") or schema.field(name) is not None:
            continue
        label = name.removeprefix("source_")
        own = undone.get(label)
        fixed[label] = column if own is None else _coalesce(column, own)
    for name, column in undone.items():
        if f"source_{name}" not in columns:
            fixed[name] = column
    return _read_layers(fixed, schema, source)


def _coalesce(first: pa.Array, second: pa.Array) -> pa.Array:
    if first.null_count == 0:
        return first
    if first.null_count == len(first):
        return second
    rows = [b if a is None else a for a, b in zip(first.to_pylist(), second.to_pylist(), strict=True)]
    return pa.array(rows, second.type)


def _kept_labels(
    source: Batch, derived: Batch, order: Order, policies: Policies, has_order: bool, exact: bool
) -> dict[str, pa.Array]:
    """`source_<label>` columns: the source's label where the way back would not give it, null elsewhere.

    A pipeline without an order leaves all labels as they are but MISC (white space goes) and answers (widened).
    """
    own: dict[str, pa.Array] = {}
    for layer in source.layers.values():
        if exact and isinstance(layer, (Words, Tree)) and layer.side is None:
            continue  # a parser's: plain, so that the way back gives it
        changes = isinstance(layer, Answers) or (isinstance(layer, Words) and layer.spaces)
        if changes or (has_order and not isinstance(layer, Values)):
            own |= layer.columns(source)
    if not own:
        return {}
    undone: dict[str, pa.Array] = {}
    if order.n_derived:
        inverse = _back(order, source.sentences, source.tails, source.unit_words, derived.unit_words)
        for layer in realign(derived, inverse, policies=policies).layers.values():
            undone |= layer.columns(source)
    lost = _lost_words(source, order)[source.records].any(axis=1) if order.n_deleted else False
    out = {}
    for name, column in own.items():
        unlike = differs(column, undone[name]) if name in undone else np.zeros(len(column), bool)
        out[f"source_{name}"] = pc.if_else(to_arrow(unlike | lost), column, pa.nulls(len(column), column.type))
    return out


def _lost_words(source: Batch, order: Order) -> Bool:
    """bool[U]: units of which a word was deleted."""
    return segment_any(order.places() < 0, source.unit_words)


def _back(order: Order, sentences: Int64, tails: Int32, units: Int64, derived_units: Int64) -> Order:
    """The inverse of an order; where it deleted a word, an inserted one holds the place."""
    places = order.places()
    gone = np.flatnonzero(places < 0)
    if not len(gone):
        return order.invert(sentences, tails)
    unit = np.searchsorted(units, gone, "right") - 1
    marks = np.minimum(derived_units[unit], order.n_derived - 1).astype(np.int32)
    return Order(places, sentences, tails, order.n_derived, string_array([""] * len(gone)), marks)


def differs(ours: pa.Array, theirs: pa.Array) -> Bool:
    """bool[R]: rows of two columns that are not equal."""
    kind = ours.type
    if pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type):
        lengths, others = (to_numpy(pc.list_value_length(column).fill_null(0)) for column in (ours, theirs))
        if np.array_equal(lengths, others):
            values = _unequal(ours.flatten(), theirs.flatten().cast(kind.value_type))
            missing = to_numpy(pc.xor(ours.is_null(), theirs.is_null()))
            return np.asarray(segment_any(values, offsets_of(lengths)) | missing)
    pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
    return np.array([a != b for a, b in pairs], bool)


def _unequal(ours: pa.Array, theirs: pa.Array) -> Bool:
    """bool[n]: values that are not equal; two nulls are."""
    unequal = pc.not_equal(ours, theirs).fill_null(False)
    return to_numpy(pc.or_(unequal, pc.xor(ours.is_null(), theirs.is_null())))


def _read_layers(columns: dict[str, pa.Array], schema: Schema, batch: Batch) -> dict[str, Layer]:
    """The layers of output columns, whose class labels are numbers."""
    layers: dict[str, Layer] = {}
    for field in schema.fields:
        if field.classes is not None and field.kind in ("tags", "entities"):
            codes = to_numpy(columns[field.column].flatten().fill_null(-2)).astype(np.int32)
            if len(codes) and (
                codes.min() < (0 if field.kind == "entities" else -1) or codes.max() >= len(field.classes)
            ):
                raise LayerError(f"{field.column} holds a class that is not one of {field.classes}", id="class")
            if len(codes) != batch.n_words:
                raise LayerError(f"{field.column} has another number of values than words", id="label-length")
            if field.kind == "entities":
                layers[field.column] = Spans.from_tags(field.column, codes, field.classes, batch.unit_words)
            else:
                values = pa.array([*field.classes, None], pa.string())  # -1: no class
                codes = np.where(codes < 0, len(field.classes), codes).astype(np.int32)
                filler = FILLERS.get(field.column, "_")
                layers[field.column] = Words(field.column, codes, values, filler, field.classes)
        else:
            layers |= read_layer(field, columns, batch, Counter())
    if schema.parsed:
        layers |= read_parse(columns, batch.sides, has_tags="upos" in layers)
    return layers


def _word_lists(batch: Batch) -> pa.Array:
    """list<dictionary<string>>[U]: the words of the units, as codes into the batch's types."""
    values = pa.DictionaryArray.from_arrays(to_arrow(batch.words), batch.types, safe=False)
    return list_array(batch.unit_words, values)


def _local_order(source: Batch, derived: Batch, order: Order) -> pa.Array:
    """list<int32>[U]: the order inside each unit, from 0; -1 where a word is inserted."""
    shift = np.repeat(source.unit_words[:-1].astype(np.int32), lengths_of(derived.unit_words))
    local = order.index - shift
    if order.n_inserted:
        local[order.index < 0] = -1
    return list_array(derived.unit_words, to_arrow(local))


def _sentence_column(batch: Batch, order: Order) -> pa.Array:
    """list<int32>[U]: words and tail of each sentence in turn; empty where it is one with a one-word tail, and
    none of its words was deleted."""
    counts = lengths_of(batch.units)
    first = np.minimum(batch.units[:-1], max(len(batch.tails) - 1, 0))
    tail = batch.tails[first] if len(batch.tails) else np.zeros(len(counts), np.int32)
    usual = (counts == 0) | ((counts == 1) & (tail == 1))
    if order.n_deleted:  # the order alone does not tell how many words a unit had
        usual &= ~_lost_words(batch, order)
    keep = np.repeat(~usual, counts)
    both = np.stack([lengths_of(batch.sentences), batch.tails], axis=1)[keep].astype(np.int32)
    offsets = offsets_of(np.where(usual, 0, 2 * counts))
    return list_array(offsets, to_arrow(both.ravel()))


def _source_sizes(stored: pa.Array, local: Int64, units: Int64) -> Int64:
    """int64[U]: source words of each unit: from the stored sentences, else from the order itself."""
    kept = offsets_of(local >= 0)
    sizes = kept[units[1:]] - kept[units[:-1]]
    lengths = to_numpy(pc.list_value_length(stored))
    flat = to_numpy(stored.flatten())
    sums = offsets_of(flat[0::2])
    at = offsets_of(lengths // 2)
    told = sums[at[1:]] - sums[at[:-1]]
    return np.where(lengths > 0, told, sizes)


def _read_sentences(stored: pa.Array, units: Int64) -> tuple[Int64, Int32]:
    """Sentence offsets and tails from the column of U rows and the units' word offsets."""
    lengths = to_numpy(pc.list_value_length(stored))
    sizes = lengths_of(units)
    counts = np.where(lengths > 0, lengths // 2, (sizes > 0).astype(np.int64))
    at = offsets_of(counts)
    words, tails = np.zeros(int(at[-1]), np.int64), np.ones(int(at[-1]), np.int32)
    told = np.repeat(lengths > 0, counts)
    flat = to_numpy(stored.flatten())
    words[told], tails[told] = flat[0::2], flat[1::2]
    alone = (lengths == 0) & (sizes > 0)
    words[at[:-1][alone]] = sizes[alone]
    return offsets_of(words), tails
