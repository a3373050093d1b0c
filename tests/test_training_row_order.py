"""The order of rows: every row once an epoch, any part by itself, and all orders equally often."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.training import row_order
from derivlang.training.row_order import SORTED, row_numbers

WAYS = {"sorted": SORTED, "computed": 0}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_order, "SORTED", WAYS[request.param])


@given(n=st.integers(1, 400), seed=st.integers(0, 9), cuts=st.lists(st.integers(0, 1200), max_size=5))
@pytest.mark.parametrize("limit", WAYS.values(), ids=list(WAYS))
def test_an_epoch_has_every_row_once_and_parts_are_the_whole(limit: int, n: int, seed: int, cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_order, "SORTED", limit)
        whole = row_numbers("rows", seed, n, 0, 3 * n)
        assert all(sorted(epoch) == list(range(n)) for epoch in whole.reshape(3, n))
        cuts = sorted({0, 3 * n, *(cut for cut in cuts if cut < 3 * n)})
        parts = [row_numbers("rows", seed, n, *pair) for pair in pairwise(cuts)]
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("n", [7, 30])
def test_each_row_is_equally_often_at_each_place(n: int) -> None:
    epochs = 3000
    orders = row_numbers("rows", 1, n, 0, epochs * n).reshape(epochs, n)
    counts = np.array([np.bincount(orders[:, place], minlength=n) for place in range(n)])
    freedom = (n - 1) ** 2
    chi_square = float(((counts - epochs / n) ** 2).sum() / (epochs / n))
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)
    # Places of one digit of the network are not nearer to each other than others are: of two neighbours, the second
    # row is the one after the first in 1 of n cases.
    follows = int((np.diff(orders, axis=1) == 1).sum())
    expected = epochs * (n - 1) / n
    assert abs(follows - expected) < 5 * np.sqrt(expected)


@pytest.mark.usefixtures("way")
def test_seeds_streams_and_epochs_have_orders_of_their_own() -> None:
    orders = [row_numbers(what, seed, 50, 0, 100).reshape(2, 50) for what in ("rows", "pairs") for seed in (1, 2)]
    assert len({tuple(epoch) for order in orders for epoch in order}) == 8


def test_many_rows_need_no_memory() -> None:
    """A step of a billion rows, in its second epoch."""
    n = 10**9
    tracemalloc.start()
    try:
        rows = row_numbers("rows", 1, n, n + 12_345, n + 12_345 + 1024)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()
    assert len(set(rows.tolist())) == 1024
    assert rows.min() >= 0
    assert rows.max() < n
    assert np.array_equal(rows[500:510], row_numbers("rows", 1, n, n + 12_845, n + 12_855))
