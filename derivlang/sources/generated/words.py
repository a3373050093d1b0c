"""Rows of independent words of Zipf's law (`zipf`) or of another source (`resample`), and rows of brackets (`dyck`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Float64, Int32, Int64, lengths_of, offsets_of, positions
from derivlang.core.arrow import list_array, string_array, to_arrow, to_numpy
from derivlang.core.batch import split_sentences
from derivlang.core.errors import DataError, UsageError
from derivlang.core.keys import Draws, fractions, string_buffers
from derivlang.core.schema import BRACKET_RELATIONS, UPOS, Field
from derivlang.core.spec import Named, param
from derivlang.sources.corpus import Corpus, FileSpan
from derivlang.sources.generated.base import (
    Generator,
    Made,
    numbered,
    rows_of,
    rows_param,
    seed_param,
    word_lists,
)
from derivlang.sources.read import Reading, batches
from derivlang.sources.request import SourceRequest

CITATION = (
    "Papadimitriou, Jurafsky (2020): Learning Music Helps You Read. EMNLP 2020; "
    "Papadimitriou, Jurafsky (2023): Injecting structural hints. Findings of EMNLP 2023."
)
MOST_WORDS = 1_000_000  # of a vocabulary: a tenth of a second to draw it up


@dataclass(frozen=True, kw_only=True)
class Zipf(Generator):
    """Independent words of a Zipf or uniform vocabulary.

        source:zipf=500:a=1     w1 w7 w2 w1 …     with w1 twice as frequent as w2

    Word r of V has a probability in proportion to r^-a, Zipf's law; a=0 is the uniform distribution. `length` is the
    mean number of words: of a geometric distribution from 1 on, or all rows have it (`lengths=fixed`). Papadimitriou
    and Jurafsky (2020; 2023) train on such text, in rows of 512 words.
    """

    name: ClassVar[str] = "zipf"
    citation: ClassVar[str] = CITATION

    words: int = param(50_000, "words of the vocabulary", positional=True, low=1, high=MOST_WORDS)
    a: float = param(1.0, "exponent of the word frequencies; 0: all words are equally frequent", low=0)
    length: int = param(20, "mean words of a row", low=1, high=1_000_000)
    lengths: Literal["geometric", "fixed"] = param("geometric", "distribution of the words of a row")
    n: int = rows_param()
    seed: int = seed_param()

    def opened(self, folders: Sequence[Path]) -> Made:
        """Return what makes the rows: there is no file."""
        return self.made(self.columns, rows_of(self.n), self.length)

    def columns(self, draws: Draws, split: str, rows: Int64) -> dict[str, pa.Array]:
        """Return the words of some rows. Draw 0 of a row is its length, draw i + 1 its word i."""
        lengths = np.full(len(rows), self.length, np.int64)
        if self.lengths == "geometric" and self.length > 1:
            drawn = fractions(draws.draw(rows.astype(np.uint64), np.zeros_like(rows)))
            lengths = 1 + np.floor(np.log1p(-drawn) / np.log1p(-1 / self.length)).astype(np.int64)
        offsets = offsets_of(lengths)
        drawn = fractions(numbered(draws, rows, lengths, positions(offsets) + 1))
        return {"tokens": word_lists(offsets, choose(frequencies(self.words, self.a), drawn), _names(self.words))}


@cache
def frequencies(n: int, a: float) -> Float64:
    """Return float64[n]: the probability that a word has a rank up to 1 … n under Zipf's law."""
    return np.cumsum(np.arange(1, n + 1, dtype=np.float64) ** -a)


def choose(cumulated: Float64, drawn: Float64) -> Int64:
    """Return int64[m]: the word of each draw from 0 to below 1. cumulated: running sums of weights, float64[n]."""
    found = np.searchsorted(cumulated, drawn * cumulated[-1], side="right")
    return np.asarray(np.minimum(found, len(cumulated) - 1))  # a product may be rounded up to the sum


@cache
def _names(n: int) -> pa.Array:
    return string_array(f"w{rank}" for rank in range(1, n + 1))


