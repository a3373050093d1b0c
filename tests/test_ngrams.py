"""The n-gram models: against dictionaries, sums of 1, and the order of the languages of the field."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.ngrams import Sentences, word_bits
from tests.reference_ngrams import cross_entropy
from tests.strategies import laws

words = st.lists(st.sampled_from("abcdefg"), max_size=9)
texts = st.lists(words, min_size=1, max_size=12)


def numbered(rows: list[list[str]]) -> Sentences:
    flat = np.array([ord(word) - ord("a") for row in rows for word in row], np.int64)
    return Sentences(flat, np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64))


@laws
@given(texts.filter(any), texts.filter(any), st.integers(2, 5))
def test_the_entropies_are_those_of_the_reference(
    train: list[list[str]], held_out: list[list[str]], longest: int
) -> None:
    found = word_bits(numbered(train), numbered(held_out), longest)
    assert list(found) == list(range(2, longest + 1))
    for m, bits in found.items():
        assert bits.mean() == pytest.approx(cross_entropy(train, held_out, m, longest - 1), rel=1e-9)


@given(texts.filter(any))
def test_the_probabilities_after_a_context_sum_to_one(train: list[list[str]]) -> None:
    """Over the words of the training text and one that it lacks, after the empty context and after a word."""
    vocabulary = sorted({word for row in train for word in row})
    for context in ([], [vocabulary[0]], ["h"]):
        before = word_bits(numbered(train), numbered([context]), 2)[2].sum() if context else 0.0
        total = 0.0
        for word in [*vocabulary, "i"]:
            bits = word_bits(numbered(train), numbered([[*context, word]]), 2)[2].sum()
            total += 2 ** -(bits - before)
        assert total == pytest.approx(1, rel=1e-9)


def test_a_text_that_repeats_itself_is_certain() -> None:
    rows = [list("abcdefg")] * 400
    found = word_bits(numbered(rows), numbered(rows[:3]), 3)
    assert found[2].mean() < 0.1
