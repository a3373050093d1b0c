"""What is known of words, lifted to their sub-words; and orders whose unit is the sub-word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.batch import Batch, realign
from derivlang.core.errors import LayerError, UsageError
from derivlang.core.order import Order
from derivlang.lexical.encoding import (
    Encoded,
    SubwordEncoder,
    is_token,
    lift_links,
    subword_batch,
    subword_order,
)
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.pipeline import Pipeline
from tests.commands import run
from tests.strategies import batch_of, chain, laws, lists, some_order
from tests.test_tokenizers import trained

WORDS = "we lowered it . newest and widest ones win ! low".split()
TOKENIZER = Tokenizer(trained([w for n, w in enumerate(WORDS) for _ in range(n + 1)], 42, 1))
ENTRIES = TOKENIZER.entries()
ENCODER = SubwordEncoder(TOKENIZER)
units = st.lists(
    st.lists(st.sampled_from([*WORDS, "<unk>", "\u00a0", "lowest"]), min_size=1, max_size=9), min_size=1, max_size=4
)


def strings(ids: np.ndarray) -> list[str]:  # type: ignore[type-arg]
    return [TOKENIZER.bpe.entries[i] for i in ids.tolist()]


def pieces(batch: Batch) -> list[list[str]]:
    """The sub-words of each word."""
    encoded = ENCODER.batch(batch)
    return lists(strings(encoded.ids), encoded.offsets)


def sentences(batch: Batch, order: Order) -> list[list[str]]:
    return lists(realign(batch, order).strings().to_pylist(), order.sentences)


ONE = Encoded(np.array([7, 8, 9, 5], np.int32), np.array([0, 1, 3, 3, 4]))  # words of 1, 2, 0 and 1 sub-words


def test_links_lifted() -> None:
    links = np.array([[1, 1], [0, 3], [2, 0]])
    assert lift_links(links, ONE, ONE).tolist() == [[1, 1], [1, 2], [2, 1], [2, 2], [0, 3]]
    assert lift_links(links[:2], ONE, ONE, "each").tolist() == [[1, 1], [2, 2], [0, 3]]
    with pytest.raises(LayerError, match="1 links"):
        lift_links(links, ONE, ONE, "each")
    assert lift_links(np.zeros((0, 2), int), ONE, ONE).shape == (0, 2)
    assert ONE.words().tolist() == [0, 1, 1, 3]


@laws
@given(unit_words=units, seed=st.integers(0, 1000), delete=st.sampled_from([0.0, 0.3]))
def test_lifting_then_gathering_is_gathering_then_encoding(
    unit_words: list[list[str]], seed: int, delete: float
) -> None:
    """The sub-words of the derived words are the derived sub-words of the source: what a loader relies on."""
    batch = batch_of(unit_words)
    order = some_order(batch.sentences, seed, insert=0.0, delete=delete, marker="low")
    encoded = ENCODER.batch(batch)
    lifted = order.expand(encoded.offsets).check()
    want = ENCODER.batch(realign(batch, order))
    got = realign(subword_batch(batch, encoded, ENTRIES), lifted)
    assert got.strings().to_pylist() == strings(want.ids)
    assert lifted.sentences.tolist() == want.offsets[order.sentences].tolist()
    ends = order.sentences[1:]
    assert lifted.tails.tolist() == (want.offsets[ends] - want.offsets[ends - order.tails]).tolist()


@laws
@given(unit_words=units)
def test_inv_of_sub_words(unit_words: list[list[str]]) -> None:
    batch = batch_of(unit_words)
    encoded = ENCODER.batch(batch)
    order = subword_order(Pipeline.parse("inv:unit=token"), batch, encoded, ENTRIES)
    of_word = pieces(batch)
    want = []
    for start, stop, tail in zip(batch.sentences[:-1], batch.sentences[1:], batch.tails, strict=True):
        body = [piece for word in of_word[start : stop - tail] for piece in word]
        want.append(body[::-1] + [piece for word in of_word[stop - tail : stop] for piece in word])
    view = subword_batch(batch, encoded, ENTRIES)
    assert sentences(view, order) == want
    assert realign(view, order).layers["subwords"].codes.tolist() == encoded.words()[order.index].tolist()  # type: ignore[attr-defined]
    moved = subword_order(Pipeline.parse("inv:final=move:unit=token"), batch, encoded, ENTRIES)
    starts, ends = view.sentences[:-1], view.sentences[1:]
    assert moved.index.tolist() == [k for a, b in zip(starts, ends, strict=True) for k in range(b - 1, a - 1, -1)]


@laws
@given(unit_words=units)
def test_perm_of_sub_words(unit_words: list[list[str]]) -> None:
    batch = batch_of([*unit_words, *unit_words])
    encoded = ENCODER.batch(batch)
    order = subword_order(Pipeline.parse("perm:unit=token"), batch, encoded, ENTRIES).check()
    assert order.is_permutation
    view = subword_batch(batch, encoded, ENTRIES)
    found = sentences(view, order)
    half = len(found) // 2
    assert found[:half] == found[half:]  # equal sentences are permuted alike
    plain = lists(view.strings().to_pylist(), view.sentences)
    assert [sorted(s) for s in found] == [sorted(s) for s in plain]
    tails = view.tails.tolist()
    assert all(s[len(s) - t :] == p[len(p) - t :] for s, p, t in zip(found, plain, tails, strict=True))


def test_perm_of_sub_words_takes_words_apart() -> None:
    batch = batch_of([["lowered", "newest", "widest", "ones", "and", "lowered"] * 3])
    encoded = ENCODER.batch(batch)
    assert encoded.n_subwords > encoded.n_words
    order = subword_order(Pipeline.parse("perm:unit=token"), batch, encoded, ENTRIES)
    words = encoded.words()[order.index]
    assert (np.diff(words) != 0).sum() > encoded.n_words
    other = subword_order(Pipeline.parse("perm:unit=token:seed=2"), batch, encoded, ENTRIES)
    assert other.index.tolist() != order.index.tolist()


@laws
@given(unit_words=units)
def test_words_first_then_sub_words(unit_words: list[list[str]]) -> None:
    """A pipeline's orders of words are lifted; the draws of a later one count those before it."""
    batch = batch_of(unit_words)
    encoded = ENCODER.batch(batch)
    assert subword_order(Pipeline.parse("trans,perm,inv"), batch, encoded, ENTRIES).index.tolist() == (
        Pipeline.parse("perm,inv").order(batch).expand(encoded.offsets).index.tolist()
    )
    first = Pipeline.parse("perm").order(batch).expand(encoded.offsets)
    second = Pipeline.parse("perm:unit=token").transforms[0]
    view = realign(subword_batch(batch, encoded, ENTRIES), first)
    expected = first.then(second.order(view, second.stream(1))).index.tolist()
    for spec in ("perm,perm:unit=token", "shuffle,perm:unit=token"):  # one family
        assert subword_order(Pipeline.parse(spec), batch, encoded, ENTRIES).index.tolist() == expected


