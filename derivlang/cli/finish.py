"""`derivlang finish`: a finished set of what ranks have made."""

from __future__ import annotations

from pathlib import Path

import click

from derivlang.cli.dependent import option
from derivlang.cli.headings import HeadedCommand
from derivlang.cli.options import run_and_show
from derivlang.cli.types import OUT_FOLDER


@click.command("finish", cls=HeadedCommand, no_args_is_help=True)
@click.argument("place", type=OUT_FOLDER)
@option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(place: Path, as_json: bool) -> None:
    """Finish the set that `derivlang plan` planned in PLACE, when all tasks are done.

    \b
    derivlang finish OUT
    """
    from derivlang.engine.ranks import finish

    run_and_show(lambda events: finish(place, events), as_json=as_json, timed=False)
