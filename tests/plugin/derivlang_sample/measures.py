"""centroids: how near the mean sentence states of the two languages are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from derivlang.evaluation.columns import Column
from derivlang.evaluation.formulas import fixed
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.of_file import PairMeasure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import Score
from derivlang.training.encoder import Encoder


class FileCentroids(PairMeasure):
    """How near the sides of a file are: cosines of the states of each sentence pair, by layer."""

    columns = (Column("cosine", "cosine of sentences", headline=True, over="layer"),)

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield `cosine`, the mean over the pairs of the file."""
        ours, theirs = self.encoder(model, sets).sentences(self.bitext)
        for layer, (source, derived) in enumerate(zip(ours[0], theirs[0], strict=True)):
            cosines = torch.cosine_similarity(source, derived).cpu().numpy()
            of = self.scored(self.pairs.sha256, len(cosines))
            yield Score("cosine", fixed(cosines, np.ones(len(cosines))), layer=layer, set=of)


class Centroids(Measure):
    """How near the languages are: cosines of the states of a sentence, and of the mean states, by layer."""

    columns = (
        *FileCentroids.columns,
        Column("centroids", "cosine of the means", formula="", over="layer"),
    )
    of_file, reads = FileCentroids, ("pairs",)

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield `cosine`, the mean over `sets.pairs`, and `centroids`, which is of all of them and has no counts."""
        every = np.ones(sets.pairs.n_sentences)
        for layer, (source, derived) in enumerate(sets.states(model).sentences):
            cosines = torch.cosine_similarity(source, derived).cpu().numpy()
            yield Score("cosine", fixed(cosines, every), layer=layer, set=sets.of_pairs)
            between = torch.cosine_similarity(source.mean(0), derived.mean(0), dim=0)
            yield Score("centroids", value=100 * float(between), layer=layer, set=sets.of_pairs)
