"""Masks: how many, which, behind what; and the loader, a pure function of data, settings and step."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.training import loader as loaders
from derivlang.training.data import SubwordRows
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.loader import Loader, Micro
from derivlang.training.masking import Keys, LanguageIds, Masked, choose_masked, mask, replace
from derivlang.training.objectives.registry import objective_names
from tests.strategies import laws
from tests.training import SEQ_LEN, context, every_step, loader, marks, pair, rows_of, same_masked, same_rows

RATES = [0.05, 0.15, 0.5]


def many(steps: int = 60) -> tuple[SubwordRows, Keys]:
    made = loader()
    rows = made.rows(0, steps)
    step, place = np.divmod(np.arange(len(rows.ids)), made.batch_size)
    return rows, Keys.of(1, step, place)


def near(found: float, wanted: float, n: int) -> bool:
    """Within 4.5 standard deviations of a share of n draws. Draws are keyed: this passes always or never."""
    return bool(abs(found - wanted) < 4.5 * np.sqrt(wanted * (1 - wanted) / n))


# masks


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("whole_words", [False, True])
def test_the_share_that_is_hidden(rate: float, whole_words: bool) -> None:
    rows, keys = many()
    chosen = choose_masked(rows, keys, rate, whole_words=whole_words)
    some = rows.groups >= 0
    assert not chosen[~some].any()
    if not whole_words:
        assert near(chosen[some].mean(), rate, int(some.sum()))
        return
    words: dict[tuple[int, int], set[bool]] = {}
    for row, column in zip(*np.nonzero(some), strict=True):
        words.setdefault((int(row), int(rows.groups[row, column])), set()).add(bool(chosen[row, column]))
    assert all(len(found) == 1 for found in words.values())
    assert near(float(np.mean([found.pop() for found in words.values()])), rate, len(words))


def test_behind_what_they_are_hidden() -> None:
    found = pair()
    vocabulary = LanguageIds.of(found.languages)
    rows, keys = many(200)
    masked = mask(rows, keys, vocabulary, 0.5)
    inputs, ids = masked.inputs.ravel(), rows.ids.ravel()
    hidden_ = np.zeros(len(ids), bool)
    hidden_[masked.targets] = True
    assert (inputs[~hidden_] == ids[~hidden_]).all()
    assert (np.diff(masked.targets) > 0).all()
    assert masked.labels.tolist() == ids[masked.targets].tolist()
    assert masked.label_language.tolist() == rows.language.ravel()[masked.targets].tolist()
    assert masked.language is rows.language
    n, seen = len(masked.targets), inputs[masked.targets]
    masks = seen == found.data.marks.mask
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
    found = marks()
    assert not np.isin(masked.labels, [found.begin, found.end, found.pad]).any()
    assert len(masked.targets) > 0.99 * (rows.groups >= 0).sum()
    places = np.arange(rows.ids.shape[1])[None] >= rows.lengths[:, None]
    assert (masked.inputs[places] == found.pad).all()


def test_other_subwords_are_uniform() -> None:
    """Chi-square of ten of them, 8,000 draws; 9 degrees of freedom, 99.99 % below 33.7."""
    ids = [[0, *[12 + i % 10 for i in range(100)], 2]] * 80
    rows = rows_of(ids, [[-1, *range(100), -1]] * 80, [0] * 80)
    vocabulary = LanguageIds((np.arange(12, 22, dtype=np.int32), np.arange(22, 32, dtype=np.int32)), marks(), 32)
    counts: Counter[int] = Counter()
    for step in range(10):
        keys = Keys.of(3, step, np.arange(80))
        inputs = replace(rows, rows.groups >= 0, keys, vocabulary)
        shown = inputs[(inputs != marks().mask) & (inputs != rows.ids)]
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


# the loader


@pytest.mark.parametrize("name", objective_names())
def test_every_objective_gets_the_same_rows(name: str) -> None:
    ours, plain = loader(name), loader("mlm")
    for step in range(30):
        assert same_rows(ours.rows(step, step + 1), plain.rows(step, step + 1))
    assert same_rows(ours.rows(0, 30), plain.rows(0, 30))


def test_an_epoch_has_every_instance_of_both_corpora_once() -> None:
    made = loader(batch_size=10)
    n = made.data.n_instances
    assert made.steps_per_epoch == 2 * n / 10 == 15
    seen = []
    for epoch in range(3):
        rows = made.rows(15 * epoch, 15 * epoch + 15)
        found = sorted(
            (int(spoken[0]), tuple(ids)) for ids, spoken in zip(rows.ids.tolist(), rows.language, strict=True)
        )
        every = np.arange(n)
        expected = [
            (language, tuple(ids))
            for language in (SOURCE, DERIVED)
            for ids in made.data.rows(every, np.full(n, language)).ids.tolist()
        ]
        assert found == sorted(expected)
        seen.append(rows.ids.tolist())
    assert seen[0] != seen[1] != seen[2]
    assert loader(batch_size=10, seed=2).rows(0, 15).ids.tolist() != seen[0]


@laws
@given(begin=st.integers(0, 60), steps=st.integers(1, 40), size=st.sampled_from([1, 7, 8, 200]))
def test_rows_of_a_step_do_not_depend_on_where_one_begins(begin: int, steps: int, size: int) -> None:
    made = loader(batch_size=size)
    rows = made.rows(begin, begin + steps)
    assert rows.ids.shape == (steps * size, SEQ_LEN)
    at = steps // 2
    assert same_rows(rows.take(slice(at * size, at * size + size)), made.rows(begin + at, begin + at + 1))


def together(micros: list[Micro], which: str) -> tuple[Any, ...]:
    """The micro-batches of a step as if they were one."""
    parts = [getattr(micro, which) for micro in micros]
    starts = np.cumsum([0, *(part.masked.inputs.size for part in parts)])
    masked = Masked(
        np.concatenate([part.masked.inputs for part in parts]),
        np.concatenate([part.masked.language for part in parts]),
        np.concatenate([part.masked.targets + start for part, start in zip(parts, starts, strict=False)]),
        np.concatenate([part.masked.labels for part in parts]),
        np.concatenate([part.masked.label_language for part in parts]),
    )
    attention = np.concatenate([part.attention for part in parts])
    positions = None if parts[0].positions is None else np.concatenate([part.positions for part in parts])
    return masked, attention, positions, {part.total for part in parts}


@pytest.mark.parametrize("name", [*objective_names(), "xlm:rows=0.75", "xlm:reset=no"])
@pytest.mark.parametrize(("accumulate", "world"), [(4, 1), (1, 4), (2, 2)])
def test_micro_batches_part_the_step(name: str, accumulate: int, world: int) -> None:
    whole = loader(name)
    parts = [loader(name, accumulate=accumulate, world=world, rank=rank) for rank in range(world)]
    found = [list(part.steps(3, 6)) for part in parts]
    for i, (one,) in enumerate(whole.steps(3, 6)):
        micros = [micro for process in found for micro in process[i]]
        assert len(micros) == accumulate * world
        assert sum(micro.share for micro in micros) == 1
        assert {micro.subwords for micro in micros} == {one.subwords} == {int(one.rows.attention.sum())}
        for which in ("rows", "pairs") if whole.pairs is not None else ("rows",):
            ours, theirs = together(micros, which), together([one], which)
            assert same_masked(ours[0], theirs[0])
            assert np.array_equal(ours[1], theirs[1])
            assert (ours[2] is None) == (theirs[2] is None)
            assert ours[2] is None or np.array_equal(ours[2], theirs[2])
            assert ours[3] == theirs[3] == {len(theirs[0].targets)}


@pytest.mark.parametrize("rows", [0.1, 0.3, 0.5, 0.9])
def test_the_number_of_pair_rows_is_that_of_one_process(rows: float) -> None:
    """As long as there is one for each."""
    counts = {
        sum(len(m.pairs.attention) for rank in range(w) for m in next(loader(
            f"xlm:rows={rows}", batch_size=40, accumulate=a, world=w, rank=rank).steps(0, 1)) if m.pairs)
        for a, w in ((1, 1), (2, 1), (4, 1), (2, 2), (1, 2))
    }  # fmt: skip
    assert counts == {round(40 * rows)}


@pytest.mark.parametrize("name", objective_names())
def test_steps_do_not_depend_on_how_many_are_made_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(every_step(loader(name), 0, 12))
    for size in (1, 8 * SEQ_LEN * 5):
        monkeypatch.setattr(loaders, "_SUBWORDS", size)
        for ours, theirs in zip(every_step(loader(name), 0, 12), whole, strict=True):
            assert np.array_equal(ours, theirs)
    middle = [list(every_step(loader(name), step, step + 1)) for step in range(12)]
    assert all(np.array_equal(a, b) for a, b in zip([x for found in middle for x in found], whole, strict=True))


@pytest.mark.parametrize("name", objective_names())
def test_masks_differ_by_step_and_seed(name: str) -> None:
    def targets(made: Loader, step: int) -> list[int]:
        return next(made.steps(step, step + 1))[0].rows.masked.targets.tolist()

    assert targets(loader(name), 0) != targets(loader(name), 1)
    assert targets(loader(name), 0) != targets(loader(name, seed=2), 0)
    assert targets(loader(name), 0) == targets(loader(name), 0)


def test_the_second_time_an_instance_is_hidden_otherwise() -> None:
    made = loader(batch_size=150)
    first, second = (next(made.steps(step, step + 1))[0].rows for step in (0, 1))
    by_ids: dict[tuple[int, ...], list[Any]] = {}
    for step, found in ((0, first), (1, second)):
        chosen = np.zeros(found.masked.inputs.size, bool)
        chosen[found.masked.targets] = True
        for ids, row in zip(made.rows(step, step + 1).ids.tolist(), chosen.reshape(150, -1).tolist(), strict=True):
            by_ids.setdefault(tuple(ids), []).append(row)
    assert np.mean([len(set(map(tuple, found))) > 1 for found in by_ids.values()]) > 0.9


@pytest.mark.parametrize("name", ["mlm", "xlm"])
def test_a_thread_makes_the_same_steps(name: str) -> None:
    made = loader(name)
    for ours, theirs in zip(made.ahead(2, 30), made.steps(2, 30), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert same_masked(a.rows.masked, b.rows.masked)


def test_an_error_in_the_thread_is_raised_where_the_steps_are_read() -> None:
    made = loader()
    broken = Loader(made.data, Breaks(), made.context, 1, 8)
    with pytest.raises(ZeroDivisionError):
        list(broken.ahead(0, 10))


def test_the_thread_ends_with_its_reader() -> None:
    before = threading.active_count()
    steps = loader(batch_size=1024).ahead(0, 1000)
    next(steps)
    steps.close()  # type: ignore[attr-defined]
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon:
            thread.join(5)
    assert threading.active_count() <= before


class Breaks:
    """An objective whose masks fail."""

    pair_rows = 0.0

    def mask(self, *_: object) -> Masked:
        raise ZeroDivisionError


def test_a_step_without_hidden_positions() -> None:
    made = loader(rate=1e-9)
    (micro,) = next(made.steps(0, 1))
    assert micro.rows.total == 0
    assert len(micro.rows.masked.targets) == 0
    assert context(pair()).dictionary is not None
