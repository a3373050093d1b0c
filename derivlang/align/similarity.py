"""Links from a matrix of similarities between the words of two sentences, computed from the states of any encoder.

    argmax      links that are the best of their row and of their column
    itermax     argmax, repeated on the rest: words without a link, and those with one, weighted by alpha
    transport   optimal transport between the words of both sentences, then itermax on its plan

Source: argmax and itermax: Jalili Sabet, Dufter, Yvon and Schütze 2020, §2.2 (SimAlign). Optimal transport: Chi et
al. 2021, §3.2 (XLM-Align), by their released aligner: K = max(1e-6, h_i · h_j), Sinkhorn normalises columns, then
rows, and itermax runs on the plan.

    links = itermax(cosine(source_states, target_states))      bool[I, J]
"""

from __future__ import annotations

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.core.arrays import Bool
from derivlang.core.threads import one_thread

FLOOR = 1e-6  # smallest similarity in optimal transport


@one_thread()
def cosine(source: Floats, target: Floats) -> Floats:
    """Return the cosines [I, J] of states [I, D] and [J, D]; 0 for a state of zeros."""
    return np.asarray(_unit(source) @ _unit(target).T)


def argmax(similarity: Floats) -> Bool:
    """Return bool[I, J]: links that are the best of their row and of their column (ties: the first).

    [[.9, .8], [.7, .1]] -> [[T, F], [F, F]]: the second word prefers the first column, which prefers the first word.
    """
    n_source, n_target = similarity.shape
    links = np.zeros(similarity.shape, bool)
    if n_source and n_target:
        target, source = np.argmax(similarity, 1), np.argmax(similarity, 0)
        mutual = np.flatnonzero(source[target] == np.arange(n_source))
        links[mutual, target[mutual]] = True
    return links


def itermax(similarity: Floats, iterations: int = 2, alpha: float = 0.9) -> Bool:
    """Return bool[I, J]: the links of `iterations` rounds of argmax; negative similarities count as 0.

    After each round the similarity of two words is kept if neither has a link, multiplied by alpha if one has, and set
    to 0 if both have. Rounds end early when nothing is left to link.
    """
    similarity = np.maximum(similarity, 0)
    links = argmax(similarity) & (similarity > 0)
    for _ in range(iterations - 1):
        source, target = np.any(links, axis=1, keepdims=True), np.any(links, axis=0, keepdims=True)
        if source.all() and target.all():
            break
        weights = np.where(source & target, 0.0, np.where(source | target, alpha, 1.0))
        left = similarity * weights
        new = argmax(left) & (left > 0) & ~links
        if not new.any():
            break
        links |= new
    return links


def sinkhorn(similarity: Floats, iterations: int = 2, mu: float = 1.0) -> Floats:
    """Return the transport plan [I, J] of K = max(1e-6, similarity) ** (1 / mu), with uniform marginals.

    Each iteration scales columns, then rows, to sum to 1, so rows sum to 1 at the end.
    """
    plan = np.maximum(np.asarray(similarity, np.float64), FLOOR) ** (1 / mu)
    for _ in range(iterations):
        plan = plan / plan.sum(0, keepdims=True)
        plan = plan / plan.sum(1, keepdims=True)
    return plan


def transport(
    similarity: Floats, *, sinkhorn_iterations: int = 2, mu: float = 1.0, iterations: int = 2, alpha: float = 0.9
) -> Bool:
    """Return bool[I, J]: itermax on the transport plan. The defaults are those of XLM-Align."""
    if not similarity.size:
        return np.zeros(similarity.shape, bool)
    return itermax(sinkhorn(similarity, sinkhorn_iterations, mu), iterations, alpha)


def _unit(states: Floats) -> Floats:
    length = np.linalg.norm(states, axis=1, keepdims=True)
    return np.asarray(states / np.where(length > 0, length, 1))
