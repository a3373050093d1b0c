"""The best tree: against all trees of small sentences, and always a tree."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.trees import first_fault
from derivlang.parsing.inference import best_heads, best_tree
from tests.strategies import laws


@cache
def all_trees(n: int) -> np.ndarray:
    """Every head sequence of n words that is a tree with one root."""
    offsets = np.array([0, n])
    found = [heads for heads in product(range(n + 1), repeat=n) if first_fault(np.array(heads), offsets) is None]
    return np.array(found)


def total(arcs: np.ndarray, heads: np.ndarray) -> np.ndarray:
    return arcs[np.arange(arcs.shape[0]), heads].sum(-1)


@pytest.mark.parametrize(("n", "trees"), [(1, 1), (2, 2), (3, 9), (4, 64)])
def test_there_are_n_to_the_n_minus_1_trees(n: int, trees: int) -> None:
    assert len(all_trees(n)) == trees


@laws
@given(st.integers(1, 5), st.integers(0, 2**32), st.sampled_from([3, 10, 1000]), st.sampled_from([0, 20]))
def test_no_tree_is_better(n: int, seed: int, spread: int, bonus: int) -> None:
    arcs = np.random.default_rng(seed).integers(-spread, spread, (n, n + 1)).astype(np.float32)
    arcs[:, 0] += bonus  # many words would rather be roots
    arcs[np.arange(n), np.arange(n) + 1] = -np.inf
    best = best_tree(arcs)
    assert first_fault(best, np.array([0, n])) is None
    assert total(arcs, best) == total(arcs, all_trees(n)).max()


@laws
@given(st.lists(st.integers(1, 25), min_size=1, max_size=6), st.integers(0, 2**32))
def test_a_batch_gives_what_each_sentence_gives(lengths: list[int], seed: int) -> None:
    draws, longest = np.random.default_rng(seed), max(lengths)
    arcs = np.full((len(lengths), longest, longest + 1), -np.inf, np.float32)
    for b, n in enumerate(lengths):
        arcs[b, :n, : n + 1] = draws.integers(-50, 50, (n, n + 1))
        arcs[b, np.arange(n), np.arange(n) + 1] = -np.inf
    heads = best_heads(arcs, np.array(lengths))
    for b, n in enumerate(lengths):
        assert first_fault(heads[b, :n], np.array([0, n])) is None
        assert total(arcs[b, :n], heads[b, :n]) == total(arcs[b, :n], best_tree(arcs[b, :n, : n + 1]))
        assert not heads[b, n:].any()
