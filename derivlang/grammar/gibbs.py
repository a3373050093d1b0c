"""Large families: orders by insertion and Gibbs sampling, where exact tables would not fit.

Dependents are inserted one by one in surface order, each at a gap drawn from its conditional distribution given those
already inserted. Then, for some sweeps, each dependent in turn is taken out and inserted again. Every step of a sweep
leaves the model's distribution invariant, so more sweeps come nearer to it; there are `SWEEPS`, fewer above 500
dependents. Under `best` each gap is the best one, and sweeps end when nothing moves. A step costs a few operations on
arrays as long as the family.

Above `MOST_TOGETHER` dependents (no sentence has so many under one head) the work would grow with the square of their
number. Each stretch of that length, in surface order, is then ordered around the head by itself. On each side of the
head the stretches follow one another.
"""

from __future__ import annotations

import numpy as np

from derivlang.core.arrays import Int32, Int64
from derivlang.core.keys import Draws, fractions
from derivlang.grammar.local import Local
from derivlang.grammar.weights import Float

MOST_TOGETHER = 1000
SWEEPS = 4
_MOST_STEPS = 2000  # dependents moved in all sweeps
_KEEP = 1e-7  # score of a pair that keeps its surface order, under `best`


def n_sweeps(n_dependents: int) -> int:
    """Return the number of sweeps."""
    return min(SWEEPS, max(1, _MOST_STEPS // max(n_dependents, 1)))


def arrange(local: Local, labels: Int64, head: int, key: np.uint64, draws: Draws, *, best: bool = False) -> Int32:
    """Return the order int32[n] of one family of n members.

    local: scores of the family's distinct labels (b = 1). labels: int64[n - 1], label of each dependent. head: position
    of the head in surface order. It uses the draws of (key, 1), (key, 2) …
    """
    left, right, first_draw = [], [], 1
    sweeps = n_sweeps(len(labels))
    for begin in range(0, len(labels), MOST_TOGETHER):
        some = labels[begin : begin + MOST_TOGETHER]
        steps = len(some) * (1 + sweeps)
        drawn = draws.draw(np.full(steps, key, np.uint64), np.arange(first_draw, first_draw + steps))
        first_draw += steps
        u = fractions(drawn)
        # The head's place counts from the begin of the stretch; it may lie before or behind the stretch.
        line, n_left = _line(local, some, head - begin, sweeps, u, best)
        left.append(begin + line[:n_left])
        right.append(begin + line[n_left:])
    members = np.concatenate([*left, *right])
    # From dependents to members: with the head at 1 the dependents 0, 1, 2 are the members 0, 2, 3.
    members += members >= head
    return np.insert(members, sum(map(len, left)), head).astype(np.int32)


def _line(local: Local, labels: Int64, head: int, sweeps: int, u: Float, best: bool) -> tuple[Int64, int]:
    """Return (the dependents in their new order, the number left of the head). u: one draw per step."""
    d = len(labels)
    line = np.zeros(0, np.int64)
    n_left = 0
    step = 0
    for x in range(d):
        place, is_left = _choose(local, labels, line, n_left, x, u[step], head, best)
        line = np.insert(line, place, x)
        n_left += is_left
        step += 1
    for _ in range(sweeps):
        before = (line.tolist(), n_left)
        for x in range(d):
            at = int(np.flatnonzero(line == x)[0])
            # Before the line gets shorter: whether x stood left of the head.
            n_left -= at < n_left
            line = np.delete(line, at)
            place, is_left = _choose(local, labels, line, n_left, x, u[step], head, best)
            line = np.insert(line, place, x)
            n_left += is_left
            step += 1
        if best and before == (line.tolist(), n_left):
            break
    return line, n_left


def _choose(
    local: Local, labels: Int64, line: Int64, n_left: int, x: int, u: float, head: int, best: bool
) -> tuple[int, bool]:
    """Return (index at which x is inserted into the line, whether it is left of the head), given the others.

    There is a gap more than indices, because the head stands in the line of gaps: with line [a, b], n_left = 1, gaps
    are 0 before a, 1 before the head, 2 after the head, 3 after b; gaps 1 and 2 both insert at index 1.
    """
    scores = _gaps(local, labels, line, n_left, x)
    if best:
        scores += _KEEP * _kept(line, n_left, x, head)
        gap = int(scores.argmax())
    else:
        ends = np.exp(scores - scores.max()).cumsum()
        gap = min(int(np.searchsorted(ends, u * ends[-1], "right")), len(ends) - 1)
    return (gap, True) if gap <= n_left else (gap - 1, False)


def _kept(line: Int64, n_left: int, x: int, head: int) -> Float:
    """Return for each gap the number of pairs with x that are in surface order."""
    earlier = np.concatenate([line[:n_left] < x, [head <= x], line[n_left:] < x]).astype(np.float64)
    ahead = np.concatenate([[0.0], earlier.cumsum()])
    behind = (1 - earlier).sum() - np.concatenate([[0.0], (1 - earlier).cumsum()])
    return np.asarray(ahead + behind)


def _gaps(local: Local, labels: Int64, line: Int64, n_left: int, x: int) -> Float:
    """Return float64[m + 2]: the score of x at each gap between the m others and the head, from the left."""
    me = labels[x]
    left, right = labels[line[:n_left]], labels[line[n_left:]]
    on_left = _chain(local.left[..., 0], left, me) + local.before[me, 0] + local.across[me, right, 0].sum()
    on_right = _chain(local.right[..., 0], right, me) + local.after[me, 0] + local.across[left, me, 0].sum()
    # neighbours at each gap: x follows the one before (into), the one after follows x (out_of), and the two of them
    # are neighbours no longer (lost)
    following = local.next[..., 0]
    into = np.concatenate([local.first[[me], 0], following[left, me], local.from_head[[me], 0], following[right, me]])
    out_of = np.concatenate([following[me, left], local.to_head[[me], 0], following[me, right], local.last[[me], 0]])
    lost = np.concatenate(
        [
            local.first[left[:1], 0] if len(left) else local.bare[:1, 0],
            following[left[:-1], left[1:]],
            local.to_head[left[-1:], 0],
            local.from_head[right[:1], 0] if len(right) else local.bare[1:, 0],
            following[right[:-1], right[1:]],
            local.last[right[-1:], 0],
        ]
    )
    return np.asarray(np.concatenate([on_left, on_right]) + into + out_of - lost)


def _chain(pair: Float, side: Int64, me: np.int64) -> Float:
    """Return float64[len(side) + 1]: the pairs of `me` with the members of its side, at each gap."""
    ahead, behind = pair[side, me], pair[me, side]
    out = np.zeros(len(side) + 1)
    np.cumsum(ahead - behind, out=out[1:])
    return np.asarray(out + behind.sum())
