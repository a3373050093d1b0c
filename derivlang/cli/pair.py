"""`derivlang pair`: sentence pairs of a derived set, with gold links."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click


@click.command("pair", no_args_is_help=True)
@click.argument("derived", type=click.Path(path_type=Path))
@click.option("--rate", default="100", show_default=True, help="Percent of the sentence pairs of the split.")
@click.option("--format", "kind", required=True, type=click.Choice(["pharaoh", "parquet", "text", "tmx"]),
              help="text: OUT.source, OUT.derived, OUT.pharaoh; the others: OUT.")  # fmt: skip
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="The file to write.")
@click.option("--split", help="The split.  [default: the only one]")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Another seed, other pairs.")
@click.option("--noise", default="0", show_default=True, help="Percent of links, or of pairs, made wrong.")
@click.option("--noise-kind", type=click.Choice(["links", "pairs"]), default="links", show_default=True,
              help="Links moved to a wrong source word, or derived sides of other pairs.")  # fmt: skip
@click.option("--tokenizer", type=click.Path(path_type=Path), help="The source's: adds sub-words and their gold links.")
@click.option("--twin", type=click.Path(path_type=Path), help="The derived language's tokenizer.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(derived: Path, rate: str, noise: str, as_json: bool, **options: Any) -> None:
    """Write sentence pairs of DERIVED at a rate, in source order, with gold word links and a recipe.

    Links are i-j, source word first, from 0, sorted. The pairs of a lower rate are among those of a higher one; one
    seed gives the same pairs in every format. What --noise makes wrong is listed in OUT.noise.tsv.

    \b
    derivlang pair OUT --split train --rate 25 --format text -o train25
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from derivlang.core.errors import UsageError
    from derivlang.lexical.pairs import Options, write_pairs
    from derivlang.lexical.percent import percent

    folders = options["tokenizer"], options["twin"]
    if (folders[0] is None) != (folders[1] is None):
        raise UsageError("--tokenizer and --twin go together", fix="give both folders, or none", id="usage")
    settings = Options(
        options["out"],
        options["kind"],
        percent(rate, "--rate"),
        options["split"],
        options["seed"],
        percent(noise, "--noise", zero=True),
        options["noise_kind"],
        None if folders[0] is None else folders,
    )
    result = write_pairs(derived, settings)
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False))
        return
    click.echo(
        f"{', '.join(result['files'])}: {result['pairs']:,} of {result['sentences']:,} sentence pairs, "
        f"{result['links']:,} links"
    )
    if result["noise"]:
        click.echo(f"{result['noise']:,} wrong {settings.noise_kind}: {options['out'].name}.noise.tsv")
    if result["spaces"]:
        click.echo(f"a space inside {result['spaces']:,} words")
