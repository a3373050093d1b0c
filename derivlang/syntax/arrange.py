"""Arrangement: from the trees of some words, and an order for each family, to the new position of each word.

    words -> parts (freeze) -> forest of parts without marks and pins -> orders of families -> layout -> positions

*Pins* stay in place: the tail of a tree (its final marks) and marks at its beginning. Other marks go with their phrase
(`marks.py`); no tree begins with a mark unless it did before. Every word gets a position, whatever its tree looks like.
A tree without crossing arcs (arcs of such marks aside) has none afterwards (`crossing.py`).

    word        0 He   1 came   2 ,   3 said   4 Ann   5 Lee   6 .      parent 1 3 1 -1 3 4 3, one bond: Ann Lee
    groups      0      1        2     3        4       -       5        group offsets 0 1 2 3 4 6 7
    gone                        mark                           pin
    inner       0      1              2        3                        parent 1 2 -1 2
    marks       the comma, AFTER inner node 1 (`He came`)
    layout      families reversed: Ann Lee | said | came He ,  and the tail `.`
    place       5      4        3     2        0       1       6        Ann Lee said , came He .  (no comma before `.`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, expand_ranges, lengths_of
from derivlang.syntax.block import Rules, TreeBlock
from derivlang.syntax.crossing import open_yields, reordered
from derivlang.syntax.forest import Forest
from derivlang.syntax.layout import Listing, list_families
from derivlang.syntax.marks import AFTER, BEFORE
from derivlang.syntax.nodes import LayoutNodes, inside, prepare, with_whole_pairs
from derivlang.syntax.places import laid_out

WORDS_AT_ONCE = 1 << 17  # words laid out at once: fewer calls, and arrays that still nearly fit the cache

# (block, inner forest, its families in surface order, the word that represents each node) -> the reordered families.
Choose = Callable[[TreeBlock, Forest, Listing, Int64], Listing]


def arrange(block: TreeBlock, choose: Choose, rules: Rules) -> tuple[Int32, Counter[str]]:
    """Return (int32[n], the new position of each word; counts by reason)."""
    if not rules.free_marks:
        bonds = block.bonds.copy()
        # A tail stays in place even if its first mark is bound to the word before it.
        bonds[(block.forest.trees[1:] - block.tails)[block.tails > 0]] = False
        block = replace(block, bonds=bonds)
    place = np.empty(len(block.forest), np.int32)
    counts: Counter[str] = Counter()
    # An empty array, because np.concatenate fails if there are no stretches.
    again = [np.zeros(0, np.int64)]
    more = np.zeros(len(block.forest), bool)
    for part, first, words in block.stretches(WORDS_AT_ONCE):
        positions, trees, more[words], crossing = _arranged(part, choose, rules)
        place[words] = words.start + positions
        again.append(first + trees)
        counts["trees-not-projective"] += crossing
    block = replace(block, bonds=block.bonds | more)
    # Few trees: they are arranged again, with more care, the trees of all stretches together.
    mended, its_words = block.take(np.concatenate(again))
    for part, _, words in mended.stretches(WORDS_AT_ONCE):
        positions, kept = _with_care(part, choose, rules)
        # The positions count in the trees taken, whose words are whole ranges of the block. its_words [4, 5, 6],
        # positions [1, 0, 2]: the words 4, 5, 6 go to 5, 4, 6.
        place[its_words[words]] = its_words[words][positions]
        counts["trees-kept-for-a-mark"] += kept
    # +counts leaves out reasons whose number is 0.
    return place, +counts


def _arranged(block: TreeBlock, choose: Choose, rules: Rules) -> tuple[Int64, Int64, Bool, int]:
    """Return (positions int64[n], the trees that need more care, bool[n] the bonds to add before, crossing trees).

    The positions of a tree that needs more care are not valid. The last is the number of trees that are not projective.
    """
    place, nodes, _, more = _laid_out(block, choose, rules)
    again = block.forest.tree_of[more]
    if not rules.free_marks:
        again = np.concatenate([again, block.forest.tree_of[_leading_marks(block, place)]])
    return place, np.unique(again).astype(np.int64), more, int(nodes.words[0].is_crossing.sum())


def _laid_out(block: TreeBlock, choose: Choose, rules: Rules) -> tuple[Int64, LayoutNodes, Listing, Bool]:
    """Return (positions int64[n], the nodes, their reordered families, bool[n] the bonds to add).

    The positions of a tree to which bonds are to be added are not valid.
    """
    nodes, more = prepare(block, rules)
    listing = choose(block, nodes.inner, list_families(nodes.inner), nodes.top)
    place = laid_out(nodes, listing)
    invalid = np.zeros(len(block.forest.trees) - 1, bool)
    invalid[block.forest.tree_of[more]] = True
    more |= _taken_in(block, nodes, place) & ~invalid[block.forest.tree_of]
    return place, nodes, listing, more


def _with_care(block: TreeBlock, choose: Choose, rules: Rules) -> tuple[Int64, int]:
    """Arrange trees again until no arcs cross that did not cross before, and no tree begins with a mark.

    Returns (positions int64[n], number of trees that keep their order). Bonds are added until no more are needed. A
    comma before the first phrase moves behind it; if a tree begins with another mark, such as a bracket, it keeps its
    order.
    """
    place, nodes, listing, more = _laid_out(block, choose, rules)
    again = np.unique(block.forest.tree_of[more]).astype(np.int64)
    kept = np.zeros(0, np.int64)
    if not rules.free_marks:
        place, kept = _without_leading_marks(block, nodes, listing, place)
    n_kept = len(np.setdiff1d(kept, again))
    if len(again):
        part, words = replace(block, bonds=block.bonds | more).take(again)
        positions, more_kept = _with_care(part, choose, rules)
        place[words] = words[positions]
        n_kept += more_kept
    return place, n_kept


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
