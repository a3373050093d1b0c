"""`derivlang align`: link the words of two texts, and score links."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from derivlang.cli.messages import echo, warn
from derivlang.cli.options import STDOUT, Bar, place_of, told
from derivlang.cli.settings import settings_options
from derivlang.cli.types import COUNT, FILE, OUT_FILE, PLACE, Group
from derivlang.core.errors import DataError, UsageError, unknown
from derivlang.core.messages import counted
from derivlang.evaluation.settings import EvaluateOptions

if TYPE_CHECKING:
    from derivlang.align.bitext import Bitext
    from derivlang.align.links import Links


@click.group("align", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Word aligners: link the words of two texts, and score links against gold links.

    \b
    derivlang align score en-fr.pharaoh gold.pharaoh --json
    derivlang align train en.txt fr.txt --lower -o en-fr.pharaoh
    """


@command.command("train", no_args_is_help=True, short_help="Train an aligner on two texts and write their links.")
@click.argument("source", type=FILE)
@click.argument("target", type=FILE)
@click.option("-o", "--out", type=OUT_FILE, default=STDOUT, help="Pharaoh file to write.  [default: standard output]")
@click.option(
    "--model",
    default="hmm",
    show_default=True,
    help="Aligner: hmm, ibm2, or eflomal (an optional package); with --encoder: ot, argmax or itermax.",
)
@click.option(
    "--encoder",
    metavar="RUN|FOLDER|hub:NAME",
    help="Encoder whose states link the words: RUN reads SOURCE in its source language and TARGET in its "
    "derived language; a checkpoint that was trained elsewhere reads both with its own tokenizer.",
)
@click.option(
    "--layer",
    type=PLACE,
    help="Layer of the encoder; 0 is its embeddings.  [default: at 8/12 of the depth]",
)
@settings_options(EvaluateOptions, only=("device",))
@click.option("--symmetrise", help="Symmetrisation: intersection, union, grow-diag-final-and, or posterior:0.3.  "
              "[default: posterior:0.3; eflomal: grow-diag-final-and]")  # fmt: skip
@click.option("--iterations", type=COUNT,
              help="Number of iterations of the model.  [default: 8; eflomal: its own choice]")  # fmt: skip
@click.option("--lower", is_flag=True, help="Align lower-cased words.")
@click.option("--encoding", default="utf-8", show_default=True, help="Encoding of both files.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON.")
def train(
    source: Path,
    target: Path,
    out: Path,
    model: str,
    encoder: str | None,
    layer: int | None,
    device: str | None,
    symmetrise: str | None,
    iterations: int | None,
    lower: bool,
    encoding: str,
    as_json: bool,
) -> None:
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
    from derivlang.align.bitext import encode
    from derivlang.formats.progress import rows_done
    from derivlang.store.files import held_file, writing

    align, told_of = _aligner(
        model, encoder, {"--layer": layer, "--device": device}, {"--symmetrise": symmetrise, "--iterations": iterations}
    )
    told_as = f"align train {source} {target}, {model}"
    with Bar() as bar, held_file(out, told_as, click.get_current_context().params):
        with bar.stage("reading"):
            sides = [_lines(path, encoding) for path in (source, target)]
        began = time.perf_counter()
        try:
            links = align(encode(sides[0], sides[1], lower=lower))
        except DataError as error:
            if error.where is None:  # the aligner knows no files
                error.where = f"{source}, {target}"
            raise
        seconds = time.perf_counter() - began
        with bar.stage("writing", "rows", len(links)), writing(out) as stream:
            for line in links.lines():
                stream.write(line.encode() + b"\n")
                rows_done(1)
    result = {
        "out": str(out),
        "model": model,
        **told_of,
        "sentences": len(links),
        "links": len(links.source),
        "seconds": round(seconds, 3),
    }
    text = f"{counted(len(links.source), 'link')} of {counted(len(links), 'sentence pair')}: {place_of(out)}"
    told(json.dumps(result) if as_json else text, as_json=as_json, out=out)


