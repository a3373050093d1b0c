"""Schema: which columns of a set are words, text and labels; and batches from, and to, such columns.

Input columns (a labelled file, a hub set)          output columns of a derived set
    tokens, ner_tags                                  document, key, source, tokens, order, ner_tags …
    premise, hypothesis, label                        …, premise, premise_source, premise_tokens, premise_order …

One side has no prefix. `source_<label>` holds the source's own label in the rows where the way back would not
give it (an entity taken apart, a dissolved multiword token), and is null elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of, offsets_of, owners, segment_any
from derivlang.core.batch import Batch, Policies, build, realign
from derivlang.core.errors import LayerError
from derivlang.core.layers import Layer
from derivlang.core.layers.answers import Answers
from derivlang.core.layers.gaps import Gaps
from derivlang.core.layers.spans import Spans
from derivlang.core.layers.tree import NODES, Nodes, Tree
from derivlang.core.layers.values import Values
from derivlang.core.layers.words import Words
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order

Kind = Literal["tags", "misc", "entities", "tree", "answers", "value"]
# Fields of these kinds and columns hold what an inserted word gets in them.
_FILLERS = {"upos": "X", "xpos": "X", "pos": "X", "pos_tags": "X"}
_SAME_LABEL = {"contradictory": "contradiction"}
NLI = ("entailment", "neutral", "contradiction")

Where = Callable[[int, int | None], str]  # (row, word or None) -> "file:line"


@dataclass(frozen=True, slots=True)
class Side:
    """One word sequence of a record. name: "" where there is only one. words: its column of word lists, or
    text: its column of text (raw, unless words is given too: then it is rebuilt from the words)."""

    name: str = ""
    words: str | None = None
    text: str | None = None

    def column(self, part: str) -> str:
        """The output column of a part: source, tokens, order, sentences, gaps."""
        return f"{self.name}_{part}" if self.name else part


@dataclass(frozen=True, slots=True)
class Field:
    """A label. classes: its names, where it is a class label."""

    column: str
    kind: Kind
    classes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """sides of a record, its labels, and whether records are the sentences of running text."""

    sides: tuple[Side, ...]
    fields: tuple[Field, ...] = ()
    running: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Schema:
        sides = tuple(Side(**side) for side in data["sides"])
        fields = tuple(
            Field(f["column"], f["kind"], None if f["classes"] is None else tuple(f["classes"])) for f in data["fields"]
        )
        return cls(sides, fields, data["running"])

    def field(self, column: str) -> Field | None:
        return next((field for field in self.fields if field.column == column), None)


TEXT = Schema((Side(),), (), running=True)


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


def to_table(
    source: Batch, derived: Batch, order: Order, schema: Schema, *, has_order: bool, policies: Policies | None = None
) -> dict[str, pa.Array]:
    """The output columns, by name, R rows each."""
    rows = [pa.array(source.records[:, side]) for side in range(len(schema.sides))]
    out: dict[str, pa.Array] = {
        "document": pa.array(source.documents),
        "key": pa.array(source.record_keys),
    }
    plain = all(side.text is None for side in schema.sides)
    texts = None if plain else derived.texts()
    unit_columns = {
        "source": _word_lists(source),
        "tokens": _word_lists(derived),
        "order": _local_order(source, derived, order),
        "sentences": _sentence_column(source),
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
    if has_order:
        out |= _kept_labels(source, derived, order, policies or Policies())
    return out


def from_table(
    table: pa.Table, schema: Schema, lexicon: Lexicon, *, stored_source: bool = False
) -> tuple[Batch, Batch, Order]:
    """(source, derived, order) of R output rows.

    The source comes by the inverse order and lexicon alone, where every source word is in the order, else (or with
    stored_source, where it is there) from the `source` column. Raises LayerError where columns do not fit.
    """
    table = table.combine_chunks()
    n = table.num_rows
    columns = {name: _whole(table[name]) for name in table.column_names}
    sides = schema.sides

    def stack(part: str) -> pa.Array:
        found = [columns[side.column(part)] for side in sides]
        return found[0] if len(found) == 1 else pa.concat_arrays(found)

    order_lists, stored = stack("order"), stack("sentences")
    if sides[0].column("tokens") in columns:
        tokens = stack("tokens")
    else:  # left out, as it follows from the source where the order is a permutation
        tokens = _tokens_of(stack("source"), order_lists, lexicon)
    units = offsets_of(pc.list_value_length(tokens).to_numpy(zero_copy_only=False))
    if not np.array_equal(offsets_of(pc.list_value_length(order_lists).to_numpy(zero_copy_only=False)), units):
        raise LayerError("the columns tokens and order differ in length", id="row-lengths")
    encoded = tokens.flatten().dictionary_encode()
    records = np.arange(n * len(sides), dtype=np.int32).reshape(len(sides), n).T.copy()
    documents = columns["document"].to_numpy() if "document" in columns else np.zeros(n, np.int64)
    derived = build(
        encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32),
        encoded.dictionary,
        units,
        records,
        documents,
        sides=tuple(side.name for side in sides),
        running=schema.running,
    )
    local = order_lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    deleted = _source_sizes(stored, local, units)
    source_units = offsets_of(deleted)
    if (local >= deleted[owners(units)]).any() or (local < -1).any():
        raise LayerError("an order points outside its row", id="row-order")
    index = np.where(local < 0, -1, local + source_units[:-1][owners(units)]).astype(np.int32)
    marks = encoded.dictionary.take(pa.array(derived.words[local < 0]))
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
    given = stack("source") if (order.n_deleted or stored_source) and sides[0].column("source") in columns else None
    source, back = _undo(derived, order, source_units, sentences, lexicon, given)
    if side_gaps := [side.column("gaps") for side in sides if side.column("gaps") in columns]:
        source = replace(source, gaps=Gaps.read(pa.concat_arrays([columns[name] for name in side_gaps]), source))
    return replace(source, layers=_restore(columns, schema, source, back)), derived, order


def _tokens_of(source: pa.Array, order_lists: pa.Array, lexicon: Lexicon) -> pa.Array:
    """list<string>: the derived words of rows whose source words are all in the order."""
    words = source.flatten().dictionary_encode()
    image = lexicon.apply(words.dictionary)
    units = offsets_of(pc.list_value_length(order_lists).to_numpy(zero_copy_only=False))
    index = order_lists.flatten().to_numpy(zero_copy_only=False) + units[:-1][owners(units)]
    if len(index) != len(words) or (index < 0).any() or (index >= len(words)).any():
        raise LayerError("an order points outside its row", id="row-order")
    codes = words.indices.to_numpy(zero_copy_only=False)[index]
    return pa.ListArray.from_arrays(pa.array(units, pa.int32()), image.take(pa.array(codes)))


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
    if not order.n_deleted:
        flat = replace(derived, sentences=order.sentences, units=np.arange(n + 1), tails=np.zeros(n, np.int32))
        inverse = order.invert(source_units, np.zeros(n, np.int32))
        undone = realign(flat, inverse, None if lexicon.is_identity else lexicon.invert().apply(derived.types))
        words, types, back = undone.words, undone.types, dict(undone.layers)
    if given is not None:
        encoded = given.flatten().dictionary_encode()
        words, types = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32), encoded.dictionary
        if not np.array_equal(offsets_of(pc.list_value_length(given).to_numpy(zero_copy_only=False)), source_units):
            raise LayerError("the source words and the order differ in length", id="row-order")
    elif order.n_deleted:
        raise LayerError("words were deleted, and the source is not stored", id="row-order")
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
        if not name.startswith("source_"):
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


def _kept_labels(source: Batch, derived: Batch, order: Order, policies: Policies) -> dict[str, pa.Array]:
    """`source_<label>` columns: the source's label where the inverse would not give it, null elsewhere."""
    own: dict[str, pa.Array] = {}
    for layer in source.layers.values():
        if not isinstance(layer, Values):
            own |= layer.columns(source)
    if not own:
        return {}
    undone: dict[str, pa.Array] = {}
    if not order.n_deleted:
        inverse = order.invert(source.sentences, source.tails)
        for layer in realign(derived, inverse, policies=policies).layers.values():
            undone |= layer.columns(source)
    out = {}
    for name, column in own.items():
        unlike = differs(column, undone[name]) if name in undone else np.ones(len(column), bool)
        mask = pa.array(unlike)
        out[f"source_{name}"] = pc.if_else(mask, column, pa.nulls(len(column), column.type))
    return out