@dataclass(frozen=True, kw_only=True)
class Resample(Generator):
    """Words of another source, drawn by frequency, in its sentence lengths; no alignment.

        source:resample=wikitext2     the . of , Robert and …

    Each sentence of the source gives one row with as many words. Each word is drawn independently among all words of
    the source's train split (its first, if it has none), in proportion to their number. So the frequencies of words and
    the lengths are kept, and everything else is lost: word j of row i has no source word, and so the rows have no
    alignment with the source's, and no labels. Sinha et al. (2021) and Deshpande et al. (2022) resample so, as a
    control.
    """

    name: ClassVar[str] = "resample"
    citation: ClassVar[str] = (
        "Sinha et al. (2021): Masked Language Modeling and the Distributional Hypothesis. EMNLP 2021."
    )

    source: str = param("", "the other source; quoted if it holds a colon", positional=True, draws=False, file=Named())
    seed: int = seed_param()

    def file_name(self, path: str) -> str:
        """Return the name of the other source."""
        from derivlang.sources.find import name_of  # imported late: it finds this source, too

        return name_of(path)

    def opened(self, folders: Sequence[Path]) -> Made:
        """Return the frequencies and lengths of the source, which is read once, as a whole."""
        corpus = self._corpus(folders)
        counted: list[tuple[pa.Array, Int64]] = []
        lengths: dict[str, Int32] = {}
        for split in corpus.splits:
            found = []
            spans = [FileSpan(part) for part in corpus.parts if part.split == split]
            for batch in batches(corpus, spans, Reading(corpus.splitter())):
                if split == corpus.splits[0]:
                    counted.append((batch.types, np.bincount(batch.words, minlength=len(batch.types))))
                found.append(lengths_of(split_sentences(batch).sentences).astype(np.int32))
            of_split = np.concatenate([np.zeros(0, np.int32), *found])
            lengths[split] = of_split[of_split > 0]
        if not all(map(len, lengths.values())):
            empty = next(split for split, one in lengths.items() if not len(one))
            raise DataError(f"the split {empty} of {corpus.name} holds no words", where=self.source, id="empty-file")
        encoded = pa.concat_arrays([types for types, _ in counted]).dictionary_encode()
        counts = np.bincount(to_numpy(encoded.indices), np.concatenate([n for _, n in counted]))
        used = np.flatnonzero(counts)
        types, counts = encoded.dictionary.take(pa.array(used)), counts[used]
        content = [*string_buffers(types), counts, *lengths.values()]
        rows = {split: len(one) for split, one in lengths.items()}
        words = float(np.concatenate(list(lengths.values())).mean())
        columns = _Words(types, np.cumsum(counts), lengths).columns
        return self.made(columns, rows, words, content=b"".join(array.tobytes() for array in content))

    def corpus(self, folders: Sequence[Path]) -> Corpus:
        """Return the source as a corpus, which has the language and the licence of the other one."""
        of = self._corpus(folders)
        made = super().corpus(folders)
        citation = f"{made.citation} Its rows have no alignment with the rows of {of.name}. {of.citation}".rstrip()
        return replace(made, language=of.language, licence=of.licence, citation=citation)

    def _corpus(self, folders: Sequence[Path]) -> Corpus:
        from derivlang.sources.find import find  # imported late: it finds this source, too

        if not self.source:
            raise UsageError(
                "resample: the name of the other source is missing", fix="source:resample=SOURCE", id="bad-value"
            )
        corpus = find(SourceRequest(self.source, data_dir=folders[0] if folders else None))
        if corpus.format == "derived":
            raise UsageError(
                f"{corpus.name} is a derived set",
                where=self.source,
                fix="name its source, and give the transforms with --t",
                id="derived-source",
            )
        return corpus


@dataclass(frozen=True, slots=True)
class _Words:
    """types: Arrow strings [T]. cumulated: running sums of their numbers. lengths: of the rows of each split."""

    types: pa.Array
    cumulated: Float64
    lengths: dict[str, Int32]

    def columns(self, draws: Draws, split: str, rows: Int64) -> dict[str, pa.Array]:
        lengths = self.lengths[split][rows]
        offsets = offsets_of(lengths)
        drawn = fractions(numbered(draws, rows, lengths, positions(offsets)))
        return {"tokens": word_lists(offsets, choose(self.cumulated, drawn), self.types)}


_RELATIONS = string_array(BRACKET_RELATIONS)
_TAGS = string_array(["X"])
_ROOT, _NESTED, _NEXT, _CLOSE = range(4)


