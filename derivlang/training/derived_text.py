"""The text of the derived language where it is another one than the source's (`--derived-source`).

    rows of the source language      SOURCE                           DATA/train-512
    rows of the derived language     the other text, derived          DATA/derived/train-512

Both languages have the tokenizer, the twin and the dictionary that are made of SOURCE. Measures read held-out text of
SOURCE, so the other text must not hold its sentences. Sources: Deshpande et al. (2022), section 4.2; Dufter and Schütze
(2020).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from derivlang.core.arrays import UInt64
from derivlang.core.errors import DataError
from derivlang.core.messages import counted, warn
from derivlang.engine.batches import Source
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find, name_of
from derivlang.sources.request import SourceRequest
from derivlang.training.encode import Check

OVERLAP = "heldout_overlap"  # in the recipe of its data and in run.json
SHORTEST = 3  # words of a sentence that measures on held-out text read
_MOST = 0.01  # share of sentences that two texts may have in common by chance


def overlap_check(request: SourceRequest, other: SourceRequest, trained: UInt64) -> Check:
    """Return the check of the sentences of another text: how many are of the source's held-out text?

    trained: uint64[S], the keys of the source's text that is trained on. Its sentences, such as headings that recur,
    are not held out anyway, so they do not count; there is a warning if more than 1 % of them are in the other text,
    since the texts are then parallel in part. The check returns {"heldout_overlap": n}, with a warning if there are
    some. It raises DataError if they are more than 1 % of the held-out sentences. A tree over several sentences is one
    in encoded text, so these are not found.
    """

    def check(keys: UInt64) -> dict[str, Any]:
        corpus = find(request)
        parallel, read = int(np.isin(trained, keys).sum()), counted(len(trained), "sentence")
        if parallel > _MOST * len(trained):
            warn(
                f"{name_of(other.source)} has {parallel:,} of the {read} that are trained on in the source language, "
                "so the texts are parallel in part"
            )
        split = corpus.heldout
        if split == corpus.splits[0]:  # nothing is held out, as an evaluation says
            return {OVERLAP: 0}
        every, shared, example = 0, 0, ""
        seen: UInt64 = np.zeros(0, np.uint64)
        for batch in Source.open(Pipeline.parse("identity"), request, trees=False).batches(split):
            _, first = np.unique(batch.keys, return_index=True)
            lengths = np.diff(batch.sentences)
            some = first[(lengths[first] >= SHORTEST) & ~np.isin(batch.keys[first], seen)]
            seen = np.concatenate([seen, batch.keys[some]])
            both = np.sort(some[np.isin(batch.keys[some], keys) & ~np.isin(batch.keys[some], trained)])
            if len(both) and not shared:
                begin, end = batch.sentences[both[0]], batch.sentences[both[0] + 1]
                example = " ".join(batch.strings()[begin:end].to_pylist())
            every, shared = every + len(some), shared + len(both)
        _say(shared, every, example, f"{corpus.name} ({split})", name_of(other.source))
        return {OVERLAP: shared}

    return check


def _say(shared: int, every: int, example: str, heldout: str, other: str) -> None:
    """Warn of sentences that are not held out, or raise DataError if they are too many."""
    if not shared:
        return
    what = f"the held-out text of {heldout} shares {shared:,} of its {counted(every, 'sentence')} with {other}"
    if shared > _MOST * every:
        raise DataError(
            f"{what}, so measures would read text that was trained on, e.g. {example!r}",
            where="--derived-source",
            fix=f"remove these sentences from {other}, or give another text; up to {100 * _MOST:g} % are allowed",
            id="not-held-out",
        )
    warn(f"{what}, e.g. {example!r}: measures read text that was trained on")
