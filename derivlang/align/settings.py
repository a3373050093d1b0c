"""Settings of `align train` and `align score`, declared once (core/settings.py). Help pages import this module."""

from __future__ import annotations

from dataclasses import dataclass

from derivlang.core.settings import Settings, replaces, setting
from derivlang.formats.places import OptionalPath


@dataclass(frozen=True, kw_only=True)
class AlignTrainOptions(Settings):
    """What `align train` takes besides the texts. Raises UsageError for a value out of bounds.

    model: one of `align.MODELS`; with an encoder, one of `similarity.METHODS`.
    """

    model: str = setting(
        "hmm",
        "Aligner: hmm, ibm2, or eflomal (an optional package); with --encoder: ot, argmax or itermax.",
    )
    encoder: str | None = setting(
        None,
        "Encoder whose states link the words: a RUN, which reads SOURCE in its source language and TARGET in its "
        "derived language, or a FOLDER or hub:NAME trained elsewhere, which reads both with its own tokenizer.",
    )
    layer: int | None = setting(
        None,
        "Layer of the encoder; 0 is its embeddings.",
        minimum=0,
        unset="at 8/12 of the depth",
        only_with="--encoder",
    )
    device: str | None = setting(
        None, "Device, as torch names it: cpu, cuda, mps.", unset="a GPU if there is one", only_with="--encoder"
    )
    symmetrise: str | None = setting(
        None,
        "Symmetrisation: intersection, union, grow-diag-final-and, or posterior:0.3.",
        unset="posterior:0.3; eflomal: grow-diag-final-and",
        excludes="--encoder",
    )
    iterations: int | None = setting(
        None,
        "Number of iterations of the model.",
        minimum=1,
        unset="8; eflomal: its own choice",
        excludes="--encoder",
    )
    lower: bool = setting(False, "Align lower-cased words.")
    encoding: str = setting("utf-8", "Encoding of both files.")
    force: bool = replaces()


@dataclass(frozen=True, kw_only=True)
class AlignScoreOptions(Settings):
    """What `align score` takes besides the links and the gold links."""

    source: OptionalPath = setting(None, "Source text; links must lie within its sentences.", file=True)
    target: OptionalPath = setting(None, "Target text; links must lie within its sentences.", file=True)
    encoding: str = setting("utf-8", "Encoding of the files.")
