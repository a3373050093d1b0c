"""to_batch: a batch of the columns of a labelled file or hub set; adjacent equal texts are stored once.

context, question           units               records
"a b", "who ?"              a b                 [0, 1]
"a b", "why ?"        ->    who ?, why ?        [0, 2]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int32, Int64, offsets_of
from derivlang.core.arrow import scalar, string_array, to_arrow, to_numpy, whole
from derivlang.core.batch import Batch, build
from derivlang.core.errors import LayerError
from derivlang.core.gaps import NOTHING, USUAL, Gaps
from derivlang.core.layers.base import find_layer
from derivlang.core.layers.labels import Labels, Locate
from derivlang.core.schema import Schema, Side
from derivlang.core.structure import conform


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
        none = np.zeros(0, np.int32)
        gaps = Gaps(string_array(USUAL), none, none, np.zeros(0, np.int64), none)
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
    """Return the words of all parts, such as sides, as one: tables are merged, codes and offsets shifted.

    types [a, b] and [b, c]   ->   [a, b, c]; the second part's codes [0, 1] are entries [2, 3] of both tables one after
    the other, which merging makes [1, 2].
    """
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
        lead.append(regap[part.gaps.lead + gap_at[i]] if known else np.full(n, NOTHING, np.int32))
        trail.append(regap[part.gaps.trail + gap_at[i]] if known else np.full(n, NOTHING, np.int32))
        at.append(part.gaps.at + word_at[i])
        inner.append(regap[part.gaps.inner + gap_at[i]])
    gaps = Gaps(strings.dictionary, *(np.concatenate(a) for a in (lead, trail, at, inner)))
    return Splits(np.concatenate(words), types.dictionary, np.concatenate(units), gaps)
