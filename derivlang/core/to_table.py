"""to_table: the output rows of a derived batch.

    to_table(source, derived, order, schema, lexicon, ...)   ->  columns of R rows

`source_<label>` holds the source's own label in the rows where the way back would not give it (an entity that an order
split, a dissolved multiword token, a deleted word), and is null elsewhere. Going back and comparing decides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, lengths_of, offsets_of, segment_any
from derivlang.core.arrow import differs, list_array, to_arrow
from derivlang.core.bare_batch import write_groups
from derivlang.core.batch import Batch, realign
from derivlang.core.layers.base import Layer
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.policies import Policies
from derivlang.core.schema import Schema, answered_side


def to_table(
    source: Batch,
    derived: Batch,
    order: Order,
    schema: Schema,
    lexicon: Lexicon,
    *,
    has_order: bool,
    exact: bool = False,
    policies: Policies | None = None,
) -> dict[str, pa.Array]:
    """Return the output columns, by name, R rows each.

    has_order: the pipeline has an order. exact: its order is a permutation.
    """
    rows = [source.records[:, side] for side in range(len(schema.sides))]
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
        unit_columns["gaps"] = source.gaps.column(source.unit_words, source.lines)
    straight = len(schema.sides) == 1 and np.array_equal(source.records[:, 0], np.arange(source.n_units))
    for side, take in zip(schema.sides, rows, strict=True):
        if side.text is not None and texts is not None:
            out[side.text] = texts if straight else texts.take(to_arrow(take))
        at = to_arrow(take)
        out |= {side.column(p): column if straight else column.take(at) for p, column in unit_columns.items()}
    answered = answered_side(schema)
    if source.grouped is not None and answered is not None:
        groups = write_groups(source.grouped, source.unit_words)
        taken = groups if straight else groups.take(to_arrow(rows[schema.sides.index(answered)]))
        out[answered.column("groups")] = taken
    for layer in derived.layers.values():
        out |= layer.columns(derived)
    may_change = {"always": True, "order": has_order, "words": has_order and not exact, "never": False}
    changed = {name: layer for name, layer in source.layers.items() if may_change[layer.changes]}
    return out | _kept_labels(source, derived, order, lexicon, policies or Policies(), changed)


def _kept_labels(
    source: Batch,
    derived: Batch,
    order: Order,
    lexicon: Lexicon,
    policies: Policies,
    changed: Mapping[str, Layer],
) -> dict[str, pa.Array]:
    """Return `source_<label>` columns: the source's label where the way back would not give it, null elsewhere.

    changed: the layers that may differ.
    """
    back: Mapping[str, Layer] = {}
    if order.n_derived and changed:
        inverse = order.invert_padded(source.sentences, source.tails, source.unit_words, derived.unit_words)
        compared = replace(derived, layers={name: derived.layers[name] for name in changed})
        back = realign(compared, inverse, policies=policies, labels=lexicon.of_labels.invert()).layers
    lost = np.zeros(source.n_records, bool)
    if order.n_deleted:
        lost = np.asarray(_lost_words(source, order)[source.records].any(axis=1))
    out: dict[str, pa.Array] = {}
    for name, layer in changed.items():
        undone = back[name].columns(source) if name in back else {}
        for column, values in layer.columns(source).items():
            unlike = differs(values, undone[column]) if column in undone else np.zeros(len(values), bool)
            out[f"source_{column}"] = pc.if_else(to_arrow(unlike | lost), values, pa.nulls(len(values), values.type))
    return out


def _lost_words(source: Batch, order: Order) -> Bool:
    """Return bool[U]: units that lost a word."""
    return segment_any(order.positions() < 0, source.unit_words)


def _word_lists(batch: Batch) -> pa.Array:
    """Return list<dictionary<string>>[U]: the words of the units, as codes into the batch's types."""
    values = pa.DictionaryArray.from_arrays(to_arrow(batch.words), batch.types, safe=False)
    return list_array(batch.unit_words, values)


def _local_order(source: Batch, derived: Batch, order: Order) -> pa.Array:
    """Return list<int32>[U]: the order inside each unit, from 0; -1 where a word is inserted.

    index [2, 1, 0, 4, -1, 3] of units of 3 and 2 words   ->   [2, 1, 0], [1, -1, 0]
    """
    shift = np.repeat(source.unit_words[:-1].astype(np.int32), lengths_of(derived.unit_words))
    local = order.index - shift
    if order.n_inserted:
        local[order.index < 0] = -1
    return list_array(derived.unit_words, to_arrow(local))


def _sentence_column(batch: Batch, order: Order) -> pa.Array:
    """Return list<int32>[U]: the words and the tail of each sentence in turn.

    Empty in the usual case: one sentence with a tail of one word, and none of its words was deleted.

    a b . | c d !?   two sentences of a unit   ->   [3, 1, 3, 1]          a b .   one sentence   ->   []
    """
    counts = lengths_of(batch.units)
    # Empty units at the end have an offset behind the last sentence; their count is 0, so the tail that they read is
    # not used.
    first = np.minimum(batch.units[:-1], max(len(batch.tails) - 1, 0))
    tail = batch.tails[first] if len(batch.tails) else np.zeros(len(counts), np.int32)
    usual = (counts == 0) | ((counts == 1) & (tail == 1))
    if order.n_deleted:  # the order does not record how many words a unit had
        usual &= ~_lost_words(batch, order)
    keep = np.repeat(~usual, counts)
    both = np.stack([lengths_of(batch.sentences), batch.tails], axis=1)[keep].astype(np.int32)
    offsets = offsets_of(np.where(usual, 0, 2 * counts))
    return list_array(offsets, to_arrow(both.ravel()))
