"""Projection: embeddings of frequent sub-words and of their twins, by principal components, for a picture.

    source, derived    [[x, y], …]: row i of both is a pair; the PAIRS most frequent ones outside the dictionary
    explained          percentage of the variance that x and y have, of both languages' rows together

The components are those of unit vectors, with the mean of both languages taken away: a language that lies apart is seen
to lie apart. WEAM (Yang et al. 2021, Figure 2) shows such a picture by t-SNE, which keeps no distances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.core.messages import counted
from derivlang.core.threads import one_thread
from derivlang.evaluation.measures.alignment import EmbeddingPairs
from derivlang.evaluation.measures.base import Figures, Measure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.training.encoder import Encoder
from derivlang.training.languages import TwinLanguages

PAIRS = 200


class Projection(Measure):
    """Embeddings of frequent sub-words and of their twins in two dimensions, for a picture in the report."""

    needs_twin = True
    reads = ()

    def measure(self, model: Encoder, sets: MeasureSets) -> dict[str, Any]:
        """Return {"explained", "source", "derived"}; the lists have no rows if the languages share all sub-words."""
        assert isinstance(sets.languages, TwinLanguages)  # needs_twin
        pairs = EmbeddingPairs.load(sets.folder, sets.languages)
        apart = np.flatnonzero(pairs.own & ~pairs.known & (pairs.counts > 0))
        asked = apart[np.argsort(-pairs.counts[apart], kind="stable")[:PAIRS]]
        rows = model.embeddings.detach().float().cpu().numpy().astype(np.float64)
        points, explained = principal(np.concatenate([rows[pairs.source[asked]], rows[pairs.derived[asked]]]))
        source, derived = np.split(np.round(points, 4), 2)
        if len(asked):  # the signs of components are arbitrary: the source lies left and below
            source, derived = (side * np.where(source.mean(0) > derived.mean(0), -1, 1) for side in (source, derived))
        return {"explained": explained, "source": source.tolist(), "derived": derived.tolist()}

    def rows(self, found: Any) -> dict[str, Figures]:
        """Return the share of the variance that the picture shows."""
        title = f"{counted(len(found['source']), 'pair')} in two dimensions"
        return {title: {"of the variance": found["explained"]}}


@one_thread()
def principal(rows: Floats) -> tuple[Floats, float | None]:
    """Return the first two principal components of unit vectors, [n, 2], and their share of the variance in percent.

    rows: [n, D], D at least 2. The share is None if all rows are equal.
    """
    if not len(rows):
        return np.zeros((0, 2)), None
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    left, sizes, _ = np.linalg.svd(unit - unit.mean(axis=0), full_matrices=False)
    points = left[:, :2] * sizes[:2]
    variance = sizes**2
    return points, 100 * float(variance[:2].sum() / variance.sum()) if variance.sum() > 1e-12 else None
