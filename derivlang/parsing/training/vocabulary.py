"""The words that have vectors of their own, and the treebank in their codes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int32
from derivlang.parsing.features import UNSEEN, piece_buckets, word_codes
from derivlang.parsing.normalise import normal_form
from derivlang.parsing.training.config import ParserConfig
from derivlang.parsing.treebank import Treebank


@dataclass(frozen=True, eq=False)
class EncodedTreebank:
    """A treebank whose T types are given as the network reads them.

    code: int32[T], codes in the vocabulary. buckets: int32[T, N_PIECES]. count: int32[T], occurrences of the
    lower-cased type in training. lower: int32[T], the lower-cased type. deprel: int32[N], codes into the model's
    relations.
    """

    bank: Treebank
    code: Int32
    buckets: Int32
    count: Int32
    lower: Int32
    deprel: Int32

    def as_unseen(self, code: Int32, chosen: Bool, draws: np.random.Generator) -> Int32:
        """Return the codes of words, int32[L, B], with UNSEEN in place of the chosen ones, bool[L, B]."""
        return np.where(chosen, UNSEEN, code)


def build_vocabulary(bank: Treebank, config: ParserConfig) -> tuple[dict[str, int], Counter[str]]:
    """Return (the code of each frequent word of a treebank, the count of each of its words), both lower-cased.

    The most frequent word has code 2; codes 0 and 1 are UNSEEN and MASKED.
    """
    counts = word_counts(bank)
    often = sorted(
        (word for word, n in counts.items() if n >= config.min_count), key=lambda word: (-counts[word], word)
    )
    return {word: i + 2 for i, word in enumerate(often)}, counts


def encode_treebank(
    bank: Treebank, vocabulary: dict[str, int], counts: Counter[str], relations: tuple[str, ...], config: ParserConfig
) -> EncodedTreebank:
    """Encode a treebank.

    A relation with an unknown subtype counts as the relation without it, any other unknown relation as code 0.
    """
    forms = [normal_form(word) for word in bank.types.to_pylist()]
    first = {form: i for i, form in reversed(list(enumerate(forms)))}
    for low in dict.fromkeys(form.lower() for form in forms):
        if low not in first:
            first[low] = len(forms)
            forms.append(low)
    codes = {name: i for i, name in enumerate(relations)}
    translate = np.array([codes.get(name, codes.get(name.partition(":")[0], 0)) for name in bank.relations], np.int32)
    count = np.array([counts[form.lower()] for form in forms], np.int32)
    return EncodedTreebank(
        bank,
        code=word_codes(forms, vocabulary),
        buckets=piece_buckets(forms, config.n_buckets),
        count=count,
        lower=np.array([first[form.lower()] for form in forms], np.int32),
        deprel=translate[bank.deprel],
    )


def word_counts(bank: Treebank) -> Counter[str]:
    """Count the lower-cased words of a treebank."""
    counts: Counter[str] = Counter()
    numbers = np.bincount(bank.words, minlength=len(bank.types))
    for word, n in zip(bank.types.to_pylist(), numbers.tolist(), strict=True):
        counts[normal_form(word).lower()] += n
    return counts
