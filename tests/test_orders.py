"""Orders of words without trees: published rows, plain references, and laws. inv and perm: tests/test_inv_perm.py."""

from __future__ import annotations

import inspect
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import derivlang
from derivlang.api import derive_chunks
from derivlang.cli.main import main
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.distance.match import Family
from derivlang.pipeline import Pipeline
from derivlang.transforms import shuffle as module
from derivlang.transforms.field import FieldStudy, field_studies
from derivlang.transforms.registry import find_transform
from derivlang.transforms.shuffle import Mallows, Perm, Shuffle
from tests import reference
from tests import reference_orders as plain
from tests.commands import run
from tests.strategies import any_word, batch_of, few_words, laws, lists, scan_words, sentence_lists, units_of
from tests.test_published_rules import ROWS

units = units_of(st.one_of(few_words, any_word, scan_words))


def test_the_places_of_the_three_reversals_agree() -> None:
    rng = np.random.default_rng(0)
    rows = [[f"w{n}" for n in rng.integers(0, 50, size)] for size in rng.integers(0, 12, 300)]
    batch = batch_of(rows)
    seen = set()
    for words in sentence_lists(batch):
        text = " ".join(words)
        texts = [
            derivlang.derive(text, f"inv:from={where}:mark=R:final=move").words for where in ("end", "random", "start")
        ]
        at = texts[0].index("R")
        assert texts[0] == [*words[:at], "R", *words[at:]]
        assert texts[1] == [*words[:at], "R", *reversed(words[at:])]
        assert texts[2] == texts[0][::-1]
        assert derivlang.derive(text, "inv:from=random:final=move").words == [*words[:at], *reversed(words[at:])]
        seen.add((len(words), at))
    assert {(4, at) for at in range(5)} <= seen  # every place occurs, before the first word and after the last, too


# plain references


def drawing(name: str, key: int) -> plain.Draw:
    return lambda place, purpose: reference.draw(name, key, place + purpose)


def bodies(batch: derivlang.core.batch.Batch) -> Iterator[tuple[list[str], int]]:
    yield from zip(sentence_lists(batch), batch.tails.tolist(), strict=True)


def local_orders(spec: str, batch: derivlang.core.batch.Batch) -> list[list[int]]:
    order = Pipeline.parse(spec).order(batch)
    starts = np.repeat(batch.sentences[:-1], np.diff(batch.sentences))
    return lists((order.index - starts).tolist(), order.sentences)


