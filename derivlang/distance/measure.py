"""The distance of languages from their sources: of a derived set, or of specs on a source without a set.

How many sub-words two languages share, under the tokenizer of a model.

    the cat / the act   ->   the c at / the a ct      one of the three derived sub-words is shared

Each word is encoded by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.core.arrays import Bool, Int64, lengths_of, offsets_of
from derivlang.core.arrow import string_array
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError
from derivlang.core.keys import mix, sequence_keys
from derivlang.core.lexicon import Lexicon
from derivlang.core.names import split_name
from derivlang.core.ngrams import Float64, Sentences, word_bits
from derivlang.core.order import Order
from derivlang.distance.reordering import MEANINGS, Reordering
from derivlang.distance.settings import StatsOptions
from derivlang.engine.batches import Source
from derivlang.lexical.foreign import ForeignTokenizer, is_foreign
from derivlang.lexical.own import OwnTokenizer
from derivlang.lexical.twin import subword_counts
from derivlang.pipeline import Pipeline
from derivlang.store.files import writing
from derivlang.store.manifest import Derived, load

LONGEST = 5  # words of the longest n-gram
_HELD_OUT = 10  # one unit in ten, by its words: the same ones in every language

SUBWORDS = {
    "subword_overlap_percent": "Derived sub-words that are source sub-words, too, %",
    "subword_type_overlap_percent": "Derived kinds of sub-words that the source has, too, %",
    "unknown_subwords_percent": "Derived sub-words that the tokenizer does not know, %",
}

Triple: TypeAlias = tuple[Batch, Batch, Order]  # a source batch, its derived form, and the order between them
Figures: TypeAlias = dict[str, float | int | str | None]
ENTROPIES = {
    f"{side}_entropy_{m}": f"{m}-local entropy, bits per source word, {side}" for m in range(2, LONGEST + 1)
    for side in ("source", "derived")
}  # fmt: skip
ALL_MEANINGS = {**MEANINGS, **SUBWORDS, **ENTROPIES}


def measure_set(folder: Path, split: str | None, words: int, encoder: Encoder | None = None) -> Figures:
    """Return the figures of a split of a derived set, the first one for None, by the names of ALL_MEANINGS.

    words: of the source whose local entropies are measured; 0: none. encoder: of the sub-words whose overlap is
    measured. StoreError for a damaged set.
    """
    derived = Derived(folder)
    name = derived.choose_split(split, first=True)
    triples = ((group.source, group.derived, group.order) for group in load(derived, name))
    about = {"language": str(derived.pipeline), "source": str(derived.manifest["source"]["name"]), "split": name}
    return {**about, **_measured(triples, words, encoder)[0]}


def measure_specs(
    source: Source, pipelines: Sequence[Pipeline], settings: StatsOptions, encoder: Encoder | None = None
) -> Iterator[Figures]:
    """Yield the figures of each pipeline on a split of a source. encoder: as of `measure_set`."""
    name = source.corpus.splits[0] if settings.split is None else split_name(settings.split)
    of_source: dict[int, float] | None = None  # the same for every language
    for pipeline in pipelines:
        lexicon = pipeline.fit(*source.vocabulary()) if pipeline.needs_counts() else pipeline.fit()
        triples = derive_all(source.batches(name, settings.limit), pipeline, lexicon)
        figures, of_source = _measured(triples, settings.entropy_words, encoder, of_source)
        yield {"language": str(pipeline), "source": source.corpus.name, "split": name, **figures}


def derive_all(batches: Iterable[Batch], pipeline: Pipeline, lexicon: Lexicon) -> Iterator[Triple]:
    """Yield each batch with its derived form and the order between them. Sentences are split already."""
    pipeline = pipeline.begin()
    for batch in batches:
        result = pipeline.derive(batch, lexicon, split=False)
        yield result.source, result.derived, result.order


def _measured(
    triples: Iterable[Triple], words: int, encoder: Encoder | None, of_source: dict[int, float] | None = None
) -> tuple[dict[str, float | int | None], dict[int, float]]:
    """Return all figures, and the local entropies of the source. of_source: these, if they are known.

    words, encoder: as of `measure_set`.
    """
    reordering, texts = Reordering(), {"source": _Text(), "derived": _Text()}
    left = words
    for source, derived, order in triples:
        reordering.add(source, derived, order)
        left -= _add(texts, source, derived, left)
    figures = dict.fromkeys(ALL_MEANINGS) | reordering.result()
    if encoder is not None:
        figures |= subword_overlap(encoder, reordering.source_words, reordering.derived_words)
    if not words:
        return figures, {}
    of_source = texts["source"].entropies() if of_source is None else of_source
    of_derived = texts["derived"].entropies()
    local = {f"source_entropy_{m}": bits for m, bits in of_source.items()}
    local |= {f"derived_entropy_{m}": bits for m, bits in of_derived.items()}
    return figures | {name: None if np.isnan(local[name]) else local[name] for name in ENTROPIES}, of_source


def bits_of_units(triples: Iterable[Triple], m: int, words: int) -> tuple[Float64, Float64]:
    """Return float64[U] each: the bits of the held-out units of derived languages by an m-gram model, and the words of
    the source that each has.

    words: of the source that are read.
    """
    texts = {"derived": _Text()}
    for source, derived, _ in triples:
        if words > 0:
            words -= _add(texts, source, derived, words)
    bits, of_source = texts["derived"].bits(m)
    return bits[m], of_source


def _add(texts: Mapping[str, _Text], source: Batch, derived: Batch, left: int) -> int:
    """Add the first units of a batch to the texts, until they have `left` source words or more.

    Return the number of source words that were added.
    """
    if left <= 0:
        return 0
    keys = sequence_keys(source.type_hashes[source.words], source.unit_words)
    held_out: Bool = mix(keys) % np.uint64(_HELD_OUT) == 0
    taken = min(int(np.searchsorted(source.unit_words, left, "left")), len(held_out))
    for name, text in texts.items():
        batch = source if name == "source" else derived
        text.add(batch, batch.unit_words[: taken + 1], held_out, lengths_of(source.unit_words[: taken + 1]))
    return int(source.unit_words[taken])


def write_table(rows: Sequence[Figures], out: Path, *, force: bool) -> None:
    """Write figures as a Parquet file, a row for each language. force: replace a file that holds something else."""
    columns = {name: [row.get(name) for row in rows] for name in ("language", "source", "split", *ALL_MEANINGS)}
    types = {name: pa.string() if name in ("language", "source", "split") else pa.float64() for name in columns}
    fields = {name: pa.array(values, types[name]) for name, values in columns.items()}
    with writing(out, replace=force) as stream:
        pq.write_table(pa.table(fields), stream)


class _Text:
    """The words of a text by number, its units, and which of them are held out.

    Bits are divided by the words of the *source*, so that languages that insert or delete words compare with others.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        # Of each batch: words, lengths of units, whether they are held out, and the words of the source in each.
        self._parts: list[tuple[Int64, Int64, Bool, Int64]] = []

    def add(self, batch: Batch, units: Int64, held_out: Bool, of_source: Int64) -> None:
        """Add the first units of a batch, int64[U + 1] offsets. held_out: of each of its units. of_source: int64[U]."""
        numbers = self._numbers
        table = np.array([numbers.setdefault(word, len(numbers)) for word in batch.types.to_pylist()], np.int64)
        words = table[batch.words[: units[-1]]]
        self._parts.append((words, lengths_of(units), held_out[: len(units) - 1], of_source))

    def bits(self, longest: int) -> tuple[dict[int, Float64], Float64]:
        """Return ({m: float64[U], bits of the held-out units by an m-gram model of the others}, float64[U] words).

        The words are of the source, in each of these units. There are no units if the text has no words to train on.
        """
        if self._parts:
            words, lengths, held_out, of_source = map(np.concatenate, zip(*self._parts, strict=True))
            asked = np.repeat(held_out, lengths)
            train = Sentences(words[~asked], offsets_of(lengths[~held_out]))
            other = Sentences(words[asked], offsets_of(lengths[held_out]))
            if len(train.words) and len(other.words):
                found = word_bits(train, other, longest)
                ends = other.offsets
                bits = {m: np.diff(np.append(0.0, np.cumsum(each))[ends]) for m, each in found.items()}
                return bits, of_source[held_out].astype(np.float64)
        return dict.fromkeys(range(2, longest + 1), np.zeros(0)), np.zeros(0)

    def entropies(self) -> dict[int, float]:
        """Return the local entropies of the held-out units; NaN without words."""
        bits, words = self.bits(LONGEST)
        return {m: float(each.sum() / words.sum()) if words.any() else float("nan") for m, each in bits.items()}