def differs(ours: pa.Array, theirs: pa.Array) -> Bool:
    """bool[R]: rows of two columns that are not equal."""
    kind = ours.type
    if pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type):
        lengths = pc.list_value_length(ours).to_numpy(zero_copy_only=False)
        if np.array_equal(lengths, pc.list_value_length(theirs).to_numpy(zero_copy_only=False)):
            unequal = pc.not_equal(ours.flatten(), theirs.flatten().cast(kind.value_type))
            return segment_any(unequal.to_numpy(zero_copy_only=False), offsets_of(lengths))
    pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
    return np.array([a != b for a, b in pairs], bool)


def _side_words(table: pa.Table, side: Side, split: SplitTexts, where: Where) -> tuple[Splits, Int64]:
    """The words of a side and the unit of each row; adjacent rows of one text share a unit."""
    if side.words is not None:
        column = _whole(table[side.words])
        if column.null_count or column.flatten().null_count:
            row = next(i for i, words in enumerate(column.to_pylist()) if words is None or None in words)
            raise LayerError(f"null in the words of {side.words}", where=where(row, None), id="null-words")
        flat = column.flatten().dictionary_encode()
        types = flat.dictionary.cast(pa.string())
        empty = pc.index(types, "").as_py()
        codes = flat.indices.to_numpy(zero_copy_only=False).astype(np.int32)
        units = offsets_of(pc.list_value_length(column).to_numpy(zero_copy_only=False))
        if empty >= 0:
            at = int(np.flatnonzero(codes == empty)[0])
            row = int(np.searchsorted(units, at, "right")) - 1
            raise LayerError(
                f"word {at - int(units[row]) + 1} of {side.words} is empty",
                where=where(row, at - int(units[row])),
                id="empty-word",
            )
        none = np.zeros(0, np.int32)
        gaps = Gaps(pa.array([" ", "", "\n"]), none, none, np.zeros(0, np.int64), none)
        return Splits(codes, types, units, gaps), np.arange(len(column))
    column = _whole(table[side.text])
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise LayerError(f"no text in {side.text}", where=where(row, None), id="null-text")
    texts = column.cast(pa.string())
    new = np.ones(len(texts), bool)
    new[1:] = pc.not_equal(texts[1:], texts[:-1]).to_numpy(zero_copy_only=False)
    return split(texts.filter(pa.array(new)).to_pylist()), np.cumsum(new) - 1


