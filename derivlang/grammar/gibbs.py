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
from derivlang.grammar.enumerate_orders import Local
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
        on_left, on_right = _line(local, some, head - begin, sweeps, u, best)
        left.append(begin + on_left)
        right.append(begin + on_right)
    members = np.concatenate([*left, *right])
    # From dependents to members: with the head at 1 the dependents 0, 1, 2 are the members 0, 2, 3.
    members += members >= head
    return np.insert(members, sum(map(len, left)), head).astype(np.int32)


def _gaps(tables: Local, left: Int64, right: Int64, me: int) -> Float:
    """Return float64[m + 2]: the score of a dependent with label `me` at each gap of a line, from the left.

    tables: scores of L labels, without the axis of families; the head, BOS and EOS are the labels L, L + 1 and L + 2.
    left, right: the labels of the m dependents on either side of the head.
    """
    head = tables.n_dependents
    on_left = _chain(tables.left, left, me) + tables.before[me] + tables.across[me, right].sum()
    on_right = _chain(tables.right, right, me) + tables.after[me] + tables.across[left, me].sum()
    # The one before the gap and `me` become neighbours, `me` and the one behind it too; those two are no longer.
    line = np.concatenate([[head + 1], left, [head], right, [head + 2]])
    before, behind = line[:-1], line[1:]
    out = np.concatenate([on_left, on_right]) + tables.next[before, me] + tables.next[me, behind]
    return np.asarray(out - tables.next[before, behind])


def _chain(pairs: Float, side: Int64, me: int) -> Float:
    """Return float64[len(side) + 1]: the pairs of a dependent with the members of its side at each gap.

    At the first gap all of them stand behind it; at each later one, one more of them stands ahead of it.
    """
    ahead, behind = pairs[side, me], pairs[me, side]
    return np.asarray(np.append(0.0, np.cumsum(ahead - behind)) + behind.sum())


def _line(local: Local, labels: Int64, head: int, sweeps: int, u: Float, best: bool) -> tuple[Int64, Int64]:
    """Return the dependents left of the head and those right of it, in their new order. u: one draw per step."""
    tables, left, right, draws = local.take(0), list[int](), list[int](), iter(u.tolist())
    for turn in range(1 + sweeps):
        earlier = [*left], [*right]
        for x in range(len(labels)):
            if turn:
                (left if x in left else right).remove(x)
            sides = np.array(left, np.int64), np.array(right, np.int64)
            scores = _gaps(tables, labels[sides[0]], labels[sides[1]], int(labels[x]))
            if best:
                scores += _KEEP * _kept(*sides, x, head)
                gap = int(scores.argmax())
            else:
                scores -= np.maximum.reduce(scores)
                ends = np.add.accumulate(np.exp(scores, out=scores))
                gap = min(int(ends.searchsorted(next(draws) * ends[-1], "right")), len(ends) - 1)
            if gap <= len(left):
                left.insert(gap, x)
            else:
                right.insert(gap - len(left) - 1, x)
        if best and turn and earlier == (left, right):
            break
    return np.array(left, np.int64), np.array(right, np.int64)


def _kept(left: Int64, right: Int64, x: int, head: int) -> Float:
    """Return for each gap the number of pairs with x that are in surface order."""
    earlier = np.concatenate([left < x, [head <= x], right < x]).astype(np.float64)
    ahead = np.concatenate([[0.0], earlier.cumsum()])
    behind = (1 - earlier).sum() - np.concatenate([[0.0], (1 - earlier).cumsum()])
    return np.asarray(ahead + behind)
