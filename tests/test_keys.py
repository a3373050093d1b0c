"""Content keys depend on the words alone, and keyed draws are as good as random."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrays import UInt64, offsets_of
from derivlang.core.keys import (
    draw,
    hash_types,
    mix,
    sequence_keys,
    string_buffers,
    strings_from,
    text_key,
)
from derivlang.core.sentences import scan, type_classes
from derivlang.formats.pieces import Splitting
from derivlang.formats.words import Splitter
from tests import reference
from tests.real import SHARED, needs_data
from tests.strategies import any_word, batch_of, few_words, laws, units_of

word_lists = st.lists(any_word, max_size=12)


def hashes(words: list[str]) -> list[int]:
    return [int(h) for h in hash_types(pa.array(words, pa.string()))]


# content hashes


@laws
@given(word_lists)
def test_word_hashes_are_the_reference_s(words: list[str]) -> None:
    assert hashes(words) == [reference.word_hash(word) for word in words]


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 1000])
def test_word_hashes_at_the_edges_of_eight_bytes(length: int) -> None:
    words = [("abcdefg" * 200)[:length], ("é" * 600)[: length // 2], ("𝕎" * 300)[: length // 4]]
    assert hashes(words) == [reference.word_hash(word) for word in words]


@laws
@given(word_lists, st.integers(0, 12), st.integers(0, 12))
def test_word_hashes_do_not_depend_on_how_arrow_holds_the_words(words: list[str], start: int, size: int) -> None:
    array = pa.array(words, pa.string())
    expected = hashes(words)[start : start + size]
    sliced = array.slice(start, size)
    assert hash_types(sliced).tolist() == expected
    assert hash_types(sliced.cast(pa.large_string())).tolist() == expected
    assert hash_types(pa.chunked_array([array.slice(0, start), array.slice(start)])).tolist() == hashes(words)


@laws
@given(word_lists, st.integers(0, 12))
def test_string_buffers_and_back(words: list[str], start: int) -> None:
    array = pa.array(words, pa.string()).slice(start)
    data, offsets = string_buffers(array)
    assert offsets[0] == 0
    assert strings_from(data, offsets).equals(array)


def test_short_words_never_share_a_hash_and_neither_do_padded_ones() -> None:
    words = ["".join(c) for n in range(4) for c in itertools.product("abcdefghijklmnopqrstuvwxyz", repeat=n)]
    words += ["a\0", "a\0\0", "\0", "abcdefgh\0", "abcdefgh", "abcdefghabcdefgh", "abcdefghabcdefgh\0"]
    assert len(set(hashes(words))) == len(words)


def test_a_hundred_thousand_long_words_do_not_share_a_hash() -> None:
    words = [f"{prefix}{n}" for n in range(50_000) for prefix in ("international", "é")]
    assert len(set(hashes(words))) == len(words)


# keys of sequences


def test_sequence_keys_do_not_depend_on_the_other_sequences() -> None:
    """Of more words than are looked at together, and one sequence longer than that."""
    lengths = np.array([70_000, 0, 3, *[1, 20, 500] * 200, 0])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    hashes = mix(np.arange(offsets[-1], dtype=np.uint64))
    alone = [sequence_keys(hashes[a:b], np.array([0, b - a]))[0] for a, b in itertools.pairwise(offsets)]
    assert sequence_keys(hashes, offsets).tolist() == [int(key) for key in alone]


@laws
@given(units_of(any_word))
def test_sequence_keys_are_the_reference_s(units: list[list[str]]) -> None:
    batch = batch_of(units, split=False)
    assert batch.unit_keys.tolist() == [reference.sequence_key(unit) for unit in units]


@laws
@given(units_of(few_words), units_of(any_word), units_of(any_word))
def test_keys_do_not_depend_on_the_neighbours(
    units: list[list[str]], before: list[list[str]], after: list[list[str]]
) -> None:
    alone, among = batch_of(units), batch_of([*before, *units, *after])
    start = len(among.keys) - len(alone.keys) - sum(len(batch_of([unit]).keys) for unit in after)
    assert among.keys[start : start + len(alone.keys)].tolist() == alone.keys.tolist()
    assert among.unit_keys[len(before) : len(before) + len(units)].tolist() == alone.unit_keys.tolist()
    assert among.record_keys.tolist() == among.unit_keys.tolist()


def test_keys_tell_orders_lengths_and_cuts_apart() -> None:
    units = [list(p) for n in range(6) for p in itertools.permutations("abcde", n)]
    units += [["a", "a"], ["a", "a", "a"], ["ab"], ["a b"], ["abc"], ["", "a"], ["a", ""], [""], ["", ""]]
    keys = [reference.sequence_key(unit) for unit in units]
    assert len(set(keys)) == len(units)
    assert batch_of([u for u in units if u], split=False).unit_keys.tolist() == [
        k for u, k in zip(units, keys, strict=True) if u
    ]


def test_the_key_of_no_words_is_one_like_any_other() -> None:
    assert sequence_keys(np.zeros(0, np.uint64), np.array([0, 0])).tolist() == [reference.sequence_key([])]
    assert sequence_keys(np.zeros(0, np.uint64), np.array([0])).tolist() == []


def test_record_keys_tell_the_sides_apart() -> None:
    batch = batch_of([["a"], ["b"]], split=False)
    pair = np.array([[0, 1], [1, 0], [0, 0], [0, 1]], np.int32)
    keys = replace(batch, records=pair, sides=("premise", "hypothesis")).record_keys
    assert len(set(keys[:3].tolist())) == 3
    assert keys[0] == keys[3]


@needs_data
def test_keys_of_real_sentences_do_not_meet() -> None:
    text = (SHARED / "text/wikitext-2/wiki.valid.tokens").read_text("utf-8")
    split = Splitting(Splitter("space")).texts([text])
    words, types = split.words, split.types
    n = np.array([0, len(words)])
    offsets, _ = scan(words, type_classes(types), n, n)
    keys = sequence_keys(hash_types(types)[words], offsets)
    sentences = [words[a:b].tobytes() for a, b in itertools.pairwise(offsets.tolist())]
    assert len(set(keys.tolist())) == len(set(sentences)) > 5_000


# draws

N = 1 << 16


def draws(seed: int = 1, *, keys: UInt64 | None = None, shift: int = 0) -> UInt64:
    """N draws: of one key at N positions, or of N keys at one position."""
    stream = text_key(f"perm|window=0,seed={seed}|rule=1|occurrence=0")
    if keys is None:
        return draw(stream, np.full(N, 12345, np.uint64), np.arange(N) + shift)
    return draw(stream, keys, np.full(N, shift))


FAMILIES: dict[str, Callable[[], UInt64]] = {
    "positions of a key": draws,
    "neighbouring keys at position 0": lambda: draws(keys=np.arange(N, dtype=np.uint64)),
    "keys that differ in their top bits": lambda: draws(keys=np.arange(N, dtype=np.uint64) << np.uint64(48)),
    "keys of sentences": lambda: draws(
        keys=sequence_keys(hash_types(pa.array([str(n) for n in range(N)])), np.arange(N + 1))
    ),
    "seeds": lambda: np.array([draw(text_key(f"s={n}"), np.array([7], np.uint64), np.array([0]))[0] for n in range(N)]),
}


@pytest.fixture(scope="module", params=FAMILIES)
def values(request: pytest.FixtureRequest) -> UInt64:
    """The draws of a family."""
    return FAMILIES[request.param]()


@laws
@given(st.text(max_size=20), st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**31 - 1)), max_size=5))
def test_draws_are_the_reference_s(stream: str, asked: list[tuple[int, int]]) -> None:
    keys = np.array([key for key, _ in asked], np.uint64)
    found = draw(text_key(stream), keys, np.array([position for _, position in asked], np.int64))
    assert found.tolist() == [reference.draw(stream, key, position) for key, position in asked]


def test_each_bit_of_a_draw_is_a_fair_coin(values: UInt64) -> None:
    ones = np.array([int(((values >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)])
    assert np.abs(ones - N / 2).max() < 4.5 * np.sqrt(N) / 2  # of 64 bits, one in 2,000 families beyond 4.5 sd


def test_each_byte_of_a_draw_is_uniform(values: UInt64) -> None:
    for byte in values.astype("<u8").view(np.uint8).reshape(N, 8).T:
        counts = np.bincount(byte, minlength=256)
        chi_square = float(((counts - N / 256) ** 2).sum() / (N / 256))
        assert 255 - 5 * 22.6 < chi_square < 255 + 5 * 22.6  # 255 degrees of freedom, sd sqrt(510)


def test_neighbouring_draws_are_independent(values: UInt64) -> None:
    top = (values >> np.uint64(58)).astype(np.int64)
    pairs = np.bincount(top[:-1] * 64 + top[1:], minlength=64 * 64)
    expected = (N - 1) / 4096
    chi_square = float(((pairs - expected) ** 2).sum() / expected)
    assert abs(chi_square - 4095) < 5 * np.sqrt(2 * 4095)
    assert len(np.unique(values)) == N


@pytest.mark.parametrize("other", [2, 3, 0, 10, 11, 1_000_001])
@pytest.mark.parametrize("shift", [0, 1, 2])
def test_seeds_share_nothing_even_when_shifted(other: int, shift: int) -> None:
    """`mix(key + seed * G)` would make seed 1 at position p + 1 and seed 2 at position p the same draw."""
    ours, theirs = draws(1), draws(other, shift=shift)
    assert not (ours == theirs).any()
    differ = ours ^ theirs
    ones = np.array([int(((differ >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)])
    assert np.abs(ones - N / 2).max() < 4.5 * np.sqrt(N) / 2
    x, y = ours.astype(np.float64), theirs.astype(np.float64)
    assert abs(float(np.corrcoef(x, y)[0, 1])) < 5 / np.sqrt(N)


def test_mix_spreads_every_bit_over_all() -> None:
    x = draws()[:4096]
    for bit in range(64):
        flips = np.bitwise_count(mix(x) ^ mix(x ^ (np.uint64(1) << np.uint64(bit))))
        assert abs(float(flips.mean()) - 32) < 0.5


def test_mix_leaves_its_argument_alone() -> None:
    x = np.arange(5, dtype=np.uint64)
    x.flags.writeable = False
    assert mix(x).tolist() == [reference.mix(n) for n in range(5)]


def test_offsets_of_no_rows() -> None:
    assert offsets_of(np.zeros(0, np.int64)).tolist() == [0]
