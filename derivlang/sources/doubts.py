"""Signs that a source is read otherwise than its author means: warnings of columns and of raw text.

    {"tokens": ["Ann", "saw", "Bo"], "spans": [[2, 3]], "trigger": 1, "meta": {"text": "Ann saw Bo"}}

Columns beside the words stay as they are. Under an order, the words of `spans` and `trigger` have other places, and
`meta.text` is in the source language. Row numbers and class labels are left out: they do not fit into every row, or fit
because all of them are small.

Raw text is split by the rules of English unless the user names its language, and each line of a text file is a
paragraph. So text in another language, wrapped lines, and words that are divided already are read wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64, offsets_of, positions
from derivlang.core.arrow import filled, is_string, to_arrow, to_numpy, whole
from derivlang.core.errors import UsageError
from derivlang.core.layers.tag_schemes import are_entity_tags
from derivlang.core.messages import counted, first_names, warn
from derivlang.core.schema import Side
from derivlang.sources.labels import PER_WORD, Naming, is_list, is_string_list

_WORD_OR_MARK = r"[\pL\pM\pN]+|[^\pL\pM\pN\s]"
_FEW = 100  # rows in which tags and texts are looked for where they are not expected
# Names of places in a sentence: with one of them, numbers need only fit into their rows.
_OF_PLACES = re.compile(r"(^|[._ ])(spans?|triggers?|heads?|starts?|ends?|offsets?|positions?)\d*($|[._ ])")
# Names of lists that have the place of another word for each word; some of them may be flags, 0 and 1.
_OF_OTHER_WORDS = re.compile(
    r"(^|[-._ ])(heads?|parents?|gov(ernor)?s?|(?P<flags>predicates?|triggers?|antecedents?|idx|index))\d*($|[-._ ])"
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")  # headIndex -> head_Index
_ENOUGH = 5  # rows that fit by chance too seldom
_BY_CHANCE = 3  # expected misfits, above which none at all is unlikely (5 %)
# Words of which any English text of some length has many; other languages in Latin letters have hardly one of them.
_ENGLISH = frozenset("the and to that it with you he she they this are not from have my".split())
_FEWEST, _LEAST = 50, 0.02  # different words, or marks, to judge by; and the share of English ones, else in doubt
_LAST_LATIN = "\u024f"  # of the blocks that hold nearly all letters of Latin script
_MARKS, _SPACED = re.compile(r"(?:(\s)|\w)[.,](?=\s|$)"), 0.9  # at the end of a word, and the share after a space
_WRAPPED_LINES, _WIDTHS = 10, range(40, 131)  # lines to judge by, and the widths at which people wrap
_RAGGED = 15  # characters by which a wrapped line is shorter than the widest, as the next word does not fit
_MOST = 0.8  # of the lines
_ENDS = re.compile(r"""[.!?:…。]["'”’»)\]]*$""")


def warn_of_unmoved(
    name: str, kind: pa.DataType, sides: Sequence[Side], sample: pa.Table | None, known_texts: Collection[str]
) -> None:
    """Warn of a column that stays as it is, if its name or its sampled values suggest that they belong to words.

    known_texts: columns and keys of objects that another message names.
    """
    side = sides[0] if len(sides) == 1 else None
    if sample is not None and not is_string_list(kind) and _holds_tags(sample[name][:_FEW]):
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
        if enough and not (side.words and is_string_list(kind) and _holds_tags(sample[name])):  # these are refused
            rows = counted(sample.num_rows, "row")
            warn(
                f"the lists of {name!r} are as long as the words in {n_fitting:,} of the first {rows}, but do not move "
                "with them: "
                + (
                    "labels of words are lists of plain values, one for each word in every row"
                    if side.words
                    else "give the words as a list, too (`tokens`)"
                )
            )
            return
    if is_list(kind) and name in PER_WORD:
        why = (
            "they are not a plain value for each word"
            if side and side.words
            else "the table has no column of words; give the words as a list, too (`tokens`)"
        )
        warn(f"the lists of {name!r} do not move with the words: {why}")
    elif sample is not None and sample.num_rows:
        _warn_of_places_and_texts(name, sides, sample, known_texts)


