"""Rows of independent words: of a vocabulary of Zipf's law (`zipf`), or of another source (`resample`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Float64, Int32, Int64, lengths_of, offsets_of, positions
from derivlang.core.arrow import string_array, to_numpy
from derivlang.core.batch import split_sentences
from derivlang.core.errors import DataError, UsageError
from derivlang.core.keys import Draws, fractions, string_buffers
from derivlang.core.spec import param
from derivlang.core.spec_files import Named
from derivlang.sources.corpus import Corpus, FileSpan
from derivlang.sources.generated.base import (
    Generator,
    Made,
    RowGenerator,
    numbered,
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
class Zipf(RowGenerator):
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
        maker = _Words(types, np.cumsum(counts), lengths)
        return self.made(maker, rows, b"".join(array.tobytes() for array in content))

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

    @property
    def words_a_row(self) -> float:
        return float(np.concatenate(list(self.lengths.values())).mean())

    nodes_a_row = words_a_row

    def columns(self, draws: Draws, split: str, rows: Int64) -> dict[str, pa.Array]:
        lengths = self.lengths[split][rows]
        offsets = offsets_of(lengths)
        drawn = fractions(numbered(draws, rows, lengths, positions(offsets)))
        return {"tokens": word_lists(offsets, choose(self.cumulated, drawn), self.types)}
