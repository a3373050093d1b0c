"""`derivlang reproduce`: run a paper's study, one of the shipped studies."""

from __future__ import annotations

from dataclasses import dataclass

import click

from derivlang.cli.generated import command_line
from derivlang.cli.study import FIRST, LAST, Printed, run_study_command
from derivlang.cli.types import completes
from derivlang.commands.studies import ReproduceStudy


@dataclass(frozen=True, eq=False, repr=False)
class _PrintedReproduction(Printed, ReproduceStudy):
    """`reproduce`, with the options that Python does not have."""


_PrintedReproduction.__doc__ = ReproduceStudy.__doc__
command = command_line(
    _PrintedReproduction, "reproduce", arguments=[click.Argument(["recipe"], shell_complete=completes("study"))],
    run=run_study_command, first=FIRST, last=LAST,
)  # fmt: skip
