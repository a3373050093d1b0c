"""Word alignment: the alignment error rate of links from the similarity of words' states, by layer, in percent.

    argmax       links that are the best of their row and of their column             Jalili Sabet et al. 2020, §2.2
    itermax      the same, then once more over what is left, with alpha = 0.9         Jalili Sabet et al. 2020, §2.2
    transport    itermax on a plan of optimal transport, two Sinkhorn rounds          Chi et al. 2021, §3.2

Similarities are cosines; `align/similarity.py` makes the links. The gold links are exact, those of the order, so all
are sure. Equal words of a sentence count as one word (`ParallelWords`): a link of any of them is a link of that word.

    the cat saw the dog     links the-eht (either), cat-tac, saw-was, dog-god: AER 0 %, although one `the` has no link

A sentence and its derived one are encoded apart, or jointly in one row (`joint_argmax` …), where each sees the other,
as in TLM. Sentences whose joint row is too long for the model are left out of the joint figures.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.align.links import Links
from derivlang.align.score import score
from derivlang.align.similarity import argmax, cosine, itermax, transport
from derivlang.core.arrays import Bool, Int64, owners
from derivlang.core.threads import one_thread
from derivlang.evaluation.measures.base import Figures, Measure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.measures.states import ParallelWords
from derivlang.training.encoder import Encoder

METHODS: dict[str, Callable[[Floats], Bool]] = {"argmax": argmax, "itermax": itermax, "transport": transport}
WAYS = {"": "AER", "joint_": "joint AER"}  # prefix of a figure, and its title


class WordLinks(Measure):
    """Alignment error rate of links between words by argmax, itermax and optimal transport."""

    reads = ("pairs",)

    def measure(self, model: Encoder, sets: MeasureSets) -> list[dict[str, Any]]:
        """Return [{"layer", "argmax", "itermax", "transport", "joint_argmax", …, "joint_left_out"}, …].

        All are over the words of `sets.pairs`. joint_left_out: the number of sentences that have no part in the joint
        figures, which are None if no sentence has.
        """
        joint = sets.joint_states(model)
        found = []
        for layer, (ours, theirs) in enumerate(sets.states(model).words):
            apart = error_rates(ours.cpu().numpy(), theirs.cpu().numpy(), sets.words)
            rates: dict[str, float | None] = dict.fromkeys(METHODS)
            if joint.layers:
                ours, theirs = joint.layers[layer]
                rates |= error_rates(ours.cpu().numpy(), theirs.cpu().numpy(), joint.words)
            found.append(
                {"layer": layer}
                | apart
                | {f"joint_{name}": rate for name, rate in rates.items()}
                | {"joint_left_out": joint.left_out}
            )
        return found

    def rows(self, found: Any) -> dict[str, Figures]:
        """Return the error rates by layer."""
        names = {f"{way}{name}": f"{title} by {name}" for way, title in WAYS.items() for name in METHODS}
        return {
            f"layer {one['layer']}": {title: one[name] for name, title in names.items() if name in one} for one in found
        }


@one_thread()
def error_rates(source: Floats, derived: Floats, words: ParallelWords) -> dict[str, float]:
    """Return the error rate of each method. source, derived: states [W, D], in the order of their language."""
    links: dict[str, list[tuple[Int64, ...]]] = {name: [] for name in METHODS}
    for begin, end in pairwise(words.offsets.tolist()):
        similarity = cosine(source[begin:end], derived[begin:end]).astype(np.float64)
        for name, link in METHODS.items():
            links[name].append(tuple(begin + place for place in link(similarity).nonzero()))
    gold = _links(words, words.source, words.source)
    rates = {}
    for name, found in links.items():
        ours, theirs = (np.concatenate(side) for side in zip(*found, strict=True))
        rates[name] = 100 * score(_links(words, words.source[ours], words.derived[theirs]), gold).aer
    return rates


def _links(words: ParallelWords, source: Int64, derived: Int64) -> Links:
    """Return links between numbered words, with numbers that begin at 0 in each sentence."""
    rows = owners(words.offsets)[source].astype(np.int64)
    begin = words.offsets[rows]
    n_rows = len(words.offsets) - 1
    return Links.of(rows, (source - begin).astype(np.int32), (derived - begin).astype(np.int32), n_rows)
