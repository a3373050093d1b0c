"""What a manifest says of the types that both languages have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrow import string_array
from derivlang.core.lexicon import Lexicon
from derivlang.engine import vocabulary
from tests.strategies import laws

# Many of these words begin with the same eight bytes.
words = st.one_of(st.text("ab", min_size=1, max_size=12), st.text("aბ😀", min_size=1, max_size=4))


@dataclass(frozen=True)
class Listed:
    """The map of a dictionary."""

    pairs: dict[str, str]
    injective: bool = True

    def apply(self, types: pa.Array) -> pa.Array:
        return string_array([self.pairs[word] for word in types.to_pylist()])


@laws
@given(st.dictionaries(words, words, min_size=1, max_size=40))
def test_types_that_stay_and_types_that_clash(images: dict[str, str]) -> None:
    types, counts = list(images), np.arange(1, len(images) + 1)
    found = vocabulary.shares(string_array(types), counts, Lexicon((Listed(images),)))  # type: ignore[arg-type]
    stay = [word for word in types if images[word] == word]
    clash = [word for word in types if images[word] != word and images[word] in images]
    assert (found["stay"], found["clash"]) == (stay, clash)
    assert (found["same_types"], found["clashing_types"]) == (len(stay), len(clash))
    assert found["same_tokens"] == sum(types.index(word) + 1 for word in stay)


def test_a_vocabulary_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_TYPES_AT_ONCE", 3)
    types = [f"w{n}" for n in range(20)]
    images = {word: types[(n * 3) % 20] if n % 2 else "x" * n for n, word in enumerate(types)}
    found = vocabulary.shares(string_array(types), np.ones(20, np.int64), Lexicon((Listed(images),)))  # type: ignore[arg-type]
    assert found["clash"] == [word for word in types if images[word] != word and images[word] in images]
    assert len(found["clash"]) == 10 - found["same_types"]


def test_a_table_of_a_map_that_returns_chunks() -> None:
    class Chunked(Listed):
        def apply(self, types: pa.Array) -> pa.Array:
            return pa.chunked_array([super().apply(types)])

    types = [f"w{n}" for n in range(5)]
    images = Lexicon((Chunked({word: word[::-1] for word in types}),)).apply(string_array(types))  # type: ignore[arg-type]
    assert images.to_pylist() == [word[::-1] for word in types]