def _concat(parts: list[Splits]) -> Splits:
    if len(parts) == 1:
        return parts[0]
    types = pa.concat_arrays([part.types for part in parts]).dictionary_encode()
    strings = pa.concat_arrays([part.gaps.strings for part in parts]).dictionary_encode()
    recode, regap = (e.indices.to_numpy(zero_copy_only=False).astype(np.int32) for e in (types, strings))
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
    columns = {name: _whole(table[name]) for name in table.column_names}
    per_word = [f for f in schema.fields if f.kind in ("tags", "misc", "entities", "tree")]
    names = [f.column for f in per_word if f.kind != "tree"]
    if any(f.kind == "tree" for f in per_word):
        names += [name for name in ("head", "deprel", "deps") if name in columns]
    sizes = lengths_of(batch.unit_words)[batch.records[:, 0]]
    for name in names:
        column = columns[name]
        lengths = pc.list_value_length(column).fill_null(-1).to_numpy(zero_copy_only=False)
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
                values = pa.array(field.classes, pa.string())
                layers[field.column] = Words(
                    field.column, codes, values, _FILLERS.get(field.column, "_"), field.classes
                )
        elif field.kind == "value" and field.classes is not None:
            assert column is not None
            values = _class_codes(field, column, lambda row: where(row, None), missing="-")
            layers[field.column] = Values(field.column, pa.array(values.astype(np.int64)))
        else:
            layers |= _read_layer(field, columns, batch, counts)
    return layers


def _read_layers(columns: dict[str, pa.Array], schema: Schema, batch: Batch) -> dict[str, Layer]:
    """The layers of output columns, whose class labels are numbers."""
    layers: dict[str, Layer] = {}
    for field in schema.fields:
        if field.classes is not None and field.kind in ("tags", "entities"):
            codes = columns[field.column].flatten().to_numpy(zero_copy_only=False).astype(np.int32)
            if len(codes) and (codes.min() < 0 or codes.max() >= len(field.classes)):
                raise LayerError(f"{field.column} holds a class that is not one of {field.classes}", id="class")
            if len(codes) != batch.n_words:
                raise LayerError(f"{field.column} has another number of values than words", id="label-length")
            if field.kind == "entities":
                layers[field.column] = Spans.from_tags(field.column, codes, field.classes, batch.unit_words)
            else:
                values = pa.array(field.classes, pa.string())
                layers[field.column] = Words(field.column, codes, values, "X", field.classes)
        else:
            layers |= _read_layer(field, columns, batch, Counter())
    return layers


def _read_layer(field: Field, columns: dict[str, pa.Array], batch: Batch, counts: Counter[str]) -> dict[str, Layer]:
    """The layers that have one form on the way in and out."""
    name = field.column
    if field.kind == "tree":
        head = columns["head"].flatten().to_numpy(zero_copy_only=False).astype(np.int32)
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
    filler = _FILLERS.get(name, "_")
    return {name: Words.of(name, columns[name].flatten(), filler=filler, spaces=field.kind == "misc")}


