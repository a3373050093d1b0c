"""`align_words` and `score_links`: word links of two texts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.align.settings import AlignScoreOptions, AlignTrainOptions
from derivlang.commands.command import Command
from derivlang.core.errors import DataError, UsageError, unknown
from derivlang.core.messages import warn
from derivlang.core.settings import setting
from derivlang.formats.places import STDOUT, OptionalPath, PathLike
from derivlang.formats.progress import rows_done, stage

if TYPE_CHECKING:
    from derivlang.align.bitext import Bitext
    from derivlang.align.links import Links


@dataclass(frozen=True, eq=False, repr=False)
class AlignWords(Command[dict[str, Any]], AlignTrainOptions):
    """Train an aligner on SOURCE and TARGET and write their links.

    With --encoder nothing is trained: the similarity of the words' states gives the links, by optimal transport (ot),
    mutual argmax, or itermax.

    Line n of SOURCE belongs to line n of TARGET; words are separated by spaces. Each line of the result has the links
    of one sentence pair as i-j, zero-based, source word first; it is empty if one of the sentences is empty. Without -o
    the links go to standard output.

    \b
    derivlang align train en.txt fr.txt | head
    derivlang align train en.txt fr.txt --lower -o en-fr.pharaoh
    derivlang align train en.txt fr.txt --model ot --encoder hub:FacebookAI/xlm-roberta-base
    """

    source: PathLike
    target: PathLike
    out: OptionalPath = setting(
        None, "Pharaoh file to write.", also="-o", unset="standard output", file=True, writes=True
    )

    def __call__(self) -> dict[str, Any]:
        """Return {"out", "model", "symmetrise", "sentences", "links", "seconds"}; with an encoder "encoder", "layer"
        and "cut" in place of "symmetrise". No file is left half-written."""
        from derivlang.align.bitext import encode
        from derivlang.store.files import held_file, refuse_source, writing

        source, target, out = Path(self.source), Path(self.target), self.path("out") or STDOUT
        options = self.part(AlignTrainOptions)
        refuse_source(out, (source, target), "a file of links")
        align, told_of = _aligner(options)
        with held_file(out, f"align train {source} {target}, {options.model}", source, target, options):
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
            "model": options.model,
            **told_of,
            "sentences": len(links),
            "links": len(links.source),
            "seconds": round(seconds, 3),
        }


@dataclass(frozen=True, eq=False, repr=False)
class ScoreLinks(Command[dict[str, float]], AlignScoreOptions):
    """Score LINKS against GOLD: precision, recall, F1 and alignment error rate of two Pharaoh files.

    Gold links are sure (i-j) or only possible (ipj). The gold links of a derived set come from
    `derivlang export --format pharaoh`.

    \b
    derivlang align score en-fr.pharaoh gold.pharaoh --json
    """

    links: PathLike
    gold: PathLike

    def __call__(self) -> dict[str, float]:
        """Return {"precision", "recall", "f1", "aer"}, from 0 to 1.

        Raise DataError for a link outside its sentences, if texts are given.
        """
        from derivlang.align.bitext import encode_lines
        from derivlang.align.links import check_range, parse_lines, score
        from derivlang.core.arrays import lengths_of

        options, files = self.part(AlignScoreOptions), (Path(self.links), Path(self.gold))
        predicted, wanted = (parse_lines(_lines(path, options.encoding), str(path)) for path in files)
        sizes = [
            None if path is None else lengths_of(encode_lines(_lines(path, options.encoding)).offsets)
            for path in (options.source, options.target)
        ]
        for path, some in zip(files, (predicted, wanted), strict=True):
            check_range(some, sizes[0], sizes[1], str(path))
        firsts = [min((*some.source, *some.target), default=0) for some in (predicted, wanted)]
        if min(firsts) == 0 < max(firsts):
            path = files[int(firsts[1] > 0)]
            warn(f"{path}: no link has a 0, so its words seem to be numbered from 1; links number words from 0")
        try:
            return asdict(score(predicted, wanted))
        except DataError as error:
            error.where = ", ".join(map(str, files))
            raise


def _aligner(options: AlignTrainOptions) -> tuple[Callable[[Bitext], Links], dict[str, Any]]:
    """Return (what links a bitext, its settings for the summary). Raise UsageError for an aligner of the other kind."""
    from derivlang.align.align import MODELS, AlignOptions, align_bitext
    from derivlang.align.similarity import METHODS

    if options.encoder is None:
        how = AlignOptions(options.model, options.symmetrise, options.iterations)
        return lambda bitext: align_bitext(bitext, how), {"symmetrise": how.method}
    if options.model in MODELS:
        raise UsageError(
            f"{options.model} learns only from the text",
            where="--encoder",
            fix="add --model ot, or leave it out",
            id="usage",
        )
    if options.model not in METHODS:
        raise unknown("aligner", options.model, [*MODELS, *METHODS])
    from derivlang.core.dependencies import require_torch

    require_torch()
    from derivlang.evaluation.encoder_links import LinkEncoder

    with stage("loading the encoder"):
        encoder = LinkEncoder.load(options.encoder, options.layer, options.device)
    told_of = {"encoder": options.encoder, "layer": encoder.layer}

    def align(bitext: Bitext) -> Links:
        links, told_of["cut"] = encoder.links(bitext, options.model, warn)
        return links

    return align, told_of


def _lines(path: Path, encoding: str) -> list[str]:
    from derivlang.formats.opening import open_lines

    return [line for _, line in open_lines(path, encoding)]
