"""Links from a matrix of similarities between the words of two sentences, computed from the states of any encoder.

    argmax      links that are the best of their row and of their column
    itermax     argmax, repeated on the rest: words without a link, and those with one, weighted by alpha
    transport   optimal transport between the words of both sentences, then itermax on its plan

Source: argmax and itermax: Jalili Sabet, Dufter, Yvon and Schütze 2020, §2.2 (SimAlign). Optimal transport: Chi et
al. 2021, §3.2 (XLM-Align), by their released aligner: K = max(1e-6, h_i · h_j), Sinkhorn normalises columns, then
rows, and itermax runs on the plan.

    links = itermax(cosine(source_states, target_states))      bool[I, J]

Similarities are numpy arrays or torch tensors; the result is of the same kind and on the same device, which nothing
here waits for. Dimensions before the last two are a batch of matrices. A cell of -inf does not belong to the matrix
of its batch: it takes part in nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.core.arrays import Bool
from derivlang.core.threads import one_thread

FLOOR = 1e-6  # smallest similarity in optimal transport
Matrix: TypeAlias = Any  # a numpy array or a torch tensor


@one_thread()
def cosine(source: Floats, target: Floats) -> Floats:
    """Return the cosines [I, J] of states [I, D] and [J, D]; 0 for a state of zeros."""
    return np.asarray(_unit(source) @ _unit(target).T)


def argmax(similarity: Matrix) -> Matrix:
    """Return bool[..., I, J]: links that are the best of their row and of their column (ties: the first).

    [[.9, .8], [.7, .1]] -> [[T, F], [F, F]]: the second word prefers the first column, which prefers the first word.
    """
    return _best(similarity, -1) & _best(similarity, -2)


def either(similarity: Matrix) -> Matrix:
    """Return bool[..., I, J]: the positive cells that are the best of their row or of their column.

    [[.9, .8], [.7, .1]] -> [[T, T], [T, F]]
    """
    return (_best(similarity, -1) | _best(similarity, -2)) & (similarity > 0)


def itermax(similarity: Matrix, iterations: int = 2, alpha: float = 0.9) -> Matrix:
    """Return bool[..., I, J]: the links of `iterations` rounds of argmax; negative similarities count as 0.

    After each round the similarity of two words is kept if neither has a link, multiplied by alpha if one has, and set
    to 0 if both have.
    """
    similarity = similarity.clip(min=0)
    links = argmax(similarity) & (similarity > 0)
    for _ in range(iterations - 1):
        source, target = links.any(axis=-1, keepdims=True), links.any(axis=-2, keepdims=True)
        left = similarity * ~(source | target) + alpha * similarity * (source ^ target)
        links = links | (argmax(left) & (left > 0))
    return links


def sinkhorn(similarity: Matrix, iterations: int = 2, mu: float = 1.0) -> Matrix:
    """Return the transport plan [..., I, J] of K = max(1e-6, similarity) ** (1 / mu), with uniform marginals.

    Each iteration scales columns, then rows, to sum to 1, so rows sum to 1 at the end.
    """
    plan = similarity.clip(min=FLOOR) ** (1 / mu) * (similarity != -np.inf)
    for _ in range(iterations):
        for axis in (-2, -1):
            total = plan.sum(axis=axis, keepdims=True)
            plan = plan / (total + (total == 0))  # a row outside the matrix stays 0
    return plan


def transport(
    similarity: Matrix, *, sinkhorn_iterations: int = 2, mu: float = 1.0, iterations: int = 2, alpha: float = 0.9
) -> Matrix:
    """Return bool[..., I, J]: itermax on the transport plan. The defaults follow XLM-Align."""
    return itermax(sinkhorn(similarity, sinkhorn_iterations, mu), iterations, alpha)


METHODS: dict[str, Callable[[Floats], Bool]] = {"argmax": argmax, "itermax": itermax, "ot": transport}


def usual_layer(n_layers: int) -> int:
    """Return the layer whose states SimAlign aligns, 8 of 12, in a model of this depth; 0 is the embeddings.

    2 -> 1, 6 -> 4, 12 -> 8
    """
    return round(n_layers * 8 / 12)


def _best(similarity: Matrix, axis: int) -> Matrix:
    """Return bool[..., I, J]: the first best cell along an axis."""
    if 0 in similarity.shape:
        return similarity > 0
    place = ((similarity > 0) | True).cumsum(axis) - 1
    return place == similarity.argmax(axis=axis, keepdims=True)


def _unit(states: Floats) -> Floats:
    length = np.linalg.norm(states, axis=1, keepdims=True)
    return np.asarray(states / np.where(length > 0, length, 1))
