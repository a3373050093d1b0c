"""`derivlang export`: a derived set in another format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click


@click.command("export", no_args_is_help=True)
@click.argument("derived", type=click.Path(path_type=Path))
@click.option("--split", help="The split.  [default: the only one]")
@click.option("--format", "kind", required=True, help="What to write.",
              type=click.Choice(["text", "jsonl", "conllu", "pharaoh", "tsv", "squad"]))  # fmt: skip
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="The file to write; - is stdout.")
@click.option("--source", is_flag=True, help="Write the source's side, row for row.")
@click.option("--documents", is_flag=True, help="text: a document a line, not a row a line.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    derived: Path, kind: Any, split: str | None, out: Path, source: bool, documents: bool, as_json: bool
) -> None:
    """Write a derived set in another format, to load it elsewhere.

    pharaoh: links i-j a line, source word first, zero-based, sorted; text and pharaoh have the same lines, so
    that `--format text --source`, `--format text` and `--format pharaoh` make an aligned corpus.

    \b
    derivlang export OUT --split test --format pharaoh -o test.links
    """
    from derivlang.store.export import Request, export

    result = export(derived, Request(split, kind, source, documents), out)
    words = "word" if result["spaces"] == 1 else "words"
    spaces = f"; a space inside {result['spaces']:,} {words}" if result["spaces"] else ""
    told = json.dumps(result) if as_json else f"{result['rows']:,} rows: {out}{spaces}"
    click.echo(told, err=not as_json or str(out) == "-")
