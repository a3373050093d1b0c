"""Masks: how many, which, behind what; and the loader, a pure function of data, settings and step."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.training.batch import SubwordRows
from derivlang.training.languages import DERIVED, SOURCE, SpecialIds
from derivlang.training.languages.readers import NO_MASK
from derivlang.training.masking import Keys, LanguageIds, choose_masked, mask, whole_words, with_masks
from derivlang.training.objectives.base import Context
from derivlang.training.objectives.clm import Clm
from tests.strategies import laws
from tests.training import loader, pair, rows_of, special_ids, stream_rows

RATES = [0.05, 0.15, 0.5]


def many(steps: int = 60) -> tuple[SubwordRows, Keys]:
    return stream_rows(loader(), "rows", 0, steps)


def near(found: float, wanted: float, n: int) -> bool:
    """Within 4.5 standard deviations of a share of n draws. Draws are keyed: this passes always or never."""
    return bool(abs(found - wanted) < 4.5 * np.sqrt(wanted * (1 - wanted) / n))


# causal models


def test_every_end_is_predicted() -> None:
    """Also by the tokenizers that begin, end and pad rows with one id, as that of GPT-2 does."""
    words = [[-1, 1, 2, -1, 4, -1]]
    for own in (SpecialIds(7, 8, 9, NO_MASK), SpecialIds(9, 9, 9, NO_MASK)):
        rows = rows_of([[own.begin, 1, 2, own.end, 3, own.end], [own.begin, 1, own.end]], [*words, [-1, 1, -1]], [0, 0],
                       pad=own.pad)  # fmt: skip
        vocabulary = LanguageIds((np.arange(7, dtype=np.int32),) * 2, own, 10)
        found = Clm().mask("rows", rows, stream_rows(loader(), "rows", 0, 1)[1], Context(vocabulary, 0.15))
        assert found.labels.tolist() == [1, 2, 9, 3, 9, 1, 9]
        assert found.targets.tolist() == [0, 1, 2, 3, 4, 6, 7]


# masks


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("whole_words", [False, True])
def test_the_share_that_is_hidden(rate: float, whole_words: bool) -> None:
    rows, keys = many()
    chosen = choose_masked(rows, keys, rate, whole_words=whole_words)
    some = rows.word_ids >= 0
    assert not chosen[~some].any()
    if not whole_words:
        assert near(chosen[some].mean(), rate, int(some.sum()))
        return
    words: dict[tuple[int, int], set[bool]] = {}
    for row, column in zip(*np.nonzero(some), strict=True):
        words.setdefault((int(row), int(rows.word_ids[row, column])), set()).add(bool(chosen[row, column]))
    assert all(len(found) == 1 for found in words.values())
    assert near(float(np.mean([found.pop() for found in words.values()])), rate, len(words))


@pytest.mark.parametrize("replacements", ["own", "both", "none"])
def test_what_takes_the_place_of_hidden_words(replacements: Any) -> None:
    """Of both vocabularies each sub-word is as likely; without any, masks take the place; all else is the same."""
    languages = pair().languages
    rows, keys = many(200)
    usual = mask(rows, keys, LanguageIds.of(languages), 0.5)
    found = mask(rows, keys, LanguageIds.of(languages, replacements), 0.5)
    assert np.array_equal(found.targets, usual.targets)
    assert np.array_equal(found.labels, usual.labels)
    special, ids = languages.special_ids.mask, rows.clean_ids
    other = (usual.input_ids != special) & (usual.input_ids != ids)
    changed = found.input_ids != usual.input_ids
    assert not (changed & ~other)[usual.input_ids != ids].any()
    drawn, side = found.input_ids[other], rows.language[other]
    if replacements == "none":
        assert (drawn == special).all()
    foreign = np.zeros(len(drawn), bool)
    for language in (0, 1):
        foreign[side == language] = np.isin(drawn[side == language], languages.own[1 - language])
    assert near(float(foreign.mean()), 0.5, len(foreign)) if replacements == "both" else not foreign.any()


def test_behind_what_they_are_hidden() -> None:
    found = pair()
    vocabulary = LanguageIds.of(found.languages)
    rows, keys = many(200)
    masked = mask(rows, keys, vocabulary, 0.5)
    inputs, ids = masked.input_ids.ravel(), rows.clean_ids.ravel()
    hidden_ = np.zeros(len(ids), bool)
    hidden_[masked.targets] = True
    assert (inputs[~hidden_] == ids[~hidden_]).all()
    assert (np.diff(masked.targets) > 0).all()
    assert masked.labels.tolist() == ids[masked.targets].tolist()
    assert masked.label_language.tolist() == rows.language.ravel()[masked.targets].tolist()
    assert masked.language is rows.language
    n, seen = len(masked.targets), inputs[masked.targets]
    masks = seen == found.data.special_ids.mask
    same = seen == masked.labels
    assert near(masks.mean(), 0.8, n)
    others = ~masks & ~same
    assert near(others.mean(), 0.1 * (1 - 1 / 288), n)
    special = found.languages.tokenizer.n_special
    for language in (SOURCE, DERIVED):
        here = others & (masked.label_language == language)
        own = set(vocabulary.own[language].tolist())
        assert set(seen[here].tolist()) <= own
        assert min(own) >= special
        assert len(own) == 300 - special
    assert set(vocabulary.own[0].tolist()).isdisjoint(vocabulary.own[1].tolist())


def test_marks_and_padding_are_never_hidden() -> None:
    rows, keys = many(10)
    masked = mask(rows, keys, LanguageIds.of(pair().languages), 0.9999)
    found = special_ids()
    assert not np.isin(masked.labels, [found.begin, found.end, found.pad]).any()
    assert len(masked.targets) > 0.99 * (rows.word_ids >= 0).sum()
    places = np.arange(rows.clean_ids.shape[1])[None] >= rows.lengths[:, None]
    assert (masked.input_ids[places] == found.pad).all()


def test_other_subwords_are_uniform() -> None:
    """Chi-square of ten of them, 8,000 draws; 9 degrees of freedom, 99.99 % below 33.7."""
    ids = [[0, *[12 + i % 10 for i in range(100)], 2]] * 80
    rows = rows_of(ids, [[-1, *range(100), -1]] * 80, [0] * 80)
    vocabulary = LanguageIds((np.arange(12, 22, dtype=np.int32), np.arange(22, 32, dtype=np.int32)), special_ids(), 32)
    counts: Counter[int] = Counter()
    for step in range(10):
        keys = Keys.of(3, step, np.arange(80))
        inputs = with_masks(rows, rows.word_ids >= 0, keys, vocabulary)
        shown = inputs[(inputs != special_ids().mask) & (inputs != rows.clean_ids)]
        counts.update(shown.tolist())
    n = sum(counts.values())
    assert set(counts) == set(range(12, 22))
    assert sum((count - n / 10) ** 2 / (n / 10) for count in counts.values()) < 33.7


def test_draws_are_uniform_and_do_not_follow_each_other() -> None:
    keys = Keys.of(1, np.repeat(np.arange(50), 20), np.tile(np.arange(20), 50))
    found = keys.uniform("hide", np.arange(32)[None])
    assert found.shape == (1000, 32)
    assert 0 <= found.min() < found.max() < 1
    counts = np.histogram(found, 20, (0, 1))[0]
    assert ((counts - 1600) ** 2 / 1600).sum() < 50.8  # 19 degrees of freedom, 99.99 %
    for other in (keys.uniform("how", np.arange(32)[None]), np.roll(found, 1, 1), np.roll(found, 20, 0)):
        assert abs(np.corrcoef(found.ravel(), other.ravel())[0, 1]) < 4.5 / np.sqrt(found.size)
    assert len(np.unique(keys.rows)) == 1000


@laws
@given(seed=st.integers(0, 2**40), step=st.integers(0, 2**40), row=st.integers(0, 2**20))
def test_keys_are_a_function_of_seed_step_and_row(seed: int, step: int, row: int) -> None:
    places = np.arange(8)[None]
    one = Keys.of(seed, step, np.array([row]))
    some = Keys.of(seed, np.array([step + 1, step, step]), np.array([row, row + 1, row]))
    assert one.bits("x", places).tolist() == some.take(slice(2, 3)).bits("x", places).tolist()
    for other in (
        Keys.of(seed + 1, step, np.array([row])),
        Keys.of(seed, step + 1, np.array([row])),
        Keys.of(seed, step, np.array([row + 1])),
    ):
        assert one.bits("x", places).tolist() != other.bits("x", places).tolist()


def test_rows_without_masks() -> None:
    rows, _ = many(3)
    found = rows.predicting(np.zeros(0, np.int64))
    assert found.input_ids is rows.clean_ids
    assert found.language is rows.language
    assert len(found.targets) == len(found.labels) == len(found.label_language) == 0


@laws
@given(
    words=st.lists(st.lists(st.integers(-1, 3), min_size=5, max_size=5), min_size=1, max_size=4), seed=st.integers(0, 9)
)
def test_whole_words_by_a_slow_loop(words: list[list[int]], seed: int) -> None:
    rows = rows_of([[12] * 5] * len(words), words, [0] * len(words))
    able = np.random.default_rng(seed).random(rows.shape) < 0.6
    expected = [
        [all(able[i, j] for j in range(5) if row[j] == word) for word in row] for i, row in enumerate(rows.word_ids)
    ]
    assert whole_words(rows, able).tolist() == expected


@pytest.mark.parametrize("view", [2, 3])
def test_keys_of_a_view_are_other_draws(view: int) -> None:
    keys = Keys.of(1, 0, np.arange(1000))
    places = np.arange(8)[None]
    first, other = (found.uniform("hide", places).ravel() for found in (keys, keys.of_view(view)))
    assert keys.of_view(1).uniform("hide", places).ravel().tolist() == first.tolist()
    assert keys.of_view(view).take(slice(3, 4)).bits("x", places).tolist() == (
        keys.take(slice(3, 4)).of_view(view).bits("x", places).tolist()
    )
    assert not np.isin(other, first).any()
    assert abs(np.corrcoef(first, other)[0, 1]) < 4.5 / np.sqrt(first.size)
