"""`derivlang undo`: restore the source of a derived set."""

from __future__ import annotations

from typing import Any

import click

from derivlang.cli.generated import command_line
from derivlang.cli.messages import echo
from derivlang.cli.options import place_of, to_stdout
from derivlang.cli.types import SET
from derivlang.commands.results import Undo
from derivlang.core.messages import counted


def _show(asked: Undo, results: list[dict[str, Any]]) -> None:
    for result in results:
        echo(f"{counted(result['rows'], 'row')} as {result['format']}: {place_of(result['out'])}", err=True)


command = command_line(
    Undo, "undo", _show, arguments=[click.Argument(["derived"], type=SET)], on_stderr=to_stdout, first=("split",)
)