def _class_codes(field: Field, flat: pa.Array, where: Callable[[int], str], missing: str | None = None) -> Int32:
    """int32[n]: class numbers of names or numbers; `missing` is -1; LayerError names an unknown one."""
    assert field.classes is not None
    if pa.types.is_integer(flat.type):
        codes = flat.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
        known = {i: i for i in range(-1 if missing else 0, len(field.classes))}
        bad = np.flatnonzero(~np.isin(codes, list(known)))
    else:
        encoded = flat.dictionary_encode()
        numbers = {name: i for i, name in enumerate(field.classes)}
        names = [_SAME_LABEL.get(n, n) if field.kind == "value" else n for n in encoded.dictionary.to_pylist()]
        table = np.array([-1 if n == missing else numbers.get(n, -2) for n in names] + [-2], np.int32)
        codes = np.asarray(table[encoded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)], np.int32)
        bad = np.flatnonzero(codes == -2)
    if bad.size:
        at = int(bad[0])
        raise LayerError(
            f"{field.column} is {flat[at].as_py()!r}, which is none of {', '.join(field.classes)}",
            where=where(at),
            id="unknown-label",
        )
    return np.asarray(codes, np.int32)


def _word_lists(batch: Batch) -> pa.Array:
    """list<dictionary<string>>[U]: the words of the units, as codes into the batch's types."""
    values = pa.DictionaryArray.from_arrays(pa.array(batch.words), batch.types)
    return pa.ListArray.from_arrays(pa.array(batch.unit_words, pa.int32()), values)


def _local_order(source: Batch, derived: Batch, order: Order) -> pa.Array:
    """list<int32>[U]: the order inside each unit, from 0; -1 where a word is inserted."""
    shift = np.repeat(source.unit_words[:-1].astype(np.int32), lengths_of(derived.unit_words))
    local = order.index - shift
    if order.n_inserted:
        local[order.index < 0] = -1
    return pa.ListArray.from_arrays(pa.array(derived.unit_words, pa.int32()), pa.array(local))


def _sentence_column(batch: Batch) -> pa.Array:
    """list<int32>[U]: words and tail of each sentence in turn; empty where it is one with a one-word tail."""
    counts = lengths_of(batch.units)
    first = np.minimum(batch.units[:-1], max(len(batch.tails) - 1, 0))
    tail = batch.tails[first] if len(batch.tails) else np.zeros(len(counts), np.int32)
    usual = (counts == 0) | ((counts == 1) & (tail == 1))
    keep = np.repeat(~usual, counts)
    both = np.stack([lengths_of(batch.sentences), batch.tails], axis=1)[keep].astype(np.int32)
    offsets = offsets_of(np.where(usual, 0, 2 * counts))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(both.ravel()))


def _source_sizes(stored: pa.Array, local: Int64, units: Int64) -> Int64:
    """int64[U]: source words of each unit: from the stored sentences, else from the order itself."""
    kept = offsets_of(local >= 0)
    sizes = kept[units[1:]] - kept[units[:-1]]
    lengths = pc.list_value_length(stored).to_numpy(zero_copy_only=False)
    flat = stored.flatten().to_numpy(zero_copy_only=False)
    sums = offsets_of(flat[0::2])
    at = offsets_of(lengths // 2)
    told = sums[at[1:]] - sums[at[:-1]]
    return np.where(lengths > 0, told, sizes)


def _read_sentences(stored: pa.Array, units: Int64) -> tuple[Int64, Int32]:
    """Sentence offsets and tails from the column of U rows and the units' word offsets."""
    lengths = pc.list_value_length(stored).to_numpy(zero_copy_only=False)
    sizes = lengths_of(units)
    counts = np.where(lengths > 0, lengths // 2, (sizes > 0).astype(np.int64))
    at = offsets_of(counts)
    words, tails = np.zeros(int(at[-1]), np.int64), np.ones(int(at[-1]), np.int32)
    told = np.repeat(lengths > 0, counts)
    flat = stored.flatten().to_numpy(zero_copy_only=False)
    words[told], tails[told] = flat[0::2], flat[1::2]
    alone = (lengths == 0) & (sizes > 0)
    words[at[:-1][alone]] = sizes[alone]
    return offsets_of(words), tails


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column


__all__ = ["NLI", "TEXT", "Field", "Schema", "Side", "Splits", "differs", "from_table", "to_batch", "to_table"]
