"""Minimal pairs: two sentences that differ in one point, of which one is acceptable. A pair is right if the model gives
the acceptable one the higher log-likelihood.

    {"sentence_good": "These cats sleep.", "sentence_bad": "These cat sleep.", "UID": "number_agreement"}      a line

A set is a file of such JSON lines, or a folder of them. Each sentence is derived by itself and is a row of its own.

    causal    log p(we | <s>) + log p(low | <s> we) + …                           without the closing </s>
    masked    log p(we | <s> <mask> low </s>) + log p(low | <s> we <mask> </s>)   pseudo-log-likelihood

The sum is not divided by the number of sub-words. A tie (the same sub-words, or the same sum) counts half: counts are
of halves, 2, 1 or 0 of 2. A pair is left out if one of its sentences does not fit into a row. A group is COLUMN=VALUE,
the pairs with a value in one of the columns `linguistics_term`, `UID` and `field`.

Sources: Warstadt et al. (2020), BLiMP, section 4; Salazar et al. (2020), section 2, for masked models.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.align.lexical import Floats
from derivlang.core.arrays import Bool, Int32, Int64, UInt64, expand_ranges, lengths_of, offsets_of, owners
from derivlang.core.arrow import to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError
from derivlang.core.keys import sequence_keys
from derivlang.core.layers.values import Values
from derivlang.evaluation.columns import SIDES, Column
from derivlang.evaluation.scores import Score, ScoredSet, set_hash
from derivlang.evaluation.tasks.named import short_name
from derivlang.evaluation.tasks.untuned import UntunedTask
from derivlang.formats.progress import stage
from derivlang.sources.corpus import Corpus
from derivlang.sources.read import tables

if TYPE_CHECKING:
    from derivlang.engine.batches import Source
    from derivlang.training.encoder import Encoder
    from derivlang.training.languages import Languages

_BY = ("linguistics_term", "UID", "field")  # BLiMP's names of phenomena, of paradigms, and of parts of grammar


@dataclass(frozen=True)
class MinimalPairs(UntunedTask):
    """Minimal pairs in BLiMP's form, by log-likelihood; without fine-tuning."""

    kind = "blimp"
    columns = (Column("accuracy", headline=True, chance=True), Column("ties", better=""))
    texts = ("sentence_good", "sentence_bad")
    items = "pairs"

    def check(self, corpus: Corpus) -> None:
        for part in corpus.parts:
            for rows in tables(corpus, part):
                good, bad = (rows.table[name] for name in self.texts)
                for name, text in zip(self.texts, (good, bad), strict=True):
                    empty = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(text), ""), True)
                    _refuse(empty, rows.where, f"{name} has no text")
                same = pc.equal(pc.utf8_trim_whitespace(good), pc.utf8_trim_whitespace(bad))
                _refuse(same, rows.where, f"{' and '.join(self.texts)} are the same")

    def score(
        self, model: Encoder, languages: Languages, source: Source, longest: int
    ) -> tuple[dict[str, Any], list[Score]]:
        """Return (settings, scores): `accuracy` of all pairs and of each group, `ties` of all pairs."""
        batches = (batch for split in source.corpus.splits for batch in source.batches(split))
        parts = [_Pairs.of(batch, languages, longest) for batch in batches]
        n_pairs = sum(len(part.fits) for part in parts)
        n_fits = sum(int(part.fits.sum()) for part in parts)
        if not n_fits:
            raise DataError(
                f"none of the {n_pairs:,} pairs fits into rows of {longest} sub-words",
                where=self.name,
                id="no-sentences",
            )
        with stage(self.label):
            outcomes = {
                name: np.concatenate([part.outcomes(model, side) for part in parts]) for side, name in enumerate(SIDES)
            }
        keys = np.concatenate([part.keys for part in parts])
        groups = {"": np.ones(n_fits, bool)}
        for column in _BY:
            if source.corpus.schema.field(column) is not None:
                # A number is a name, too. Rows without a value, or with an empty one, are in no group.
                told = [value for part in parts for value in part.values(column)]
                values = np.array([None if value is None else str(value) for value in told], object)
                groups |= {f"{column}={value}": values == value for value in dict.fromkeys(values) if value}
        scores = []
        for group, members in groups.items():
            n = int(members.sum())
            of = ScoredSet(short_name(*self.sets), set_hash(keys[members], np.repeat(np.arange(n), 2)), "pair")
            halves = {name: outcome[members] for name, outcome in outcomes.items()} | {"chance": np.ones(n, np.int64)}
            scores += [Score("accuracy", _of(one, 2), regime=name, group=group, set=of) for name, one in halves.items()]
            if not group:
                scores += [Score("ties", _of(halves[name] == 1, 1), regime=name, set=of) for name in SIDES]
        settings = {
            "score": "log-likelihood" if model.causal else "pseudo-log-likelihood",
            "items": n_fits,
            "left_out": n_pairs - n_fits,
        }
        return settings, scores


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """The P pairs of a batch in both languages.

    units: int64[P, 2], of the good and the bad sentences. sides: of each language the ids, int32[M], and the offsets of
    units, int64[U + 1]. fits: bool[P], pairs that fit into a row in both languages.
    """

    batch: Batch
    units: Int64
    sides: tuple[tuple[Int32, Int64], ...]
    fits: Bool

    @classmethod
    def of(cls, batch: Batch, languages: Languages, longest: int) -> _Pairs:
        both, units = languages.both(batch), batch.records.astype(np.int64)
        unit_of_word = owners(batch.unit_words)  # an order stays inside its unit
        sides = tuple(
            (side.ids, offsets_of(np.bincount(unit_of_word[both.words(side)], minlength=len(batch.unit_words) - 1)))
            for side in both.sides
        )
        lengths = np.maximum(*(lengths_of(offsets) for _, offsets in sides))
        return cls(batch, units, sides, np.asarray(lengths[units].max(axis=1) <= longest - 2))

    def outcomes(self, model: Encoder, language: int) -> Int64:
        """Return int64[F], for the pairs that fit: 2 if the good sentence is more probable, 1 for a tie, else 0."""
        good, bad = log_likelihoods(model, *self.rows(language), language).reshape(-1, 2).T
        return np.asarray(1 + np.sign(good - bad), np.int64)

    @property
    def keys(self) -> UInt64:
        """uint64[F, 2]: of the good and the bad sentence of each pair that fits."""
        keys = sequence_keys(self.batch.type_hashes[self.batch.words], self.batch.unit_words)
        return np.asarray(keys[self.units[self.fits]])

    def rows(self, language: int) -> tuple[Int32, Int64]:
        """Return the ids of the sentences of the pairs that fit, good and bad in turn, and their offsets."""
        units = self.units[self.fits].ravel()
        ids, offsets = self.sides[language]
        lengths = lengths_of(offsets)[units]
        return ids[expand_ranges(offsets[units], lengths)], offsets_of(lengths)

    def values(self, column: str) -> Iterator[Any]:
        """Yield the value of a column for each pair that fits."""
        layer = self.batch.layers[column]
        assert isinstance(layer, Values)
        yield from layer.values.filter(to_arrow(self.fits)).to_pylist()


