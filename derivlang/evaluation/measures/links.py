"""Word alignment: the alignment error rate of links from the similarity of words' states, by layer, in percent.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.align.similarity import argmax, cosine, itermax, transport
from derivlang.core.arrays import Bool, Int64, owners
from derivlang.core.threads import one_thread
from derivlang.evaluation.columns import Column
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.measures.states import ParallelWords
from derivlang.evaluation.scores import Score

if TYPE_CHECKING:
    from derivlang.training.encoder import Encoder

METHODS: dict[str, Callable[[Floats], Bool]] = {"argmax": argmax, "itermax": itermax, "transport": transport}


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
    reads = ("pairs",)

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the links of each sentence of `sets.pairs` by layer, and the number of sentences that are left out."""
        apart, joint = sets.states(model).words, sets.joint_states(model)
        of_joint = sets.scored(joint.text)
        for way, layers, words, of in (("", apart, sets.words, sets.of_pairs),
                                       ("joint_", joint.layers, joint.words, of_joint)):  # fmt: skip
            for layer, (ours, theirs) in enumerate(layers):
                for name, counts in link_counts(ours.cpu().numpy(), theirs.cpu().numpy(), words).items():
                    yield Score(way + name, counts, layer=layer, set=of)
        for layer in range(len(joint.layers), len(apart)):
            yield from (Score(f"joint_{name}", value=math.nan, layer=layer, set=of_joint) for name in METHODS)
        yield Score("joint_left_out", value=sets.pairs.n_sentences - joint.text.n_sentences)


@one_thread()
def link_counts(source: Floats, derived: Floats, words: ParallelWords) -> dict[str, Int64]:
    """Return int64[S, 4] of each method, as the formula `aer` takes them.

    source, derived: states [W, D], in the order of their language.
    """
    links: dict[str, list[tuple[Int64, ...]]] = {name: [] for name in METHODS}
    for begin, end in pairwise(words.offsets.tolist()):
        similarity = cosine(source[begin:end], derived[begin:end]).astype(np.float64)
        for name, link in METHODS.items():
            links[name].append(tuple(begin + place for place in link(similarity).nonzero()))
    n, sentence = len(words.source), owners(words.offsets)
    gold = words.sums(words.source == np.arange(n))  # equal words count as one
    counts = {}
    for name, parts in links.items():
        ours, theirs = (np.concatenate(side) for side in zip(*parts, strict=True))
        ours, theirs = np.divmod(np.unique(words.source[ours] * n + words.derived[theirs]), n)
        made, right = (
            np.bincount(sentence[some], minlength=len(gold)) for some in (ours, ours[ours == theirs])
        )  # fmt: skip
        counts[name] = np.stack([right, right, made, gold.astype(np.int64)], axis=1)
    return counts