@dataclass(frozen=True, kw_only=True)
class Dyck(Generator):
    """Brackets that match, nested or crossing, with trees.

        source:dyck=2:length=6             (1 (2 2) 1) (2 2)      heads 0 1 2 1 1 5
        source:dyck=2:length=6:cross=yes   (1 (2 1) (1 2) 1)      heads 0 1 1 1 2 4

    At each place a bracket is opened with probability p, and else closed: the one that was opened last, or under
    `cross` any open one, all equally likely. A bracket is opened where none is open, and closed where the rest of the
    row only has room for what is open; so each row is balanced and has `length` words. Papadimitriou and Jurafsky
    (2020; 2023) use p=0.49 and rows of 512; their crossing brackets draw the distance to the closing bracket from a
    file instead.

    The tree: the head of a closing bracket is its opening bracket (`close`); an opening bracket depends on the bracket
    that encloses it (`nested`), else, and always under `cross`, on the first word (`next`), which is the root. The tag
    of all words is X: transforms of trees want tags.
    """

    name: ClassVar[str] = "dyck"
    fields: ClassVar[tuple[Field, ...]] = (Field("upos", "tags", UPOS), Field("head", "tree"))
    citation: ClassVar[str] = CITATION

    pairs: int = param(250, "kinds of brackets", positional=True, low=1, high=500_000)
    p: float = param(0.49, "probability to open a bracket where both are possible", low=0, high=1)
    length: int = param(512, "words of a row, an even number", low=2, high=10_000)
    cross: bool = param(False, "close any open bracket, not the last one")
    a: float = param(0.0, "exponent of the frequencies of the kinds; 0: all are equally frequent", low=0)
    n: int = rows_param()
    seed: int = seed_param()

    def validate(self) -> None:
        """Raise UsageError for an odd length."""
        if self.length % 2:
            raise UsageError(f"dyck: length={self.length} must be even, as brackets come in pairs", id="bad-value")

    def opened(self, folders: Sequence[Path]) -> Made:
        """Return what makes the rows: there is no file."""
        return self.made(self.columns, rows_of(self.n), self.length)

    def columns(self, draws: Draws, split: str, rows: Int64) -> dict[str, pa.Array]:
        """Return words, heads and relations of some rows.

        Draw i of a row decides whether word i opens; draw `length` + i which kind it opens, or which bracket it closes.
        """
        n, length = len(rows), self.length
        every = np.full(n, 2 * length)
        drawn = fractions(numbered(draws, rows, every, np.tile(np.arange(2 * length), n)))
        chance, which = np.ascontiguousarray(drawn.reshape(n, 2, length).transpose(1, 2, 0))  # float64[length, n] each
        kinds = choose(frequencies(self.pairs, self.a), which.ravel()).reshape(length, n)
        opens, governor, relation = self._governors(chance, which)
        # word 2k opens kind k, word 2k + 1 closes it
        closed = np.take_along_axis(kinds, np.maximum(governor, 0), axis=0)
        words = 2 * np.where(opens, kinds, closed) + ~opens
        offsets = offsets_of(np.full(n, length))
        return {
            "tokens": word_lists(offsets, words.T.ravel(), _brackets(self.pairs)),
            "upos": word_lists(offsets, np.zeros(n * length, np.int64), _TAGS),
            "head": list_array(offsets, to_arrow((governor + 1).T.ravel().astype(np.int32))),
            "deprel": word_lists(offsets, relation.T.ravel(), _RELATIONS),
        }

    def _governors(self, chance: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return whether each word opens, the place of its governor (-1: root) and its relation, all [length, n].

        chance, which: draws, float64[length, n]. Place after place, for all rows at once.
        """
        length, n = chance.shape
        opens, relation = np.empty((length, n), bool), np.empty((length, n), np.int8)
        governor = np.empty((length, n), np.int32)
        every, depth = np.arange(n), np.zeros(n, np.int64)
        stack = np.zeros((n, length // 2 + 1), np.int32)  # the places of the open brackets, the last one at depth - 1
        for place in range(length):
            opens[place] = opening = (depth == 0) | ((chance[place] < self.p) & (depth < length - place))
            closing = ~opening
            last = closed = stack[every, depth - 1]
            if self.cross:
                any_open = (which[place] * depth).astype(np.int64)
                closed = stack[every, any_open]
                stack[every[closing], any_open[closing]] = last[closing]
            nested = opening & (depth > 0) & (not self.cross)
            governor[place] = np.where(closing, closed, np.where(nested, last, 0))
            relation[place] = np.where(closing, _CLOSE, np.where(nested, _NESTED, _NEXT))
            stack[every[opening], depth[opening]] = place
            depth += np.where(opening, 1, -1)
        governor[0], relation[0] = -1, _ROOT
        return opens, governor, relation


@cache
def _brackets(pairs: int) -> pa.Array:
    return string_array(word for kind in range(1, pairs + 1) for word in (f"({kind}", f"{kind})"))
