"""`derivlang pair`: write sentence pairs of a derived set with gold links."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.messages import echo
from derivlang.cli.options import STDOUT, Bar, place_of, set_size, told
from derivlang.cli.settings import settings_options
from derivlang.cli.types import OUT_FILE, SET
from derivlang.core.messages import counted
from derivlang.core.settings import given
from derivlang.lexical.settings import PairOptions


@click.command("pair", no_args_is_help=True)
@click.argument("derived", type=SET)
@settings_options(PairOptions, only=("rate", "format"), required=("format",))
@option("-o", "--out", type=OUT_FILE, help="File or URL to write.  [default: standard output]")
@settings_options(PairOptions, without=("rate", "format"))
@option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(derived: Path, as_json: bool, out: Path | None, **options: Any) -> None:
    """Write a given share of the sentence pairs of DERIVED, in source order, with gold word links and a recipe.

    Links are i-j, source word first, zero-based and sorted. A higher rate contains the pairs of every lower rate, and a
    seed chooses the same pairs in every format. OUT.noise.tsv lists what --noise made wrong. Without -o the file goes
    to standard output, without its recipe.

    \b
    derivlang pair OUT --split train --rate 25 --format pharaoh | head
    derivlang pair OUT --split train --rate 25 --format text -o train25
    """
    from derivlang.core.errors import UsageError
    from derivlang.lexical.pairs import write_pairs

    out = out or STDOUT
    if out == STDOUT and options["format"] == "parquet" and sys.stdout.isatty():
        fix = "give -o FILE, or redirect the output: > FILE"
        raise UsageError("Parquet is binary, and standard output is a terminal", where="-o", fix=fix, id="output")
    settings = PairOptions(out=out, **given(PairOptions, options))
    size = set_size(derived, options["split"])
    with Bar() as bar, bar.stage("pairing", total=size and size * (5 if settings.shares["noise"] else 2)):
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
