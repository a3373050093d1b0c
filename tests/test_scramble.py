"""scramble: one bijection of the word types, whatever the order in which they were met, saved and read back."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrow import string_array
from derivlang.core.errors import DerivlangError
from derivlang.core.lexicon import SPECIALS, Lexicon
from derivlang.pipeline import Pipeline
from derivlang.transforms import scramble
from tests.real import SHARED, needs_data

WORDS = st.dictionaries(st.text("abcé<>. ", min_size=1, max_size=4), st.integers(1, 40), max_size=40)


def fitted(spec: str, words: dict[str, int]) -> Lexicon:
    return Pipeline.parse(spec).fit(string_array(list(words)), np.array(list(words.values()), np.int64))


def mapped(lexicon: Lexicon, words: list[str]) -> list[str]:
    out: list[str] = lexicon.apply(string_array(words)).to_pylist()
    return out


@given(words=WORDS, within=st.sampled_from(["any", "length", "frequency"]))
def test_types_change_places_inside_their_group(words: dict[str, int], within: str) -> None:
    words = {**words, "<unk>": 3}
    spec = f"scramble:{within}"
    found = mapped(fitted(spec, words), list(words))
    assert sorted(found) == sorted(words)
    for word, image in zip(words, found, strict=True):
        if word in SPECIALS:
            assert image == word
        if within == "length":
            assert len(image) == len(word)
        if within == "frequency":
            assert words[image].bit_length() == words[word].bit_length()
    turned = dict(reversed(words.items()))
    assert mapped(fitted(spec, turned), list(words)) == found


@given(words=WORDS)
def test_words_of_annotations_come_back(words: dict[str, int]) -> None:
    """`_` is no word in annotations, also where the text has it as a word that changes places."""
    lexicon = fitted("scramble", {**words, "_": 1, "one": 2, "two": 2})
    lemmas = string_array([*words, "_", "one", "two", "unknown"])
    derived = lexicon.apply_to_labels(lemmas)
    assert derived.to_pylist().count("_") == lemmas.to_pylist().count("_")
    assert lexicon.invert().apply_to_labels(derived).equals(lemmas)


def test_the_example_of_the_module_is_right() -> None:
    source, _, derived = (scramble.__doc__ or "").splitlines()[2].strip().partition("   ->   ")
    assert mapped(fitted("scramble", Counter(source.split())), source.split()) == derived.split()


def test_each_bijection_is_as_likely() -> None:
    words = {"one": 1, "two": 1, "three": 1}
    seen = Counter(tuple(mapped(fitted(f"scramble:seed={seed}", words), list(words))) for seed in range(600))
    assert set(seen) == set(permutations(words))
    assert sum((n - 100) ** 2 / 100 for n in seen.values()) < 20.5  # chi-squared, 5 degrees of freedom, p = 0.001


def test_a_saved_map_is_the_map() -> None:
    words = {"a\tb": 2, "c\\n": 1, "d": 5, "e": 1}
    pipeline = Pipeline.parse("scramble,trans")
    lexicon = fitted("scramble,trans", words)
    text = pipeline.save(lexicon)
    assert text is not None
    asked = [*words, "unknown", "<unk>"]
    assert mapped(pipeline.fit(saved=text), asked) == mapped(lexicon, asked)
    assert mapped(lexicon.invert(), mapped(lexicon, asked)) == asked
    assert mapped(fitted("scramble", words), ["unknown", "<unk>"]) == ["unknown", "<unk>"]
    for damaged in (text.replace("type\timage", "type"), text.replace("d\t", "d\td"), text.rstrip("\n")):
        with pytest.raises(DerivlangError, match=r"rows must be|images must be"):
            pipeline.fit(saved=damaged)


def test_unknown_words_are_warned_of() -> None:
    pipeline, lexicon = Pipeline.parse("scramble"), fitted("scramble", {"a": 9, "b": 9})
    types = string_array(["a", "b", "new"])
    assert pipeline.warnings(lexicon, types, np.array([50, 49, 1])) == []
    assert pipeline.warnings(lexicon, types, np.array([50, 48, 2])) == [
        "2.0 % of the words are not in the vocabulary that scramble was fitted on; they stay"
    ]


@needs_data
def test_frequencies_of_real_text_stay() -> None:
    """The image of a text has the counts of the text, under other words."""
    words = (SHARED / "text" / "wikitext-2" / "wiki.valid.tokens").read_text("utf-8").split()
    counts = Counter(words)
    lexicon = fitted("scramble", counts)
    image = dict(zip(counts, mapped(lexicon, list(counts)), strict=True))
    assert sorted(Counter(image[word] for word in words).values()) == sorted(counts.values())
    assert sum(word != image[word] for word in counts) > 0.99 * len(counts)
