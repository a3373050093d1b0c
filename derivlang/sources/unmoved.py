"""Columns beside the words that stay as they are although they may say something about them: warnings by name.

    {"tokens": ["Ann", "saw", "Bo"], "spans": [[2, 3]], "trigger": 1, "meta": {"text": "Ann saw Bo"}}

Under an order, the words of `spans` and `trigger` have other places, and `meta.text` is in the source language. Row
numbers and class labels are left out: they do not fit into every row, or fit because all of them are small.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64
from derivlang.core.arrow import filled, is_string, scalar, to_arrow, to_numpy, whole
from derivlang.core.layers.tag_schemes import are_entity_tags
from derivlang.core.messages import counted, warn
from derivlang.core.schema import Side
from derivlang.sources.labels import PER_WORD, is_list, is_string_list

_FEW = 100  # rows in which tags and texts are looked for where they are not expected
# Names of places in a sentence: with one of them, numbers need only fit into their rows.
_OF_PLACES = re.compile(r"(^|[._ ])(spans?|triggers?|heads?|starts?|ends?|offsets?|positions?)\d*($|[._ ])")
_BY_CHANCE = 3  # expected misfits, above which none at all is unlikely (5 %)


def warn_of_unmoved(
    name: str, kind: pa.DataType, sides: Sequence[Side], sample: pa.Table | None, known_texts: Collection[str]
) -> None:
    """Warn of a column that stays as it is, if its name or its sampled values suggest that they belong to words.

    known_texts: columns and keys of objects that another message names.
    """
    side = sides[0] if len(sides) == 1 else None
    if sample is not None and not is_string_list(kind) and are_entity_tags(_texts_in(sample[name][:_FEW])):
        warn(
            f"{name!r} holds tags of entities, which do not move with the words: only lists of strings do, one for "
            "each word"
        )
        return
    if _has_starts(name, kind):
        warn(f"the answers in {name!r} do not move with the words; only a column `answers` does")
        return
    if is_list(kind) and side is not None and sample is not None and (side.words or name not in PER_WORD):
        n_fitting = fitting(name, side, sample)
        enough = n_fitting > 0 if side.words else 2 * n_fitting > sample.num_rows  # a text has no fixed words
        if enough and not (side.words and _look_like_entities(sample[name])):  # these are refused
            rows = counted(sample.num_rows, "row")
            warn(
                f"the lists of {name!r} are as long as the words in {n_fitting:,} of the first {rows}, but do not move "
                "with them: labels of words are lists of plain values, one for each word in every row"
                + ("" if side.words else ", beside lists of words")
            )
            return
    if is_list(kind) and name in PER_WORD:
        why = "they are not a plain value for each word" if side and side.words else "the table has no column of words"
        warn(f"the lists of {name!r} do not move with the words: {why}")
    elif sample is not None and sample.num_rows:
        _warn_of_places_and_texts(name, sides, sample, known_texts)


def fitting(name: str, side: Side, sample: pa.Table) -> int:
    """Return the number of rows in which the list of a column is as long as the words; of raw text, at white space."""
    words = sample[side.words] if side.words else pc.utf8_split_whitespace(pc.utf8_trim_whitespace(sample[side.text]))
    ours, theirs = (pc.list_value_length(column) for column in (sample[name], words))
    return int(pc.sum(pc.equal(ours, theirs)).as_py() or 0)


def _warn_of_places_and_texts(name: str, sides: Sequence[Side], sample: pa.Table, known_texts: Collection[str]) -> None:
    """Warn of whole numbers that may be places of words or characters, and of copies of the text, also in objects."""
    columns = [whole(sample[side.words or side.text]) for side in sides]
    lengths = [
        pc.list_value_length(c) if side.words else pc.utf8_length(c) for side, c in zip(sides, columns, strict=True)
    ]
    longest = np.max([to_numpy(filled(pc.cast(one, pa.int64()), 0)) for one in lengths], axis=0)
    texts = [pc.binary_join(c, scalar("")) if side.words else c for side, c in zip(sides, columns, strict=True)]
    what = "words" if sides[0].words else "characters"
    for path, values, rows, depth in _leaves(name, sample[name], np.arange(sample.num_rows), 0):
        if _are_places(path, values, longest[rows], longest, depth):
            warn(
                f"{path!r} holds whole numbers that may be places of {what}: they stay as they are, and do not follow "
                "the words"
            )
        elif is_string(values.type) and path not in known_texts and any(_are_copies(values, rows, t) for t in texts):
            warn(f"{path!r} holds the text of its row: it stays as it is, in the source language")


def _leaves(path: str, values: pa.Array, rows: Int64, depth: int) -> Iterator[tuple[str, pa.Array, Int64, int]]:
    """Yield the plain values in lists and objects without nulls: their path, the row of each, how deep in lists."""
    values = whole(values)
    if is_list(values.type):
        lengths = to_numpy(filled(pc.cast(pc.list_value_length(values), pa.int64()), 0))
        yield from _leaves(path, values.flatten(), np.repeat(rows, lengths), depth + 1)
    elif pa.types.is_struct(values.type):
        for field, part in zip(values.type, values.flatten(), strict=True):
            yield from _leaves(f"{path}.{field.name}", part, rows, depth + (depth > 0))
    else:
        yield path, values.drop_null(), rows[to_numpy(values.is_valid())], depth


def _are_places(path: str, values: pa.Array, lengths: Int64, all_lengths: Int64, depth: int) -> bool:
    """Return whether values are whole numbers from 0 to the length of their row, and hardly by chance.

    lengths: of the row of each value. Numbers in lists of lists, such as [[2, 4]], and those with such a name need not
    vary: other ones must be so large that they would not fit into some other rows.
    """
    if is_string(values.type) and pc.all(pc.match_substring_regex(values, r"^[0-9]{1,9}$")).as_py():
        values = pc.cast(values, pa.int64())
    if not len(values) or not pa.types.is_integer(values.type):
        return False
    numbers = to_numpy(values)
    if (numbers < 0).any() or (numbers > lengths).any() or (numbers == lengths).all():
        return False
    shorter = np.searchsorted(np.sort(all_lengths), numbers)
    return depth > 1 or bool(_OF_PLACES.search(path)) or shorter.sum() / len(all_lengths) >= _BY_CHANCE


def _are_copies(values: pa.Array, rows: Int64, texts: pa.Array) -> bool:
    """Return whether most of the first values are the text of their row, but for white space."""
    few = values[:_FEW].to_pylist()
    found = texts.take(to_arrow(rows[:_FEW])).to_pylist()
    copies = sum(" " in a and "".join(a.split()) == "".join(b.split()) for a, b in zip(few, found, strict=True) if b)
    return 2 * copies > len(few)


def _has_starts(name: str, kind: pa.DataType) -> bool:
    """Return whether a column has places in the text of the source, as SQuAD's answers: {text, answer_start}."""
    while is_list(kind):
        kind = kind.value_type
    return name == "answer_start" or (pa.types.is_struct(kind) and kind.get_field_index("answer_start") >= 0)


def _texts_in(column: pa.ChunkedArray | pa.Array) -> list[str]:
    """Return the distinct texts in lists and objects; of texts with white space, the parts between it.

    A text without white space is a value by itself: B-PER may be a grade.
    """
    values = whole(column)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary
    if is_list(values.type):
        inner = values.flatten()
        return pc.unique(inner.drop_null()).to_pylist() if is_string(inner.type) else _texts_in(inner)
    if pa.types.is_struct(values.type):
        found = [_texts_in(part) for part in values.flatten()]
        return next((texts for texts in found if are_entity_tags(texts)), [])
    if not is_string(values.type):
        return []
    parts = pc.utf8_split_whitespace(values.filter(pc.match_substring_regex(values, r"\S\s+\S")).cast(pa.string()))
    texts: list[str] = pc.unique(parts.flatten()).to_pylist()
    return texts


def _look_like_entities(lists: pa.ChunkedArray) -> bool:
    """Return whether the sampled values of a column of lists are tags of entities."""
    return is_string_list(lists.type) and are_entity_tags(
        pc.unique(lists.combine_chunks().flatten().drop_null()).to_pylist()
    )
