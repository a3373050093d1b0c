"""Measures of a model on a file of the user: sentence pairs, gold links, or a dictionary of words.

    retrieval:en-fr=FILE      sentences whose most similar one of the other side is their own, in both directions
    links:en-fr=FILE          AER of links between words against gold links, some of which may be only possible
    translation:en-fr=FILE    words whose most similar word of the other side is one of their translations (P@1)

`en` and `fr` name the source and a target of the run; the file has the first of them on its left. A run whose languages
have no names takes `links:FILE`. Pairs and links are in a form of --pairs, or in PREFIX.en, PREFIX.fr and PREFIX.gold.
Sentences that do not fit into a row are cut; words without a state have no links. Unlike in held-out text, equal words
of a sentence are different words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from derivlang.align.bitext import Bitext
from derivlang.align.links import Links
from derivlang.core.arrays import lengths_of
from derivlang.core.errors import DataError
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import ScoredSet, set_hash
from derivlang.evaluation.set_names import short_name
from derivlang.training.languages import Languages
from derivlang.training.streams.bitext import PairFile, read_pairs

if TYPE_CHECKING:
    from derivlang.evaluation.encoder_links import LinkEncoder
    from derivlang.training.encoder import Encoder


@dataclass(frozen=True)
class FileMeasure(Measure):
    """A measure on a file. names: of its sides, () if none are given. target: of the run, the other is the source."""

    reads = ()

    file: Path = Path()
    names: tuple[str, ...] = ()
    target: str = ""

    def __init_subclass__(cls) -> None:
        cls.of_file = cls

    @property
    def is_turned(self) -> bool:
        """Whether the left side is in the target."""
        return self.names[:1] == (self.target,)

    def scored(self, digest: str, n: int, unit: str = "sentence") -> ScoredSet:
        """Return what scores are of: n units of a file with this hash."""
        keys = np.full(n, int(digest[:16], 16), np.uint64)
        return ScoredSet(short_name(str(self.file)), set_hash(keys, np.arange(n)), unit)


@dataclass(frozen=True)
class PairMeasure(FileMeasure):
    """A measure on the states of sentence pairs of a file."""

    @cached_property
    def pairs(self) -> PairFile:
        """The pairs, the side of the source first. Raise DataError if a file is missing or damaged."""
        read = read_pairs(self.file, names=self.names)
        if not np.logical_and(*(lengths_of(side.offsets) > 0 for side in (read.source, read.derived))).any():
            raise DataError("has no pair with words on both sides", where=str(self.file), id="empty-file")
        if not self.is_turned:
            return read
        links = read.links and Links(read.links.offsets, read.links.target, read.links.source, read.links.sure)
        return PairFile(read.derived, read.source, links, read.sha256)

    def check(self, languages: Languages) -> None:
        _ = self.pairs

    @property
    def bitext(self) -> Bitext:
        """The sentences of both sides."""
        return Bitext(self.pairs.source, self.pairs.derived)

    def encoder(self, model: Encoder, sets: MeasureSets) -> LinkEncoder:
        """Return the model as a reader of words, in all layers."""
        from derivlang.evaluation.encoder_links import LinkEncoder
        from derivlang.training.encoder import positions_of

        return LinkEncoder(sets.languages, model, None, positions_of(model.module).longest or 1 << 15)
