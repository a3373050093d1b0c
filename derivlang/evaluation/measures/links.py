"""Word alignment: the error rate of links from the similarity of words' states, by layer, in percent; and contextual.

    argmax       links that are the best of their row and of their column             Jalili Sabet et al. 2020, §2.2
    itermax      the same, then once more over what is left, with alpha = 0.9         Jalili Sabet et al. 2020, §2.2
    transport    itermax on a plan of optimal transport, two Sinkhorn rounds          Chi et al. 2021, §3.2

Similarities are cosines; `align/similarity.py` makes the links. The gold links are exact, as the order gives them, so
all are sure. Equal words of a sentence count as one word (`ParallelWords`): a link of any of them is a link of that
word.

    the cat saw the dog     links the-eht (either), cat-tac, saw-was, dog-god: AER 0 %, although one `the` has no link

A sentence and its derived one are encoded apart, or jointly in one row (`joint_argmax` …), where each sees the other,
as in TLM. Sentences whose joint row is too long for the model are left out of the joint scores, which are NaN if no
sentence is left.

The measure contextual compares states only: `words` are source words whose most similar word of the derived sentence,
by cosine, is theirs (ties: the first). A guess reaches the mean over words of the share of right words among the words
of the sentence.

The measure retrieval is the percentage of sentences whose most similar sentence is their own, by layer.

    sentences    sentences whose most similar one of the other language, by cosine, is theirs; the mean of both
                 directions (ties: the first)
    first        the same by the state of `<s>`, which PPA trains (Pan et al. 2021, section 2.1)

A guess among n sentences reaches 100 / n. The mean of sub-words' states stands for a sentence, as in XTREME's Tatoeba
(Hu et al. 2020). A causal model has no score `first`, as `<s>` sees nothing but itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.align.links import Links, keys_of
from derivlang.align.similarity import METHODS as LINKERS
from derivlang.align.similarity import cosine
from derivlang.core.arrays import Int64, lengths_of
from derivlang.core.errors import DataError
from derivlang.core.threads import one_thread
from derivlang.evaluation.columns import Column
from derivlang.evaluation.formulas import fixed
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.of_file import PairMeasure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.measures.states import ParallelWords, joint_states
from derivlang.evaluation.scores import Score, ScoredSet
from derivlang.training.languages import Languages

if TYPE_CHECKING:
    import torch

    from derivlang.training.encoder import Encoder


METHODS = {"argmax": "argmax", "itermax": "itermax", "transport": "ot"}  # of columns, as aligners name them


class FileLinks(PairMeasure):
    """Alignment error rate of links between words against gold links of a file."""

    columns = tuple(
        Column(name, f"AER by {name}", better="down", formula="aer", headline=name == "argmax", over="layer")
        for name in METHODS
    )

    @property
    def gold(self) -> Links:
        """The links of the file. Raise DataError if it has none."""
        if self.pairs.links is None:
            fix = "write them as `0-0 1p2`, a line for each pair, into PREFIX.gold or PREFIX.pharaoh"
            raise DataError("has no gold links", where=str(self.file), fix=fix, id="no-links")
        return self.pairs.links

    def check(self, languages: Languages) -> None:
        _ = self.gold

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the links of each sentence pair by layer."""
        gold = self.gold
        found, _ = self.encoder(model, sets).by_layer(self.bitext, list(METHODS.values()))
        of = self.scored(self.pairs.sha256, len(gold))
        names = {method: name for name, method in METHODS.items()}
        for (layer, method), links in found.items():
            yield Score(names[method], error_counts(links, gold), layer=layer, set=of)


