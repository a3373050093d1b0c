"""`derivlang undo`: restore the source of a derived set."""

from __future__ import annotations

import json
from pathlib import Path

import click

from derivlang.cli.dependent import option
from derivlang.cli.options import STDOUT, Bar, place_of, set_size, told
from derivlang.cli.settings import settings_options
from derivlang.cli.types import OUT_PATH, SET
from derivlang.core.messages import counted
from derivlang.store.settings import FileOptions


@click.command("undo", no_args_is_help=True)
@click.argument("derived", type=SET)
@option("--split", help="Split to take.  [default: all in a folder, else the only one]")
@option(
    "-o",
    "--out",
    type=OUT_PATH,
    default=STDOUT,
    help="File or URL to write, or folder for all splits.  [default: standard output]",
)
@settings_options(FileOptions)
@option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(derived: Path, split: str | None, out: Path, force: bool, as_json: bool) -> None:
    """Restore the source's words, labels and text, in UTF-8; plain text byte for byte.

    Without -o the source goes to standard output and messages to standard error. With a folder, each split becomes
    a file in it.

    \b
    derivlang undo OUT -o FOLDER
    derivlang undo OUT --split test | head
    derivlang undo OUT --split test -o wiki.test.tokens
    """
    from derivlang.store.undo_splits import undo_to

    with Bar() as bar, bar.stage("undoing", total=set_size(derived, split)):
        results = undo_to(derived, split, out, force=force)
    for result in results:
        said = f"{counted(result['rows'], 'row')} as {result['format']}: {place_of(result['out'])}"
        told(json.dumps(result) if as_json else said, as_json=as_json, out=out)
