"""The base class of transforms that order the dependents of each head, and the parameters that they share.

A subclass says what it reads of the words (`words`) and which order each family gets (`choose`). What stays together,
where marks go and what becomes of crossing arcs is decided here, once, for all of them (`syntax/arrange.py`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from derivlang.core.batch import Batch
from derivlang.core.keys import Draws, sequence_keys
from derivlang.core.layers.tree import Tree
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.syntax.arrange import arrange
from derivlang.syntax.forest import Forest, forest_of, merged
from derivlang.syntax.layout import Listing, Members
from derivlang.syntax.nodes import Rules, TreeBlock
from derivlang.syntax.parts import bonds
from derivlang.syntax.words import WordKinds, see
from derivlang.transforms.base import Transform

# Raise it when an order is laid out or a label is read differently: the fingerprint changes, the draws do not.
# A higher `rule_version` changes the draws, too.
LAYOUT = 4


@dataclass(frozen=True, kw_only=True)
class TreeTransform(Transform):
    """A transform that gives each head and its dependents a new order; subtrees move as blocks."""

    needs: ClassVar[tuple[str, ...]] = ("head", "upos")
    freeze: Literal["parts", "none"] = param(
        "parts", "parts kept together: names, numbers and fixed expressions, or none", draws=False
    )
    punct: Literal["reader", "permute"] = param(
        "reader", "punctuation: moved with its phrase, or permuted as a word", draws=False
    )
    nonprojective: Literal["block", "keep-order"] = param(
        "block", "subtrees with gaps: made one block, or kept in order", draws=False
    )

    def words(self, batch: Batch) -> WordKinds:
        """Return the properties of the words that `choose` reads. Raise LayerError if a word has no tag.

        Relations may get other subtypes, but not other names: parts that stay together are found by them.
        """
        return see(batch)

    @abstractmethod
    def choose(self, draws: Draws, block: TreeBlock, members: Members) -> Listing:
        """Return the families of some trees in the new order. members: of these families, in surface order."""

    def lift(self, forest: Forest, words: WordKinds) -> tuple[Forest, WordKinds]:
        """Return the trees with other heads, and the words with their relations there, before the order is chosen."""
        return forest, words

    @property
    def resources(self) -> tuple[str, ...]:
        """The version of the layout."""
        return (f"layout {LAYOUT}",)

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order of a batch with trees. Raise LayerError if a word has no tag.

        Counts trees that were not projective, and those that keep their order (`syntax/arrange.py`).
        """
        tree, words = batch.layer("head", Tree), self.words(batch)
        whole = forest_of(tree.head, batch.unit_words, batch.sentences)
        # Equal to the sentence's key if a tree is one sentence.
        keys = sequence_keys(batch.type_hashes[batch.words], whole.trees)
        tails, sentences, new_tails = merged(batch, whole.trees, tails=self.punct == "reader")
        bound = bonds(whole, words, tree) if self.freeze == "parts" else np.zeros(batch.n_words, bool)
        block = TreeBlock(*self.lift(whole, words), tails, bound, keys)  # parts are found before words are lifted
        rules = Rules(self.nonprojective == "keep-order", self.punct == "permute")
        place, counts = arrange(block, partial(self.choose, draws), rules)
        index = np.empty(batch.n_words, np.int32)
        index[place] = np.arange(batch.n_words, dtype=np.int32)
        return Order(index, sentences, new_tails, batch.n_words, counts=counts)
