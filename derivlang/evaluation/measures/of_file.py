"""Measures of a model on a file of the user: sentence pairs, gold links, or a dictionary of words.

    retrieval:en-fr=FILE      sentences whose most similar one of the other side is their own, in both directions
    links:en-fr=FILE          AER of links between words against gold links, some of which may be only possible
    translation:en-fr=FILE    words whose most similar word of the other side is one of their translations (P@1)

`en` and `fr` name the source and a target of the run; the file has the first of them on its left. A run whose languages
have no names takes `links:FILE`. Pairs and links are in a form of --pairs, or in PREFIX.en, PREFIX.fr and PREFIX.gold.
Sentences that do not fit into a row are cut; words without a state have no links. Unlike in held-out text, equal words
of a sentence are different words.

In `translation` a word is the mean of the embeddings of its sub-words, and the candidates are all words of the other
side. Pairs with an unknown sub-word are left out, as are pairs that are spelt alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from derivlang.align.bitext import Bitext
from derivlang.align.links import Links, keys_of
from derivlang.core.arrays import Bool, Int64, lengths_of
from derivlang.core.errors import DataError
from derivlang.core.messages import warn
from derivlang.evaluation.columns import Column
from derivlang.evaluation.encoder_links import LinkEncoder
from derivlang.evaluation.measures.alignment import best, neighbourhood
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.retrieval import hits
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import Score, ScoredSet, set_hash
from derivlang.evaluation.set_names import short_name
from derivlang.store.record import digest
from derivlang.training.languages import DERIVED, SOURCE, Languages
from derivlang.training.objectives.align_mlm import means
from derivlang.training.positions import positions_of
from derivlang.training.spelling import Spelling
from derivlang.training.streams.bitext import PairFile, read_pairs
from derivlang.training.translations import Translations
from derivlang.training.word_dictionaries import WordDictionary, spelt

if TYPE_CHECKING:
    import torch

    from derivlang.training.encoder import Encoder

_METHODS = {"argmax": "argmax", "itermax": "itermax", "transport": "ot"}  # of columns, as aligners name them


@dataclass(frozen=True)
class FileMeasure(Measure):
    """A measure on a file. names: of its sides, () if none are given. target: of the run, the other is the source."""

    reads = ()

    file: Path
    names: tuple[str, ...]
    target: str

    @property
    def is_turned(self) -> bool:
        """Whether the left side is in the target."""
        return self.names[:1] == (self.target,)

    def scored(self, digest: str, n: int, unit: str = "sentence") -> ScoredSet:
        """Return what scores are of: n units of a file with this hash."""
        keys = np.full(n, int(digest[:16], 16), np.uint64)
        return ScoredSet(short_name(str(self.file)), set_hash(keys, np.arange(n)), unit)


@dataclass(frozen=True)
class PairMeasure(FileMeasure):
    """A measure on the states of sentence pairs of a file."""

    @cached_property
    def pairs(self) -> PairFile:
        """The pairs, the side of the source first. Raise DataError if a file is missing or damaged."""
        read = read_pairs(self.file, names=self.names)
        if not np.logical_and(*(lengths_of(side.offsets) > 0 for side in (read.source, read.derived))).any():
            raise DataError("has no pair with words on both sides", where=str(self.file), id="empty-file")
        if not self.is_turned:
            return read
        links = read.links and Links(read.links.offsets, read.links.target, read.links.source, read.links.sure)
        return PairFile(read.derived, read.source, links, read.sha256)

    def check(self, languages: Languages) -> None:
        _ = self.pairs

    @property
    def bitext(self) -> Bitext:
        """The sentences of both sides."""
        sides = [(one.codes, one.offsets, one.types.to_pylist()) for one in (self.pairs.source, self.pairs.derived)]
        return Bitext(*sides[0], *sides[1])

    def encoder(self, model: Encoder, sets: MeasureSets) -> LinkEncoder:
        """Return the model as a reader of words, in all layers."""
        return LinkEncoder(sets.languages, model, None, positions_of(model.module).longest or 1 << 15)


class FileRetrieval(PairMeasure):
    """Sentences of a file whose most similar sentence of the other side is their own."""

    columns = (
        Column("sentences", headline=True, over="layer", chance=True),
        Column("first", "sentences by <s>", over="layer", chance=True),
    )

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the hits of each pair by layer, and of a guess."""
        ours, theirs = self.encoder(model, sets).sentences(self.bitext)
        n = len(ours[0][0])
        of = self.scored(self.pairs.sha256, n)
        for name, *both in zip(["sentences"] if model.causal else ["sentences", "first"], ours, theirs, strict=False):
            for layer, sides in enumerate(zip(*both, strict=True)):
                yield Score(name, hits(*sides), layer=layer, set=of)
            yield Score(name, np.tile(np.array([1, n]), (n, 1)), regime="chance", set=of)