def _aligner(
    model: str, encoder: str | None, of_encoder: dict[str, Any], of_training: dict[str, Any]
) -> tuple[Callable[[Bitext], Links], dict[str, Any]]:
    """Return (what links a bitext, its settings for the summary). Both groups of options are by flag.

    Raise UsageError for a model that is not of this kind, or for an option of the other kind.
    """
    from derivlang.align.align import MODELS, AlignOptions, align_bitext
    from derivlang.align.similarity import METHODS

    unused = [flag for flag, value in (of_encoder if encoder is None else of_training).items() if value is not None]
    if encoder is None:
        options = AlignOptions(model, of_training["--symmetrise"], of_training["--iterations"])
    elif model in MODELS:
        raise UsageError(
            f"{model} learns from the text alone", where="--encoder", fix="add --model ot, or leave it out", id="usage"
        )
    elif model not in METHODS:
        raise unknown("aligner", model, [*MODELS, *METHODS])
    if unused:
        raise UsageError(f"is no option of {model}", where=unused[0], fix="leave it out", id="unused-option")
    if encoder is None:
        return lambda bitext: align_bitext(bitext, options), {"symmetrise": options.method}
    from derivlang.core.extras import require_torch

    require_torch()
    from derivlang.evaluation.encoder_links import LinkEncoder

    with Bar() as bar, bar.stage("loading the encoder"):
        found = LinkEncoder.load(encoder, of_encoder["--layer"], of_encoder["--device"])
    told_of = {"encoder": encoder, "layer": found.layer}

    def align(bitext: Bitext) -> Links:
        links, told_of["cut"] = found.links(bitext, model, warn)
        return links

    return align, told_of


@command.command("score", no_args_is_help=True, short_help="Score links against gold links.")
@click.argument("links", type=FILE)
@click.argument("gold", type=FILE)
@click.option("--source", type=FILE, help="Source text; links must lie within its sentences.")
@click.option("--target", type=FILE, help="Target text; links must lie within its sentences.")
@click.option("--encoding", default="utf-8", show_default=True, help="Encoding of the files.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def score(links: Path, gold: Path, source: Path | None, target: Path | None, encoding: str, as_json: bool) -> None:
    """Score LINKS against GOLD: precision, recall, F1 and alignment error rate of two Pharaoh files.

    Gold links are sure (i-j) or only possible (ipj). The gold links of a derived set come from
    `derivlang export --format pharaoh`.

    \b
    derivlang align score en-fr.pharaoh gold.pharaoh --json
    """
    from derivlang.align.score import score as score_links

    found, wanted = _links(links, encoding), _links(gold, encoding)
    _check((links, found), (gold, wanted), source, target, encoding)
    try:
        figures = score_links(found, wanted).as_dict()
    except DataError as error:
        error.where = f"{links}, {gold}"
        raise
    if as_json:
        echo(json.dumps(figures))
        return
    for name, value in figures.items():
        echo(f"{name:<11}{100 * value:6.2f} %")


def _check(
    found: tuple[Path, Links], wanted: tuple[Path, Links], source: Path | None, target: Path | None, encoding: str
) -> None:
    """Raise DataError for a link outside its sentences, if texts are given."""
    from derivlang.align.bitext import encode_lines
    from derivlang.align.links import check_range
    from derivlang.core.arrays import lengths_of

    sizes = [None if path is None else lengths_of(encode_lines(_lines(path, encoding))[1]) for path in (source, target)]
    for path, links in (found, wanted):
        check_range(links, sizes[0], sizes[1], str(path))


def _links(path: Path, encoding: str) -> Links:
    from derivlang.align.links import parse_lines

    return parse_lines(_lines(path, encoding), str(path))


def _lines(path: Path, encoding: str) -> list[str]:
    from derivlang.formats.opening import open_lines

    return [line for _, line in open_lines(path, encoding)]
