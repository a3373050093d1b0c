"""`derivlang work`: the tasks of one rank of a planned set."""

from __future__ import annotations

from typing import Any

import click

from derivlang.cli.generated import command_line
from derivlang.cli.messages import echo
from derivlang.cli.types import OUT_FOLDER
from derivlang.commands.sets import WorkOnSet
from derivlang.core.messages import counted


def _show(asked: WorkOnSet, worked: dict[str, Any]) -> None:
    found = f", {worked['found']:,} done before" if worked["found"] else ""
    counts = f"{counted(worked['counted'], 'task')} counted" if worked["counted"] or asked.stage == "count" else ""
    made = "" if asked.stage == "count" else f"{counted(worked['made'], 'task')} done{found}"
    echo(f"rank {worked['rank']} of {worked['world']}: {', '.join(filter(None, (counts, made)))}")


command = command_line(WorkOnSet, "work", _show, arguments=[click.Argument(["place"], type=OUT_FOLDER)])