Encoder: TypeAlias = ForeignTokenizer | OwnTokenizer


def load_encoder(tokenizer: Path) -> Encoder:
    """Return the tokenizer of a folder: one of derivlang, or one that `transformers` reads.

    Raise DataError, at the option, for a folder without one.
    """
    try:
        return ForeignTokenizer.load(tokenizer) if is_foreign(tokenizer) else OwnTokenizer.load(tokenizer)
    except DataError as error:
        where = f"--tokenizer {error.where or tokenizer}"
        raise type(error)(error.what, where=where, fix=error.fix, id=error.id) from None


def subword_overlap(encoder: Encoder, source: Mapping[str, int], derived: Mapping[str, int]) -> dict[str, float | None]:
    """Return what the sub-words of two vocabularies share, by the names of `measure.SUBWORDS`; None without words.

    source, derived: words and their counts. A sub-word that the tokenizer does not know is never shared.
    """
    ours, theirs = (_counts(encoder, words) for words in (source, derived))
    n, kinds = int(theirs.sum()), int((theirs > 0).sum())
    unknown = 0
    if encoder.unknown is not None:
        unknown, theirs[encoder.unknown] = int(theirs[encoder.unknown]), 0
    shared = theirs[ours > 0]
    return {
        "subword_overlap_percent": 100 * int(shared.sum()) / n if n else None,
        "subword_type_overlap_percent": 100 * int((shared > 0).sum()) / kinds if kinds else None,
        "unknown_subwords_percent": 100 * unknown / n if n else None,
    }


def _counts(encoder: Encoder, words: Mapping[str, int]) -> Int64:
    """Return int64[V]: how often each entry occurs in the running words of a vocabulary."""
    number = np.arange(len(words) + 1)
    encoded = encoder.encode(string_array(list(words)), number[:-1].astype(np.int32), number)
    return subword_counts(encoded, np.fromiter(words.values(), np.int64, len(words)), encoder.size)
