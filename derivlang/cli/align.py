"""`derivlang align`: word links of two texts, and how good links are."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from derivlang.core.errors import DataError

if TYPE_CHECKING:
    from derivlang.align.links import Links

_PATH = click.Path(path_type=Path)


@click.group("align", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Word aligners: link the words of two texts, and score links against gold links.

    \b
    derivlang align score en-fr.pharaoh gold.pharaoh --json
    derivlang align train en.txt fr.txt --lower -o en-fr.pharaoh
    """


@command.command("train", no_args_is_help=True)
@click.argument("source", type=_PATH)
@click.argument("target", type=_PATH)
@click.option("-o", "--out", required=True, type=_PATH, help="The Pharaoh file to write; - is stdout.")
@click.option("--model", default="hmm", show_default=True, help="hmm, ibm2, or eflomal (a package of its own).")
@click.option("--symmetrise", help="intersection, union, grow-diag-final-and, or posterior:0.3.  "
              "[default: posterior:0.3; eflomal: grow-diag-final-and]")  # fmt: skip
@click.option("--iterations", type=click.IntRange(1), help="Of the model.  [default: 8; eflomal: its own choice]")
@click.option("--lower", is_flag=True, help="Align lower-cased words.")
@click.option("--encoding", default="utf-8", show_default=True, help="Of both files.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def train(
    source: Path,
    target: Path,
    out: Path,
    model: str,
    symmetrise: str | None,
    iterations: int | None,
    lower: bool,
    encoding: str,
    as_json: bool,
) -> None:
    """Train an aligner on SOURCE and TARGET and write their links.

    Line n of SOURCE belongs to line n of TARGET; words are divided by spaces. A line of the result has the links of a
    sentence pair, i-j, source word first, zero-based; it is empty where one of the sentences is.

    \b
    derivlang align train en.txt fr.txt --lower -o en-fr.pharaoh
    """
    from derivlang.align.align import Options, align
    from derivlang.store.export import writing

    options = Options(model, symmetrise, iterations, lower)
    sides = [_lines(path, encoding) for path in (source, target)]
    began = time.perf_counter()
    try:
        links = align(sides[0], sides[1], options)
    except DataError as error:
        if error.where is None:  # the aligner knows no files
            error.where = f"{source}, {target}"
        raise
    seconds = time.perf_counter() - began
    with writing(out) as stream:
        stream.writelines(line.encode() + b"\n" for line in links.lines())
    result = {
        "out": str(out),
        "model": model,
        "symmetrise": options.method,
        "sentences": len(links),
        "links": len(links.source),
        "seconds": round(seconds, 3),
    }
    told = json.dumps(result) if as_json else f"{len(links.source):,} links of {len(links):,} sentence pairs: {out}"
    click.echo(told, err=not as_json or str(out) == "-")


@command.command("score", no_args_is_help=True)
@click.argument("links", type=_PATH)
@click.argument("gold", type=_PATH)
@click.option("--source", type=_PATH, help="The source text: links must lie within its sentences.")
@click.option("--target", type=_PATH, help="The target text, likewise.")
@click.option("--encoding", default="utf-8", show_default=True, help="Of the files.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def score(links: Path, gold: Path, source: Path | None, target: Path | None, encoding: str, as_json: bool) -> None:
    """Precision, recall, F1 and alignment error rate of LINKS against GOLD: two Pharaoh files.

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
        click.echo(json.dumps(figures))
        return
    for name, value in figures.items():
        click.echo(f"{name:<11}{100 * value:6.2f} %")


def _check(
    found: tuple[Path, Links], wanted: tuple[Path, Links], source: Path | None, target: Path | None, encoding: str
) -> None:
    """DataError for a link outside the sentences, as far as texts are given."""
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
