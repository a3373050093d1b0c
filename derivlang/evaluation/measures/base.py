"""The interface of a measure: from a model and the sets of a run to scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from derivlang.evaluation.columns import Column
    from derivlang.evaluation.measures.sets import MeasureSets
    from derivlang.evaluation.scores import Score
    from derivlang.training.encoder import Encoder
    from derivlang.training.languages import Languages


class Measure(ABC):
    """A measure of a pre-trained model that needs no fine-tuning.

    columns: its scores. needs_head: whether it needs logits; needs_causal: whether it needs a causal model; needs_twin:
    whether it needs a tokenizer with a twin; needs_training_text: whether it reads the text that the run was trained
    on. `evaluate` leaves it out, with a warning, for another run. needs_file: whether it measures only on a file of the
    user. reads: the options that say how many sentences it reads; () without text. files: the names of the files that
    it writes in `MeasureSets.files`, which `evaluate --force` removes with earlier results.
    """

    columns: ClassVar[tuple[Column, ...]]
    needs_head: ClassVar[bool] = False
    needs_causal: ClassVar[bool] = False
    needs_twin: ClassVar[bool] = False
    needs_training_text: ClassVar[bool] = False
    needs_file: ClassVar[bool] = False
    reads: ClassVar[tuple[Literal["pairs", "sentences", "ngram_sentences"], ...]] = ("pairs", "sentences")
    files: ClassVar[tuple[str, ...]] = ()

    def lacks(self, sets: MeasureSets) -> str:
        """Return what the sets of a run lack for this measure, "" for nothing. `evaluate` then leaves it out, too."""
        return ""

    def on_file(self, file: Path, names: tuple[str, ...], target: str) -> Measure | None:
        """Return the measure on the file of KIND:NAME-NAME=FILE, with the names of its sides; None if it takes none.

        names: () if none are given. target: the language of the run that is evaluated beside the source.
        """
        return None

    def check(self, languages: Languages) -> None:
        """Raise DerivlangError if a file of the user's is missing or damaged, before hours of fine-tuning begin."""
        return

    @abstractmethod
    def measure(self, model: Encoder, sets: MeasureSets) -> Iterable[Score]:
        """Return its scores, each of one of its columns. The same model and sets give the same.

        A score with units gives counts, for which its column has a formula, and the set that was measured, such as
        `sets.of_pairs`. The score of a layer has the layer's number, the score of a guess has the regime `chance`.
        """
