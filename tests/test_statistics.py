"""Intervals over pre-training seeds: held to scipy, to slow loops, and to simulated studies with a known truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.evaluation.formulas import FORMULAS, formula_of, value_of
from derivlang.evaluation.statistics import SEEDS, estimate, holm, influences, variances
from tests.simulation import studies

stats = pytest.importorskip("scipy.stats")

VALUES = st.lists(st.floats(-50, 50), min_size=3, max_size=12).filter(lambda values: np.std(values) > 1e-3)
NAMES = [f"{name}:4" if name == "macro_f1" else name for name in FORMULAS]


def drawn(formula: str, seed: int, *, units: int = 40) -> np.ndarray:
    """int64[U, k]: right ones are among the found; a quarter of the units has no counts at all."""
    rng = np.random.default_rng(seed)
    shape = (units, *((3, 4) if formula == "macro_f1:4" else (formula_of(formula)[1],)))
    counts = rng.integers(5, 20, shape)
    counts[:, 0] = rng.binomial(counts.min(axis=1), 0.6)
    counts[::4] = 0
    counts.flags.writeable = False
    return counts.reshape(units, -1)


def rows_of(values: Sequence[float], seed: int, scale: float, *, units: int = 30) -> np.ndarray:
    """float64[n, U]: influences that seeds share, or of which they share nothing: then a covariance may be below 0."""
    rng = np.random.default_rng(seed)
    rows = scale * (seed % 3 * rng.normal(size=units) + rng.normal(size=(len(values), units)))
    return rows - rows.mean(axis=1, keepdims=True)


def variance(row: np.ndarray) -> float:
    return float((row**2).sum() / (len(row) * (len(row) - 1)))


def ends(found: dict[str, Any]) -> tuple[float, float, float]:
    """low, high and p of an estimate that has an interval."""
    assert None not in (found["low"], found["high"], found["p"])
    return found["low"], found["high"], found["p"]


# influences of units


@pytest.mark.parametrize("formula", NAMES)
def test_influences_are_those_of_leaving_one_unit_out(formula: str) -> None:
    counts = [drawn(formula, seed) for seed in (1, 2)]
    found = influences(formula, counts)
    for row, one in zip(found, counts, strict=True):
        left = np.array([value_of(formula, np.delete(one, unit, axis=0)) for unit in range(40)])
        assert row == pytest.approx(39 * (left.mean() - left), abs=1e-9)
        assert row.sum() == pytest.approx(0, abs=1e-9)
        assert variance(row) == pytest.approx(39 / 40 * ((left - left.mean()) ** 2).sum())


@pytest.mark.parametrize("formula", NAMES)
def test_a_unit_is_one_however_much_it_holds(formula: str) -> None:
    """Ten copies of a sentence in one document say no more than the sentence; a unit without counts says nothing."""
    counts = drawn(formula, 1)
    plain, tenfold = influences(formula, [counts, 10 * counts])
    assert tenfold == pytest.approx(plain)
    more = influences(formula, [np.concatenate([counts, np.zeros((5, counts.shape[1]), np.int64)])])[0]
    assert variance(more) == pytest.approx(variance(plain), rel=1 / 40)
    nothing = influences(formula, [0 * counts])[0]
    assert not np.nan_to_num(nothing).any()


@pytest.mark.parametrize("test", [studies.ACCURACY, studies.F1_LOW, studies.F1_HIGH, studies.AER], ids=lambda t: t.name)
def test_the_jackknife_agrees_with_a_bootstrap(test: studies.Test) -> None:
    """Deviations of a score and of a paired difference; those of 20,000 resamples are known to half a percent."""
    rng, test = np.random.default_rng(1), dataclasses.replace(test, units=300)
    first, _, _, second, *_ = studies.study(rng, test, "normal", 0.01, 3)
    weights = rng.multinomial(test.units, np.full(test.units, 1 / test.units), 20_000).astype(float)
    a, b = (formula_of(test.formula)[0](weights @ one.astype(float)) for one in (first, second))
    ours, theirs = influences(test.formula, [first, second])
    for row, values in ((ours, a), (ours - theirs, a - b)):
        assert variance(row) ** 0.5 == pytest.approx(values.std(), rel=0.03)


# estimates


@given(VALUES)
def test_without_units_it_is_students(values: list[float]) -> None:
    found = estimate(values)
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    assert (found["low"], found["high"]) == (pytest.approx(low), pytest.approx(high))
    assert found["p"] == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=1e-6, abs=1e-12)
    assert (found["n"], found["why"], found["units"]) == (len(values), "", None)


@given(st.floats(-5, 5), st.floats(0.1, 9))
def test_without_seeds_it_is_that_of_the_normal_distribution(mean: float, scale: float) -> None:
    row = rows_of([mean], 1, scale)
    deviation = variance(row[0]) ** 0.5
    rows = np.repeat(row, 4, axis=0)
    found = estimate([mean] * 4, rows)
    half = 1.959964 * deviation
    assert ends(found)[:2] == (pytest.approx(mean - half, abs=1e-5), pytest.approx(mean + half, abs=1e-5))
    assert found["p"] == pytest.approx(2 * stats.norm.sf(abs(mean) / deviation), rel=1e-6, abs=1e-299)
    assert variances(rows)[0] ** 0.5 == pytest.approx(deviation)


@given(VALUES, st.integers(0, 99), st.floats(0.1, 99))
def test_an_interval_adds_seeds_and_units_and_has_a_floor(values: list[float], seed: int, scale: float) -> None:
    """Of covariances that numpy finds. The floor is there whatever the seeds do."""
    rows, n = rows_of(values, seed, scale), len(values)
    covariances = np.cov(rows) / 30
    shared = max(0.0, covariances[~np.eye(n, dtype=bool)].mean())
    found = estimate(values, rows)
    low, high, p = ends(found)
    summed = np.hypot(stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / n**0.5, 1.959964 * shared**0.5)
    floor = 1.959964 * covariances.mean() ** 0.5
    assert (high - low) / 2 == pytest.approx(max(summed, floor))
    assert (variances(rows)[0], found["units"]) == (pytest.approx(shared), 30)
    assert low <= (ends(estimate(values))[0]) <= found["value"]
    assert p >= 2 * stats.norm.sf(abs(found["value"]) / covariances.mean() ** 0.5) * (1 - 1e-6)


@given(VALUES, st.integers(0, 99), st.floats(0.1, 99))
def test_p_is_small_exactly_where_the_interval_leaves_nothing_out(values: list[float], seed: int, scale: float) -> None:
    rows = rows_of(values, seed, scale)
    low, high, p = ends(estimate(values, rows))
    assert (p < 0.05) == (low > 0 or high < 0)
    turned = ends(estimate([-value for value in values], -rows))
    assert (turned[0], turned[2]) == (pytest.approx(-high), pytest.approx(p))
    at_p = ends(estimate(values, rows, level=1 - p))
    assert min(abs(at_p[0]), abs(at_p[1])) == pytest.approx(0, abs=1e-3 + 1e-6 / max(p, 1e-12) ** 0.5)


@given(VALUES, st.integers(0, 99), st.randoms(use_true_random=False))
def test_the_order_of_seeds_and_of_units_does_not_matter(values: list[float], seed: int, random: object) -> None:
    rows, rng = rows_of(values, seed, 9.0), np.random.default_rng(seed)
    order = rng.permutation(len(values))
    turned = estimate(np.array(values)[order].tolist(), rows[order][:, rng.permutation(30)])
    assert ends(turned) == pytest.approx(ends(estimate(values, rows)))


def test_seeds_that_are_alike_by_chance_have_the_interval_of_units() -> None:
    """Seen in a study: without the floor these seeds gave 3.15 to 3.64, where the documents alone give 3.07 to 3.71."""
    directions = np.linalg.qr(np.c_[np.ones(50), np.random.default_rng(0).normal(size=(50, 4))])[0].T[1:]
    rows = (50 * 49) ** 0.5 * (0.1067 * directions[0] + 0.2137 * directions[1:])
    low, high, p = ends(estimate([3.38, 3.35, 3.45], rows))
    assert (round(low, 2), round(high, 2)) == (3.07, 3.71)
    assert p == pytest.approx(8e-5, rel=0.15)  # of the seeds: that of the documents alone is smaller by far


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0]])
def test_fewer_than_three_seeds_have_no_interval(values: list[float]) -> None:
    found = estimate(values, rows_of(values, 1, 1.0))
    assert (found["low"], found["high"], found["p"], found["units"]) == (None, None, None, 30)
    assert found["value"] == np.mean(values)
    assert found["why"] == f"an interval needs {SEEDS} pre-training seeds"


def test_equal_values_without_units() -> None:
    assert ends(estimate([2.0] * 3))[:2] == (2.0, 2.0)
    assert ends(estimate([2.0] * 3))[2] < 1e-100
    assert estimate([0.0] * 3)["p"] == 1.0


def test_what_is_not_a_number_has_no_interval() -> None:
    """A measure may return NaN, and the only unit that has counts may be the one that is left out."""
    lost = estimate([1.0, float("nan"), 2.0])
    assert (np.isnan(lost["value"]), lost["low"], lost["p"], lost["why"]) == (True, None, None, "a value is NaN")
    alone = np.array([[5, 2], [0, 0]])
    assert estimate([2.5] * 3, influences("mean", [alone] * 3))["why"] == "without one unit a value is NaN"
    assert estimate([2.5] * 3, influences("percent", [alone[:1]] * 3))["why"] == "the test set has one unit"


# many tests, and shares


def test_holm_by_hand() -> None:
    """0.005 · 4; 0.01 · 3; 0.03 · 2; 0.04 · 1, but not below the one before: 0.06."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []
    assert holm([0.2]) == [0.2]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_holm_is_between_the_value_and_bonferroni(values: list[float]) -> None:
    for value, corrected in zip(values, holm(values), strict=True):
        assert value <= corrected <= min(1, value * len(values)) + 1e-12


