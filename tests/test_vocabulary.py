"""Vocabulary: the codes of a dictionary of byte strings, for words of any length, in any number of buffers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core import vocabulary as module
from derivlang.core.errors import DataError
from derivlang.core.keys import GOLDEN, hash_types
from derivlang.core.vocabulary import Vocabulary
from tests.strategies import few_words, laws

# NUL is in no word: the readers refuse it (a word of at most eight bytes is its own key, padded with NUL).
words_without_nul = st.one_of(
    few_words, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
)
buffers = st.lists(st.lists(words_without_nul, max_size=20), max_size=5)


class Dictionary:
    """The reference: codes in the order of first occurrence."""

    def __init__(self) -> None:
        self.codes: dict[bytes, int] = {}

    def encode(self, words: list[bytes]) -> list[int]:
        return [self.codes.setdefault(word, len(self.codes)) for word in words]


def encoded(vocabulary: Vocabulary, words: list[bytes], *, dtype: npt.DTypeLike = np.int32) -> list[int]:
    """The codes of words that stand in one buffer with a space between them."""
    data = b" ".join(words)
    lengths = np.array([len(word) for word in words], dtype)
    starts = (np.cumsum(lengths + 1) - lengths - 1).astype(dtype)
    buffer = np.frombuffer(data + bytes(8), np.uint8)
    return [int(code) for code in vocabulary.encode(buffer, starts, lengths)]


def check_against_dictionary(parts: list[list[bytes]]) -> Vocabulary:
    vocabulary, dictionary = Vocabulary(), Dictionary()
    for words in parts:
        assert encoded(vocabulary, words) == dictionary.encode(words)
        assert len(vocabulary) == len(dictionary.codes)
    types = [word.decode() for word in dictionary.codes]
    assert vocabulary.types().to_pylist() == types
    return vocabulary


@laws
@given(buffers, st.sampled_from([np.int32, np.int64]))
def test_encode_is_a_dictionary(parts: list[list[str]], dtype: npt.DTypeLike) -> None:
    vocabulary, dictionary = Vocabulary(), Dictionary()
    for part in parts:
        words = [word.encode() for word in part]
        assert encoded(vocabulary, words, dtype=dtype) == dictionary.encode(words)
    types = [word.decode() for word in dictionary.codes]
    assert vocabulary.types().to_pylist() == types
    used = np.arange(len(types))[::-2]
    assert vocabulary.subset(used).to_pylist() == types[::-2]
    assert vocabulary.hashes(used).tolist() == hash_types(pa.array(types, pa.string())).tolist()[::-2]


@pytest.mark.parametrize("size", [1, 3])
def test_many_words_are_encoded_in_parts(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", size)
    check_against_dictionary([[b"a", b"cat", b"a", b"a word that is long", b"dog", b"cat", b"e"], [b"dog", b"f"]])


def test_words_around_eight_bytes_that_share_prefixes() -> None:
    letters = b"abcdefghijklmnopqrstuvwxyz" * 2
    words = [letters[:n] for n in range(1, 50)] + [letters[:n] + b"!" for n in range(1, 50)]
    words += [word.decode().upper().encode() for word in words]
    check_against_dictionary([words, words[::-1], [*words[::3], b"new", *words[::5]]])


def test_the_empty_word_has_a_code_too() -> None:
    check_against_dictionary([[b"", b"a", b""], [b"", b"b"]])


def test_hashes_of_types_added_between_two_calls() -> None:
    vocabulary = Vocabulary()
    encoded(vocabulary, [b"one", b"two"])
    vocabulary.hashes(np.array([1]))
    encoded(vocabulary, [b"three", b"internationalisation"])
    words = ["one", "two", "three", "internationalisation"]
    assert vocabulary.hashes(np.arange(4)).tolist() == hash_types(pa.array(words)).tolist()


def test_the_table_grows_with_many_types() -> None:
    """Some 150,000 types: the table is rebuilt several times, at once and step by step."""
    numbers = [str(n).encode() for n in range(70_000)] + [
        f"number {n}".replace(" ", "-").encode() for n in range(70_000)
    ]
    check_against_dictionary([numbers])
    steps = [numbers[start : start + 9_000] for start in range(0, len(numbers), 9_000)]
    vocabulary = check_against_dictionary([*steps, numbers[::-1], [b"last"]])
    assert len(vocabulary) == 140_001


def test_keys_that_lose_both_slots_are_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With eight slots in use for all keys, nearly every type overflows."""

    def crowded(self: Vocabulary, keys: npt.NDArray[np.uint64]):  # type: ignore[no-untyped-def]
        spun = keys * GOLDEN
        first = (spun >> np.uint64(61)).astype(np.int64)
        return first, lambda which: ((spun[which] >> np.uint64(50)) & np.uint64(7)).astype(np.int64)

    monkeypatch.setattr(Vocabulary, "_slots", crowded)
    words = [f"w{n}".encode() for n in range(300)] + [f"longer-than-eight-{n}".encode() for n in range(300)]
    vocabulary = check_against_dictionary([words[:100], words, words[::-1], [*words, b"more"]])
    assert len(vocabulary._overflow) >= 590


