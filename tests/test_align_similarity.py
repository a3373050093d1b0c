"""Links from similarities, against the published procedures written out cell by cell."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from derivlang.align.similarity import FLOOR, argmax, cosine, either, itermax, sinkhorn, transport

matrices = st.tuples(st.integers(0, 6), st.integers(0, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-1, 1, width=32), unique=True)
)


def slow_argmax(matrix: np.ndarray) -> np.ndarray:
    links = np.zeros(matrix.shape, bool)
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            row, column = matrix[i].tolist(), matrix[:, j].tolist()
            links[i, j] = row.index(max(row)) == j and column.index(max(column)) == i
    return links


def slow_itermax(matrix: np.ndarray, iterations: int, alpha: float) -> np.ndarray:
    """Algorithm 1 of Jalili Sabet et al. 2020, by cells."""
    positive = np.where(matrix > 0, matrix, 0)
    links = slow_argmax(positive) & (positive > 0)
    for _ in range(1, iterations):
        weighed = np.zeros_like(positive)
        for i in range(matrix.shape[0]):
            for j in range(matrix.shape[1]):
                source, target = links[i].any(), links[:, j].any()
                if source and target:
                    weighed[i, j] = 0
                elif source or target:
                    weighed[i, j] = positive[i, j] * alpha
                else:
                    weighed[i, j] = positive[i, j]
        links = links | (slow_argmax(weighed) & (weighed > 0))
    return links


def slow_sinkhorn(matrix: np.ndarray, iterations: int) -> np.ndarray:
    plan = [[max(1e-6, float(value)) for value in row] for row in matrix]
    for _ in range(iterations):
        for j in range(matrix.shape[1]):
            total = sum(row[j] for row in plan)
            for row in plan:
                row[j] /= total
        for row in plan:
            total = sum(row)
            row[:] = [value / total for value in row]
    return np.array(plan)


@given(matrices)
def test_argmax_is_mutual(matrix: np.ndarray) -> None:
    matrix.flags.writeable = False
    np.testing.assert_array_equal(argmax(matrix), slow_argmax(matrix))


@given(matrices, st.integers(1, 5), st.sampled_from([0.5, 0.9, 1.0]))
def test_itermax_is_the_published_algorithm(matrix: np.ndarray, iterations: int, alpha: float) -> None:
    found = itermax(matrix, iterations, alpha)
    np.testing.assert_array_equal(found, slow_itermax(matrix, iterations, alpha))
    assert (found | (argmax(matrix) & (matrix > 0)) == found).all()


@given(matrices)
def test_transport_is_sinkhorn_and_itermax(matrix: np.ndarray) -> None:
    if not matrix.size:
        assert transport(matrix).shape == matrix.shape
        return
    plan = sinkhorn(matrix)
    np.testing.assert_allclose(plan, slow_sinkhorn(matrix, 2), rtol=1e-9)
    np.testing.assert_allclose(plan.sum(1), 1)
    np.testing.assert_array_equal(transport(matrix), slow_itermax(plan, 2, 0.9))


@given(matrices)
def test_either_direction(matrix: np.ndarray) -> None:
    links = np.zeros(matrix.shape, bool)
    if matrix.size:
        links[np.arange(len(matrix)), matrix.argmax(1)] = True
        links[matrix.argmax(0), np.arange(matrix.shape[1])] = True
    np.testing.assert_array_equal(either(matrix), links & (matrix > 0))


@pytest.mark.parametrize("of", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
@given(st.lists(matrices.filter(lambda matrix: matrix.size > 0), min_size=1, max_size=3))
def test_a_batch_is_its_matrices(of, batch: list[np.ndarray]) -> None:  # type: ignore[no-untyped-def]
    """Each in a corner or another place of a larger one whose other cells are -inf, of either library."""
    whole = np.full((len(batch), 8, 9), -np.inf)
    places = []
    for number, matrix in enumerate(batch):
        place = slice(number, number + len(matrix)), slice(2 * (number % 2), 2 * (number % 2) + matrix.shape[1])
        whole[number][place] = matrix
        places.append(place)
    whole.flags.writeable = of is torch.from_numpy
    plans = np.asarray(sinkhorn(of(whole)))
    found = [np.asarray(link(of(whole))) for link in (itermax, transport)] + [np.asarray(either(of(plans.copy())))]
    for number, (matrix, place) in enumerate(zip(batch, places, strict=True)):
        plan = slow_sinkhorn(matrix, 2)
        np.testing.assert_allclose(plans[number][place], plan, rtol=1e-9)
        assert plans[number].sum() == pytest.approx(len(matrix))
        own = plans[number][place]  # the same numbers: others may differ in the last bit, which breaks ties
        expected = slow_itermax(matrix, 2, 0.9), slow_itermax(own, 2, 0.9), either(own)
        for links, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(links[number][place], wanted)
            assert links[number].sum() == wanted.sum()


def test_one_word_of_two() -> None:
    """Both source words are nearest to target word 0: 0-0 is first; then, weighed by 0.9, 0-1 (0.45) and 1-0 (0.72)
    are the best of their rows and columns. Transport evens out columns first, and gives each word one."""
    matrix = np.array([[0.9, 0.5], [0.8, 0.1]])
    assert argmax(matrix).tolist() == [[True, False], [False, False]]
    assert itermax(matrix).tolist() == [[True, True], [True, False]]
    assert itermax(matrix, iterations=1).tolist() == argmax(matrix).tolist()
    assert transport(matrix, iterations=1).tolist() == [[False, True], [True, False]]


def test_many_iterations_of_sinkhorn_reach_even_marginals() -> None:
    plan = sinkhorn(np.random.default_rng(0).random((4, 4)), iterations=200)
    np.testing.assert_allclose(plan.sum(0), 1, rtol=1e-6)
    sharp = sinkhorn(np.eye(3) + 0.5, mu=0.1)
    assert sharp.max() > sinkhorn(np.eye(3) + 0.5).max()


def test_no_similarity_counts_as_a_millionth() -> None:
    np.testing.assert_allclose(sinkhorn(np.array([[-1.0, FLOOR]]), 0), [[FLOOR, FLOOR]])


def test_cosine() -> None:
    found = cosine(np.array([[3.0, 0], [0, 0]]), np.array([[5.0, 0], [1, 1]]))
    np.testing.assert_allclose(found, [[1, np.sqrt(0.5)], [0, 0]])


@pytest.mark.parametrize("function", [argmax, itermax, transport])
def test_an_empty_side_has_no_links(function) -> None:  # type: ignore[no-untyped-def]
    assert function(np.zeros((0, 3))).shape == (0, 3)
    assert function(np.zeros((2, 0))).shape == (2, 0)


def test_words_like_nothing_have_no_links() -> None:
    assert not itermax(np.zeros((2, 3))).any()
    assert not itermax(np.full((2, 3), -0.5)).any()
