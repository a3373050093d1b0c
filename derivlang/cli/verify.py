"""`derivlang verify`: check a derived set against its source."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from derivlang.cli.options import Bar, set_size
from derivlang.cli.same_language import show_comparison
from derivlang.cli.types import FOLDER, completes
from derivlang.core.messages import counted


@click.command("verify", no_args_is_help=True)
@click.argument("derived", type=FOLDER, shell_complete=completes("set"))
@click.argument("other", type=FOLDER, required=False, shell_complete=completes("set"))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(derived: Path, other: Path | None, as_json: bool) -> None:
    """Derive every row again from its source, compare all columns, and undo it. Exit with 1 if anything differs.

    With OTHER, say instead whether both are of one language, and if not, what differs. Fingerprints are compared, no
    rows; each of the two may also be a run of `pretrain`.

    \b
    derivlang verify OUT OTHER
    derivlang verify OUT --json
    """
    if other is not None:
        show_comparison(derived, other, as_json=as_json)
        return
    from derivlang.store.verify import verify

    with Bar() as bar, bar.stage("verifying", total=set_size(derived)):
        result = verify(derived)
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False))
    else:
        for problem in result["problems"]:
            row = f" row {problem['row']}, column {problem['column']}" if problem["row"] is not None else ""
            click.echo(f"{problem['file']}{row}: {problem['what']}")
        for note in result["notes"]:
            click.echo(f"note: {note['file']}: {note['what']}")
        rows = sum(split["rows"] for split in result["splits"].values())
        right = "its only row is right" if rows == 1 else f"all {rows:,} rows are right"
        click.echo(f"{derived}: {right}" if result["ok"] else f"{derived}: {counted(rows, 'row')} checked")
    sys.exit(0 if result["ok"] else 1)
