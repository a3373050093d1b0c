"""Crossing arcs: the parts that may cause them, and the words that such a part must include so that no order can.

A part is laid out as one node. That is safe if the part has one connection to the rest:

    only its highest word has dependents outside the part                 `Ada Lovelace` with an adjective of `Ada`
    or its words have one head outside the part, and no dependents there  `do n't`, both under the verb

Any other part is *open*. In `and in the house`, one multiword token in Hebrew, `and` depends on a later verb, but the
dependents of `house` would move around the whole part, and their arcs would cross the arc of `and`.
"""

from __future__ import annotations

import numpy as np

from derivlang.core.arrays import Int64, Ints
from derivlang.syntax.forest import Forest


def open_yields(forest: Forest, part: Ints) -> Int64:
    """Return the nodes whose whole yields open parts must include, ascending. part: int[n], number of each part.

    The yields of a projective tree are ranges of nodes, and each of these overlaps its part. A part that includes them
    may still be open: call it again.
    """
    n_parts = int(part[-1]) + 1 if len(part) else 0
    sizes = np.bincount(part, minlength=n_parts)
    inside = np.append((sizes > 1)[part], False)  # words of parts with several words; False for parent -1
    words = np.flatnonzero(inside)
    if not len(words):
        return words
    parent = forest.parent
    out = parent[words] < 0  # a head outside the part
    out |= part[parent[words]] != part[words]
    tops = np.zeros(len(forest), bool)
    tops[words[out]] = True
    busy = np.zeros(len(forest), bool)  # words with a dependent outside their part
    child = np.flatnonzero(inside.take(parent))
    child = child[part[child] != part[parent[child]]]
    busy[parent[child]] = True
    # Parts with several words that depend on words outside.
    several = np.bincount(part[words[out]], minlength=n_parts) > 1
    # A dependent outside is allowed only at the one highest word of its part. Every other busy word brings its yield
    # in.
    nodes = words[busy[words] & (~tops[words] | several[part[words]])]
    at = words[tops[words] & several[part[words]]]
    head, of = parent[at], part[at]
    low, high = np.full(n_parts, len(forest)), np.full(n_parts, -1)
    np.minimum.at(low, of, head)
    np.maximum.at(high, of, head)
    apart = (low < high)[of]
    if apart.any():
        head, of = head[apart], of[apart]
        depth = np.where(head >= 0, forest.depth[head], -1)
        # If the heads outside differ, the part takes in the yield of the deepest one; the next call looks at the heads
        # that are left.
        deepest = np.full(n_parts, -1)
        np.maximum.at(deepest, of, depth)
        nodes = np.union1d(nodes, head[depth == deepest[of]])
    return nodes


def reordered(forest: Forest, place: Int64) -> Forest:
    """Return the forest with its nodes in another order inside their trees.

    place: int64[n], the new position of each node. parent [1, -1], place [1, 0] -> parent [-1, 0].
    """
    parent = np.empty_like(forest.parent)
    parent[place] = np.where(forest.parent < 0, -1, place[forest.parent])
    return Forest(parent, forest.trees)