class WordLinks(Measure):
    """Alignment error rate (AER) of links between words by argmax, itermax and optimal transport."""

    columns = (
        *(
            Column(way + name, f"{title} by {name}", better="down", formula="aer", headline=way + name == "argmax",
                   over="layer")
            for way, title in (("", "AER"), ("joint_", "joint AER")) for name in METHODS
        ),
        Column("joint_left_out", "sentences without joint AER", unit="", better="", formula=""),
    )  # fmt: skip
    of_file, reads = FileLinks, ("pairs",)

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the links of each sentence of `sets.pairs` by layer, and the number of sentences that are left out."""
        apart, (text, words_of_joint, joint) = sets.states(model).words, joint_states(model, sets.pairs)
        of_joint = sets.scored(text)
        for way, layers, words, of in (("", apart, sets.words, sets.of_pairs),
                                       ("joint_", joint, words_of_joint, of_joint)):  # fmt: skip
            for layer, (ours, theirs) in enumerate(layers):
                for name, counts in link_counts(ours.cpu().numpy(), theirs.cpu().numpy(), words).items():
                    yield Score(way + name, counts, layer=layer, set=of)
        for layer in range(len(joint), len(apart)):
            yield from (Score(f"joint_{name}", value=math.nan, layer=layer, set=of_joint) for name in METHODS)
        yield Score("joint_left_out", value=sets.pairs.n_sentences - text.n_sentences)


@one_thread()
def link_counts(source: Floats, derived: Floats, words: ParallelWords) -> dict[str, Int64]:
    """Return int64[S, 4] of each method, as the formula `aer` takes them.

    source, derived: states [W, D], in the order of their language.
    """
    counts: dict[str, list[tuple[int, ...]]] = {name: [] for name in METHODS}
    for begin, end in pairwise(words.offsets.tolist()):
        similarity = cosine(source[begin:end], derived[begin:end]).astype(np.float64)
        ours, theirs = words.source[begin:end], words.derived[begin:end]
        for name, method in METHODS.items():
            i, j = LINKERS[method](similarity).nonzero()
            made = {*zip(ours[i].tolist(), theirs[j].tolist(), strict=True)}  # equal words count as one
            right = sum(one == other for one, other in made)
            counts[name].append((right, right, len(made), len(np.unique(ours))))
    return {name: np.array(some, np.int64).reshape(-1, 4) for name, some in counts.items()}


def error_counts(links: Links, gold: Links) -> Int64:
    """Return int64[S, 4], as the formula `aer` takes them."""
    width = 1 + max(int(side.max(initial=0)) for side in (links.source, links.target, gold.source, gold.target))
    made, known = keys_of(links, width), keys_of(gold, width)
    sure = np.unique(known[gold.sure])
    some = [made[np.isin(made, sure)], made[np.isin(made, known)], made, sure]
    return np.stack([np.bincount(keys // width**2, minlength=len(gold)) for keys in some], axis=1)


class Contextual(Measure):
    """Words whose most similar word in the other language is their own."""

    columns = (Column("words", headline=True, over="layer", chance=True),)
    reads = ("pairs",)

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the words of each sentence of `sets.pairs` that are right, by layer, and of a guess."""
        for layer, (ours, theirs) in enumerate(sets.states(model).words):
            counts = right_words(ours.cpu().numpy(), theirs.cpu().numpy(), sets.words)
            yield Score("words", counts, layer=layer, set=sets.of_pairs)
        yield Score("words", chance(sets.words), regime="chance", set=sets.of_pairs)


@one_thread()
def right_words(source: Floats, derived: Floats, words: ParallelWords) -> Int64:
    """Return int64[S, 2]: right words, words. source, derived: states [W, D], in the order of their language."""
    nearest = [
        begin + cosine(source[begin:end], derived[begin:end]).argmax(1) for begin, end in pairwise(words.offsets)
    ]
    right = words.sums(words.derived[np.concatenate(nearest)] == words.source)
    return np.stack([right.astype(np.int64), lengths_of(words.offsets)], axis=1)


def chance(words: ParallelWords) -> Int64:
    """Return int64[S, 2], for a guess.

    the cat the  ->  two of three words are right for each `the`, one for `cat`:  2/3 + 1/3 + 2/3 of 3 words
    """
    sizes = lengths_of(words.offsets)
    return fixed(words.sums(np.bincount(words.source)[words.source] / np.repeat(sizes, sizes)), sizes)


class FileRetrieval(PairMeasure):
    """Sentences of a file whose most similar sentence of the other side is their own."""

    columns = (
        Column("sentences", headline=True, over="layer", chance=True),
        Column("first", "sentences by <s>", over="layer", chance=True),
    )

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the hits of each pair by layer, and of a guess."""
        both = zip(*self.encoder(model, sets).sentences(self.bitext), strict=True)
        layers = [list(zip(*sides, strict=True)) for sides in both]
        return _scores(model, layers, self.scored(self.pairs.sha256, len(layers[0][0][0])))


class Retrieval(Measure):
    """Sentences whose most similar sentence of the other language is their own."""

    columns = FileRetrieval.columns
    of_file, reads = FileRetrieval, ("pairs",)

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the hits of each sentence of `sets.pairs` by layer, and of a guess."""
        states = sets.states(model)
        return _scores(model, [states.sentences, states.first], sets.of_pairs)


def _scores(
    model: Encoder, states: Sequence[Sequence[tuple[torch.Tensor, torch.Tensor]]], of: ScoredSet
) -> Iterator[Score]:
    """Yield the scores of states by layer: of sentences, and of their `<s>`. of: what they are of."""
    for name, layers in zip(["sentences"] if model.causal else ["sentences", "first"], states, strict=False):
        for layer, sides in enumerate(layers):
            yield Score(name, hits(*sides), layer=layer, set=of)
        n = len(layers[0][0])
        yield Score(name, np.tile(np.array([1, n]), (n, 1)), regime="chance", set=of)


def hits(source: torch.Tensor, derived: torch.Tensor) -> Int64:
    """Return int64[S, 2]: directions in which the nearest sentence is its own, 2. source, derived: [S, D]."""
    import torch

    source, derived = (torch.nn.functional.normalize(states, dim=1) for states in (source, derived))
    cosines = source @ derived.T
    own = torch.arange(len(source), device=cosines.device)
    right = sum((cosines.argmax(dim=side) == own).long() for side in (0, 1))
    return np.stack([torch.as_tensor(right).cpu().numpy(), np.full(len(source), 2)], axis=1)
