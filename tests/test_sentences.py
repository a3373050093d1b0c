"""The sentence scan, held to a reference that reads one word at a time, and to the examples of the methods page."""

from __future__ import annotations

import itertools
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.bare_batch import together
from derivlang.core.sentences import RULES, scan, type_classes
from derivlang.core.takes import Rule
from tests import reference
from tests.real import SHARED, needs_data
from tests.strategies import batch_of, codes_of, laws, scan_words, sentence_lists

rules = st.sampled_from(RULES)


def scanned(
    words: list[str],
    scopes: list[int] | None = None,
    lines: list[int] | None = None,
    rule: Rule = "marks",
    groups: list[int] | None = None,
) -> list[reference.Sentence]:
    """(start, end, tail) of each sentence, by the package. groups: word offsets of the groups."""
    codes, types = codes_of(words)
    scopes = [0, len(words)] if scopes is None else scopes
    lines = scopes if lines is None else lines
    inside = None if groups is None else together(np.array(groups))
    codes.flags.writeable = False
    offsets, tails = scan(
        codes, type_classes(types, rule), np.array(scopes), np.array(lines), rule=rule, together=inside
    )
    bounds = offsets.tolist()
    return [
        reference.Sentence(start, end, tail)
        for start, end, tail in zip(bounds[:-1], bounds[1:], tails.tolist(), strict=True)
    ]


def cut(text: str, rule: Rule = "marks") -> list[str]:
    """A line's sentences, each with | before its tail."""
    words = text.split()
    return [
        " ".join([*words[start : end - tail], "|", *words[end - tail : end]]).strip()
        for start, end, tail in scanned(words, rule=rule)
    ]


@st.composite
def ragged_words(draw: st.DrawFn) -> tuple[list[str], list[int], list[int]]:
    """Words, the offsets of their scopes, and those of their lines; empty scopes and lines among them."""
    words = draw(st.lists(scan_words, max_size=40))
    places = st.lists(st.integers(0, len(words)), max_size=5)
    scopes = sorted([0, len(words), *draw(places)])
    return words, scopes, sorted([*scopes, *draw(places)])


@laws
@given(ragged_words(), rules)
def test_scan_is_the_reference(ragged: tuple[list[str], list[int], list[int]], rule: Rule) -> None:
    words, scopes, lines = ragged
    assert scanned(words, scopes, lines, rule) == reference.sentences(words, scopes, lines, rule)


@laws
@given(ragged_words(), rules)
def test_sentences_and_tails_partition_the_words(ragged: tuple[list[str], list[int], list[int]], rule: Rule) -> None:
    words, scopes, lines = ragged
    found = scanned(words, scopes, lines, rule)
    assert [i for s in found for i in range(s.start, s.end)] == list(range(len(words)))
    assert all(s.start < s.end and 0 <= s.tail <= s.end - s.start for s in found)
    ends = {s.end for s in found}
    assert ends >= {scope for scope in scopes if scope > 0}
    if rule != "unit":
        assert ends >= {line for line in lines if line > 0}
    for s in found:
        assert s.tail == 0 or words[s.end - s.tail][0] in reference.END_MARKS


@laws
@given(ragged_words(), st.data(), rules)
def test_groups_count_as_one_word(
    ragged: tuple[list[str], list[int], list[int]], data: st.DataObject, rule: Rule
) -> None:
    """As if each group of two words or more were one word, spelled with its spaces. Groups lie in a line."""
    words, scopes, lines = ragged
    joints = data.draw(st.sets(st.integers(1, max(len(words) - 1, 1))))
    groups = [i for i in range(len(words)) if i not in joints or i in lines] + [len(words)]
    groups = sorted({0, *groups})
    joined = [" ".join(words[a:b]) for a, b in itertools.pairwise(groups)]
    number = {start: g for g, start in enumerate(groups)}
    expected = reference.sentences(joined, [number[s] for s in scopes], [number[s] for s in lines], rule)
    found = scanned(words, scopes, lines, rule, groups)
    assert found == [reference.Sentence(groups[s.start], groups[s.end], s.tail) for s in expected]


@laws
@given(st.lists(st.lists(scan_words, max_size=12), max_size=6), rules)
def test_a_unit_is_cut_alike_wherever_it_stands(units: list[list[str]], rule: Rule) -> None:
    expected = [words[s.start : s.end] for words in units for s in reference.sentences(words, rule=rule)]
    assert sentence_lists(batch_of(units, rule=rule)) == expected
    running = batch_of(units, rule=rule, running=True)
    assert sentence_lists(running) == expected
    assert running.units.tolist() == list(range(len(expected) + 1))
    assert running.documents.tolist() == [
        line for line, words in enumerate(units) for _ in reference.sentences(words, rule=rule)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Welcome to ACL .", ["Welcome to ACL | ."]),
        ('" I go " he said " .', ['" I go " he said " | .']),
        ('He said " I go . " Then', ['He said " I go | . "', "Then |"]),
        ('said . " I go', ["said | .", '" I go |']),  # a quote that opens is not in the tail
        ("Go ! ' ' .", ["Go | !", "' ' | ."]),  # the first opens the next sentence, the second closes
        ("it 's ' so . '", ["it 's ' so | . '"]),
        ("a . . . b", ["a | . . .", "b |"]),
        ("What ? ! No", ["What | ? !", "No |"]),
        ("What ?! No", ["What | ?!", "No |"]),
        ("well ... maybe", ["well ... maybe |"]),
        ("well ...", ["well | ..."]),
        ("well … maybe …", ["well … maybe | …"]),
        ("well ... )", ["well ... ) |"]),  # not the very last word
        ("wait . ... no", ["wait | .", "... no |"]),
        ("wait . ...", ["wait | . ..."]),
        ("( so . ) Yes", ["( so | . )", "Yes |"]),
        ("[ so . ] } ” ’ » '' Yes", ["[ so | . ] } ” ’ » ''", "Yes |"]),
        ("( so ) . Yes", ["( so ) | .", "Yes |"]),
        ("( so . Yes", ["( so | .", "Yes |"]),  # a bracket that stays open
        (") . ) b", [") | . )", "b |"]),
        (". a", ["| .", "a |"]),
        (". ) ) a", ["| . ) )", "a |"]),
        ("= Heading =", ["= Heading = |"]),
        ("no mark", ["no mark |"]),
        ("Mr. Smith went .", ["Mr. Smith went | ."]),
        ("我 走 。 你 ！ 他 ？", ["我 走 | 。", "你 | ！", "他 | ？"]),
        ("राम । ॥ सीता", ["राम | । ॥", "सीता |"]),
        ("ما هذا ؟ نعم ۔", ["ما هذا | ؟", "نعم | ۔"]),
        ("a . a ! b", ["a | .", "a | !", "b |"]),
        ("", []),
    ],
)
def test_examples(text: str, expected: list[str]) -> None:
    assert cut(text) == expected
    words = text.split()
    assert scanned(words) == reference.sentences(words)


