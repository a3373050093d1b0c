"""tree_order: the order of a batch whose heads' families get a new order. Every order that reads trees is made here.

A transform gives the words' properties and a function that reorders the families; what stays together, where marks go
and what becomes of crossing arcs is decided here, once, for all of them (`arrange.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from derivlang.core.arrays import Int32, Int64, UInt64
from derivlang.core.batch import Batch
from derivlang.core.keys import sequence_keys
from derivlang.core.layers.tree import Tree
from derivlang.core.order import Order
from derivlang.syntax.arrange import arrange
from derivlang.syntax.forest import Forest, forest_of
from derivlang.syntax.layout import Listing
from derivlang.syntax.nodes import Rules, TreeBlock
from derivlang.syntax.parts import bonds
from derivlang.syntax.words import WordKinds

Freeze: TypeAlias = Literal["parts", "none"]
Punct: TypeAlias = Literal["reader", "permute"]
Nonprojective: TypeAlias = Literal["block", "keep-order"]
# (keys of the batch's trees, block, inner forest, its families in surface order, the word that represents each node)
# -> the reordered families
KeyedChoose: TypeAlias = Callable[[UInt64, TreeBlock, Forest, Listing, Int64], Listing]
# (trees, words) -> trees with other heads, and the words with their relations there
Lift: TypeAlias = Callable[[Forest, WordKinds], tuple[Forest, WordKinds]]


def tree_order(
    batch: Batch,
    words: WordKinds,
    choose: KeyedChoose,
    *,
    freeze: Freeze,
    punct: Punct,
    nonprojective: Nonprojective,
    lift: Lift,
) -> Order:
    """Return the order of a batch with trees.

    words: the properties of its words, from `see`; their relations may have other subtypes than the tree's.
    lift: gives some words the place of their heads, after the parts were found. Counts trees that were not projective,
    and those that keep their order.
    """
    tree = batch.layers["head"]
    assert isinstance(tree, Tree)
    whole = forest_of(tree.head, batch.unit_words, batch.sentences)
    keys = _tree_keys(batch, whole)
    tails, sentences, new_tails = merged(batch, whole.trees, tails=punct == "reader")
    bound = bonds(whole, words, tree) if freeze == "parts" else np.zeros(batch.n_words, bool)
    whole, words = lift(whole, words)
    rules = Rules(nonprojective == "keep-order", punct == "permute")
    block = TreeBlock(whole, words, tails, bound, np.arange(len(whole.trees) - 1))
    place, counts = arrange(block, partial(choose, keys), rules)
    index = np.empty(batch.n_words, np.int32)
    index[place] = np.arange(batch.n_words, dtype=np.int32)
    return Order(index, sentences, new_tails, batch.n_words, counts=counts)


def _tree_keys(batch: Batch, forest: Forest) -> UInt64:
    """Return uint64[T]: the content key of each tree, equal to the sentence's key if the tree is one sentence."""
    if len(forest.trees) == len(batch.sentences):
        return batch.keys
    return sequence_keys(batch.type_hashes[batch.words], forest.trees)


def merged(batch: Batch, trees: Int64, *, tails: bool) -> tuple[Int32, Int64, Int32]:
    """Return (tails int32[T] of the trees, offsets of the derived sentences, their tails int32[S]).

    trees: int64[T + 1], word offsets. A tree that spans several source sentences becomes one derived sentence with the
    tail of the last. The first sentence gets all words of the tree, the others none. tails=False: punctuation moves
    like words, all tails are 0.

        sentences [0, 3, 5, 8], trees [0, 5, 8]  ->  derived sentences [0, 5, 5, 8]

    The next transform of a spec gets these sentences: both of their trees and sentences may be empty.
    """
    # The sentences whose words end with their tree: sentences [0, 3, 5, 5, 8], trees [0, 5, 5, 8] -> [1, 1, 3].
    last = np.searchsorted(batch.sentences, trees[1:]) - 1
    has_words = trees[1:] > trees[:-1]
    of_tree = np.where(has_words, batch.tails[last], 0).astype(np.int32) if len(last) else np.zeros(0, np.int32)
    if len(trees) == len(batch.sentences):
        return of_tree, batch.sentences, batch.tails if tails else np.zeros_like(batch.tails)
    sentences = trees[np.searchsorted(trees, batch.sentences)]  # an offset inside a tree becomes the tree's end
    out = np.zeros_like(batch.tails)
    if tails:
        out[sentences[1:] > sentences[:-1]] = of_tree[has_words]
    return of_tree, sentences, out
