"""What measures compare: the two languages of a run, and held-out sentences in both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from derivlang.core.arrays import Int64, UInt64
from derivlang.core.keys import hash_types
from derivlang.evaluation.heldout import Heldout, TrainingText
from derivlang.evaluation.measures.bits import SentenceBits
from derivlang.evaluation.measures.states import ParallelStates, ParallelWords
from derivlang.evaluation.scores import ScoredSet, set_hash
from derivlang.formats.progress import stage
from derivlang.lexical.own import OwnTokenizer
from derivlang.training.languages import DERIVED, SOURCE, Languages

if TYPE_CHECKING:
    from derivlang.training.encoder import Encoder


@dataclass(frozen=True, eq=False)
class MeasureSets:
    """The sets of a run. Text and states are computed when a measure first needs them, once for all measures.

    folder: with the dictionary of both languages, if there is one. source: the name of the held-out text's source.
    read: returns that text. n_pairs, n_sentences: maximum numbers of `pairs` and `sentences`. files: the folder of
    files that measures write. training_text: returns the text that the run was trained on, for measures that need
    it.
    """

    folder: Path
    languages: Languages
    source: str
    read: Callable[[], Heldout]
    n_pairs: int
    n_sentences: int
    files: Path
    training_text: Callable[[], TrainingText]
    _bits: dict[Encoder, tuple[SentenceBits, SentenceBits]] = field(default_factory=dict)
    _states: dict[Encoder, ParallelStates] = field(default_factory=dict)

    @cached_property
    def text(self) -> Heldout:
        """The held-out text that `pairs` and `sentences` come from."""
        return self.read()

    @cached_property
    def pairs(self) -> Heldout:
        """The sentences whose states are compared."""
        return self.text.first(self.n_pairs)

    @cached_property
    def sentences(self) -> Heldout:
        """The sentences whose sub-words are predicted."""
        return self.text.first(self.n_sentences)

    @cached_property
    def words(self) -> ParallelWords:
        """The words of `pairs`."""
        return ParallelWords(self.pairs)

    @cached_property
    def of_pairs(self) -> ScoredSet:
        """What scores of `pairs` are of; a row of counts is a sentence."""
        return self.scored(self.pairs)

    @cached_property
    def of_sentences(self) -> ScoredSet:
        """What scores of `sentences` are of; a row of counts is a sentence."""
        return self.scored(self.sentences)

    @cached_property
    def _entry_keys(self) -> UInt64:
        """The hash of each entry of the source's tokenizer but the special ones."""
        assert isinstance(self.languages.tokenizer, OwnTokenizer)  # as its measures need a twin
        tokenizer = self.languages.tokenizer.tokenizer
        return hash_types(tokenizer.entries()[tokenizer.n_special :])

    def of_entries(self, some: Int64) -> ScoredSet:
        """Return what scores of these entries of the source's tokenizer are of; a row of counts is an entry."""
        return ScoredSet("vocabulary", set_hash(self._entry_keys[some], np.arange(len(some))), "sub-word")

    def scored(self, text: Heldout) -> ScoredSet:
        """Return what scores of some held-out sentences are of; a row of counts is a sentence."""
        return ScoredSet(self.source, set_hash(text.keys, np.arange(text.n_sentences)), "sentence")

    def bits(self, model: Encoder) -> tuple[SentenceBits, SentenceBits]:
        """Return the bits of `sentences` under a causal model, in the source and in the derived language."""
        if model not in self._bits:
            text = self.sentences
            with stage("surprisal", "rows", 2 * text.n_sentences):
                sides = (text.source, SOURCE), (text.derived, DERIVED)
                source, derived = (SentenceBits(model, side.ids, text.offsets_in(side), i) for side, i in sides)
            self._bits[model] = source, derived
        return self._bits[model]

    def states(self, model: Encoder) -> ParallelStates:
        """Return the states of `pairs`, by layer, each sentence encoded by itself."""
        if model not in self._states:
            self._states[model] = ParallelStates(model, self.pairs, self.words)
        return self._states[model]
