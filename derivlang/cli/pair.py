"""`derivlang pair`: write sentence pairs of a derived set with gold links."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from derivlang.cli.messages import echo
from derivlang.cli.options import STDOUT, Bar, place_of, refuse_given, set_size, told
from derivlang.cli.types import FOLDER, OUT_FILE, SEED, completes
from derivlang.core.messages import counted


@click.command("pair", no_args_is_help=True)
@click.argument("derived", type=FOLDER, shell_complete=completes("set"))
@click.option("--rate", default="100", show_default=True, help="Percentage of the sentence pairs of the split.")
@click.option("--format", "kind", required=True, type=click.Choice(["pharaoh", "parquet", "text", "tmx"]),
              help="Format to write; text is three files: OUT.source, OUT.derived and OUT.pharaoh.")  # fmt: skip
@click.option("-o", "--out", type=OUT_FILE, help="File to write.  [default: standard output]")
@click.option("--split", help="Split to take.  [default: the only one]")
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of the choice of pairs.")
@click.option("--noise", default="0", show_default=True, help="Percentage of links, or of pairs, to make wrong.")
@click.option("--noise-kind", type=click.Choice(["links", "pairs"]), default="links", show_default=True,
              help="Kind of noise: links moved to a wrong source word, or derived sides of other pairs.")  # fmt: skip
@click.option("--tokenizer", type=FOLDER, help="Tokenizer of the source, to add sub-words and their gold links.")
@click.option("--twin", type=FOLDER, help="Tokenizer of the derived language (with --tokenizer).")
@click.option("--force", is_flag=True, help="Replace files that hold something else.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(derived: Path, rate: str, noise: str, as_json: bool, out: Path | None, **options: Any) -> None:
    """Write a given share of the sentence pairs of DERIVED, in source order, with gold word links and a recipe.

    Links are i-j, source word first, zero-based and sorted. A higher rate contains the pairs of every lower rate, and a
    seed chooses the same pairs in every format. OUT.noise.tsv lists what --noise made wrong. Without -o the file goes
    to standard output, without its recipe.

    \b
    derivlang pair OUT --split train --rate 25 --format pharaoh | head
    derivlang pair OUT --split train --rate 25 --format text -o train25
    """
    from derivlang.core.errors import UsageError
    from derivlang.lexical.pairs import PairOptions, write_pairs
    from derivlang.lexical.percent import percent

    folders = options["tokenizer"], options["twin"]
    if (folders[0] is None) != (folders[1] is None):
        raise UsageError(
            "--tokenizer and --twin must be given together", fix="give both folders, or neither", id="usage"
        )
    if percent(noise, "--noise", zero=True) == 0:
        refuse_given("is an option of --noise", "noise_kind")
    out = out or STDOUT
    if out == STDOUT and options["kind"] == "parquet" and sys.stdout.isatty():
        fix = "give -o FILE, or redirect the output: > FILE"
        raise UsageError("Parquet is binary, and standard output is a terminal", where="-o", fix=fix, id="output")
    settings = PairOptions(
        out,
        options["kind"],
        percent(rate, "--rate"),
        options["split"],
        options["seed"],
        percent(noise, "--noise", zero=True),
        options["noise_kind"],
        None if folders[0] is None else folders,
        options["force"],
    )
    size = set_size(derived, options["split"])
    with Bar() as bar, bar.stage("pairing", total=size and size * (5 if settings.noise else 2)):
        result = write_pairs(derived, settings)
    if as_json:
        told(json.dumps(result, ensure_ascii=False), as_json=True, out=out)
        return
    files = place_of(out) if out == STDOUT else ", ".join(result["files"])
    sentences, links = counted(result["sentences"], "sentence pair"), counted(result["links"], "link")
    lines = [f"{files}: {result['pairs']:,} of {sentences}, {links}"]
    if result["noise"]:
        lines.append(f"{result['noise']:,} wrong {settings.noise_kind}: {out.name}.noise.tsv")
    if result["spaces"]:
        lines.append(f"a space inside {counted(result['spaces'], 'word')}")
    for side in ("source", "derived"):
        if unknown := result.get("subwords", {}).get(f"{side}_unknown"):
            lines.append(f"{side} side: {unknown:,} of {result['subwords'][side]:,} sub-words are <unk>")
    echo("\n".join(lines), err=out == STDOUT)
