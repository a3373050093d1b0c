"""`derivlang verify`: check a derived set against its source."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from derivlang.cli.messages import echo
from derivlang.cli.options import Bar, set_size
from derivlang.cli.types import FOLDER, completes
from derivlang.core.messages import counted


@click.command("verify", no_args_is_help=True)
@click.argument("derived", type=FOLDER, shell_complete=completes("set"))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(derived: Path, as_json: bool) -> None:
    """Derive every row again from its source, compare all columns, and undo it. Exit with 1 if anything differs.

    \b
    derivlang verify OUT --json
    """
    from derivlang.store.verify import verify

    with Bar() as bar, bar.stage("verifying", total=set_size(derived)):
        result = verify(derived)
    if as_json:
        echo(json.dumps(result, ensure_ascii=False))
    else:
        for problem in result["problems"]:
            row = f" row {problem['row']}, column {problem['column']}" if problem["row"] is not None else ""
            echo(f"{problem['file']}{row}: {problem['what']}")
        for note in result["notes"]:
            echo(f"note: {note['file']}: {note['what']}")
        rows = sum(split["rows"] for split in result["splits"].values())
        right = "its only row is right" if rows == 1 else f"all {rows:,} rows are right"
        echo(f"{derived}: {right}" if result["ok"] else f"{derived}: {counted(rows, 'row')} checked")
    sys.exit(0 if result["ok"] else 1)
