"""`derivlang export`: a derived set in another format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from derivlang.cli.options import STDOUT, Bar, place_of, set_size, told
from derivlang.cli.types import FILE, FOLDER


@click.command("export", no_args_is_help=True)
@click.argument("derived", type=FOLDER)
@click.option("--split", help="Split to take.  [default: the only one]")
@click.option("--format", "kind", required=True, help="Format to write.",
              type=click.Choice(["text", "jsonl", "conllu", "pharaoh", "tsv", "squad"]))  # fmt: skip
@click.option("-o", "--out", type=FILE, default=STDOUT, help="File to write.  [default: standard output]")
@click.option("--source", is_flag=True, help="Write the source side instead, row for row.")
@click.option("--documents", is_flag=True, help="Write one document a line (of running text, a paragraph); text only.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    derived: Path, kind: Any, split: str | None, out: Path, source: bool, documents: bool, as_json: bool
) -> None:
    """Write a derived set in another format, for use in other tools.

    A line of the format pharaoh has the links i-j of one row, source word first, zero-based and sorted. The lines of
    text and pharaoh correspond, so `--format text --source`, `--format text` and `--format pharaoh` give an aligned
    corpus. Without -o the file goes to standard output and messages to standard error.

    \b
    derivlang export OUT --split test --format text | head
    derivlang export OUT --split test --format pharaoh -o test.links
    """
    from derivlang.store.export import ExportRequest, export

    with Bar() as bar, bar.stage("exporting", total=set_size(derived, split)):
        result = export(derived, ExportRequest(split, kind, source, documents), out)
    words = "word" if result["spaces"] == 1 else "words"
    spaces = f"; a space inside {result['spaces']:,} {words}" if result["spaces"] else ""
    text = json.dumps(result) if as_json else f"{result['rows']:,} rows: {place_of(out)}{spaces}"
    told(text, as_json=as_json, out=out)
