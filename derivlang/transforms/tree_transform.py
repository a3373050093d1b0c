"""The base class of transforms that order the dependents of each head, and the parameters that they share.

A subclass says what it reads of the words (`words`) and which order each family gets (`choose`). `syntax/tree_order.py`
lays the families out; a head and its dependents' subtrees have one layout in all of these transforms.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar

from derivlang.core.arrays import Int64, UInt64
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.syntax.forest import Forest
from derivlang.syntax.layout import Listing
from derivlang.syntax.nodes import TreeBlock
from derivlang.syntax.tree_order import Freeze, Nonprojective, Punct, tree_order
from derivlang.syntax.words import WordKinds, see
from derivlang.transforms.base import Transform

# Raise it when an order is laid out or a label is read differently: the fingerprint changes, the draws do not.
# A higher `rule_version` changes the draws, too.
LAYOUT = 4


def freeze_param() -> Any:
    """Declare the parameter `freeze`."""
    return param("parts", "parts kept together: names, numbers and fixed expressions, or none", draws=False)


def punct_param() -> Any:
    """Declare the parameter `punct`."""
    return param("reader", "punctuation: moved with its phrase, or permuted as a word", draws=False)


def nonprojective_param() -> Any:
    """Declare the parameter `nonprojective`."""
    return param("block", "subtrees with gaps: made one block, or kept in order", draws=False)


class TreeTransform(Transform):
    """A transform that gives each head and its dependents a new order; subtrees move as blocks.

    Subclasses declare the three parameters; they stand in each of them, so that each has its own order of parameters.
    """

    needs: ClassVar[tuple[str, ...]] = ("head", "upos")
    freeze: Freeze
    punct: Punct
    nonprojective: Nonprojective

    def words(self, batch: Batch) -> WordKinds:
        """Return the properties of the words that `choose` reads. Raise LayerError if a word has no tag.

        Relations may get other subtypes, but not other names: parts that stay together are found by them.
        """
        return see(batch)

    @abstractmethod
    def choose(
        self, draws: Draws, keys: UInt64, block: TreeBlock, forest: Forest, listing: Listing, top: Int64
    ) -> Listing:
        """Return the listing with its families in the new order.

        keys: uint64[T], of the batch's trees; `block.numbers` are numbers of trees in the batch. forest: of the nodes
        that are laid out. top: int64[n], the word of the block that represents each node.
        """

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
        return tree_order(
            batch,
            self.words(batch),
            partial(self.choose, draws),
            freeze=self.freeze,
            punct=self.punct,
            nonprojective=self.nonprojective,
            lift=self.lift,
        )
