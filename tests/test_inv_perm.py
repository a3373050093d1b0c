"""inv and perm: the golden example, the laws of the methods page, and the draws as written down there."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.order import Order
from derivlang.pipeline import Pipeline
from derivlang.transforms.shuffle import Perm, sort_within
from derivlang.transforms.word_order import Inv
from derivlang.transforms.word_order import windows as windows_of
from tests import reference
from tests.strategies import (
    any_word,
    batch_of,
    derive,
    few_words,
    laws,
    lists,
    scan_words,
    sentence_lists,
    units_of,
)

units = units_of(st.one_of(few_words, any_word, scan_words))
windows = st.integers(0, 6)


def sorted_windows(random: np.ndarray, sentences: np.ndarray, tails: np.ndarray, window: int) -> np.ndarray:
    """The words of each window of each body, sorted by their draws."""
    start, length = sentences[:-1], np.diff(sentences) - tails
    if window:
        start, length, _ = windows_of(start, length, window)
    return sort_within(random, start, length)


def derived(spec: str, sentence: str) -> str:
    return " ".join(sentence_lists(derive(spec, batch_of([sentence.split()])).derived)[0])


def local_orders(batch: Batch, order: Order) -> list[list[int]]:
    """Each sentence's order, from 0."""
    starts = np.repeat(batch.sentences[:-1], np.diff(batch.sentences))
    return lists((order.index - starts).tolist(), order.sentences)


def order_of(spec: str, batch: Batch) -> list[list[int]]:
    return local_orders(batch, Pipeline.parse(spec).order(batch))


# inv


def test_golden() -> None:
    assert derived("inv", "Welcome to ACL .") == "ACL to Welcome ."
    assert derived("inv:final=move", "Welcome to ACL .") == ". ACL to Welcome"
    assert derived("inv", 'He said " I go . "') == 'go I " said He . "'
    assert derived("inv", "= Robert <unk> =") == "= <unk> Robert ="
    assert derived("inv", ". ) )") == ". ) )"


@laws
@given(units, st.sampled_from(["keep", "move"]))
def test_inv_is_the_reference(rows: list[list[str]], final: str) -> None:
    batch = batch_of(rows)
    lengths = np.diff(batch.sentences).tolist()
    expected = [reference.inv(n, tail, final) for n, tail in zip(lengths, batch.tails.tolist(), strict=True)]
    assert order_of(f"inv:final={final}", batch) == expected


@laws
@given(units, st.sampled_from(["inv", "inv:final=move"]))
def test_inv_is_an_involution(rows: list[list[str]], spec: str) -> None:
    batch = batch_of(rows)
    once = derive(spec, batch).derived
    assert sentence_lists(derive(f"{spec},{spec}", batch).derived) == sentence_lists(batch)
    # With the stored offsets and tails; a derived text is never cut again, but its own are stored too.
    if spec == "inv":
        assert sentence_lists(derive(spec, once).derived) == sentence_lists(batch)


@laws
@given(units, st.sampled_from(["inv", "perm", "perm:window=3", "inv,perm", "perm,inv,perm:seed=3"]))
def test_tails_stay_last_and_sentences_keep_their_words(rows: list[list[str]], spec: str) -> None:
    batch = batch_of(rows)
    out = derive(spec, batch).derived
    assert out.sentences.tolist() == batch.sentences.tolist()
    assert out.tails.tolist() == batch.tails.tolist()
    for source, target, tail in zip(sentence_lists(batch), sentence_lists(out), batch.tails.tolist(), strict=True):
        assert source[len(source) - tail :] == target[len(target) - tail :]
        assert Counter(source) == Counter(target)
    assert out.keys.tolist() == batch.keys.tolist()


# perm