def test_an_order_of_words_cannot_follow_one_of_sub_words() -> None:
    batch = batch_of([["low"]])
    with pytest.raises(UsageError, match="cannot come after"):
        subword_order(Pipeline.parse("inv:unit=token,perm"), batch, ENCODER.batch(batch), ENTRIES)


@pytest.mark.parametrize("spec", ["inv:unit=token", "perm:unit=token", "trans,perm:unit=token:window=2"])
def test_a_text_of_words_cannot_hold_them(spec: str, tmp_path: object) -> None:
    assert str(Pipeline.parse(spec)) == str(Pipeline.parse(str(Pipeline.parse(spec))))
    assert is_token(Pipeline.parse(spec).transforms[-1])
    with pytest.raises(UsageError, match="orders sub-words"):
        Pipeline.parse(spec).order(batch_of([["a", "b"]]))
    done = run("make", "--t", spec, "demo", "-o", f"{tmp_path}/out", code=2)
    assert "unit=token" in done.err


def test_the_unit_changes_no_draw_of_words() -> None:
    word, token = Pipeline.parse("perm").transforms[0], Pipeline.parse("perm:unit=token").transforms[0]
    assert word.stream(0) == token.stream(0)


def test_an_order_that_inserts_words_is_refused() -> None:
    batch = batch_of([["lowered", "it", "."]])
    with pytest.raises(LayerError, match="inserted words are not given"):
        subword_order(chain("mark:2,inv"), batch, ENCODER.batch(batch), ENTRIES)
