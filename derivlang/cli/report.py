"""`derivlang report`: write tables and figures of evaluated runs, by factor for those of a study."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from derivlang.cli.messages import echo
from derivlang.cli.options import Bar
from derivlang.cli.types import FOLDER, OUT_FOLDER, completes


@click.command("report", no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("runs", nargs=-1, required=True, type=FOLDER, shell_complete=completes("run"))
@click.option("-o", "--out", type=OUT_FOLDER,
              help="Folder to write; an earlier report is replaced.  [default: report, here]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def command(runs: tuple[Path, ...], out: Path | None, as_json: bool) -> None:
    """Write tables and figures of RUNS: by objective and language, and by the factors of a study.

    RUNS are folders of `derivlang pretrain`, folders that contain them, or the folder of a study. `derivlang evaluate`
    adds their results. The report consists of index.html (one self-contained page), report.md, report.json, scores.tsv
    (every number of every run), and figures/ with PNG and SVG. The numbers of the ALIGN-MLM paper stand beside runs of
    its objectives and languages.

    \b
    derivlang report runs
    """
    from derivlang.evaluation.report.write import PAGE, report

    begins = ""
    if out is None:
        out = Path("report")
        begins = f"writing to {out}{os.sep}"
    with Bar(begins=begins):
        result = report(runs, out)
    if as_json:
        echo(json.dumps(result))
        return
    missing = result["runs"] - result["evaluated"]
    told = f", {missing} not evaluated yet" if missing else ""
    echo(f"{out / PAGE}: {_count(result['runs'], 'run')}{told}, {_count(result['figures'], 'figure')}")


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"
