"""lex: words replaced by their translations in a bilingual dictionary.

    lex:en-fr.txt              every word that the dictionary holds: word-for-word translation
    lex:en-fr.txt:rate=25      each such word with a probability of 25 %: code-switching

A word is looked up as it stands, then lower-cased; a translation found that way takes the word's case (`case=keep`:
Title, UPPER). If there are several translations, one is drawn for each occurrence (`choose=first`: the first is
taken). One draw of (sentence key, position) decides: its upper 32 bits are compared with the rate, its lower 32 bits
choose the translation. So a higher rate replaces every word that a lower rate replaces, by the same translation. A
translation of several words is one word with spaces inside, as in CoNLL-U. Special tokens stay.

lex is not injective: undo reads the stored source. `lexicon.tsv` holds the dictionary, so its file is not needed again.
Source: dictionary-based code-switching, Qin et al. 2020 (CoSDA-ML), section 3; their rate is of all words, whether the
dictionary holds them or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, lengths_of, offsets_of, positions
from derivlang.core.arrow import string_array
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, UsageError, parse_errors
from derivlang.core.keys import Draws
from derivlang.core.lexicon import PAIRS, SPECIALS, Images, TypeMap, read_rows, write_rows
from derivlang.core.spec import Named, param
from derivlang.formats.dictionary import Dictionary, read_dictionary
from derivlang.formats.places import is_path, stamp_of
from derivlang.transforms.base import Transform
from derivlang.transforms.letters import in_case

Case = Literal["keep", "as-is"]
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, kw_only=True)
class Lex(Transform):
    """Dictionary: all words, or some (code-switching), replaced by their translations."""

    name = "lex"
    injective = False
    instead: ClassVar[Mapping[str, str]] = {
        "phon": "dialect:phon=0.07",
        "suffix": "dialect:suffix=0.5",
        "nonce": "dialect:nonce=0.8",
        "shuffle": "scramble",
        "within": "scramble:within=length",
    }

    file: str = param("", "dictionary file: MUSE text, TSV or JSON", positional=True, draws=False, file=Named())
    rate: int = param(100, "percentage of the words with an entry to replace", draws=False, low=0, high=100)
    case: Case = param("keep", "case of a translation: as in its word, or as in the dictionary", draws=False)
    choose: Literal["sentence", "first"] = param(
        "sentence", "choice among several translations: drawn for each occurrence, or the first", draws=False
    )
    seed: int = param(1, "seed of the choices", low=0)

    def validate(self) -> None:
        """Raise UsageError if no file is given."""
        if not self.file:
            raise UsageError("lex needs a dictionary", where="--t", fix="name a file: lex:en-fr.txt", id="bad-spec")

    @property
    def saves(self) -> bool:
        """True: the dictionary itself is saved."""
        return True

    @property
    def resources(self) -> tuple[str, ...]:
        """The hash of the dictionary file."""
        return (f"dictionary {_read(self.file).sha256}",)

    def fit(self, types: pa.Array, counts: Int64, draws: Draws) -> TypeMap:
        """Return the map of the dictionary file; the reference vocabulary is not used."""
        return WordTranslations(_read(self.file).entries(), self.case)

    def warnings(self, step: TypeMap, types: pa.Array, counts: Int64) -> list[str]:
        """Return a warning if no word has an entry, or if more have one with the sides of the dictionary exchanged."""
        assert isinstance(step, WordTranslations)
        right = {translation for translations in step.entries.values() for translation in translations}
        found = [
            (bool(step.translations(word)), not right.isdisjoint((word, word.lower()))) for word in types.to_pylist()
        ]
        ours, theirs = (counts @ np.array(found, np.int64).reshape(-1, 2)).tolist()
        if ours < theirs:
            return [
                f"{self}: {ours:,} words have an entry, but {theirs:,} would have one with the sides of the dictionary "
                "exchanged: its left words are replaced by its right ones"
            ]
        return [f"{self}: no word has an entry in the dictionary"] if len(types) and not ours else []

    def load(self, state: str, draws: Draws) -> TypeMap:
        """Return the map of a saved dictionary. Raise ValueError if it is damaged."""
        return WordTranslations(_entries(state), self.case)

    def choices(self, batch: Batch, images: Int32, draws: Draws) -> Int32:
        """Return the image that each word takes, 0 for the word itself.

        The lower 32 bits of a draw, times the number of translations, divided by 2^32, is the translation: for three,
        draws in the first third of the range take image 1, then 2, then 3.
        """
        keys = np.repeat(batch.keys, lengths_of(batch.sentences))
        drawn = draws.draw(keys, positions(batch.sentences))
        image_number = np.ones(len(drawn), np.uint64)
        if self.choose == "sentence":
            image_number += ((drawn & _LOW) * np.maximum(images - 1, 0).astype(np.uint64)) >> np.uint64(32)
        replaced = (drawn >> np.uint64(32)) < np.uint64(self.rate * (1 << 32) // 100)
        return np.where(replaced & (images > 1), image_number, 0).astype(np.int32)


@dataclass(frozen=True, slots=True)
class WordTranslations:
    """The map from word types to their translations."""

    entries: Mapping[str, tuple[str, ...]]
    case: Case
    injective: bool = False
    # The last type table and its images. Batches of one text share a table, so its images are computed once.
    _last: list[tuple[pa.Array, Images]] = field(default_factory=list, repr=False, compare=False)

    def apply(self, types: pa.Array) -> pa.Array:
        """Return the first translation of each type, or the type itself if it has none."""
        return string_array([(self.translations(word) or (word,))[0] for word in types.to_pylist()])

    def images(self, types: pa.Array) -> Images:
        """Return each type and its translations."""
        if not (self._last and self._last[0][0] is types):
            rows = [(word, *self.translations(word)) for word in types.to_pylist()]
            offsets = offsets_of(np.fromiter(map(len, rows), np.int64, len(rows)))
            self._last[:] = [(types, Images(offsets, string_array([word for row in rows for word in row])))]
        return self._last[0][1]

    def translations(self, word: str) -> tuple[str, ...]:
        """Return the distinct translations of a word, in dictionary order."""
        if word in SPECIALS:
            return ()
        if word in self.entries:
            return self.entries[word]
        translations = self.entries.get(word.lower(), ())
        return tuple(dict.fromkeys(in_case(word, t) for t in translations)) if self.case == "keep" else translations

    def invert(self) -> TypeMap:
        """Raise UsageError: a dictionary has no inverse."""
        raise UsageError("a dictionary has no inverse", id="not-injective")

    def state(self) -> str:
        """Return the section of `lexicon.tsv`: a row for each pair of the dictionary."""
        return write_rows(PAIRS, ((word, t) for word, translations in self.entries.items() for t in translations))


def _read(file: str) -> Dictionary:
    if file == "shuffle" and not is_path(file, "file"):
        raise DataError(
            "there is no dictionary file `shuffle`",
            where="--t lex",
            fix="for a word shuffle write scramble",
            id="missing-file",
        )
    with parse_errors(file, "dictionary"):
        return _read_once(file, *stamp_of(file))


@lru_cache(maxsize=4)
def _read_once(file: str, *stamp: int) -> Dictionary:
    """Read a dictionary, once per process and version of its file. Duplicate pairs are allowed."""
    return read_dictionary(file, strict=True, allowed=("duplicate",))


@lru_cache(maxsize=4)
def _entries(state: str) -> dict[str, tuple[str, ...]]:
    pairs = tuple((word, image) for word, image in read_rows(state, PAIRS))
    return Dictionary(pairs, (), "").entries()
