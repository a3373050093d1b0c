"""lex: words replaced by their translations in a bilingual dictionary.

    lex:en-fr.txt              every word that the dictionary holds: word-for-word translation
    lex:en-fr.txt:rate=25      each with a chance of 25 %: code-switching

A word is looked up as it stands, else lower-cased; then its translation takes its case (`case=keep`: Title, UPPER). Of
several translations one is drawn for each occurrence, or the first is taken (`choose=first`). Whether and how a word is
replaced is one draw of (sentence key, position): its upper 32 bits against the rate, its lower 32 for the
translation. So what a lower rate replaces a higher one replaces, too, by the same words. A translation of several words
is one word with spaces inside, as CoNLL-U has them; special tokens stay.

Not injective: the way back is the stored source. The dictionary is kept in `lexicon.tsv`, so the file is not needed
again. Source: dictionary-based code-switching, Qin et al. 2020 (CoSDA-ML), section 3, whose rate is of all words,
found in the dictionary or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, lengths_of, offsets_of, places
from derivlang.core.arrow import string_array
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, UsageError
from derivlang.core.keys import Draws
from derivlang.core.lexicon import SPECIALS, Images, TypeMap, escape, unescape
from derivlang.core.spec import param
from derivlang.formats.dictionary import Dictionary, read_dictionary
from derivlang.transforms.base import Transform

Case = Literal["keep", "as-is"]
_LOW = np.uint64(0xFFFFFFFF)
_HEADER = "type\timage"


@dataclass(frozen=True, kw_only=True)
class Lex(Transform):
    """Dictionary: words replaced by their translations, all of them or some (code-switching)."""

    name = "lex"
    injective = False

    file: str = param("", "the dictionary: MUSE text, TSV or JSON", positional=True, draws=False)
    rate: int = param(100, "percent of the words with an entry that are replaced", draws=False, low=0, high=100)
    case: Case = param("keep", "a translation takes the case of its word, or stays as it is", draws=False)
    choose: Literal["sentence", "first"] = param(
        "sentence", "of several translations: drawn for each occurrence, or the first", draws=False
    )
    seed: int = param(1, "another seed, other choices", low=0)

    def __post_init__(self) -> None:
        Transform.__post_init__(self)
        if not self.file:
            raise UsageError("lex needs a dictionary", where="--t", fix="name a file: lex:en-fr.txt", id="bad-spec")

    @property
    def saves(self) -> bool:
        return True

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"dictionary {_read(self.file).sha256}",)

    def fit(self, types: pa.Array, counts: Int64, draws: Draws) -> TypeMap:
        return Translations(_read(self.file).entries(), self.case)

    def load(self, state: str, draws: Draws) -> TypeMap:
        return Translations(_entries(state), self.case)

    def choices(self, batch: Batch, images: Int32, draws: Draws) -> Int32:
        keys = np.repeat(batch.keys, lengths_of(batch.sentences))
        drawn = draws.draw(keys, places(batch.sentences))
        taken = np.ones(len(drawn), np.uint64)
        if self.choose == "sentence":
            taken += ((drawn & _LOW) * np.maximum(images - 1, 0).astype(np.uint64)) >> np.uint64(32)
        replaced = (drawn >> np.uint64(32)) < np.uint64(self.rate * (1 << 32) // 100)
        return np.where(replaced & (images > 1), taken, 0).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Translations:
    """The translations of word types."""

    entries: Mapping[str, tuple[str, ...]]
    case: Case
    injective: bool = False
    # The last type table and its images: batches of one text share their table.
    _last: list[tuple[pa.Array, Images]] = field(default_factory=list, repr=False, compare=False)

    def apply(self, types: pa.Array) -> pa.Array:
        """Each type's first translation, itself where there is none."""
        return string_array([(self.translations(word) or (word,))[0] for word in types.to_pylist()])

    def images(self, types: pa.Array) -> Images:
        if not (self._last and self._last[0][0] is types):
            found = [(word, *self.translations(word)) for word in types.to_pylist()]
            offsets = offsets_of(np.fromiter(map(len, found), np.int64, len(found)))
            self._last[:] = [(types, Images(offsets, string_array([word for row in found for word in row])))]
        return self._last[0][1]

    def translations(self, word: str) -> tuple[str, ...]:
        """The distinct translations of a word, in the order of the dictionary."""
        if word in SPECIALS:
            return ()
        if word in self.entries:
            return self.entries[word]
        found = self.entries.get(word.lower(), ())
        return tuple(dict.fromkeys(_in_case(word, t) for t in found)) if self.case == "keep" else found

    def invert(self) -> TypeMap:
        raise UsageError("a dictionary has no inverse", id="not-injective")

    def state(self) -> str:
        rows = [f"{escape(word)}\t{escape(t)}" for word, found in self.entries.items() for t in found]
        return "\n".join([_HEADER, *rows]) + "\n"


def _in_case(word: str, translation: str) -> str:
    """A translation in the case of its word, which is not all lower: UPPER of two letters and more, or Title."""
    if word.isupper() and sum(map(str.isupper, word)) > 1:
        return translation.upper()
    return translation[:1].upper() + translation[1:] if word[:1].isupper() else translation


def _read(file: str) -> Dictionary:
    path = Path(file)
    try:
        stamp = path.stat()
    except OSError:  # said better by who opens it
        return read_dictionary(path, strict=True)
    return _read_once(file, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=4)
def _read_once(file: str, time: int, size: int) -> Dictionary:
    """A dictionary, read once a process as long as its file stays as it is. A pair that is there twice harms nobody."""
    return read_dictionary(file, strict=True, allowed=("duplicate",))


@lru_cache(maxsize=4)
def _entries(state: str) -> dict[str, tuple[str, ...]]:
    header, *rows, last = state.split("\n")
    cells = [row.split("\t") for row in rows]
    if last or header != _HEADER or any(len(row) != 2 for row in cells):
        raise DataError("a dictionary's rows are type and image", id="lexicon")
    pairs = tuple((unescape(word), unescape(translation)) for word, translation in cells)
    return Dictionary(pairs, (), "").entries()
