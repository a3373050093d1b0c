"""`derivlang undo`: the source of a derived set, as it was."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("undo", no_args_is_help=True)
@click.argument("derived", type=click.Path(path_type=Path))
@click.option("--split", help="The split.  [default: the only one]")
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="The file to write; - is stdout.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(derived: Path, split: str | None, out: Path, as_json: bool) -> None:
    """Give the source's words, labels and text back; plain text byte for byte.

    \b
    derivlang undo OUT --split test -o wiki.test.tokens
    """
    from derivlang.store.export import undo

    result = undo(derived, split, out)
    told = json.dumps(result) if as_json else f"{result['rows']:,} rows as {result['format']}: {out}"
    click.echo(told, err=not as_json or str(out) == "-")
