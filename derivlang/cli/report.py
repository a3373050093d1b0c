"""`derivlang report`: write tables and figures of evaluated runs, by factor for the runs of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from derivlang.cli.generated import command_line
from derivlang.cli.messages import echo
from derivlang.cli.options import Bar
from derivlang.cli.types import SET
from derivlang.commands.report import WriteReport
from derivlang.core.messages import counted


def _run(asked: WriteReport) -> dict[str, Any]:
    with Bar():
        return asked.written()


def _show(asked: WriteReport, result: dict[str, Any]) -> None:
    from derivlang.evaluation.report.write import PAGE

    missing = result["runs"] - result["evaluated"]
    told = f", {missing} not evaluated yet" if missing else ""
    page = asked.out / PAGE if asked.out else Path(result["out"]) / PAGE
    echo(f"{page}: {counted(result['runs'], 'run')}{told}, {counted(result['figures'], 'figure')}")


command = command_line(
    WriteReport, "report", _show, arguments=[click.Argument(["runs"], nargs=-1, required=True, type=SET)], run=_run,
    json_help="Print what was written as JSON.",
)  # fmt: skip