def test_a_small_table_grows_from_its_first_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MIN_BITS", 1)
    words = [f"w{n}".encode() for n in range(500)]
    check_against_dictionary([words[:1], words[:3], words, words[::-1]])


def test_a_collision_of_long_words_is_found_and_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "mix", lambda x: np.zeros_like(x))
    vocabulary = Vocabulary()
    encoded(vocabulary, [b"internationalisation"])
    encoded(vocabulary, [b"short", b"internationalisation", b"words"])
    with pytest.raises(DataError, match="hash-collision"):
        encoded(vocabulary, [b"short", b"internationalisatiom"])
    with pytest.raises(DataError, match="hash-collision"):
        encoded(Vocabulary(), [b"internationalisation", b"internationalisatiom"])
    with pytest.raises(DataError, match="hash-collision"):
        encoded(Vocabulary(), [b"internationalisation", b"internationalisations"])


def test_no_words() -> None:
    vocabulary = check_against_dictionary([[], [b"a"], []])
    assert Vocabulary().types().to_pylist() == []
    assert vocabulary.subset(np.zeros(0, np.int64)).to_pylist() == []
    assert Vocabulary().first_invalid(0) is None


def test_the_buffer_may_be_read_only_and_is_not_kept() -> None:
    buffer = np.frombuffer(b"first second-and-longer " + bytes(8), np.uint8).copy()
    vocabulary = Vocabulary()
    starts, lengths = np.array([0, 6]), np.array([5, 17])
    buffer.flags.writeable = starts.flags.writeable = lengths.flags.writeable = False
    vocabulary.encode(buffer, starts, lengths)
    buffer.flags.writeable = True
    buffer[:] = 0
    assert vocabulary.types().to_pylist() == ["first", "second-and-longer"]


def test_types_stay_as_they_were_when_words_are_added() -> None:
    vocabulary, seen = Vocabulary(), []
    for n in range(100):
        encoded(vocabulary, [f"word-{n}".encode()])
        seen.append((n, vocabulary.types(), vocabulary.since(n // 2)))
    for n, types, later in seen:
        assert types.to_pylist() == [f"word-{i}" for i in range(n + 1)]
        assert later.to_pylist() == [f"word-{i}" for i in range(n // 2, n + 1)]
    assert vocabulary.since(100).to_pylist() == []


# text that is no UTF-8


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ([b"good", b"b\xffd", b"\xfe"], b"b\xffd"),
        ([b"good", b"\xe9"], b"\xe9"),
        ([b"long enough, then \xe9"], b"long enough, then \xe9"),
        ([b"\xc3", b"\xa9"], b"\xc3"),  # together they would be a letter
        ([b"good", b"\xe2\x82", b"\xacuro"], b"\xe2\x82"),
    ],
)
def test_the_first_type_that_is_not_utf8(words: list[bytes], first: bytes) -> None:
    vocabulary = Vocabulary()
    encoded(vocabulary, words)
    assert vocabulary.first_invalid(0) == first


def test_types_before_the_code_asked_for_are_not_looked_at() -> None:
    vocabulary = Vocabulary()
    encoded(vocabulary, [b"\xff", b"good"])
    assert vocabulary.first_invalid(1) is None
    assert vocabulary.first_invalid(0) == b"\xff"


def test_types_that_are_not_utf8_are_a_data_error() -> None:
    vocabulary = Vocabulary()
    encoded(vocabulary, [b"good", b"\xff"])
    with pytest.raises(DataError):
        vocabulary.types()
