"""A parser's tags and trees as layers of a batch, one tree a sentence, for all sides of its records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from derivlang.core.arrays import lengths_of, owners
from derivlang.core.batch import Batch
from derivlang.core.layers.parse import parse_layers
from derivlang.parsing.base import UPOS, Parser


def with_parses(batch: Batch, parser: Parser) -> Batch:
    """The batch with layers `upos` and `head`; a batch that has trees is left as it is, and tags of its own are
    kept."""
    if "head" in batch.layers:
        return batch
    found = parser.parse(batch.words, batch.types, batch.sentences)
    # Heads count from the sentence's first word; in a batch they count from the unit's.
    shift = np.repeat(batch.sentences[:-1] - batch.unit_words[owners(batch.units)], lengths_of(batch.sentences))
    head = np.where(found.head > 0, found.head + shift, 0)
    layers = parse_layers(found.upos, UPOS, head, found.deprel, found.relations)
    return replace(batch, layers={**layers, **batch.layers})