def check_not_places(name: str, words: str, sample: pa.Table, where: str, naming: Naming) -> None:
    """Refuse a list with a number for each word that may be the place of another word.

    With a name of such lists, it is enough that all numbers fit: {"tokens": ["the", "dog"], "parent": [2, 0]}. With
    other names, they must be too large for some other rows. A column that counts the words is left out.

    Raises UsageError word-places.
    """
    _, values, rows, _ = next(_leaves(name, sample[name], np.arange(sample.num_rows), 0))
    if is_string(values.type) and pc.all(pc.match_substring_regex(values, r"^-?[0-9]{1,9}$")).as_py():
        values = pc.cast(values, pa.int64())
    if pa.types.is_floating(values.type):  # as pandas has whole numbers
        as_floats = pc.cast(values, pa.float64())
        if pc.all(pc.equal(as_floats, pc.floor(as_floats))).as_py():
            values = pc.cast(as_floats, pa.int64(), safe=False)
    if not len(values) or not pa.types.is_integer(values.type):
        return
    lengths = _numbers(pc.list_value_length(sample[words]))
    numbers = to_numpy(pc.cast(values, pa.int64()))
    counted_words = positions(offsets_of(np.bincount(rows, minlength=sample.num_rows)))
    if (numbers < -1).any() or (numbers > lengths[rows]).any() or len(np.unique(numbers - counted_words)) == 1:
        return
    match = _OF_OTHER_WORDS.search(_HUMP.sub("_", name).lower())
    named = match is not None and (match["flags"] is None or int(numbers.max()) > 1)
    if not named and not _fit_by_no_chance(numbers, lengths):
        return
    raise UsageError(
        f"the numbers in {name!r} may be places of words, which would not follow the words",
        where=where,
        fix=f"if they count the words from 1, with 0 for none, {naming('label', f'{name}=heads')} renumbers them; if "
        f"they are not places, {naming('label', f'{name}=tags')} keeps the number of each word",
        id="word-places",
    )


def fitting(name: str, side: Side, sample: pa.Table) -> int:
    """Return the number of rows in which the list of a column is as long as the words.

    The words of raw text may be its parts between white space, or these and all marks: `don't go.` has 2 to 5.
    """
    lengths = pc.list_value_length(sample[name])
    fewest = _n_words(side, sample)
    most = fewest if side.words else pc.count_substring_regex(sample[side.text], _WORD_OR_MARK)
    both = pc.and_(pc.greater_equal(lengths, fewest), pc.less_equal(lengths, pc.max_element_wise(fewest, most)))
    return int(pc.sum(both).as_py() or 0)


def are_sentences(lists: pa.ChunkedArray) -> bool:
    """Return whether most strings of a column of lists have white space inside, as no word has."""
    strings = whole(lists).flatten().drop_null()
    n_spaced = pc.sum(pc.match_substring_regex(strings.cast(pa.string()), r"\S\s+\S")).as_py() or 0
    return bool(2 * n_spaced > len(strings))


def _n_words(side: Side, sample: pa.Table) -> pa.ChunkedArray:
    words = sample[side.words] if side.words else pc.utf8_split_whitespace(pc.utf8_trim_whitespace(sample[side.text]))
    return pc.list_value_length(words)


def _warn_of_places_and_texts(name: str, sides: Sequence[Side], sample: pa.Table, known_texts: Collection[str]) -> None:
    """Warn of whole numbers that may be places of words or characters, and of copies of the text, also in objects.

    Lists in objects may have a value for each word, too.
    """
    columns = [whole(sample[side.words or side.text]) for side in sides]
    n_words = [_numbers(_n_words(side, sample)) for side in sides]
    lengths = [
        n if side.words else _numbers(pc.utf8_length(c)) for side, n, c in zip(sides, n_words, columns, strict=True)
    ]
    longest = np.max(lengths, axis=0)
    places: list[str] = []
    for path, values, rows, depth in _leaves(name, sample[name], np.arange(sample.num_rows), 0):
        per_row = np.bincount(rows, minlength=sample.num_rows)
        if depth == 1 and path != name and 2 * np.count_nonzero(per_row == n_words[0]) > sample.num_rows:
            warn(f"the lists of {path!r} are as long as the words, but do not move with them: they are in an object")
        elif _are_places(path, values, longest[rows], longest, depth):
            places.append(path)
        elif is_string(values.type) and path not in known_texts and any(_are_copies(values, rows, c) for c in columns):
            warn(f"{path!r} holds the text of its row: it stays as it is, in the source language")
        elif is_string(values.type) and depth == 0 and len(sides) == 1 and _are_per_word(values, n_words[0][rows]):
            warn(
                f"{path!r} has as many parts as words in each of the first {counted(len(values), 'row')}, but they do "
                "not move with the words: labels of words are lists, one value for each word"
            )
    if places:
        warn(
            f"{name!r} holds whole numbers that may be places of {'words' if sides[0].words else 'characters'}"
            + ("" if places == [name] else f" ({first_names(places)})")
            + ": they stay as they are, and do not follow the words"
        )


