"""`derivlang report`: write tables and figures of evaluated runs, by factor for the runs of a study."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from derivlang.cli.dependent import option
from derivlang.cli.messages import echo, warn
from derivlang.cli.options import Bar
from derivlang.cli.types import OUT_FOLDER, SET
from derivlang.core.errors import UsageError
from derivlang.core.messages import counted


@click.command("report", no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("runs", nargs=-1, required=True, type=SET)
@option("-o", "--out", type=OUT_FOLDER,
              help="Folder or URL to write; an earlier report is replaced.  [default: report, here]")  # fmt: skip
@option("--baseline", metavar="FACTOR=LEVEL", multiple=True,
              help="Level that the others of its factor are compared with, such as objective=mlm; may be repeated.  "
              "[default: the study's]")  # fmt: skip
@option("--primary", metavar="TASK.REGIME",
              help="Main outcome, such as pos.zs: only its differences are corrected for their number and have stars.  "
              "[default: the study's]")  # fmt: skip
@option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def command(
    runs: tuple[Path, ...], out: Path | None, baseline: tuple[str, ...], primary: str | None, as_json: bool
) -> None:
    """Write tables and figures of RUNS: what varies among them is a factor, what does not is the caption.

    RUNS are folders of `derivlang pretrain`, folders that contain them, the folder of a study, or a file scores.parquet
    of another report; each may be a URL. `derivlang evaluate` adds results to a run. The report consists of index.html
    (one self-contained page), report.md, tables/ with CSV and LaTeX, figures/ with PNG, SVG and PDF, scores.parquet and
    scores.tsv (every number of every run), and report.json.

    \b
    derivlang report runs
    """
    from derivlang.evaluation.collect import scores
    from derivlang.evaluation.report.write import PAGE, report

    compared = dict(_factor(text) for text in baseline) or None
    begins = ""
    if out is None:
        out = Path("report")
        begins = f"writing to {out}{os.sep}"
    with Bar(begins=begins):
        result = report(scores(*runs, warn=warn), out, compared, primary)
    if as_json:
        echo(json.dumps(result))
        return
    missing = result["runs"] - result["evaluated"]
    told = f", {missing} not evaluated yet" if missing else ""
    echo(f"{out / PAGE}: {counted(result['runs'], 'run')}{told}, {counted(result['figures'], 'figure')}")


def _factor(text: str) -> tuple[str, str]:
    """Return (factor, level) of FACTOR=LEVEL. Raise UsageError for another text."""
    name, equals, level = text.partition("=")
    if not (name and equals and level):
        raise UsageError(f"{text!r} is not FACTOR=LEVEL", where="--baseline", fix="e.g. objective=mlm", id="usage")
    return name, level