def log_likelihoods(model: Encoder, ids: Int32, offsets: Int64, language: int) -> Floats:
    """Return float64[S]: the (pseudo-)log-likelihood of each sentence of a language, in nats.

    ids: int32[M], offsets: int64[S + 1]. Equal sentences are computed once, so that they tie exactly.
    """
    from derivlang.evaluation.measures.bits import SentenceBits, masked_bits

    numbers: dict[bytes, int] = {}
    texts = [ids[begin:end].tobytes() for begin, end in pairwise(offsets.tolist())]
    number = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    _, first = np.unique(number, return_index=True)
    lengths = lengths_of(offsets)[first]
    once, ends = ids[expand_ranges(offsets[first], lengths)], offsets_of(lengths)
    with stage("log-likelihoods", "rows", len(first) if model.causal else len(once)):
        if model.causal:
            bits = SentenceBits.of(model, once, ends, language).subwords
        else:
            bits = masked_bits(model, once, ends, language)
    sums = np.bincount(owners(ends), bits, minlength=len(first))
    return np.asarray(-math.log(2) * sums[number])


def _of(counts: Any, most: int) -> Int64:
    """Return int64[P, 2]: counts, and the largest one."""
    return np.stack([np.asarray(counts, np.int64), np.full(len(counts), most)], axis=1)


def _refuse(wrong: pa.ChunkedArray, where: Any, what: str) -> None:
    """Raise DataError for the first row that is wrong."""
    rows = np.flatnonzero(to_numpy(wrong.combine_chunks()))
    if rows.size:
        raise DataError(what, where=where(int(rows[0])), fix="correct the pair, or remove it", id="minimal-pair")