class FileLinks(PairMeasure):
    """Alignment error rate of links between words against gold links of a file."""

    columns = tuple(
        Column(name, f"AER by {name}", better="down", formula="aer", headline=name == "argmax", over="layer")
        for name in _METHODS
    )

    @property
    def gold(self) -> Links:
        """The links of the file. Raise DataError if it has none."""
        if self.pairs.links is None:
            fix = "write them as `0-0 1p2`, a line for each pair, into PREFIX.gold or PREFIX.pharaoh"
            raise DataError("has no gold links", where=str(self.file), fix=fix, id="no-links")
        return self.pairs.links

    def check(self, languages: Languages) -> None:
        _ = self.gold

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the links of each sentence pair by layer."""
        gold = self.gold
        found, _ = self.encoder(model, sets).by_layer(self.bitext, list(_METHODS.values()))
        of = self.scored(self.pairs.sha256, len(gold))
        names = {method: name for name, method in _METHODS.items()}
        for (layer, method), links in found.items():
            yield Score(names[method], error_counts(links, gold), layer=layer, set=of)


def error_counts(links: Links, gold: Links) -> Int64:
    """Return int64[S, 4], as the formula `aer` takes them."""
    width = 1 + max(int(side.max(initial=0)) for side in (links.source, links.target, gold.source, gold.target))
    made, known = keys_of(links, width), keys_of(gold, width)
    sure = np.unique(known[gold.sure])
    some = [made[np.isin(made, sure)], made[np.isin(made, known)], made, sure]
    return np.stack([np.bincount(keys // width**2, minlength=len(gold)) for keys in some], axis=1)


class FileTranslation(FileMeasure):
    """Words of a dictionary whose most similar word of the other side is one of their translations."""

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
        assert found.spelling is not None
        pairs, turn = np.unique(found.pairs, axis=0), -1 if self.is_turned else 1
        words = [_in_order(given, side, found.spelling, sets.languages, pairs[:, side]) for side in (0, 1)][::turn]
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


class _InOrder(NamedTuple):
    """The K words of a side, in alphabetical order. numbers: int64[K]; places: int64[P], of each pair's word."""

    words: list[str]
    numbers: Int64
    places: Int64


def _in_order(given: WordDictionary, side: int, spelling: Spelling, languages: Languages, numbers: Int64) -> _InOrder:
    """Return the words of these numbers, the same in runs of other tokenizers. Of words spelt alike, the first."""
    every = spelling.find(*given.spelt(side, given.sides[side], languages)).tolist()
    names = dict(sorted(zip(every, (pair[side] for pair in given.pairs), strict=True), reverse=True))
    words = np.array([names[number] for number in numbers.tolist()], object)
    words, first, places = np.unique(words, return_index=True, return_inverse=True)
    return _InOrder(words.tolist(), numbers[first], places)


def _shares(values: Bool | Int64, whole: int) -> Int64:
    return np.stack([values, np.full(len(values), whole)], axis=1).astype(np.int64)
