"""Word links of two texts by any of the aligners: one function for all.

align(["the cat", "a dog"], ["le chat", "un chien"], Options("ibm2"))  ->  Links, one row a line
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from derivlang.align import eflomal
from derivlang.align.bitext import Bitext, encode
from derivlang.align.decode import decode
from derivlang.align.links import Links
from derivlang.align.symmetrise import method
from derivlang.align.train import Settings, train
from derivlang.core.errors import UsageError, unknown

MODELS = ("hmm", "ibm2", "eflomal")
_IBM2 = Settings(ibm1=2, ibm2=8, hmm=0)
_DEFAULT = {"hmm": "posterior:0.3", "ibm2": "posterior:0.3", "eflomal": "grow-diag-final-and"}


@dataclass(frozen=True, slots=True)
class Options:
    """model: one of MODELS. symmetrise: see `symmetrise.method`; None: the model's own. iterations: of the last model
    that is trained (eflomal: of each); None: the model's own. settings: of the own models, for studies."""

    model: str = "hmm"
    symmetrise: str | None = None
    iterations: int | None = None
    lower: bool = False
    settings: Settings | None = None

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise unknown("aligner", self.model, MODELS)
        if self.iterations is not None and self.iterations < 1:
            raise UsageError(f"{self.iterations} iterations align nothing", where="--iterations", id="iterations")
        method(self.method)

    @property
    def method(self) -> str:
        """How directions become one."""
        return self.symmetrise or _DEFAULT[self.model]

    def training(self) -> Settings:
        """Of an own model."""
        settings = self.settings or (_IBM2 if self.model == "ibm2" else Settings())
        if self.iterations is None:
            return settings
        if self.model == "ibm2":
            return replace(settings, ibm2=self.iterations)
        return replace(settings, hmm=self.iterations)


def align(source: Sequence[str], target: Sequence[str], options: Options = Options()) -> Links:
    """The links of line n of the source and line n of the target; none where one of them is empty.

    Words are what spaces divide. Raises DataError `lengths`, `empty-side`; UsageError `missing-package`.
    """
    return align_bitext(encode(source, target, lower=options.lower), options)


def align_bitext(bitext: Bitext, options: Options = Options()) -> Links:
    """The same for a bitext that is already coded."""
    if options.model == "eflomal":
        return eflomal.align(bitext, method(options.method), options.iterations)
    table, beliefs = train(bitext, options.training())
    return decode(table, beliefs, len(bitext), method(options.method))
