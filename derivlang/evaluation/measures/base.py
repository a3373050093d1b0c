"""The interface of a measure: from a model and the sets of a run to figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from derivlang.evaluation.measures.sets import MeasureSets
    from derivlang.training.encoder import Encoder

Figures = Mapping[str, float | None]
LARGEST_PERPLEXITY = 1e14  # a diverged model's would be too large to add up and to print


class Measure(ABC):
    """A measure of a pre-trained model that needs no fine-tuning.

    unit: what follows a figure on the command line. needs_head: whether it needs logits; needs_causal: whether it needs
    a causal model; needs_twin: whether it needs a tokenizer with a twin. `evaluate` leaves it out, with a warning, for
    another model. reads: the options that say how many held-out sentences it reads; () without text. files: the
    names of the files that it writes in `MeasureSets.files`, which `evaluate --force` removes with earlier results.
    """

    unit: ClassVar[str] = " %"
    needs_head: ClassVar[bool] = False
    needs_causal: ClassVar[bool] = False
    needs_twin: ClassVar[bool] = False
    reads: ClassVar[tuple[Literal["pairs", "sentences"], ...]] = ("pairs", "sentences")
    files: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def measure(self, model: Encoder, sets: MeasureSets) -> Any:
        """Return what `evaluation.json` holds under the name of the measure: JSON, with a float or None for a figure.

        The same model and sets give the same result. A result that has a figure for each layer is a list of `{"layer":
        0, …}`; that of a chance guess is called `chance`.
        """

    def rows(self, found: Any) -> dict[str, Figures]:
        """Return the figures to print, by the title of their row.

        found: a result of `measure`. The default has a row for each layer. A list of checkpoints shows the last row.
        """
        return {f"layer {one['layer']}": {name: one[name] for name in one if name != "layer"} for one in found}