def _numbers(lengths: pa.ChunkedArray | pa.Array) -> Int64:
    """Return lengths as int64, 0 for null."""
    return to_numpy(filled(pc.cast(whole(lengths), pa.int64()), 0))


def _leaves(path: str, values: pa.Array, rows: Int64, depth: int) -> Iterator[tuple[str, pa.Array, Int64, int]]:
    """Yield the plain values in lists and objects without nulls: their path, the row of each, how deep in lists."""
    values = whole(values)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if is_list(values.type):
        yield from _leaves(path, values.flatten(), np.repeat(rows, _numbers(pc.list_value_length(values))), depth + 1)
    elif pa.types.is_struct(values.type):
        for field, part in zip(values.type, values.flatten(), strict=True):
            yield from _leaves(f"{path}.{field.name}", part, rows, depth + (depth > 0))
    else:
        yield path, values.drop_null(), rows[to_numpy(values.is_valid())], depth


def _are_per_word(values: pa.Array, n_words: Int64) -> bool:
    """Return whether texts have a part between white space for each word of their rows, and hardly by chance."""
    parts = _numbers(pc.list_value_length(pc.utf8_split_whitespace(pc.utf8_trim_whitespace(values))))
    return len(parts) >= _ENOUGH and bool((parts == n_words).all()) and len(np.unique(n_words)) > 1


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
    return depth > 1 or bool(_OF_PLACES.search(path)) or _fit_by_no_chance(numbers, all_lengths)


def _fit_by_no_chance(numbers: Int64, all_lengths: Int64) -> bool:
    """Return whether numbers that fit into their rows would not fit into some other rows."""
    shorter = np.searchsorted(np.sort(all_lengths), numbers)
    return bool(shorter.sum() / len(all_lengths) >= _BY_CHANCE)


def _are_copies(values: pa.Array, rows: Int64, column: pa.Array) -> bool:
    """Return whether most of the first values are the text or the words of their row, but for white space."""
    few = values[:_FEW].to_pylist()
    found = ["".join(filter(None, one or ())) for one in column.take(to_arrow(rows[:_FEW])).to_pylist()]
    copies = sum(" " in a and "".join(a.split()) == "".join(b.split()) for a, b in zip(few, found, strict=True))
    return 2 * copies > len(few)


def _has_starts(name: str, kind: pa.DataType) -> bool:
    """Return whether a column has places in the text of the source, as SQuAD's answers: {text, answer_start}."""
    while is_list(kind):
        kind = kind.value_type
    return name == "answer_start" or (pa.types.is_struct(kind) and kind.get_field_index("answer_start") >= 0)


def _holds_tags(column: pa.ChunkedArray) -> bool:
    """Return whether a column holds tags of entities, in lists and objects or in texts with white space.

    A text without white space is a value by itself: B-PER may be a grade.
    """
    leaves = _leaves("", column, np.arange(len(column)), 0)
    tags = [values if depth else _parts(values) for _, values, _, depth in leaves if is_string(values.type)]
    return any(are_entity_tags(pc.unique(values).to_pylist()) for values in tags)


def _parts(texts: pa.Array) -> pa.Array:
    """Return the parts between white space, of texts that have some."""
    with_space = texts.filter(pc.match_substring_regex(texts, r"\S\s+\S")).cast(pa.string())
    return pc.utf8_split_whitespace(with_space).flatten()


def is_not_english(texts: Sequence[str]) -> bool:
    """Return whether most letters are of other scripts, or hardly a word is one of the most frequent of English."""
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    if 2 * sum(letter > _LAST_LATIN for letter in letters) > len(letters):
        return True
    words = [word.lower() for text in texts for word in text.split()]
    return len(set(words)) >= _FEWEST and sum(word in _ENGLISH for word in words) < _LEAST * len(words)


def is_divided(texts: Sequence[str]) -> bool:
    """Return whether nearly all full stops and commas follow a space, as in WikiText: `Ann , who left .`."""
    spaces = [bool(space) for text in texts for space in _MARKS.findall(text)]
    return len(spaces) >= _FEWEST and sum(spaces) >= _SPACED * len(spaces)


def is_wrapped(lines: Sequence[str]) -> bool:
    """Return whether paragraphs are broken into lines of nearly one width, most of which end within a sentence.

    lines: with the blank lines that follow them, which end a paragraph.
    """
    inner = [line.strip() for line in lines if line.count("\n") == 1]
    width = max(map(len, inner), default=0)
    if len(inner) < _WRAPPED_LINES or width not in _WIDTHS:
        return False
    full = [line for line in inner if len(line) > width - _RAGGED]
    within = [line for line in full if not _ENDS.search(line)]
    return len(full) >= _MOST * len(inner) and len(within) >= _MOST * len(full)
