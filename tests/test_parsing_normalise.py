"""Words as treebanks write them, and the way back: one answer for each of the reader's words."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrays import offsets_of
from derivlang.core.trees import first_fault
from derivlang.parsing.base import UPOS, Parses
from derivlang.parsing.normalise import normal_form, normalise, restore
from tests.real import SHARED, needs_data
from tests.strategies import laws
from tests.test_parsing import english, parse


def read(*sentences: str, language: str = "en") -> list[str]:
    """What the parser reads of sentences of words between spaces."""
    types = pa.array([word for s in sentences for word in s.split()], pa.string()).dictionary_encode()
    offsets = offsets_of(np.array([len(s.split()) for s in sentences], np.int64))
    normal = normalise(types.indices.to_numpy().astype(np.int32), types.dictionary, offsets, language)
    words = [normal.types[code] for code in normal.words]
    return [" ".join(words[a:b]) for a, b in zip(normal.sentences[:-1], normal.sentences[1:], strict=True)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("He doesn 't know .", "He does n't know ."),
        ("We can 't , won 't and Don ’t .", "We ca n't , wo n't and Do n't ."),
        ("the cat 't sat", "the cat 't sat"),
        ("I cannot , it's don't gonna", "I can , it do going"),
        ("red @-@ tipped", "red - tipped"),
        ("4 @,@ 386 @.@ 5 t and 0 @.@ 7", "4,386.5 t and 0.7"),
        ("one @,@ two @.@ 3", "one , two . 3"),
        ("@,@ 3 4 @.@", ", 3 4 ."),
        ("= Life cycle =", "Life cycle"),
        ("= = <unk> history = =", "<unk> history"),
        ("= =", "= ="),
        ("a = b", "a = b"),
        ("“ Hi ” -LRB- x -RRB- – `` y ''", '" Hi " ( x ) - " y "'),
        ("James’s <unk> [UNK]", "James <unk> <unk>"),
    ],
)
def test_what_the_parser_reads(given: str, expected: str) -> None:
    assert read(given) == [expected]


def test_no_rule_reaches_over_the_end_of_a_sentence() -> None:
    assert read("I do", "'t 3", "@,@ 4", "= a", "b =") == ["I do", "'t 3", ", 4", "= a", "b ="]


def test_english_rules_are_for_english() -> None:
    assert read("don 't cannot l'eau", language="fr") == ["don 't cannot l'eau"]
    assert normal_form("don't", "fr") == "don't"


def test_pieces_and_marks_get_answers() -> None:
    parses = parse(["= He has 4 @,@ 386 @.@ 5 =".split()])
    names = [parses.relations[code] for code in parses.deprel]
    tags = [UPOS[code] for code in parses.upos]
    root = parses.head.tolist().index(0) + 1
    assert parses.head.tolist()[0] == parses.head.tolist()[-1] == root
    assert (names[0], names[-1], tags[0], tags[-1]) == ("punct", "punct", "PUNCT", "PUNCT")
    assert parses.head[4:8].tolist() == [4, 4, 4, 4]
    assert names[4:8] == ["goeswith"] * 4
    assert tags[4:8] == ["X"] * 4


@laws
@given(
    st.lists(
        st.lists(st.sampled_from(["=", "@,@", "@.@", "1", "2", "don", "'t", "a", "."]), min_size=0, max_size=9),
        max_size=5,
    )
)
def test_every_word_has_one_answer_and_trees_stay_trees(sentences: list[list[str]]) -> None:
    types = pa.array([word for sentence in sentences for word in sentence], pa.string()).dictionary_encode()
    offsets = offsets_of(np.array([len(sentence) for sentence in sentences], np.int64))
    normal = normalise(types.indices.to_numpy().astype(np.int32), types.dictionary, offsets)
    assert (np.diff(normal.sentences) > 0).tolist() == (np.diff(offsets) > 0).tolist()
    # A chain: each word hangs from the one before it.
    head = np.concatenate([[*range(n)] for n in np.diff(normal.sentences)] or [[]]).astype(np.int32)
    zero = np.zeros(len(head), np.int32)
    restored = restore(normal, Parses(zero.astype(np.uint8), head, zero, ("dep",)), offsets)
    assert len(restored.head) == offsets[-1]
    assert first_fault(restored.head, offsets) is None


@needs_data
def test_wikitext_parses_as_the_same_text_in_the_treebanks_spelling() -> None:
    wiki = "The ship didn 't carry 4 @,@ 386 long @-@ range guns .".split()
    plain = "The ship did n't carry 4,386 long - range guns .".split()
    ours, theirs = parse([wiki]), parse([plain])
    kept = [i for i, word in enumerate(wiki) if i not in (6, 7)]
    assert [UPOS[ours.upos[i]] for i in kept] == [UPOS[code] for code in theirs.upos]
    assert [ours.relations[ours.deprel[i]] for i in kept] == [theirs.relations[code] for code in theirs.deprel]


@needs_data
def test_wikitext_lines_are_parsed_whole() -> None:
    with (SHARED / "text/wikitext-2/wiki.valid.tokens").open(encoding="utf-8") as file:
        lines = [words for _, line in zip(range(300), file, strict=False) if (words := line.split())]
    offsets = offsets_of(np.array([len(words) for words in lines], np.int64))
    parses = parse(lines)
    assert first_fault(parses.head, offsets) is None
    assert english().relations[: len(english().model.relations)] == english().model.relations
