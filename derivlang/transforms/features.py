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
    held = [(value or "").split("|") for value in layer.values.to_pylist()]
    wanted = [
        all(
            any(one == feature or (feature[-1] == "=" and one.startswith(feature)) for one in own)
            for feature in features
        )
        for own in held
    ]
    return np.array(wanted, bool)[layer.codes]