@pytest.mark.parametrize(
    ("text", "period", "unit"),
    [
        ("a ! b . c", ["a ! b | .", "c |"], ["a ! b . c |"]),
        ("a . b . )", ["a | .", "b | . )"], ["a . b | . )"]),
        ("a . b ...", ["a | .", "b ... |"], ["a . b | ..."]),
        ("a . . b ?", ["a | . .", "b ? |"], ["a . . b | ?"]),
        ("a .. b", ["a .. b |"], ["a .. b |"]),
        ("a . !", ["a | .", "! |"], ["a | . !"]),
    ],
)
def test_other_rules(text: str, period: list[str], unit: list[str]) -> None:
    assert cut(text, "period") == period
    assert cut(text, "unit") == unit


def test_quotes_are_paired_in_their_scope_and_not_across_lines_of_text() -> None:
    words = ['"', "a", ".", "b", '"', ".", '"', "c"]
    assert scanned(words, [0, 3, 8]) == [(0, 3, 1), (3, 7, 2), (7, 8, 0)]  # a pair in the second line
    assert scanned(words, [0, 8], [0, 3, 8]) == [(0, 3, 1), (3, 6, 1), (6, 8, 0)]  # a pair over both lines
    one = ["a", '"', "b", ".", '"', "c"]
    assert scanned(one, [0, 6]) == [(0, 5, 2), (5, 6, 0)]
    assert scanned(one, [0, 2, 6]) == [(0, 2, 0), (2, 4, 1), (4, 6, 0)]
    assert scanned(one, [0, 6], [0, 2, 6]) == [(0, 2, 0), (2, 5, 2), (5, 6, 0)]  # a record of two lines


def test_both_kinds_of_quotes_are_counted_apart() -> None:
    assert cut("\" ' a . ' \" b") == ["\" ' a | . ' \"", "b |"]
    assert cut("' a . \" b") == ["' a | .", '" b |']


def test_every_end_mark_and_closer_of_the_page() -> None:
    for mark in reference.END_MARKS - {"…"}:
        assert cut(f"a {mark} b") == [f"a | {mark}", "b |"]
    for closer in reference.CLOSERS:
        assert cut(f"a . {closer} b") == [f"a | . {closer}", "b |"]
        assert cut(f"a {closer} b") == [f"a {closer} b |"]
    for word in ["a.", ".a", ". .", "‥", "¡", "¿", ":", ";", "‼", "．", "。a", "！b", "))", '""', "'''", "“", "«"]:
        assert scanned(["a", word, "b"]) == [(0, 3, 0)]


def test_no_types_and_no_words() -> None:
    empty = np.zeros(0, np.int32)
    for scopes in ([0], [0, 0], [0, 0, 0]):
        offsets, tails = scan(empty, type_classes(pa.array([], pa.string())), np.array(scopes), np.array(scopes))
        assert (offsets.tolist(), tails.tolist()) == ([0], [])


def test_classes_depend_on_the_word_alone() -> None:
    types = pa.array(["x", "", ".", "...", ")", '"', "'", "é", "…", "a.", "?"], pa.string())
    for rule in get_args(Rule):
        whole = type_classes(types, rule).tolist()
        assert type_classes(types.slice(2), rule).tolist() == whole[2:]
        assert type_classes(pa.array(["\xff" * 9]), rule).tolist() == [0]
    assert type_classes(types, "marks").tolist() == [0, 0, 1, 2, 3, 4, 5, 0, 2, 0, 1]


@needs_data
@pytest.mark.parametrize("rule", RULES)
def test_wikitext_is_cut_as_the_reference_cuts_it(rule: Rule) -> None:
    lines = (SHARED / "text/wikitext-2/wiki.valid.tokens").read_text("utf-8").split("\n")
    units = [line.split() for line in lines if line.strip()][:800]
    words = [word for unit in units for word in unit]
    offsets = np.cumsum([0, *(len(unit) for unit in units)]).tolist()
    expected = [
        reference.Sentence(start + s.start, start + s.end, s.tail)
        for start, unit in zip(offsets, units, strict=False)
        for s in reference.sentences(unit, rule=rule)
    ]
    assert scanned(words, offsets, rule=rule) == expected
