"""`derivlang report`: tables and figures of evaluated runs, beside the published numbers."""

from __future__ import annotations

import json
from pathlib import Path

import click

_PATH = click.Path(path_type=Path)


@click.command("report", no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("runs", nargs=-1, required=True, type=_PATH)
@click.option("-o", "--out", required=True, type=_PATH, help="The folder to write; an earlier report is replaced.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def command(runs: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Tables and figures of RUNS, in the shape of the ALIGN-MLM paper's and beside its numbers.

    RUNS are folders of `derivlang pretrain`, or folders of such; `derivlang evaluate` fills their cells. Written are
    index.html, a page that needs nothing else, report.md, report.json, and figures/ as PNG and SVG.

    \b
    derivlang report runs -o report
    """
    from derivlang.evaluation.report.write import PAGE, report

    result = report(runs, out)
    if as_json:
        click.echo(json.dumps(result))
        return
    missing = result["runs"] - result["evaluated"]
    told = f", {missing} not evaluated yet" if missing else ""
    click.echo(f"{out / PAGE}: {_count(result['runs'], 'run')}{told}, {_count(result['figures'], 'figure')}")


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"
