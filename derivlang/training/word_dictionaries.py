"""Dictionaries of words between languages of a run, as the sub-words of their readers (--dictionary en-fr=FILE).

    dog chien     en: 17     fr: 44 102     ->  a pair of the words 17 and 44 102, whatever the tokenizers

A word with an unknown sub-word is left out with its pairs. The entries of a twin that the run makes stand for the words
that are one sub-word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int64, expand_ranges, lengths_of, offsets_of, owners
from derivlang.core.errors import DataError
from derivlang.lexical.bpe import SUFFIX
from derivlang.training.data import Data
from derivlang.training.language import Language, named_pairs
from derivlang.training.languages import SOURCE, Languages
from derivlang.training.translations import Spelling, Translations, as_bytes, of_words, word_offsets, word_pairs

_PIECES, _ENOUGH = 1 << 11, 1000  # pieces that are searched at once, words that are enough to compare directions
_LEAST = 0.01  # share of the entries with a word in either text that have both words there


@dataclass(frozen=True, eq=False)
class WordDictionary:
    """A dictionary of words of two languages, by number. pairs: words of the left one and their translations."""

    left: int
    right: int
    path: Path
    pairs: Sequence[tuple[str, str]]
    sha256: str

    @classmethod
    def read(cls, sides: tuple[int, int], path: Path, warn: Callable[[str], None]) -> WordDictionary:
        """Read a file in any form of `derivlang dict`. Raise DataError if it is missing, or holds no pair of words."""
        pairs, digest = word_pairs(path, warn)
        if any(word.endswith(SUFFIX) for pair in pairs for word in pair):
            raise DataError(
                "has entries of a tokenizer, not words",
                where=str(path),
                fix="make one with derivlang dict --level word",
                id="other-vocabulary",
            )
        return cls(*sides, path, pairs, digest)

    @property
    def sides(self) -> tuple[int, int]:
        return self.left, self.right

    def spelt(self, side: int, language: int, languages: Languages) -> tuple[Int64, Int64]:
        """Return the sub-words of one side's words in a language, int64[M], and where each word begins, int64[K + 1].

        A word is read after itself, as some tokenizers spell the first word of a text in another way.
        """
        types, n = pa.array([pair[side] for pair in self.pairs], pa.string()), len(self.pairs)
        codes = np.arange(2 * n, dtype=np.int32) // 2
        encoded = languages.readers[language].tokenizer.encode(types, codes, np.arange(0, 2 * n + 1, 2))
        sizes = lengths_of(encoded.offsets)[1::2]
        return encoded.ids[expand_ranges(encoded.offsets[1::2], sizes)].astype(np.int64), offsets_of(sizes)


def read_dictionaries(
    files: Sequence[Path], asked: Sequence[Language], warn: Callable[[str], None]
) -> list[WordDictionary]:
    """Return the dictionaries of --dictionary, en-fr=FILE. Raise UsageError for languages that are not of the run."""
    return [WordDictionary.read(sides, path, warn) for sides, path in named_pairs(files, asked, "--dictionary").items()]


def spelt(given: Sequence[WordDictionary], made: Mapping[int, Translations], languages: Languages) -> Translations:
    """Return the pairs of dictionaries of words, and for twins without one the pairs of entries, by language.

    Raise DataError for a dictionary without a pair that the vocabulary knows.
    """
    parts: list[tuple[tuple[int, int], list[tuple[Int64, Int64]]]] = []  # languages; ids and lengths of words by side
    for one in given:
        read = [one.spelt(side, language, languages) for side, language in enumerate(one.sides)]
        known = np.logical_and(*(_known(*words, languages.unknown_id) for words in read))
        if not known.any():
            raise DataError(
                f"the vocabulary knows none of its {len(one.pairs):,} pairs of words",
                where=str(one.path),
                fix="give words of languages of the run, in their order: en-fr=FILE has English on the left",
                id="other-vocabulary",
            )
        lengths = [(own, lengths_of(offsets)) for own, offsets in read]
        parts.append((one.sides, [(own[np.repeat(known, n)], n[known]) for own, n in lengths]))
    for target, twin in made.items():
        if not any({SOURCE, target} == {*one.sides} for one in given):
            parts.append(((SOURCE, target), [(own, np.ones_like(own)) for own in twin.pairs.T]))
    every, sizes = (np.concatenate([words[side][n] for side in (0, 1) for _, words in parts]) for n in (0, 1))
    left, right = np.repeat([one for one, _ in parts], [len(words[0][1]) for _, words in parts], axis=0).T
    offsets = offsets_of(sizes)
    spelling = Spelling.of(every, offsets)
    hashes = [f"{one.sides}{one.sha256}" for one in given] + [twin.sha256 for twin in made.values()]
    digest = sha256("".join(hashes).encode()).hexdigest()
    found = Translations.of(
        spelling.find(every, offsets).reshape(2, -1).T,
        len(spelling),
        digest=digest,
        sides=(left, right),
        spelling=spelling,
        of_words=of_words(
            [one.sides for one in given for _ in one.pairs],
            [pair for one in given for pair in one.pairs],
        ),
    )
    if not len(found.pairs):
        raise DataError(
            "every pair is of a word and itself",
            where=", ".join(str(one.path) for one in given),
            fix="give translations, or each language a tokenizer of its own (tokenizer:DIR)",
            id="no-entry",
        )
    return found


def _known(ids: Int64, offsets: Int64, unknown: int | None) -> Bool:
    """Return bool[K]: whether a word has sub-words, and none of them is unknown."""
    known = lengths_of(offsets) > 0
    known[owners(offsets)[ids == unknown]] = False
    return known


def check_direction(one: WordDictionary, languages: Languages, texts: Mapping[int, Data], names: Sequence[str]) -> None:
    """Raise DataError unless both texts have words of its entries, or if more have one with the sides exchanged.

    Entries that are spelt alike on both sides, as names are, do not show the language, so only others count for both.
    texts: by language. names: of the languages.
    """
    counts, seen = np.zeros(2, np.int64), []
    for place, language in enumerate(one.sides):
        spelt = [one.spelt(side, language, languages) for side in (place, 1 - place)]
        found, entries = _occurrences(texts[language], language, spelt)
        counts += found
        seen.append(entries)
    both = " and ".join(names[side] for side in one.sides)
    if counts[0] < counts[1]:
        raise DataError(
            f"more words of the texts of {both} have an entry if the sides of the dictionary are exchanged",
            where=str(one.path),
            fix=f"write --dictionary {'-'.join(names[side] for side in one.sides[::-1])}=FILE",
            id="exchanged",
        )
    fix = f"give words of {both}, as the texts have them (MUSE has lower case)"
    if not counts[0]:
        raise DataError(f"no word of the texts of {both} has an entry", where=str(one.path), fix=fix, id="no-entry")
    differ = np.array([left != right for left, right in one.pairs])
    left, right = (entries[differ] for entries in seen)
    n_some, n_both = int((left | right).sum()), int((left & right).sum())
    if n_both < _LEAST * n_some:
        side = names[one.sides[int(left.sum() > right.sum())]]
        raise DataError(
            f"of {n_some:,} entries with a word in the texts of {both}, {n_both:,} ({n_both / n_some:.1%}) have both; "
            f"their words of {side} may be of another language",
            where=str(one.path),
            fix=fix,
            id="no-entry",
        )


def _occurrences(text: Data, language: int, spelt: Sequence[tuple[Int64, Int64]]) -> tuple[Int64, Bool]:
    """Return int64[S]: how many words of a text, from its begin until there are enough, are in each of S lists.

    Return bool[K], too: which words of the first list are among them.
    """
    lists = [set(filter(None, as_bytes(*words))) for words in spelt]
    counts, seen, n = np.zeros(len(lists), np.int64), set[bytes](), len(text.pieces) - 1
    for begin in range(0, n, _PIECES):
        pieces = np.arange(begin, min(begin + _PIECES, n))
        tokens = text.tokens(pieces, np.full(len(pieces), language))
        number = (np.repeat(pieces, text.sizes(pieces, language)) << 32) + tokens.words
        words = as_bytes(tokens.ids, word_offsets(number[None]))
        counts += [sum(word in listed for word in words) for listed in lists]
        seen.update(words)
        if counts.max() >= _ENOUGH:
            break
    return counts, np.array([word in seen for word in as_bytes(*spelt[0])])
