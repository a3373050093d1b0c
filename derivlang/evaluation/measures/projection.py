"""Projection: embeddings of frequent sub-words and of their twins, by principal components, for a picture.

    counts    [[x, y], …] in ten-thousandths, of the source and of the derived language: row i of both is a pair, of
              the PAIRS most frequent ones outside the dictionary
    value     percentage of the variance that x and y have, of both languages' rows together

The components are computed from unit vectors, with the mean of both languages taken away: a language that lies apart is
seen to lie apart. WEAM (Yang et al. 2021, Figure 2) shows such a picture by t-SNE, which keeps no distances.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.core.threads import one_thread
from derivlang.evaluation.columns import Column
from derivlang.evaluation.formulas import SCALE
from derivlang.evaluation.measures.alignment import EmbeddingPairs
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import Score

if TYPE_CHECKING:
    from derivlang.training.encoder import Encoder

PAIRS = 200


class Projection(Measure):
    """Embeddings of frequent sub-words and of their twins in two dimensions, for a picture in the report."""

    columns = (
        Column("embeddings", "share of the variance", better="", formula="", headline=True, over="points"),
    )  # fmt: skip
    needs_twin = True
    reads = ()

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the points of both languages, none if the languages share all sub-words."""
        pairs = EmbeddingPairs.load(sets.folder, sets.languages)
        apart = np.flatnonzero(pairs.own & ~pairs.known & (pairs.counts > 0))
        asked = apart[np.argsort(-pairs.counts[apart], kind="stable")[:PAIRS]]
        rows = model.embeddings.detach().float().cpu().numpy().astype(np.float64)
        points, share = principal(np.concatenate([rows[pairs.source[asked]], rows[pairs.derived[asked]]]))
        source, derived = np.split(points, 2)
        if len(asked):  # the signs of components are arbitrary: the source lies left and below
            source, derived = (side * np.where(source.mean(0) > derived.mean(0), -1, 1) for side in (source, derived))
        for regime, side in (("source", source), ("derived", derived)):
            yield Score("embeddings", np.rint(side * SCALE).astype(np.int64), share, regime)


@one_thread()
def principal(rows: Floats) -> tuple[Floats, float]:
    """Return the first two principal components of unit vectors, [n, 2], and their share of the variance in percent.

    rows: [n, D], D at least 2. The share is NaN if all rows are equal.
    """
    if not len(rows):
        return np.zeros((0, 2)), math.nan
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    left, sizes, _ = np.linalg.svd(unit - unit.mean(axis=0), full_matrices=False)
    points = left[:, :2] * sizes[:2]
    variance = sizes**2
    return points, 100 * float(variance[:2].sum() / variance.sum()) if variance.sum() > 1e-12 else math.nan
