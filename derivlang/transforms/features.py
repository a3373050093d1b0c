"""The morphological features of words (FEATS of CoNLL-U): `Number=Sing|Person=3`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from derivlang.core.arrays import Bool
from derivlang.core.batch import Batch
from derivlang.core.layers.words import Words

FEATS = "feats"


def has_features(batch: Batch, features: Iterable[str]) -> Bool:
    """Return bool[N]: the words that have all of some features. `Number=` is any number."""
    layer = batch.layers[FEATS]
    assert isinstance(layer, Words)
    sought = [f"|{feature}" if feature.endswith("=") else f"|{feature}|" for feature in features]
    has_all = [all(one in held for one in sought) for held in (f"|{value}|" for value in layer.values.to_pylist())]
    return np.array(has_all, bool)[layer.codes]
