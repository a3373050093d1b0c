"""Word links of two texts, by any of the aligners.

align(["the cat", "a dog"], ["le chat", "un chien"], Options("ibm2"))  ->  Links, one row per line

Links from posteriors, block by block.

In each direction a generated word is linked to the word that most likely generated it, unless the empty word is more
likely:

    posteriors [.3, .4] leave .3 for no link: link to the second word;    [.3, .2] leave .5: no link
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from derivlang.align import eflomal
from derivlang.align.bitext import Bitext, encode
from derivlang.align.blocks import BitextBlock, TypePairs
from derivlang.align.links import Links
from derivlang.align.similarity import METHODS
from derivlang.align.symmetrise import Method, method, symmetrise
from derivlang.align.train import AlignerSettings, Beliefs, train
from derivlang.core.arrays import Int64
from derivlang.core.errors import UsageError, unknown
from derivlang.formats.progress import rows_done, stage


def decode(table: TypePairs, beliefs: Iterable[Beliefs], n_rows: int, method: Method) -> Links:
    """Return the links of n_rows sentence pairs; pairs with an empty side have none."""
    n_pairs = sum(len(block.rows) for block in table.blocks)
    if method.name == "posterior":
        with stage("choosing links", "rows", n_pairs):
            return _collect(
                (
                    (block, _above(belief, method.threshold))
                    for block, belief in zip(table.blocks, beliefs, strict=True)
                ),
                n_rows,
            )
    beliefs = list(beliefs)
    with stage("choosing links", "rows", 2 * n_pairs):
        both = [
            _collect(
                ((block, _best(belief, reverse=reverse)) for block, belief in zip(table.blocks, beliefs, strict=True)),
                n_rows,
            )
            for reverse in (False, True)
        ]
    return symmetrise(both[0], both[1], method.name)


_Cells = tuple[Int64, Int64, Int64]  # target words, pairs, source words


def _above(belief: Beliefs, threshold: float) -> _Cells:
    if belief.forward is belief.backward:
        return np.nonzero(belief.forward > threshold)  # type: ignore[return-value]
    return np.nonzero(belief.forward * belief.backward > threshold**2)  # type: ignore[return-value]


def _best(belief: Beliefs, *, reverse: bool) -> _Cells:
    links = belief.backward if reverse else belief.forward
    axis = 0 if reverse else 2
    best = links.argmax(axis)  # [S, I] or [J, S]
    value = links.max(axis)
    linked = (value > 1 - links.sum(axis)) & (value > 0)
    if reverse:
        pair, source = np.nonzero(linked)
        return best[pair, source], pair, source
    target, pair = np.nonzero(linked)
    return target, pair, best[target, pair]


def _collect(decoded: Iterable[tuple[BitextBlock, _Cells]], n_rows: int) -> Links:
    rows, source, target = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for block, (j, s, i) in decoded:
        rows.append(block.rows[s])
        source.append(i.astype(np.int32))
        target.append(j.astype(np.int32))
        rows_done(len(block.rows))
    return Links.of(np.concatenate(rows), np.concatenate(source), np.concatenate(target), n_rows)


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