@laws
@given(units, windows, st.integers(0, 3))
def test_perm_is_the_reference(rows: list[list[str]], window: int, seed: int) -> None:
    batch = batch_of(rows)
    expected = [
        reference.perm(words, tail, window=window, seed=seed)
        for words, tail in zip(sentence_lists(batch), batch.tails.tolist(), strict=True)
    ]
    assert order_of(f"perm:window={window}:seed={seed}", batch) == expected


@laws
@given(units, windows)
def test_words_stay_in_their_window(rows: list[list[str]], window: int) -> None:
    batch = batch_of(rows)
    for order, tail in zip(order_of(f"perm:window={window}", batch), batch.tails.tolist(), strict=True):
        body = len(order) - tail
        assert order[body:] == list(range(body, len(order)))
        size = window or max(body, 1)
        for start in range(0, body, size):
            assert sorted(order[start:body][:size]) == list(range(start, min(start + size, body)))


@laws
@given(units)
def test_a_window_of_one_is_the_identity(rows: list[list[str]]) -> None:
    batch = batch_of(rows)
    assert Pipeline.parse("perm:window=1").order(batch).index.tolist() == list(range(batch.n_words))


@laws
@given(units)
def test_a_window_as_long_as_the_sentence_draws_of_its_own(rows: list[list[str]]) -> None:
    """The window is a parameter that the draws depend on: 12 or more words are no `perm`."""
    batch = batch_of([row for row in rows if len(row) >= 2])
    for words, tail, order in zip(
        sentence_lists(batch), batch.tails.tolist(), order_of("perm:window=50", batch), strict=True
    ):
        assert order == reference.perm(words, tail, window=50)


@laws
@given(units, units, units, st.sampled_from(["perm", "perm:window=2:seed=5", "inv,perm", "perm,perm"]))
def test_a_sentence_is_permuted_alike_wherever_it_stands(
    rows: list[list[str]], before: list[list[str]], after: list[list[str]], spec: str
) -> None:
    alone, among = batch_of(rows), batch_of([*before, *rows, *after, *rows])
    orders, many = order_of(spec, alone), order_of(spec, among)
    first = len(batch_of(before).tails)
    assert many[first : first + len(orders)] == orders
    assert many[len(many) - len(orders) :] == orders
    running = batch_of([*after, *rows], running=True)
    assert order_of(spec, running)[len(batch_of(after).tails) :] == orders


SENTENCES = [[f"w{n}", f"x{n % 7}", f"y{n % 11}"] for n in range(6000)]


def chi_square(counts: Counter[tuple[int, ...]], kinds: int, total: int) -> float:
    expected = total / kinds
    assert len(counts) <= kinds
    return sum((count - expected) ** 2 / expected for count in counts.values()) + expected * (kinds - len(counts))


@pytest.mark.parametrize("spec", ["perm", "perm:seed=2", "perm:seed=0", "perm,perm", "perm:window=3"])
def test_the_six_orders_of_three_words_are_equally_likely(spec: str) -> None:
    counts = Counter(tuple(order) for order in order_of(spec, batch_of(SENTENCES)))
    assert chi_square(counts, 6, 6000) < 25.7  # 5 degrees of freedom, p = 0.0001


def test_orders_of_four_words_before_a_tail_are_equally_likely() -> None:
    rows = [[f"w{n}", "a", "b", "c", "."] for n in range(12_000)]
    counts = Counter(tuple(order) for order in order_of("perm", batch_of(rows)))
    assert chi_square(counts, 24, 12_000) < 58  # 23 degrees of freedom, p = 0.0001


def test_windows_of_a_sentence_are_permuted_independently() -> None:
    rows = [[f"w{n}", *"abcde"] for n in range(7200)]
    counts = Counter(tuple(order) for order in order_of("perm:window=3", batch_of(rows)))
    assert chi_square(counts, 36, 7200) < 77  # 35 degrees of freedom, p = 0.0001


def test_seeds_are_independent_languages() -> None:
    batch = batch_of(SENTENCES)
    for one, two in itertools.combinations(["perm", "perm:seed=2", "perm:seed=3", "perm:seed=10"], 2):
        pairs = Counter((*a, *b) for a, b in zip(order_of(one, batch), order_of(two, batch), strict=True))
        assert chi_square(pairs, 36, 6000) < 77


