"""Equal sentences are parsed once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrays import offsets_of, take_rows
from derivlang.parsing import bundled
from derivlang.parsing.base import Parses
from derivlang.parsing.bundled import ModelParser, distinct_sentences
from tests.strategies import laws
from tests.test_parsing import english, parse


@laws
@given(st.lists(st.lists(st.integers(0, 2), max_size=3), max_size=8))
def test_distinct_sentences(sentences: list[list[int]]) -> None:
    words = np.array([word for sentence in sentences for word in sentence], np.int32)
    offsets = offsets_of(np.array([len(sentence) for sentence in sentences], np.int64))
    first, kind = distinct_sentences(words, offsets)
    assert np.array_equal(first, np.unique(first))
    assert [sentences[first[k]] for k in kind] == sentences
    assert len(first) == len({tuple(sentence) for sentence in sentences})
    place, taken = take_rows(offsets, first)
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
