"""The order of rows: every row once an epoch, any part by itself, and all orders equally often."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.training.row_order import row_numbers


@given(n=st.integers(1, 400), seed=st.integers(0, 9), cuts=st.lists(st.integers(0, 1200), max_size=5))
def test_an_epoch_has_every_row_once_and_parts_are_the_whole(n: int, seed: int, cuts: list[int]) -> None:
    whole = row_numbers("rows", seed, n, 0, 3 * n)
    assert all(sorted(epoch) == list(range(n)) for epoch in whole.reshape(3, n))
    cuts = sorted({0, 3 * n, *(cut for cut in cuts if cut < 3 * n)})
    parts = [row_numbers("rows", seed, n, *pair) for pair in pairwise(cuts)]
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("n", [7, 30])
def test_each_row_is_equally_often_at_each_place(n: int) -> None:
    epochs = 3000
    orders = row_numbers("rows", 1, n, 0, epochs * n).reshape(epochs, n)
    counts = np.array([np.bincount(orders[:, place], minlength=n) for place in range(n)])
    freedom = (n - 1) ** 2
    chi_square = float(((counts - epochs / n) ** 2).sum() / (epochs / n))
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)
    # Of two neighbours, the second row is the one after the first in 1 of n cases.
    follows = int((np.diff(orders, axis=1) == 1).sum())
    expected = epochs * (n - 1) / n
    assert abs(follows - expected) < 5 * np.sqrt(expected)


def test_seeds_streams_and_epochs_have_orders_of_their_own() -> None:
    orders = [row_numbers(what, seed, 50, 0, 100).reshape(2, 50) for what in ("rows", "pairs") for seed in (1, 2)]
    assert len({tuple(epoch) for order in orders for epoch in order}) == 8
