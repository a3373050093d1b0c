"""Word translation: the percentage of words of a dictionary whose most similar word is one of their translations (P@1).

A word is the mean of the embeddings of its sub-words, and the candidates are all words of the other side. Pairs with an
unknown sub-word are left out, as are pairs that are spelt alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from derivlang.core.arrays import Bool, Int64
from derivlang.core.messages import warn
from derivlang.evaluation.columns import Column
from derivlang.evaluation.measures.alignment import best, neighbourhood
from derivlang.evaluation.measures.of_file import FileMeasure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import Score
from derivlang.lexical.tokenizer import WORDS
from derivlang.lexical.train import read_words
from derivlang.store.record import digest
from derivlang.training.languages import DERIVED, SOURCE, Languages
from derivlang.training.objectives.align_mlm import means
from derivlang.training.translations import Spelling, Translations
from derivlang.training.word_dictionaries import WordDictionary, spelt

_FEW = 0.1  # share of pairs

if TYPE_CHECKING:
    import torch

    from derivlang.training.encoder import Encoder


class FileTranslation(FileMeasure):
    """The share of words in a dictionary whose nearest word in the other language is one of their translations."""

    columns = (
        Column("nearest", "P@1", headline=True, chance=True),
        Column("csls", "P@1 by CSLS", chance=True),
    )

    def _read(self, languages: Languages, warn: Callable[[str], None]) -> tuple[WordDictionary, Translations]:
        sides = (DERIVED, SOURCE) if self.is_turned else (SOURCE, DERIVED)
        given = WordDictionary.read(sides, self.file, warn)
        return given, spelt([given], {}, languages)

    def check(self, languages: Languages) -> None:
        self._read(languages, lambda told: None)  # it warns when it is measured

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the hits of the words of both sides, and of a guess."""
        given, found = self._read(sets.languages, warn)
        _warn_of_unread(given, sets.languages)
        assert found.spelling is not None
        pairs, turn = np.unique(found.pairs, axis=0), -1 if self.is_turned else 1
        words = [_InOrder(given, side, found.spelling, sets.languages, pairs[:, side]) for side in (0, 1)][::turn]
        vectors = [self._vectors(model, *found.spelling.take(one.numbers)) for one in words]
        for group, step in (("", 1), ("reverse", -1)):
            (asked, candidates), (ours, theirs) = words[::step], vectors[::step]
            n, right_ones = len(candidates.numbers), asked.places * len(candidates.numbers) + candidates.places
            spellings = [[one.words[place] for place in one.places[np.argsort(right_ones)]] for one in words[::step]]
            of = self.scored(digest(spellings), len(asked.numbers), "word")
            for name, chosen in zip(("nearest", "csls"), best(ours, theirs, neighbourhood(theirs, ours)), strict=True):
                right_words = np.isin(np.arange(len(chosen)) * n + chosen, right_ones)
                yield Score(name, _shares(right_words, 1), group=group, set=of)
                if not group:
                    yield Score(name, _shares(np.bincount(asked.places), n), regime="chance", set=of)

    @staticmethod
    def _vectors(model: Encoder, ids: Int64, offsets: Int64) -> torch.Tensor:
        """Return float[K, d]: the embeddings of words, of length 1. ids: int64[M]; offsets: int64[K + 1]."""
        import torch

        rows = model.embeddings.detach().float()
        arrays = (torch.from_numpy(np.ascontiguousarray(array)).to(rows.device) for array in (ids, offsets))
        return torch.nn.functional.normalize(means(rows, *arrays), dim=1)


def _warn_of_unread(given: WordDictionary, languages: Languages) -> None:
    """Warn if few pairs have both words in the texts of the tokenizers. Derived words are not in them."""
    known = []
    for side, number in enumerate(given.sides):
        reader = languages.readers[number]
        if str(reader.pipeline) not in ("", "identity") or not (reader.tokenizer.folder / WORDS).exists():
            return
        types = {word.lower() for word in read_words(reader.tokenizer.folder)[0].to_pylist()}
        known.append([pair[side].lower() in types for pair in given.pairs])
    share = float(np.all(known, axis=0).mean())
    if share < _FEW:
        warn(
            f"{given.path}: {share:.1%} of its pairs have both words in the text of the tokenizers, so they may be of "
            "other languages"
        )


class _InOrder:
    """The K words of a side, in alphabetical order, the same in runs of other tokenizers; of words spelt alike, the
    first.

    words: str[K]; numbers: int64[K]; places: int64[P], of each pair's word.
    """

    def __init__(self, given: WordDictionary, side: int, spelling: Spelling, languages: Languages, numbers: Int64):
        every = spelling.find(*given.spelt(side, given.sides[side], languages)).tolist()
        names = dict(sorted(zip(every, (pair[side] for pair in given.pairs), strict=True), reverse=True))
        words = np.array([names[number] for number in numbers.tolist()], object)
        self.words, first, self.places = np.unique(words, return_index=True, return_inverse=True)
        self.numbers = numbers[first]


def _shares(values: Bool | Int64, whole: int) -> Int64:
    return np.stack([values, np.full(len(values), whole)], axis=1).astype(np.int64)