SETTINGS = [
    {"local": 3},
    {"blocks": 2},
    {"blocks": 2, "local": 5},
    {"derange": True},
    {"blocks": 3, "derange": True},
    {"rate": 0.25},
    {"rate": 0.5, "derange": True},
    {"rate": 0.5, "how": "swaps"},
    {"rate": 0.7, "how": "swaps", "blocks": 2},
    {"how": "swaps", "local": 4},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@laws
@given(st.sampled_from(["sentence", "length", "window"]), units)
def test_shuffle_is_the_reference(settings: dict[str, object], by: str, rows: list[list[str]]) -> None:
    transform = Shuffle(by=by, **settings)  # type: ignore[arg-type]
    stream = transform.stream(0).name
    batch = batch_of(rows)
    expected = []
    for words, tail in bodies(batch):
        body = len(words) - tail
        if by == "window" and transform.local:
            inner = {k: v for k, v in settings.items() if k != "local"}
            order = [
                part[0] + place
                for part in plain.cut(range(body), transform.local)
                for place in plain.shuffled(len(part), drawing(stream, len(part)), **inner)  # type: ignore[arg-type]
            ]
        else:
            key = reference.sequence_key(words) if by == "sentence" else body
            order = plain.shuffled(body, drawing(stream, key), **settings)  # type: ignore[arg-type]
        expected.append([*order, *range(body, len(words))])
    assert local_orders(str(transform), batch) == expected


@laws
@given(units, st.integers(0, 6), st.integers(0, 3))
def test_shuffle_is_perm_where_both_have_the_permutation(rows: list[list[str]], window: int, seed: int) -> None:
    batch = batch_of(rows)
    assert local_orders(f"shuffle:local={window}:seed={seed}", batch) == local_orders(
        f"perm:window={window}:seed={seed}", batch
    )
    # One after the other, perm and shuffle draw differently, as perm and perm do.
    assert local_orders("perm,shuffle", batch) == local_orders("perm,perm", batch)


def test_the_draws_of_shuffle_are_those_of_perm_only_then() -> None:
    assert Shuffle(local=3).stream(0) == Perm(window=3).stream(0)
    others = [Shuffle(by="length"), Shuffle(blocks=2), Shuffle(derange=True), Shuffle(how="swaps")]
    assert len({t.stream(0).name for t in others} | {Perm().stream(0).name}) == 5


def test_a_dial_turns_one_language_into_another() -> None:
    """From near to far each sentence is at least as far: the draws do not depend on the dial."""
    rng = np.random.default_rng(3)
    batch = batch_of([[f"w{n}" for n in rng.integers(0, 90, size)] for size in rng.integers(2, 30, 200)])
    dials = {"mallows:by=sentence": (2.0, 0.5, 0.1, 0.0), "mallows": (1.0, 0.3, 0.0), "flip": (0.1, 0.5, 1.0)}
    for family, values in dials.items():
        turned = [local_orders(str(Family.parse(family).at(value)), batch) for value in values]
        for near, far in itertools.pairwise(turned):
            assert all(plain.distance(one) <= plain.distance(two) for one, two in zip(near, far, strict=True))
    rates = [local_orders(f"shuffle:rate={rate}", batch) for rate in (0.1, 0.4, 0.9)]
    moved = [[{i for i, place in enumerate(order) if i != place} for order in orders] for orders in rates]
    assert sum(map(len, moved[0])) < sum(map(len, moved[1])) < sum(map(len, moved[2]))


@laws
@given(units, st.integers(1, 7))
def test_stride_is_the_reference(rows: list[list[str]], k: int) -> None:
    batch = batch_of(rows)
    expected = [[*plain.stride(len(w) - tail, k), *range(len(w) - tail, len(w))] for w, tail in bodies(batch)]
    assert local_orders(f"stride:{k}", batch) == expected


@laws
@given(units, st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
def test_flip_is_the_reference(rows: list[list[str]], p: float) -> None:
    batch = batch_of(rows)
    stream = Pipeline.parse(f"flip:{p}").transforms[0].stream(0).name
    expected = []
    for words, tail in bodies(batch):
        body, key = len(words) - tail, reference.sequence_key(words)
        flips = [(reference.draw(stream, key, place) >> 11) / 2**53 < p for place in range(body)]
        expected.append([*plain.flipped(body, flips), *range(body, len(words))])
    assert local_orders(f"flip:{p}", batch) == expected


@laws
@given(units, st.integers(0, 5), st.integers(0, 5))
def test_exchange_is_two_words(rows: list[list[str]], one: int, other: int) -> None:
    if one == other:
        with pytest.raises(UsageError, match="two different places"):
            Pipeline.parse(f"exchange:{one}-{other}")
        return
    batch = batch_of(rows)
    for (words, tail), order in zip(bodies(batch), local_orders(f"exchange:{one}-{other}", batch), strict=True):
        expected = list(range(len(words)))
        if max(one, other) < len(words) - tail:
            expected[one], expected[other] = other, one
        assert order == expected


@laws
@given(units, st.integers(1, 6))
def test_local_inversion_reverses_windows(rows: list[list[str]], k: int) -> None:
    batch = batch_of(rows)
    expected = []
    for words, tail in bodies(batch):
        body = len(words) - tail
        windows = plain.cut(range(body), k)
        expected.append([*(place for window in windows for place in reversed(window)), *range(body, len(words))])
    assert local_orders(f"inv:local={k}", batch) == expected
    twice = derivlang.pipeline.Pipeline.parse(f"inv:local={k},inv:local={k}").order(batch)
    assert twice.index.tolist() == list(range(batch.n_words))


# Mallows


def expected_distance(n: int, theta: float) -> float:
    """Mayer Martins et al. 2026: the mean of Kendall's tau distance."""
    if theta == 0:
        return n * (n - 1) / 4
    return n / math.expm1(theta) - sum(j / math.expm1(j * theta) for j in range(1, n + 1))


@pytest.mark.parametrize("n", [5, 20, 80])
@pytest.mark.parametrize("theta", [-1.0, 0.0, 0.4, 2.0])
def test_the_mean_distance_is_that_of_the_formula(n: int, theta: float) -> None:
    draws, count = Draws("distances"), 10_000
    keys = np.arange(count, dtype=np.uint64)
    orders = Mallows(theta=theta)._sampled(draws, keys, np.full(count, n)).reshape(count, n)
    later = np.triu(np.ones((n, n), bool), 1)
    distances = np.array([((row[:, None] > row[None, :]) & later).sum() for row in orders])
    mean = expected_distance(n, abs(theta))
    if theta < 0:
        mean = n * (n - 1) / 2 - mean
    assert abs(distances.mean() - mean) < 3 * distances.std() / math.sqrt(count)


def test_every_permutation_has_its_probability() -> None:
    theta, count = 0.5, 20_000
    keys = np.arange(count, dtype=np.uint64)
    orders = Mallows(theta=theta)._sampled(Draws("a test"), keys, np.full(count, 4)).reshape(count, 4)
    found = Counter(map(tuple, orders.tolist()))
    weights = {order: math.exp(-theta * plain.distance(order)) for order in itertools.permutations(range(4))}
    total = sum(weights.values())
    chi = sum((found[o] - count * w / total) ** 2 / (count * w / total) for o, w in weights.items())
    assert chi < 49.7  # 23 degrees of freedom, p = .001


@pytest.mark.parametrize("theta", [0.1, 0.4, 2.0])
def test_negative_theta_is_the_reversal_of_the_sample(theta: float) -> None:
    """The probability of a permutation under theta is that of its reversal under -theta: here, draw by draw."""
    length = np.array([0, 1, 2, 5, 9, 600])
    keys = np.arange(6, dtype=np.uint64)
    plus, minus = (Mallows(theta=sign * theta)._sampled(Draws("a"), keys, length) for sign in (1, -1))
    ends = np.cumsum(length).tolist()
    for start, end in zip([0, *ends], ends, strict=False):
        assert plus[start:end].tolist() == minus[start:end][::-1].tolist()


@pytest.mark.filterwarnings("ignore:mallows.100.0. theta is so large")
def test_the_ends_of_theta() -> None:
    text = "one two three four five six seven eight ."
    assert derivlang.derive(text, "mallows:100").text == text
    assert derivlang.derive(text, "mallows:-100").text == derivlang.derive(text, "inv").text


@pytest.mark.parametrize("n", [1, 2, 7, 700])
def test_insertions_are_the_reference(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(3):
        code = [int(rng.integers(0, i + 1)) for i in range(n)]
        assert module._inserted(code) == plain.inserted(code)


@pytest.mark.parametrize("theta", [0.0, 1e-12, 1e-6, 0.3, 5.0, 800.0])
def test_insertions_invert_the_distribution(theta: float) -> None:
    """k is the smallest one whose share of 0 … k is above the fraction, in exact arithmetic but for the exponential."""
    for place in (0, 1, 5, 40):
        weights = [Fraction(math.exp(-theta * k)) for k in range(place + 1)]
        for fraction in (0.0, 0.11, 0.37, 0.51, 0.83, 0.999):
            reached, wanted = Fraction(0), Fraction(fraction) * sum(weights)
            for k, weight in enumerate(weights):  # noqa: B007
                reached += weight
                if reached > wanted:
                    break
            assert module._insertions(np.array([fraction]), np.array([place]), theta).tolist() == [k]


def test_one_order_for_all_sentences_of_a_length() -> None:
    rng = np.random.default_rng(2)
    rows = [[f"w{n}" for n in rng.integers(0, 90, size)] for size in rng.integers(1, 15, 400)]
    batch = batch_of(rows)
    for spec in ("mallows:0.4", "shuffle:by=length", "shuffle:by=length:blocks=2"):
        found: dict[int, set[tuple[int, ...]]] = {}
        for order in local_orders(spec, batch):
            found.setdefault(len(order), set()).add(tuple(order))
        assert all(len(orders) == 1 for orders in found.values()), spec
        assert any(order != tuple(range(n)) for n, orders in found.items() for order in orders)


# worked examples


@pytest.mark.parametrize("name", ["exchange", "flip", "inv", "mallows", "stride"])
def test_the_examples_of_a_transform_are_what_it_does(name: str) -> None:
    """Lines of the form `spec    sentence   ->   derived sentence`."""
    transform = find_transform(name)
    page = f"{inspect.getdoc(transform)}\n{import_module(transform.__module__).__doc__}"
    lines = re.findall(rf"^ {{4}}({name}\S*) {{2,}}(.+?) {{2,}}-> {{2,}}(.+)$", page, re.MULTILINE)
    assert lines
    for spec, source, expected in lines:
        assert derivlang.derive(source, spec).text == expected, spec


# languages of published studies


@pytest.mark.parametrize("study", field_studies().values(), ids=lambda study: study.name)
def test_the_languages_of_a_study_are_derived_from_its_sample(study: FieldStudy) -> None:
    assert len({language.name for language in study.languages}) == len(study.languages)
    words = study.sample.split()
    for language in study.languages:
        for spec in filter(None, (language.spec, language.published)):
            pipeline = Pipeline.parse(spec)
            needs = {name for transform in pipeline.transforms for name in transform.needs}
            if pipeline.needs_counts() or not needs <= {"head", "upos"}:
                continue  # it needs the vocabulary of a text, or a treebank with features
            ((derived,),) = derive_chunks([[study.sample]], spec, words="space")
            kept = sorted(i for i in derived.order if i >= 0)
            deletes = any(transform.name == "drop" for transform in pipeline.transforms)
            assert set(kept) < set(range(len(words))) if deletes else kept == list(range(len(words)))


def test_ls_shows_the_languages_of_a_study() -> None:
    shown = CliRunner().invoke(main, ["ls", "--study", "kallini2024"])
    assert shown.exit_code == 0
    of_table_1 = [row for row in ROWS if row.study == "kallini" and "Shuffle(" in row.language and "He" in row.right]
    assert len(of_table_1) == 6
    for row in of_table_1:
        assert f"    --t {row.spec}" in shown.stdout
        assert f"\n      {row.right}\n" in shown.stdout
    as_json = json.loads(CliRunner().invoke(main, ["ls", "--study", "kallini2024", "--json"]).stdout)
    assert as_json in json.loads(CliRunner().invoke(main, ["ls", "--json"]).stdout)["studies"]
    unknown = CliRunner().invoke(main, ["ls", "--study", "kalini2024"])
    assert unknown.exit_code == 2
    assert "did you mean kallini2024" in unknown.stderr


# bad input


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("shuffle:rng=python", "if it is numpy by=sentence"),
        ("shuffle:rng=numpy:local=3", "by=window"),
        ("shuffle:rng=python:by=length:blocks=2", "whole shuffles"),
        ("shuffle:rng=numpy:by=length:local=3", "by=window"),
        ("shuffle:derange=yes:how=swaps", "exclude each other"),
        ("shuffle:rate=1.5", "at most 1"),
        ("shuffle:rate=nan", "a finite number"),
        ("shuffle:blocks=0", "at least 1"),
        ("shuffle:local=-1", "at least 0"),
        ("stride:0", "at least 1"),
        ("mallows:nan", "a finite number"),
        ("mallows:inf", "a finite number"),
        ("flip:2", "at most 1"),
        ("exchange:3", "two whole numbers"),
        ("exchange:2-2", "two different places"),
        ("inv:local=2:mark=R", "does not go with"),
        ("inv:local=2:from=random", "does not go with"),
        ("inv:from_=random", "parameter of inv"),
        ('inv:mark="a b"', "one word"),
    ],
)
def test_bad_values(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Pipeline.parse(spec)


def test_a_theta_without_effect_is_named(tmp_path: Path) -> None:
    for theta, message in ((40, "mallows:40.0: theta is so large that no word moves: this is the source"), (8, "")):
        told = run("make", "--t", f"mallows:{theta}", "demo", "-o", tmp_path / str(theta)).err
        assert message in told
        assert bool(message) == ("no word moves" in told)
