"""Word links of two texts, by any of the aligners.

align(["the cat", "a dog"], ["le chat", "un chien"], Options("ibm2"))  ->  Links, one row per line

Links from posteriors, block by block.

In each direction a generated word is linked to the word that most likely generated it, unless the empty word is more
likely:

    posteriors [.3, .4] leave .3 for no link: link to the second word;    [.3, .2] leave .5: no link

Adapter to eflomal (Östling and Tiedemann 2016).

eflomal is an optional package under GPL-3 that is built from source, so it is imported only when it is used. It gets
word codes instead of words, so that it tokenises text as the other aligners do. It draws its own random seed,
so two runs differ slightly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from derivlang.align.bitext import Bitext, BitextBlock, TypePairs, encode
from derivlang.align.links import Links, Method, method, parse_lines, symmetrise
from derivlang.align.similarity import METHODS
from derivlang.align.train import AlignerSettings, Beliefs, train
from derivlang.core.arrays import Int32, Int64, lengths_of
from derivlang.core.errors import DataError, UsageError, unknown
from derivlang.formats.opening import open_lines
from derivlang.formats.progress import rows_done, stage


def decode(table: TypePairs, beliefs: Sequence[Beliefs], n_rows: int, method: Method) -> Links:
    """Return the links of n_rows sentence pairs; pairs with an empty side have none."""
    chosen = [partial(_best, reverse=reverse) for reverse in (False, True)]
    if method.name == "posterior":
        chosen = [partial(_above, threshold=method.threshold)]
    with stage("choosing links", "rows", len(chosen) * sum(len(block.rows) for block in table.blocks)):
        found = [_collect(zip(table.blocks, map(choose, beliefs), strict=True), n_rows) for choose in chosen]
    return found[0] if method.name == "posterior" else symmetrise(found[0], found[1], method.name)


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

    model: one of MODELS. symmetrise: see `links.method`; None: the default of the model. iterations: of the last
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
        return by_eflomal(bitext, method(options.method), options.iterations)
    table, beliefs = train(bitext, options.training())
    return decode(table, beliefs, len(bitext), method(options.method))


INSTALL = "pip install 'derivlang[align]' (or: pip install eflomal); it is built from source and needs a C compiler"


def by_eflomal(bitext: Bitext, method: Method, iterations: int | None = None) -> Links:
    """Return the links of a bitext.

    iterations: the number for each of its three models; None lets eflomal choose. Raises UsageError `missing-package`,
    and UsageError `symmetrisation` for the method `posterior`, as eflomal returns links without posteriors.
    """
    if method.name == "posterior":
        raise UsageError(
            "eflomal returns no posteriors",
            where="--symmetrise",
            fix="use intersection, union or grow-diag-final-and",
            id="symmetrisation",
        )
    try:
        from eflomal import Aligner
    except ImportError:
        raise UsageError("eflomal is not installed", where="--model", fix=INSTALL, id="missing-package") from None

    rows = np.flatnonzero((lengths_of(bitext.source.offsets) > 0) & (lengths_of(bitext.target.offsets) > 0))
    with stage("writing numbers for words", "rows", 2 * len(rows)):
        source = list(_numbers(bitext.source.codes, bitext.source.offsets, rows))
        target = list(_numbers(bitext.target.codes, bitext.target.offsets, rows))
    if not len(rows):
        return parse_lines([""] * len(bitext))
    with TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("forward", "backward")]
        aligner = Aligner(n_iterations=None if iterations is None else (iterations,) * 3)
        # All iterations are one call of a program, whose only report is text on standard error.
        with stage("aligning with eflomal", None):
            aligner.align(source, target, links_filename_fwd=files[0], links_filename_rev=files[1])
        with stage("reading links", "bytes", sum(Path(file).stat().st_size for file in files)):
            both = [_links(Path(file), rows, len(bitext)) for file in files]
    return symmetrise(both[0], both[1], method.name)


def _numbers(codes: Int32, offsets: Int64, rows: Int64) -> Iterator[str]:
    """Yield each row as a line of its word codes.

    codes [7, 3, 7], offsets [0, 1, 3]  ->  "7", "3 7"
    """
    words = codes.tolist()
    for row in rows.tolist():
        yield " ".join(map(str, words[offsets[row] : offsets[row + 1]])) + "\n"
        rows_done(1)


def _links(path: Path, rows: Int64, n_rows: int) -> Links:
    """Return the links of a file with a line for each of `rows`. Raises DataError `eflomal` for missing lines."""
    links = parse_lines((line for _, line in open_lines(path, "ascii")), "eflomal")
    if len(links) != len(rows):
        raise DataError(
            f"eflomal aligned {len(links):,} of {len(rows):,} sentence pairs",
            fix="see its messages on standard error",
            id="eflomal",
        )
    row = np.repeat(rows, lengths_of(links.offsets))
    return Links.of(row, links.source, links.target, n_rows)
