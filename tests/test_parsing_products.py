"""Products in float32 and in 8-bit integers have the same bits; equal sentences are parsed once."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrays import offsets_of
from derivlang.parsing import bundled, products
from derivlang.parsing.base import Parses
from derivlang.parsing.bundled import ModelParser
from derivlang.parsing.products import FloatProduct, MakeProduct, fastest_product
from derivlang.parsing.repeats import distinct_sentences, take_sentences
from tests.strategies import laws
from tests.test_parsing import english, parse


def integer_product() -> MakeProduct:
    pytest.importorskip("onnxruntime")
    from derivlang.parsing.integer_products import IntegerProduct, are_exact

    if not are_exact():
        pytest.skip("8-bit products are not exact on this processor")
    return IntegerProduct


@laws
@given(st.data())
def test_both_ways_give_the_same_numbers(data: st.DataObject) -> None:
    make = integer_product()
    n, k, r = (data.draw(st.integers(1, most)) for most in (40, 70, 70))
    largest = data.draw(st.sampled_from([1, 255, 512, 1024, 16000]))
    draws = np.random.default_rng(data.draw(st.integers(0, 999)))
    weights = draws.integers(-127, 128, (r, k)).astype(np.int8)
    most = min(largest, ((1 << 24) - 1) // max(int(np.abs(weights.astype(int)).sum(1).max()), 1))
    x = draws.integers(-most, most + 1, (n, k)).astype(np.float32)
    x[0] = np.sign(weights[0]) * np.float32(most)
    found = []
    for way in (FloatProduct, make):
        out = np.empty((n, r), np.float32)
        way(weights, most)(x, out)
        found.append(out)
    assert np.array_equal(*found)
    assert np.array_equal(found[0], x.astype(np.int64) @ weights.T.astype(np.int64))


def test_no_rows_have_no_product() -> None:
    integer_product()(np.ones((3, 2), np.int8), 5)(np.zeros((0, 2), np.float32), np.zeros((0, 3), np.float32))


def test_float_products_are_used_without_the_package_or_without_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    fastest_product.cache_clear()
    module = "derivlang.parsing.integer_products"
    with monkeypatch.context() as without:
        without.setitem(sys.modules, module, None)
        assert fastest_product() is FloatProduct
    fastest_product.cache_clear()
    with monkeypatch.context() as rounding:
        integer_product()
        rounding.setattr(f"{module}.are_exact", lambda: False)
        assert fastest_product() is FloatProduct
    fastest_product.cache_clear()
    assert products.fastest_product() is integer_product()


# equal sentences


@laws
@given(st.lists(st.lists(st.integers(0, 2), max_size=3), max_size=8), st.booleans())
def test_distinct_sentences(sentences: list[list[int]], collide: bool) -> None:
    words = np.array([word for sentence in sentences for word in sentence], np.int32)
    offsets = offsets_of(np.array([len(sentence) for sentence in sentences], np.int64))
    with pytest.MonkeyPatch.context() as patched:
        if collide:
            name = "derivlang.parsing.repeats.sequence_keys"
            patched.setattr(name, lambda words, offsets: np.zeros(len(offsets) - 1, np.uint64))
        first, kind = distinct_sentences(words, offsets)
    assert np.array_equal(first, np.unique(first))
    assert [sentences[first[k]] for k in kind] == sentences
    if not collide:
        assert len(first) == len({tuple(sentence) for sentence in sentences})
    place, taken = take_sentences(offsets, first)
    assert [words[place[a:b]].tolist() for a, b in pairwise(taken)] == [sentences[i] for i in first]


def test_equal_sentences_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [["She", "reads", "."], ["= ", "Life", "="], ["She", "reads", "."], [], ["He", "sleeps"], []]
    seen = []

    def counted(self: ModelParser, normal: bundled.NormalisedWords) -> Parses:
        seen.append(len(normal.words))
        return trees(self, normal)

    trees = ModelParser._trees
    monkeypatch.setattr(ModelParser, "_trees", counted)
    together = parse(some)
    assert seen == [8]
    alone = [parse([sentence]) for sentence in some]
    assert together.head.tolist() == [head for parses in alone for head in parses.head.tolist()]
    assert together.deprel.tolist() == [code for parses in alone for code in parses.deprel.tolist()]
    assert english().relations == together.relations
