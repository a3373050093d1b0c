"""The best tree for given arc scores: the best head of each word if that is a tree, else a maximum spanning tree.

Chu and Liu (1965), Edmonds (1967): each word takes its best head. If that leaves a cycle, the cycle becomes one node,
and the score of an arc into it is reduced by the score of the cycle's arc that it replaces. If the best
tree has several roots, the best tree with one root has one of them as its root (Gabow and Tarjan 1984; Zmigrod, Vieira
and Cotterell 2020, "Please Mind the Root"), so each is tried. Scores are multiples of 1 / 1024, so that sums are
exact; ties go to the first head.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Bool, Int64

Float: TypeAlias = NDArray[np.floating]
ROOTS = 8  # roots to try, the most promising first: a sentence of 100 full stops may have 50, which takes too long


def best_heads(arcs: Float, lengths: Int64) -> Int64:
    """Return int64[B, L], the heads of each sentence's best tree: 1-based, 0 for the root and past the end.

    arcs: float[B, L, 1 + L], [sentence, word, head], with -inf if there is no arc. lengths: int64[B].
    """
    inside = np.arange(arcs.shape[1])[None, :] < lengths[:, None]
    head: Int64 = np.where(inside, arcs.argmax(2), 0)
    for b in np.flatnonzero(~_are_trees(head, inside)).tolist():
        n = int(lengths[b])
        head[b, :n] = best_tree(arcs[b, :n, : n + 1])
    return head


def best_tree(arcs: Float) -> Int64:
    """Return int64[n], the heads of the best tree with one root; arcs: float[n, 1 + n], column 0 the root."""
    n = len(arcs)
    scores = np.full((n + 1, n + 1), -np.inf)
    # Row 0 is the root, which has no head; word i is row i + 1.
    scores[1:] = arcs
    scores[np.arange(n + 1), np.arange(n + 1)] = -np.inf
    best: Int64 = _spanning(scores)[1:]
    roots = np.flatnonzero(best == 0)
    if len(roots) > 1:
        most = -np.inf
        from_root = scores[1:, 0].copy()
        # An upper bound for each root: all other words with their best head among the words.
        others = scores[1:, 1:].max(1)
        bound = others.sum() - others[roots] + from_root[roots]
        for i in np.argsort(-bound, kind="stable")[:ROOTS]:
            root = roots[i]
            if bound[i] <= most:
                break
            # Only this word may depend on the root, so that the best tree has one root.
            scores[1:, 0] = -np.inf
            scores[root + 1, 0] = from_root[root]
            head = _spanning(scores)[1:]
            total = scores[np.arange(1, n + 1), head].sum()
            if total > most:
                best, most = head, total
    return best


def _are_trees(head: Int64, inside: Bool) -> Bool:
    """Return bool[B]: whether the heads have one root and no cycle.

    Each round doubles the steps that a word has gone up. A chain 0 <- 1 <- 2 <- 3 <- 4 (node 0 the root):

        above      0 0 1 2 3      one step up
                   0 0 0 1 2      two
                   0 0 0 0 0      four: all have reached the root; words on a cycle never do
    """
    one_root = ((head == 0) & inside).sum(1) == 1
    above = np.concatenate([np.zeros((len(head), 1), head.dtype), head], axis=1)
    for _ in range(head.shape[1].bit_length()):
        above = np.take_along_axis(above, above, 1)
    return np.asarray(one_root & (above == 0).all(1))


def _spanning(scores: NDArray[np.float64]) -> Int64:
    """Return int64[n], the heads of the best tree over nodes 0 … n - 1; node 0 is the root, and its head is 0.

    scores: float[n, n], [node, head].
    """
    n = len(scores)
    head: Int64 = scores.argmax(1)
    head[0] = 0
    cycle = _find_cycle(head)
    if not len(cycle):
        return head
    outside = np.ones(n, bool)
    outside[cycle] = False
    rest = np.flatnonzero(outside)
    m = len(rest)
    cost = scores[cycle, head[cycle]]
    into = scores[cycle[:, None], rest] - cost[:, None]  # an arc into a word replaces its arc within the cycle
    out = scores[rest[:, None], cycle]
    # Nodes of `rest` are numbered from 0, the cycle is node m. Four nodes with the cycle [1, 2]: rest [0, 3], so node 3
    # is 1 and the cycle is 2. rest[0] is 0, so the root stays node 0.
    smaller = np.full((m + 1, m + 1), -np.inf)
    smaller[:m, :m] = scores[rest[:, None], rest]
    smaller[m, :m] = into.max(0)
    smaller[:m, m] = out.max(1)
    smaller_heads = _spanning(smaller)
    # The arc into the cycle breaks it: the word that the arc enters leaves the cycle's own arc.
    entered = into[:, smaller_heads[m]].argmax()
    head[cycle[entered]] = rest[smaller_heads[m]]
    for i in range(1, m):  # rest[0] is the root
        head[rest[i]] = cycle[out[i].argmax()] if smaller_heads[i] == m else rest[smaller_heads[i]]
    return head


def _find_cycle(head: Int64) -> Int64:
    """Return the nodes of one cycle, ascending; none if every node reaches 0."""
    n = len(head)
    above = head
    for _ in range(n.bit_length()):
        above = above[above]
    stuck = np.flatnonzero(above != 0)
    if not len(stuck):
        return stuck
    node = int(above[stuck[0]])  # n steps up from a node without a way to 0 is a node on a cycle
    nodes = [node]
    while (node := int(head[node])) != nodes[0]:
        nodes.append(node)
    return np.array(sorted(nodes), np.int64)
