"""syn: each head's dependents in the order of another language, drawn from a word-order model.

    syn:fr          French order for all heads that the grammar has models for
    syn:fr@N        … for nouns alone                syn:fr@N~hi@V       nouns as in French, verbs as in Hindi
    syn:my.tsv      a grammar of one's own           syn:fr:mode=argmax  the most probable order, nothing drawn

A subtree moves as one block. By default what is one word to a reader stays so, and punctuation goes with its phrase.
Source: Wang and Eisner 2016, *The Galactic Dependencies Treebanks*, sections 4 and 5 (models, mixing); the differences are
in `docs/syntax.md`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, UInt64, lengths_of
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.keys import sequence_keys
from derivlang.core.layers.tree import Tree
from derivlang.core.order import Order
from derivlang.grammar.families import Families, head_class
from derivlang.grammar.load import load_grammar
from derivlang.grammar.model import Mixture
from derivlang.syntax.arrange import arrange
from derivlang.syntax.forest import Forest, forest_of
from derivlang.syntax.layout import Listing
from derivlang.syntax.parts import bonds
from derivlang.syntax.words import Seen, see
from derivlang.transforms.base import Draws, Transform, param

_BLOCK = 1 << 16  # words laid out at once: the arrays stay in the cache


@dataclass(frozen=True, kw_only=True)
class Syn(Transform):
    """Syntax: dependents ordered as another language orders them, by a word-order model."""

    name = "syn"
    needs: ClassVar[tuple[str, ...]] = ("head", "upos")

    grammar: str = param("fr", "a shipped grammar (fr, ja, …), a file, or classes apart: fr@N~hi@V", positional=True, draws=False)
    mode: Literal["sample", "argmax"] = param("sample", "draw an order, or take the most probable one", draws=False)
    temperature: float = param(1.0, "below 1: nearer to the most probable order", low=0, draws=False)
    substrate: str = param("en", "grammar of the source language, mixed in; none: nothing mixed in", draws=False)
    mix: float = param(0.05, "weight of the substrate", low=0, high=1, draws=False)
    labels: Literal["map", "as-is"] = param("map", "map tree labels to the grammar's UD version, or take them as they are", draws=False)
    freeze: Literal["parts", "none"] = param("parts", "keep names, numbers, fixed expressions together, or nothing", draws=False)
    punct: Literal["reader", "permute"] = param("reader", "punctuation goes with its phrase, or is permuted as a word", draws=False)
    nonprojective: Literal["block", "keep-order"] = param("block", "a subtree with gaps becomes one block, or keeps its order", draws=False)
    seed: int = param(1, "another seed, another language", low=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.model()  # an unknown grammar is an error before anything is read

    def model(self) -> Mixture:
        """The word-order models. UsageError or DataError for an unknown or broken grammar."""
        return _model(self.grammar, self.substrate, self.mix, self.labels, self.mode, self.temperature)

    def order(self, batch: Batch, draws: Draws) -> Order:
        tree = batch.layers["head"]
        assert isinstance(tree, Tree)
        words = see(batch)
        whole = forest_of(tree.head, batch.unit_words, batch.sentences)
        keys, sentences, tails = _tree_keys(batch, whole)
        bound = bonds(whole, words, tree) if self.freeze == "parts" else np.zeros(batch.n_words, bool)
        model = self.model()
        index = np.empty(batch.n_words, np.int32)
        counts: Counter[str] = Counter()
        for begin, end in _stretches(whole.trees):
            a, b = int(whole.trees[begin]), int(whole.trees[end])
            parent = whole.parent[a:b]
            forest = Forest(np.where(parent < 0, -1, parent - a), whole.trees[begin : end + 1] - a)
            seen = words.part(a, b)
            choose = _Chooser(model, draws, seen, forest, keys[begin:end], tree.head[a:b] == 0)
            place, found = arrange(
                forest,
                seen,
                tails[begin:end],
                bound[a:b],
                choose,
                keep_order=self.nonprojective == "keep-order",
                free_marks=self.punct == "permute",
            )
            index[a + place] = np.arange(a, b, dtype=np.int32)
            counts += found
        return Order(index, sentences, _tails(batch, tails, sentences, self.punct), batch.n_words, counts=counts)
