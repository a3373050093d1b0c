"""`derivlang finish`: a finished set of what ranks have made."""

from __future__ import annotations

import click

from derivlang.cli.generated import command_line
from derivlang.cli.options import show_set
from derivlang.cli.types import OUT_FOLDER
from derivlang.commands.sets import FinishSet

command = command_line(
    FinishSet, "finish", show_set, arguments=[click.Argument(["place"], type=OUT_FOLDER)],
    json_of=lambda made: made.summary,
)  # fmt: skip
