"""Word links of two texts, by any of the aligners.

align(["the cat", "a dog"], ["le chat", "un chien"], Options("ibm2"))  ->  Links, one row per line
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from derivlang.align import eflomal
from derivlang.align.bitext import Bitext, encode
from derivlang.align.decode import decode
from derivlang.align.links import Links
from derivlang.align.similarity import METHODS
from derivlang.align.symmetrise import method
from derivlang.align.train import AlignerSettings, train
from derivlang.core.errors import UsageError, unknown

MODELS = ("hmm", "ibm2", "eflomal")
_IBM2 = AlignerSettings(ibm1=2, ibm2=8, hmm=0)
_DEFAULT = {"hmm": "posterior:0.3", "ibm2": "posterior:0.3", "eflomal": "grow-diag-final-and"}


@dataclass(frozen=True, slots=True)
class AlignOptions:
    """How two texts are aligned.

    model: one of MODELS. symmetrise: see `symmetrise.method`; None: the default of the model. iterations: of the last
    model trained (eflomal: of each model); None: the default of the model. lower: align lower-cased words. settings: of
    hmm and ibm2, for experiments.
    """

    model: str = "hmm"
    symmetrise: str | None = None
    iterations: int | None = None
    lower: bool = False
    settings: AlignerSettings | None = None

    def __post_init__(self) -> None:
        if self.model in METHODS:
            raise UsageError(
                f"{self.model} links words by the states of an encoder",
                where="--model",
                fix="name the encoder with --encoder: a RUN, the FOLDER of a checkpoint, or hub:NAME",
                id="no-encoder",
            )
        if self.model not in MODELS:
            raise unknown("aligner", self.model, [*MODELS, *METHODS])
        if self.iterations is not None and self.iterations < 1:
            message = f"iterations must be at least 1, got {self.iterations}"
            raise UsageError(message, where="--iterations", id="iterations")
        method(self.method)

    @property
    def method(self) -> str:
        """The symmetrisation."""
        return self.symmetrise or _DEFAULT[self.model]

    def training(self) -> AlignerSettings:
        """Return the settings that hmm and ibm2 are trained with."""
        settings = self.settings or (_IBM2 if self.model == "ibm2" else AlignerSettings())
        if self.iterations is None:
            return settings
        if self.model == "ibm2":
            return replace(settings, ibm2=self.iterations)
        return replace(settings, hmm=self.iterations)


def align(source: Sequence[str], target: Sequence[str], options: AlignOptions = AlignOptions()) -> Links:
    """Return the links between line n of the source and line n of the target; none where one of them is empty.

    Words are separated by white space. Raises DataError `lengths`, `empty-side`; UsageError `missing-package`.
    """
    return align_bitext(encode(source, target, lower=options.lower), options)


def align_bitext(bitext: Bitext, options: AlignOptions = AlignOptions()) -> Links:
    """Return the links of an encoded bitext; see `align`."""
    if options.model == "eflomal":
        return eflomal.align(bitext, method(options.method), options.iterations)
    table, beliefs = train(bitext, options.training())
    return decode(table, beliefs, len(bitext), method(options.method))
