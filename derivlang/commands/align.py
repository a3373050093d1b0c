"""`align_words` and `score_links`: word links of two texts.

`link_texts` and `link_scores` are the same for settings objects, as the command line has them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.align.settings import AlignScoreOptions, AlignTrainOptions
from derivlang.commands.shared import PathLike
from derivlang.core.errors import DataError, UsageError, unknown
from derivlang.core.keywords import takes
from derivlang.core.messages import warn
from derivlang.core.settings import given
from derivlang.display.bar import ProgressBar
from derivlang.formats.places import located
from derivlang.formats.progress import rows_done, stage

if TYPE_CHECKING:
    from derivlang.align.bitext import Bitext
    from derivlang.align.links import Links


@takes(AlignTrainOptions)
def align_words(source: PathLike, target: PathLike, out: PathLike, **options: Any) -> dict[str, Any]:
    """Link the words of two texts and write a Pharaoh file, as `derivlang align train` does.

    source, target: text files; line n of one belongs to line n of the other. out: the file to write.

    Return {"out", "model", "symmetrise", "sentences", "links", "seconds"}; with an encoder "encoder", "layer" and "cut"
    in place of "symmetrise". Raise DerivlangError where the command would fail; no file is left half-written.
    """
    with ProgressBar():
        return link_texts(
            Path(source), Path(target), located(out), AlignTrainOptions(**given(AlignTrainOptions, options)), warn
        )


@takes(AlignScoreOptions)
def score_links(links: PathLike, gold: PathLike, **options: Any) -> dict[str, float]:
    """Score Pharaoh links against gold links, as `derivlang align score` does.

    Return {"precision", "recall", "f1", "aer"}, from 0 to 1. Raise DerivlangError as the command.
    """
    return link_scores(Path(links), Path(gold), AlignScoreOptions(**given(AlignScoreOptions, options)))


def link_texts(
    source: Path, target: Path, out: Path, options: AlignTrainOptions, warn: Callable[[str], None]
) -> dict[str, Any]:
    """Link the words of two texts, write the links to `out`, and return what `align_words` returns."""
    from derivlang.align.bitext import encode
    from derivlang.store.files import held_file, refuse_source, writing

    refuse_source(out, (source, target), "a file of links")
    align, told_of = _aligner(options, warn)
    with held_file(out, f"align train {source} {target}, {options.aligner}", source, target, options):
        with stage("reading"):
            sides = [_lines(path, options.encoding) for path in (source, target)]
        began = time.perf_counter()
        try:
            links = align(encode(sides[0], sides[1], lower=options.lower))
        except DataError as error:
            if error.where is None:  # the aligner knows no files
                error.where = f"{source}, {target}"
            raise
        seconds = time.perf_counter() - began
        with stage("writing", "rows", len(links)), writing(out, replace=options.force) as stream:
            for line in links.lines():
                stream.write(line.encode() + b"\n")
                rows_done(1)
    return {
        "out": str(out),
        "model": options.aligner,
        **told_of,
        "sentences": len(links),
        "links": len(links.source),
        "seconds": round(seconds, 3),
    }


def link_scores(links: Path, gold: Path, options: AlignScoreOptions) -> dict[str, float]:
    """Return what `score_links` returns. Raise DataError for a link outside its sentences, if texts are given."""
    from derivlang.align.bitext import encode_lines
    from derivlang.align.links import check_range, parse_lines
    from derivlang.align.score import score
    from derivlang.core.arrays import lengths_of

    predicted, wanted = (parse_lines(_lines(path, options.encoding), str(path)) for path in (links, gold))
    sizes = [
        None if path is None else lengths_of(encode_lines(_lines(path, options.encoding))[1])
        for path in (options.source, options.target)
    ]
    for path, some in ((links, predicted), (gold, wanted)):
        check_range(some, sizes[0], sizes[1], str(path))
    firsts = [min((*some.source, *some.target), default=0) for some in (predicted, wanted)]
    if min(firsts) == 0 < max(firsts):
        path = (links, gold)[int(firsts[1] > 0)]
        warn(f"{path}: no link has a 0, so its words seem to be numbered from 1; links number words from 0")
    try:
        return score(predicted, wanted).as_dict()
    except DataError as error:
        error.where = f"{links}, {gold}"
        raise


def _aligner(
    options: AlignTrainOptions, warn: Callable[[str], None]
) -> tuple[Callable[[Bitext], Links], dict[str, Any]]:
    """Return (what links a bitext, its settings for the summary). Raise UsageError for an aligner of the other kind."""
    from derivlang.align.align import MODELS, AlignOptions, align_bitext
    from derivlang.align.similarity import METHODS

    if options.encoder is None:
        how = AlignOptions(options.aligner, options.symmetrise, options.iterations)
        return lambda bitext: align_bitext(bitext, how), {"symmetrise": how.method}
    if options.aligner in MODELS:
        raise UsageError(
            f"{options.aligner} learns only from the text",
            where="--encoder",
            fix="add --model ot, or leave it out",
            id="usage",
        )
    if options.aligner not in METHODS:
        raise unknown("aligner", options.aligner, [*MODELS, *METHODS])
    from derivlang.core.extras import require_torch

    require_torch()
    from derivlang.evaluation.encoder_links import LinkEncoder

    with stage("loading the encoder"):
        encoder = LinkEncoder.load(options.encoder, options.layer, options.device)
    told_of = {"encoder": options.encoder, "layer": encoder.layer}

    def align(bitext: Bitext) -> Links:
        links, told_of["cut"] = encoder.links(bitext, options.aligner, warn)
        return links

    return align, told_of


def _lines(path: Path, encoding: str) -> list[str]:
    from derivlang.formats.opening import open_lines

    return [line for _, line in open_lines(path, encoding)]
