"""`derivlang parse`: parse a source once for all the sets that `syn` makes from it."""

from __future__ import annotations

from derivlang.cli.generated import command_line
from derivlang.cli.options import show_set
from derivlang.cli.types import source_argument
from derivlang.commands.sets import ParseSource

command = command_line(ParseSource, "parse", show_set, arguments=[source_argument()], json_of=lambda made: made.summary)
