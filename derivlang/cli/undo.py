"""`derivlang undo`: restore the source of a derived set."""

from __future__ import annotations

import json
from pathlib import Path

import click

from derivlang.cli.options import STDOUT, Bar, place_of, set_size, told
from derivlang.cli.types import FILE, FOLDER, completes
from derivlang.core.messages import counted


@click.command("undo", no_args_is_help=True)
@click.argument("derived", type=FOLDER, shell_complete=completes("set"))
@click.option("--split", help="Split to take.  [default: the only one]")
@click.option("-o", "--out", type=FILE, default=STDOUT, help="File to write.  [default: standard output]")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(derived: Path, split: str | None, out: Path, as_json: bool) -> None:
    """Restore the source's words, labels and text, in UTF-8; plain text byte for byte.

    Without -o the source goes to standard output and messages to standard error.

    \b
    derivlang undo OUT --split test | head
    derivlang undo OUT --split test -o wiki.test.tokens
    """
    from derivlang.store.export import undo

    with Bar() as bar, bar.stage("undoing", total=set_size(derived, split)):
        result = undo(derived, split, out)
    text = json.dumps(result) if as_json else f"{counted(result['rows'], 'row')} as {result['format']}: {place_of(out)}"
    told(text, as_json=as_json, out=out)
