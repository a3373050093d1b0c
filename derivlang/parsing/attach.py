"""A parser's tags and trees as layers of a batch, one tree per sentence, on all sides of its records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from derivlang.core.arrays import lengths_of, owners
from derivlang.core.batch import Batch
from derivlang.core.layers.parse import parse_layers
from derivlang.parsing.base import UPOS, Parser


def with_parses(batch: Batch, parser: Parser) -> Batch:
    """Return the batch with layers `upos` and `head`. A batch with trees stays as it is; tags of its own are kept."""
    if "head" in batch.layers:
        return batch
    parses = parser.parse(batch.words, batch.types, batch.sentences)
    # Heads count from the first word of the sentence; in a batch, from the first word of the unit. In a unit with
    # sentences of 2 and 3 words, the shift is 0 0 2 2 2, and the heads 2 0 | 2 0 2 become 2 0 4 0 4.
    shift = np.repeat(batch.sentences[:-1] - batch.unit_words[owners(batch.units)], lengths_of(batch.sentences))
    head = np.where(parses.head > 0, parses.head + shift, 0)
    layers = parse_layers(parses.upos, UPOS, head, parses.deprel, parses.relations)
    return replace(batch, layers={**layers, **batch.layers})