# simulated studies


def test_the_shared_variance_is_that_of_the_simulation() -> None:
    """Of many samples of units: the variance of a mean that seeds share, whatever they do alone."""
    rng = np.random.default_rng(1)
    found, values = [], []
    for _ in range(300):
        counts = studies.study(rng, studies.ACCURACY, "normal", 0.0, 3)[:3]
        values.append([value_of("percent", one) for one in counts])
        found.append(variances(influences("percent", counts))[0])
    truth = np.cov(np.array(values).T)[np.triu_indices(3, 1)].mean()
    assert np.mean(found) == pytest.approx(truth, rel=0.2)
    assert np.mean(found) < 0.9 * np.mean(values, axis=1).var(ddof=1)


@pytest.mark.parametrize("n", studies.SEEDS)
def test_intervals_hold_the_truth_of_some_studies(n: int) -> None:
    """95 % of 400 studies are 380 ± 4.4; the limits are five deviations wide, and those of units alone fail."""
    found = studies.coverage(dataclasses.replace(studies.ACCURACY, units=100), "normal", 1.5, n, 400)
    for held in (found.mean, found.difference, found.interaction):
        assert 89.5 < held < 99.9
    assert found.units_only < 93


@pytest.mark.slow
@pytest.mark.parametrize("n", studies.SEEDS)
@pytest.mark.parametrize(
    ("test", "deviation"), [(test, deviation) for test, shape, deviation in studies.ROWS if shape == "normal"]
)
def test_intervals_hold_the_truth(test: studies.Test, deviation: float, n: int) -> None:
    """Of skewed and collapsed seeds docs/studies/statistics.md has the figures; nothing is claimed."""
    found = studies.coverage(test, "normal", deviation, n, 3000)
    for held in (found.mean, found.difference, found.interaction):
        assert 93 <= held <= 99
