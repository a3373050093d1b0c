"""`derivlang match`: the language of a family that is as far from the source as another one."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from derivlang.cli.generated import command_line
from derivlang.cli.messages import echo
from derivlang.cli.types import source_argument
from derivlang.commands.distance import FindMatch

if TYPE_CHECKING:
    from derivlang.distance.match import Match


def _show(asked: FindMatch, found: Match) -> None:
    echo(found.spec)
    distance = "Kendall's tau" if found.by == "tau" else "3-local entropy"
    interval = "" if found.low is None else f", 95 % interval {found.low:.4g} to {found.high:.4g}"
    echo(
        f"{distance} {found.reached:.3f}, of {asked.spec} {found.wanted:.3f}, in {found.units:,} sentences; "
        f"{found.parameter} {found.value:g}{interval}",
        err=True,
    )


command = command_line(
    FindMatch, "match", _show, arguments=[source_argument()], json_of=asdict, last=("parser", "parses")
)
