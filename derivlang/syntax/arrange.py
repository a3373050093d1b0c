"""Arrangement: from the trees of some words, and an order for each family, to the new position of each word.

    words -> parts (freeze) -> forest of parts without marks and pins -> orders of families -> layout -> positions

*Pins* stay in place: the tail of a tree (its final marks) and marks at its beginning. Other marks go with their phrase
(`marks.py`); no tree begins with a mark unless it did before. Every word gets a position, whatever its tree looks like.
A tree without crossing arcs (arcs of such marks aside) has none afterwards.

    word        0 He   1 came   2 ,   3 said   4 Ann   5 Lee   6 .      parent 1 3 1 -1 3 4 3, one bond: Ann Lee
    groups      0      1        2     3        4       -       5        group offsets 0 1 2 3 4 6 7
    gone                        mark                           pin
    inner       0      1              2        3                        parent 1 2 -1 2
    marks       the comma, AFTER inner node 1 (`He came`)
    layout      families reversed: Ann Lee | said | came He ,  and the tail `.`
    place       5      4        3     2        0       1       6        Ann Lee said , came He .  (no comma before `.`)

Crossing arcs: the parts that may cause them, and the words that such a part must include so that no order can.

A part is laid out as one node. That is safe if the part has one connection to the rest:

    only its highest word has dependents outside the part                 `Ada Lovelace` with an adjective of `Ada`
    or its words have one head outside the part, and no dependents there  `do n't`, both under the verb

Any other part is *open*. In `and in the house`, one multiword token in Hebrew, `and` depends on a later verb, but the
dependents of `house` would move around the whole part, and their arcs would cross the arc of `and`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, Ints, expand_ranges, lengths_of
from derivlang.syntax.forest import Forest
from derivlang.syntax.layout import Listing, Members, laid_out, list_families
from derivlang.syntax.marks import AFTER, BEFORE
from derivlang.syntax.nodes import LayoutNodes, Rules, TreeBlock, inside, prepare, with_whole_pairs


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


WORDS_AT_ONCE = 1 << 17  # words laid out at once: fewer calls, and arrays that still nearly fit the cache

Choose = Callable[[TreeBlock, Members], Listing]  # of families in surface order -> the reordered families


def arrange(block: TreeBlock, choose: Choose, rules: Rules) -> tuple[Int32, Counter[str]]:
    """Return (int32[n], the new position of each word; counts by reason)."""
    if not rules.free_marks:
        bonds = block.bonds.copy()
        # A tail stays in place even if its first mark is bound to the word before it.
        bonds[(block.forest.trees[1:] - block.tails)[block.tails > 0]] = False
        block = replace(block, bonds=bonds)
    place = np.empty(len(block.forest), np.int32)
    counts: Counter[str] = Counter()
    for part, _, words in block.stretches(WORDS_AT_ONCE):
        positions, crossing, kept = _arranged(part, choose, rules)
        place[words] = words.start + positions
        counts["trees-not-projective"] += crossing
        counts["trees-kept-for-a-mark"] += kept
    # +counts leaves out reasons whose number is 0.
    return place, +counts


def _laid_out(block: TreeBlock, choose: Choose, rules: Rules) -> tuple[Int64, LayoutNodes, Listing, Bool]:
    """Return (positions int64[n], the nodes, their reordered families, bool[n] the bonds to add).

    The positions of a tree to which bonds are to be added are not valid.
    """
    nodes, more = prepare(block, rules)
    listing = choose(block, Members(nodes.inner, list_families(nodes.inner), nodes.top))
    place = laid_out(nodes, listing)
    invalid = np.zeros(len(block.forest.trees) - 1, bool)
    invalid[block.forest.tree_of[more]] = True
    more |= _taken_in(block, nodes, place) & ~invalid[block.forest.tree_of]
    return place, nodes, listing, more


def _arranged(block: TreeBlock, choose: Choose, rules: Rules) -> tuple[Int64, int, int]:
    """Return (positions int64[n], the number of trees that are not projective, the number that keep their order).

    Trees are arranged again with more bonds until no arcs cross that did not cross before, and no tree begins with a
    mark. A comma before the first phrase moves behind it; if a tree begins with another mark, such as a bracket, it
    keeps its order.
    """
    place, nodes, listing, more = _laid_out(block, choose, rules)
    again = np.unique(block.forest.tree_of[more]).astype(np.int64)
    kept = np.zeros(0, np.int64)
    if not rules.free_marks:
        place, kept = _without_leading_marks(block, nodes, listing, place)
    n_kept = len(np.setdiff1d(kept, again))
    if len(again):
        part, words = replace(block, bonds=block.bonds | more).take(again)
        positions, _, more_kept = _arranged(part, choose, rules)
        place[words] = words[positions]
        n_kept += more_kept
    return place, int(nodes.words[0].is_crossing.sum()), n_kept


def _without_leading_marks(block: TreeBlock, nodes: LayoutNodes, listing: Listing, place: Int64) -> tuple[Int64, Int64]:
    """Return (positions with no mark at the beginning of a tree, the trees that keep their order for that)."""
    forest = block.forest
    marks = nodes.marks
    of_word = np.full(len(forest), -1)
    # of_word[w]: the number of the mark that word w is, -1 for other words.
    of_word[nodes.groups[marks.at]] = np.arange(len(marks.at))
    wrong = _leading_marks(block, place)
    while len(wrong):
        which = of_word[wrong]
        which = which[which >= 0]  # the others are in parts of several words, or have dependents
        which = which[(marks.side[which] == BEFORE) & ~marks.paired[which]]
        if not len(which):
            break
        side = marks.side.copy()
        side[which] = AFTER
        marks = replace(marks, side=side)
        nodes = replace(nodes, marks=marks)
        place = laid_out(nodes, listing)
        wrong = _leading_marks(block, place)
    trees = np.unique(forest.tree_of[wrong]).astype(np.int64)
    kept = expand_ranges(forest.trees[:-1][trees], lengths_of(forest.trees)[trees])
    place[kept] = kept
    return place, trees


def _taken_in(block: TreeBlock, nodes: LayoutNodes, place: Int64) -> Bool:
    """Return bool[n]: the bonds to add in trees that had no crossing arcs, but have some at these positions."""
    more = np.zeros(len(block.forest), bool)
    words, part, kept = nodes.words
    yields = open_yields(words, part)
    if not len(yields):
        return more
    trees = np.unique(words.tree_of[yields]).astype(np.int64)
    trees = trees[~words.is_crossing[trees]]
    some, at = words.take(trees)
    rank = np.empty(len(at), np.int64)
    # Positions count marks and pins, too; the forest of `some` does not. So positions become ranks: 0 3 2 -> 0 2 1.
    rank[np.argsort(place[kept[at]], kind="stable")] = np.arange(len(at))
    crosses = np.zeros(len(words.trees) - 1, bool)
    crosses[trees] = reordered(some, rank).is_crossing
    # Only where arcs cross now: in other trees the open parts do no harm.
    yields = yields[crosses[words.tree_of[yields]]]
    first, last = words.edges
    more[inside(kept[first[yields]], kept[last[yields]] + 1)] = True
    return with_whole_pairs(block.bonds | more, nodes) & ~block.bonds


def _leading_marks(block: TreeBlock, place: Int64) -> Int64:
    """Return the punctuation words at the beginning of trees that did not begin with punctuation in the source."""
    is_mark = block.seen.has_tag("PUNCT")
    trees = block.forest.trees
    begins = trees[:-1][np.diff(trees) > 0]
    begins = begins[~is_mark[begins]]
    index = np.empty(len(place), np.int64)
    index[place] = np.arange(len(place))
    first = index[begins]
    return first[is_mark[first]]
