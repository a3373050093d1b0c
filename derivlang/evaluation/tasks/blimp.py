"""Minimal pairs: two sentences that differ in one point, of which one is acceptable. A pair is right if the model gives
the acceptable one the higher log-likelihood.

    {"sentence_good": "These cats sleep.", "sentence_bad": "These cat sleep.", "UID": "number_agreement"}      a line

A set is a file of such JSON lines, or a folder of them; or CoNLL-U, whose words have the tags, lemmas, features and
trees that some languages need. There the good and the bad sentence of each pair come in turn, with the comments
`# acceptable = yes` and `# acceptable = no`, and the names of the pair are comments of its good sentence, `# UID = …`.
Each sentence is derived by itself and is a row of its own. `blimp:demo` is the built-in set, in CoNLL-U.

    causal    log p(we | <s>) + log p(low | <s> we) + …                           without the closing </s>
    masked    log p(we | <s> <mask> low </s>) + log p(low | <s> we <mask> </s>)   pseudo-log-likelihood

The sum is not divided by the number of sub-words. A tie (the same sub-words, or the same sum) counts half: counts are
of halves, 2, 1 or 0 of 2. A pair is left out if one of its sentences does not fit into a row. A group is COLUMN=VALUE,
the pairs with a value in one of the columns or comments `linguistics_term`, `UID` and `field`.

Sources: Warstadt et al. (2020), BLiMP, section 4; Salazar et al. (2020), section 2, for masked models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.core.arrays import Int32, Int64, offsets_of, owners
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError
from derivlang.core.keys import sequence_keys
from derivlang.core.layers.words import Values
from derivlang.evaluation.columns import SIDES, Column
from derivlang.evaluation.scores import Score, ScoredSet, set_hash
from derivlang.evaluation.set_names import short_name
from derivlang.evaluation.tasks.base import UntunedTask
from derivlang.formats.progress import stage
from derivlang.sources.corpus import Corpus, CorpusFile
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
    demo = "demo:pairs"

    def check(self, corpus: Corpus) -> None:
        for part in corpus.parts:
            if len(corpus.schema.sides) == 1:
                _check_in_turn(corpus, part)
                continue
            for rows in tables(corpus, part):
                for row, texts in enumerate(zip(*(rows.table[name].to_pylist() for name in self.texts), strict=True)):
                    good, bad = ((text or "").strip() for text in texts)
                    if not (good and bad):
                        raise _wrong(f"{self.texts[bool(good)]} has no text", rows.where(row))
                    if good == bad:
                        raise _wrong(f"{' and '.join(self.texts)} are the same", rows.where(row))

    def score(
        self, model: Encoder, languages: Languages, source: Source, longest: int
    ) -> tuple[dict[str, Any], list[Score]]:
        """Return (settings, scores): `accuracy` of all pairs and of each group, `ties` of all pairs."""
        batches = (batch for split in source.corpus.splits for batch in source.batches(split))
        pairs = _Pairs(batches, languages, longest)
        n_pairs, n_fits = len(pairs.fits), int(pairs.fits.sum())
        if not n_fits:
            raise DataError(
                f"none of the {n_pairs:,} pairs fits into rows of {longest} sub-words",
                where=self.name,
                id="no-sentences",
            )
        with stage(self.label):
            outcomes = {name: pairs.outcomes(model, side) for side, name in enumerate(SIDES)}
        keys = pairs.keys[pairs.fits]
        groups = {"": np.ones(n_fits, bool)}
        for column, told in pairs.names.items():
            # A number is a name, too. Rows without a value, or with an empty one, are in no group.
            values = np.array([None if value is None else str(value) for value in told], object)[pairs.fits]
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


class _Pairs:
    """The P pairs of a set in both languages, from batches that may end inside a pair.

    sides: the ids of the sentences of each language, int32 each, good and bad in turn. keys: uint64[P, 2], of the
    sentences. fits: bool[P], pairs that fit into a row in both languages. names: P values of each column of groups.
    """

    def __init__(self, batches: Iterable[Batch], languages: Languages, longest: int):
        self.sides: tuple[list[Int32], ...] = [], []
        keys, names = [], dict[str, list[Any]]()
        for batch in batches:
            both, units = languages.parallel(batch), batch.records.astype(np.int64).ravel()
            unit_of_word = owners(batch.unit_words)  # an order stays inside its unit
            for side, sentences in zip(both.sides, self.sides, strict=False):
                counts = np.bincount(unit_of_word[both.words(side)], minlength=len(batch.unit_words) - 1)
                by_unit = np.split(side.ids, np.cumsum(counts)[:-1])
                sentences += [by_unit[unit] for unit in units]
            keys.append(sequence_keys(batch.type_hashes[batch.words], batch.unit_words)[units])
            for column, values in _names(batch).items():
                names.setdefault(column, []).extend(values)
        fits = np.array([[len(ids) <= longest - 2 for ids in sentences] for sentences in self.sides]).all(axis=0)
        self.keys, self.fits = np.concatenate(keys).reshape(-1, 2), np.asarray(fits.reshape(-1, 2).all(axis=1))
        self.names = {column: values[::2] for column, values in names.items()}

    def outcomes(self, model: Encoder, language: int) -> Int64:
        """Return int64[F], for the pairs that fit: 2 if the good sentence is more probable, 1 for a tie, else 0."""
        sentences = zip(self.sides[language], np.repeat(self.fits, 2), strict=True)
        good, bad = log_likelihoods(model, [ids for ids, fits in sentences if fits], language).reshape(-1, 2).T
        return np.asarray(1 + np.sign(good - bad), np.int64)


def _names(batch: Batch) -> dict[str, list[Any]]:
    """Return the value of each column of groups for each sentence, in CoNLL-U of its comments."""
    comments = batch.layers.get("comments")
    if len(batch.sides) == 1 and isinstance(comments, Values):
        told = [_told(lines) for lines in comments.values.to_pylist()]
        return {column: [one.get(column) for one in told] for column in _BY}
    layers = {column: layer for column in _BY if isinstance(layer := batch.layers.get(column), Values)}
    return {column: [one for one in layer.values.to_pylist() for _ in range(2)] for column, layer in layers.items()}


def _told(comments: Sequence[str] | None) -> dict[str, str]:
    """Return what the comments of a sentence say: ["# UID = npi"] -> {"UID": "npi"}."""
    pairs = (line.lstrip("# ").partition("=") for line in comments or ())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _check_in_turn(corpus: Corpus, part: CorpusFile) -> None:
    """Raise DataError unless the sentences of a file of CoNLL-U are acceptable and not acceptable in turn."""
    good, place = None, str(part.path)  # good: the words of a sentence whose pair is not complete
    for rows in tables(corpus, part):
        sentences = zip(rows.table["comments"].to_pylist(), rows.table["tokens"].to_pylist(), strict=True)
        for row, (comments, words) in enumerate(sentences):
            place, wanted = rows.where(row), "yes" if good is None else "no"
            if (found := _told(comments).get("acceptable")) != wanted:
                what = f"`# acceptable = {found}`" if found else "no comment `# acceptable`"
                raise _wrong(f"the sentence has {what}, but `# acceptable = {wanted}` is due", place)
            if words == good:
                raise _wrong("the two sentences of the pair are the same", place)
            good = words if good is None else None
    if good is not None:
        raise _wrong("the last pair has no sentence with `# acceptable = no`", place)


def log_likelihoods(model: Encoder, sentences: Sequence[Int32], language: int) -> Floats:
    """Return float64[S]: the (pseudo-)log-likelihood of each sentence of a language, in nats.

    sentences: the ids of each, int32. Equal sentences are computed once, so that they tie exactly.
    """
    from derivlang.evaluation.measures.bits import SentenceBits, masked_bits

    numbers: dict[bytes, int] = {}
    number = [numbers.setdefault(ids.tobytes(), len(numbers)) for ids in sentences]
    once = [np.frombuffer(text, np.int32) for text in numbers]
    ids, offsets = np.concatenate(once), offsets_of(np.array([len(one) for one in once]))
    with stage("log-likelihoods", "rows", len(once) if model.causal else len(ids)):
        if model.causal:
            bits = SentenceBits(model, ids, offsets, language).subwords
        else:
            bits = masked_bits(model, ids, offsets, language)
    sums = np.bincount(owners(offsets), bits, minlength=len(once))
    return np.asarray(-math.log(2) * sums[number])


def _of(counts: Any, most: int) -> Int64:
    """Return int64[P, 2]: counts, and the largest one."""
    return np.stack([np.asarray(counts, np.int64), np.full(len(counts), most)], axis=1)


def _wrong(what: str, where: str) -> DataError:
    return DataError(what, where=where, fix="correct the pair, or remove it", id="minimal-pair")