def test_a_second_perm_draws_anew() -> None:
    """perm,perm is not the square of one draw: how many of that name came before is part of the stream."""
    batch = batch_of(SENTENCES)
    once, twice = order_of("perm", batch), order_of("perm,perm", batch)
    square = [[order[i] for i in order] for order in once]
    assert twice != square
    same = sum(a == b for a, b in zip(square, twice, strict=True))
    assert abs(same - 1000) < 5 * np.sqrt(6000 * 5 / 36)  # as often as by chance
    expected = [
        [first[i] for i in reference.perm([words[i] for i in first], 0, occurrence=1, source=words)]
        for words, first in zip(SENTENCES, once, strict=True)
    ]
    assert twice == expected


def test_the_key_is_of_the_source_words_and_the_position_of_the_words_so_far() -> None:
    batch = batch_of([["a", "b", "c", "d", "e", "."], ["one", "two", "three"]])
    expected = []
    for words, tail in zip(sentence_lists(batch), batch.tails.tolist(), strict=True):
        first = reference.inv(len(words), tail)
        expected.append([first[i] for i in reference.perm([words[i] for i in first], tail, source=words)])
    assert order_of("inv,perm", batch) == expected
    assert order_of("identity,inv,perm", batch) == expected


# sizes: a sentence longer than 2^16 words is sorted by another path


@pytest.mark.parametrize("length", [(1 << 16) - 1, 1 << 16, (1 << 16) + 1, 70_000, 140_000])
def test_long_sentences_follow_the_same_law(length: int) -> None:
    words = [f"w{n % 1000}" for n in range(length)]
    rows = [["a", "b", "c"], [*words, "."], ["a", "b", "c"], ["b", "a"]]
    batch = batch_of(rows)
    orders = order_of("perm", batch)
    assert orders[0] == orders[2] == reference.perm(["a", "b", "c"], 0)
    assert orders[1] == reference.perm([*words, "."], 1)
    assert orders[3] == reference.perm(["b", "a"], 0)


@pytest.mark.parametrize("window", [0, 4, 70_000])
def test_ties_are_broken_by_position(window: int) -> None:
    """Equal top 32 bits: what is below them does not count."""
    for n in (10, 70_000):
        random = np.arange(n, dtype=np.uint64)[::-1].copy()
        sentences, tails = np.array([0, n]), np.zeros(1, np.int32)
        assert sorted_windows(random, sentences, tails, window).tolist() == list(range(n))


def test_many_short_sentences() -> None:
    rows = [[f"w{n % 97}", "b", "c"] for n in range(50_000)]
    orders = order_of("perm", batch_of(rows))
    expected = [reference.perm(row, 0) for row in rows[:97]]
    assert orders == [expected[n % 97] for n in range(50_000)]


@pytest.mark.parametrize("transform", [Inv(), Inv(final="move"), Perm(), Perm(window=2), Perm(window=10**6)])
def test_nothing_to_order(transform: Inv | Perm) -> None:
    all_rows: list[list[list[str]]] = [[], [[]], [[], []], [["."]], [["a"]], [["a"], [], ["."]]]
    for rows in all_rows:
        batch = batch_of(rows)
        order = transform.order(batch, transform.stream(0)).check()
        assert order.index.tolist() == list(range(batch.n_words))


@pytest.mark.parametrize("window", [2**31, 2**63 - 1, 2**63, 10**30])
def test_a_huge_window_is_the_whole_sentence_or_an_error_that_says_so(window: int) -> None:
    batch = batch_of([["a", "b", "c", "d", "."]])
    try:
        order = order_of(f"perm:window={window}", batch)
    except UsageError:
        return
    assert sorted(order[0]) == [0, 1, 2, 3, 4]
