"""Intervals over pre-training seeds: held to scipy, to slow loops, and to simulated studies with a known truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.evaluation.statistics import SEEDS, estimate, holm, no_interval, shared_variance, wilson
from tests.simulation import studies

stats = pytest.importorskip("scipy.stats")

VALUES = st.lists(st.floats(-50, 50), min_size=3, max_size=12).filter(lambda values: np.std(values) > 1e-3)


@given(VALUES)
def test_without_documents_it_is_students(values: list[float]) -> None:
    found = estimate(values)
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert found.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=1e-6, abs=1e-12)
    assert (found.n, found.why) == (len(values), "")
    assert found.deviation == pytest.approx(np.std(values, ddof=1))


@given(st.floats(-5, 5), st.floats(0.01, 4))
def test_without_seeds_it_is_that_of_the_normal_distribution(mean: float, variance: float) -> None:
    found = estimate([mean] * 4, variance)
    half = 1.959964 * np.sqrt(variance)
    assert (found.low, found.high) == (pytest.approx(mean - half, abs=1e-5), pytest.approx(mean + half, abs=1e-5))
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(mean) / np.sqrt(variance)), rel=1e-6)
    assert found.documents == pytest.approx(np.sqrt(variance))


@given(VALUES, st.floats(0, 9))
def test_p_is_small_exactly_where_the_interval_leaves_nothing_out(values: list[float], variance: float) -> None:
    found, plain = estimate(values, variance), estimate(values)
    assert found.low is not None
    assert found.high is not None
    assert plain.low is not None
    assert found.p is not None
    assert (found.p < 0.05) == (found.low > 0 or found.high < 0)
    assert found.low <= plain.low <= found.mean <= found.high
    turned = estimate([-value for value in values], variance)
    assert (turned.low, turned.p) == (pytest.approx(-found.high), pytest.approx(found.p))
    at_p = estimate(values, variance, level=1 - found.p)
    assert at_p.low is not None
    assert at_p.high is not None
    assert min(abs(at_p.low), abs(at_p.high)) == pytest.approx(0, abs=1e-3 + 1e-6 / max(found.p, 1e-12) ** 0.5)


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0]])
def test_fewer_than_three_seeds_have_no_interval(values: list[float]) -> None:
    found = estimate(values, 0.1)
    assert (found.low, found.high, found.p) == (None, None, None)
    assert found.mean == np.mean(values)
    assert found.why == f"an interval needs {SEEDS} pre-training seeds"
    assert no_interval([1.0, 2.0, 4.0], "lost").why == "lost"


def test_equal_values_without_documents() -> None:
    assert (estimate([2.0] * 3).low, estimate([2.0] * 3).high, estimate([0.0] * 3).p) == (2.0, 2.0, 1.0)
    assert (estimate([2.0] * 3).p or 0) < 1e-100


@pytest.mark.parametrize("n", [2, 3, 7])
def test_the_documents_variance_is_that_of_the_mean_less_the_interaction(n: int) -> None:
    rng = np.random.default_rng(n)
    replicates = rng.normal(0, 2, 400) + rng.normal(0, 1, (n, 400)) + 10 * np.arange(n)[:, None]
    of_mean = replicates.mean(axis=0).var(ddof=1)
    centred = replicates - replicates.mean(axis=1, keepdims=True)
    interaction = sum(centred[:, b].var(ddof=1) for b in range(400)) / 399
    assert shared_variance(replicates) == pytest.approx(of_mean - interaction / n)
    assert shared_variance(np.stack([replicates[0]] * n)) == pytest.approx(replicates[0].var(ddof=1))
    assert shared_variance(np.stack([replicates[0], -replicates[0]])) == 0  # not negative


def test_the_documents_variance_is_the_one_of_the_simulation() -> None:
    """Of many documents' samples: the variance of a mean that seeds share, whatever they do alone."""
    rng = np.random.default_rng(1)
    found, values = [], []
    for _ in range(300):
        counts = studies.study(rng, 3, 0.0, "normal")[:3]
        found.append(shared_variance(studies.each(counts, studies.share)))
        values.append([float(studies.share(one.sum(axis=0))) for one in counts])
    covariance = np.cov(np.array(values).T)
    truth = covariance[np.triu_indices(3, 1)].mean()
    assert np.mean(found) == pytest.approx(truth, rel=0.2)
    assert np.mean(found) < 0.9 * np.mean(values, axis=1).var(ddof=1)


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


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (1, 20), (283, 10_000), (20, 20), (1, 1), (7, 9)])
def test_wilson_is_scipys(hits: int, n: int) -> None:
    expected = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits, n) == (pytest.approx(100 * expected.low), pytest.approx(100 * expected.high))


@pytest.mark.parametrize("n", studies.SEEDS)
def test_intervals_hold_the_truth_of_some_studies(n: int) -> None:
    """95 % of 400 studies are 380 ± 4.4; the limits are five deviations wide, and those of documents alone fail."""
    found = studies.coverage(n, 1.0, "normal", 400)
    for held in (found.mean, found.difference):
        assert 89.5 < held < 99.9
    assert found.documents_only < 93


@pytest.mark.slow
@pytest.mark.parametrize("deviation", studies.DEVIATIONS)
@pytest.mark.parametrize("n", studies.SEEDS)
def test_intervals_hold_the_truth(n: int, deviation: float) -> None:
    """Of skewed seeds docs/studies/statistics.md has the figures; nothing is claimed."""
    found = studies.coverage(n, deviation, "normal", 4000)
    assert 93 <= found.mean <= 98
    assert 93 <= found.difference <= 98
