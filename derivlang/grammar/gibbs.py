"""Large families: orders by insertion and Gibbs sampling, where exact tables would not fit.

Members are put in one by one in surface order, each at a place drawn from its conditional distribution given those
that stand; then, for some sweeps, each dependent in turn is taken out and put back at a place drawn likewise. Every
step leaves the model's distribution as it is, so that more sweeps come nearer to it; `SWEEPS` are done, fewer above
250 members. With `best` each place is the best one, and sweeps end when nothing moves. A step costs a few
operations on arrays as long as the family.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from derivlang.core.arrays import Int32, Int64, UInt64
from derivlang.grammar.local import Local
from derivlang.grammar.weights import Float

if TYPE_CHECKING:
    from derivlang.grammar.order_model import Draws

SWEEPS = 4
_MOST_STEPS = 2000


def n_sweeps(n_dependents: int) -> int:
    """How often each dependent is moved."""
    return min(SWEEPS, max(1, _MOST_STEPS // max(n_dependents, 1)))


def arrange(local: Local, labels: Int64, head: int, key: np.uint64, draws: Draws, *, best: bool = False) -> Int32:
    """The order int32[n] of one family of n members.

    local: of the family's distinct labels, one family (b = 1); labels: int64[n - 1], which of them each dependent
    has. head: place of the head in surface order. Draws of (key, 1), (key, 2) … are used.
    """
    d = len(labels)
    sweeps = n_sweeps(d)
    keys: UInt64 = np.full(d * (1 + sweeps), key, np.uint64)
    u = (draws.draw(keys, np.arange(1, len(keys) + 1)) >> np.uint64(11)) * 2.0**-53
    line = np.zeros(0, np.int64)  # dependents as they stand, the head left out
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
            n_left -= at < n_left
            line = np.delete(line, at)
            place, is_left = _choose(local, labels, line, n_left, x, u[step], head, best)
            line = np.insert(line, place, x)
            n_left += is_left
            step += 1
        if best and before == (line.tolist(), n_left):
            break
    members = line + (line >= head)
    return np.insert(members, n_left, head).astype(np.int32)


def _choose(
    local: Local, labels: Int64, line: Int64, n_left: int, x: int, u: float, head: int, best: bool
) -> tuple[int, bool]:
    """(place in the line, left of the head?) for x, given the others."""
    scores = _gaps(local, labels, line, n_left, x)
    if best:
        scores += _KEEP * _kept(line, n_left, x, head)
        gap = int(scores.argmax())
    else:
        ends = np.exp(scores - scores.max()).cumsum()
        gap = min(int(np.searchsorted(ends, u * ends[-1], "right")), len(ends) - 1)
    return (gap, True) if gap <= n_left else (gap - 1, False)


_KEEP = 1e-7


def _kept(line: Int64, n_left: int, x: int, head: int) -> Float:
    """For each gap, how many of x's pairs stand as in surface order."""
    earlier = np.concatenate([line[:n_left] < x, [head <= x], line[n_left:] < x]).astype(np.float64)
    ahead = np.concatenate([[0.0], earlier.cumsum()])
    behind = (1 - earlier).sum() - np.concatenate([[0.0], (1 - earlier).cumsum()])
    return np.asarray(ahead + behind)


def _gaps(local: Local, labels: Int64, line: Int64, n_left: int, x: int) -> Float:
    """float64[m + 2]: the score of x at each gap between the m others and the head, from the left."""
    me = labels[x]
    left, right = labels[line[:n_left]], labels[line[n_left:]]
    on_left = _chain(local.left[..., 0], left, me) + local.before[me, 0] + local.across[me, right, 0].sum()
    on_right = _chain(local.right[..., 0], right, me) + local.after[me, 0] + local.across[left, me, 0].sum()
    # neighbours: of gap g stand[g] before and stand[g + 1] after it
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
    """float64[len(side) + 1]: the pairs of `me` with the members of its side, at each gap."""
    ahead, behind = pair[side, me], pair[me, side]
    out = np.zeros(len(side) + 1)
    np.cumsum(ahead - behind, out=out[1:])
    return np.asarray(out + behind.sum())
