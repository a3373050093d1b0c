"""Word alignment: the alignment error rate of links from the similarity of words' states, by layer, in percent.

    argmax       links that are the best of their row and of their column             Jalili Sabet et al. 2020, §2.2
    itermax      the same, then once more over what is left, with alpha = 0.9         Jalili Sabet et al. 2020, §2.2
    transport    itermax on a plan of optimal transport, two Sinkhorn rounds          Chi et al. 2021, §3.2

Similarities are cosines; `align/similarity.py` makes the links. The gold links are exact, those of the order, so all
are sure. Equal words of a sentence count as one word (`ParallelWords`): a link of any of them is a link of that word.

    the cat saw the dog     links the-eht (either), cat-tac, saw-was, dog-god: AER 0 %, although one `the` has no link
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
from derivlang.evaluation.trained import ModelEncoder

METHODS: dict[str, Callable[[Floats], Bool]] = {"argmax": argmax, "itermax": itermax, "transport": transport}


class WordLinks(Measure):
    """Alignment error rate of links between words by argmax, itermax and optimal transport."""

    def measure(self, model: ModelEncoder, sets: MeasureSets) -> list[dict[str, Any]]:
        """Return [{"layer", "argmax", "itermax", "transport"}, …] over the words of `sets.pairs`."""
        return [
            {"layer": layer} | error_rates(ours.cpu().numpy(), theirs.cpu().numpy(), sets.words)
            for layer, (ours, theirs) in enumerate(sets.states(model).words)
        ]

    def rows(self, found: Any) -> dict[str, Figures]:
        rows = super().rows(found).items()
        return {title: {f"AER by {name}": rate for name, rate in figures.items()} for title, figures in rows}


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
