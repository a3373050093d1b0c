"""The words that have vectors of their own, and the treebank in their codes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Float32, Int32
from derivlang.core.errors import DataError
from derivlang.parsing.features import MASK, MASKED, piece_buckets, word_codes
from derivlang.parsing.normalise import normal_form
from derivlang.parsing.training.config import ParserConfig
from derivlang.parsing.training.vectors import context_vectors
from derivlang.parsing.treebank import Treebank


@dataclass(frozen=True, eq=False)
class EncodedTreebank:
    """A treebank whose T types are given as the network reads them.

    code: int32[T], codes in the vocabulary. new: bool[T], types that the vocabulary has from running text only.
    buckets: int32[T, N_PIECES]. count: int32[T], occurrences of the lower-cased type in training. lower: int32[T], the
    lower-cased type. deprel: int32[N], codes into the model's relations.
    """

    bank: Treebank
    code: Int32
    new: Bool
    buckets: Int32
    count: Int32
    lower: Int32
    deprel: Int32


def build_vocabulary(
    bank: Treebank, text: Treebank | None, config: ParserConfig
) -> tuple[dict[str, int], Counter[str], Float32 | None]:
    """Return (codes of lower-cased words, their counts in the treebank, vectors from text float32[n_words, width]).

    The vocabulary has the frequent words of the treebank by falling count, then the most frequent other words of the
    text. Codes 0 and 1 are UNSEEN and MASKED. Without a text, the vectors are None. Raises DataError few-words if no
    word is frequent enough for a vector.
    """
    counts = word_counts(bank)
    often = sorted(
        (word for word, n in counts.items() if n >= config.min_count), key=lambda word: (-counts[word], word)
    )
    if text is None:
        return {word: i + 2 for i, word in enumerate(often)}, counts, None
    everywhere = counts + word_counts(text)
    seen = {*often, MASK}
    others = sorted(
        (word for word, n in everywhere.items() if n >= config.min_text_count and word not in seen),
        key=lambda word: (-everywhere[word], word),
    )
    vocabulary = {word: i + 2 for i, word in enumerate((often + others)[: config.n_words])}
    if not vocabulary:
        raise DataError(
            f"no word occurs {config.min_count} times in the treebank, or {config.min_text_count} times in all",
            fix="give a larger treebank or text, or leave the text out",
            id="few-words",
        )
    number = {word: i for i, word in enumerate(everywhere)}
    codes = [
        np.array([number.get(normal_form(word).lower(), 0) for word in part.types.to_pylist()], np.int32)[part.words]
        for part in (bank, text)
    ]
    lines = np.concatenate([bank.sentences, text.sentences[1:] + len(bank.words)])
    rows = [number[word] for word in vocabulary]
    vectors = np.zeros((len(vocabulary) + 2, config.width), np.float32)
    vectors[2:] = context_vectors(np.concatenate(codes), lines, rows, config.width, config.seed)
    return vocabulary, counts, vectors * np.float32(0.3 * config.width**0.5)


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
    code = word_codes(forms, vocabulary)
    return EncodedTreebank(
        bank,
        code=code,
        new=(code > MASKED) & (count < config.min_count),
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
