"""The interface of a measure: from a model and the sets of a run to scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from derivlang.evaluation.columns import Column
    from derivlang.evaluation.measures.sets import MeasureSets
    from derivlang.evaluation.scores import Score
    from derivlang.training.encoder import Encoder
    from derivlang.training.languages import Languages


class Measure(ABC):
    """A measure of a pre-trained model that needs no fine-tuning.

    columns: its scores. needs: what a run must have, or `evaluate` leaves the measure out, with a warning: `head`,
    logits; `causal`, a causal language model; `twin`, a tokenizer with a twin; `training text`, which the measure
    reads. of_file: its subclass of `FileMeasure`, None if there is none. reads: the options that say how many
    sentences it reads; () without text. files: the names of the files that it writes in `MeasureSets.files`, which
    `evaluate --force` removes with earlier results.
    """

    columns: ClassVar[tuple[Column, ...]]
    needs: ClassVar[tuple[Literal["head", "causal", "twin", "training text"], ...]] = ()
    of_file: ClassVar[Any] = None
    reads: ClassVar[tuple[Literal["pairs", "sentences", "ngram_sentences"], ...]] = ("pairs", "sentences")
    files: ClassVar[tuple[str, ...]] = ()

    def lacks(self, sets: MeasureSets) -> str:
        """Return what the sets of a run lack for this measure, "" for nothing. `evaluate` then leaves it out, too."""
        return ""

    def check(self, languages: Languages) -> None:
        """Raise DerivlangError if a file of the user's is missing or damaged, before hours of fine-tuning begin."""
        return

    @abstractmethod
    def measure(self, model: Encoder, sets: MeasureSets) -> Iterable[Score]:
        """Return its scores, each of one of its columns. The same model and sets give the same.

        A score with units gives counts, for which its column has a formula, and the set that was measured, such as
        `sets.of_pairs`. The score of a layer has the layer's number, the score of a guess has the regime `chance`.
        """
