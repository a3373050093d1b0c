"""`derivlang reproduce`: run a paper's study, one of the shipped studies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.study import study_command, study_options
from derivlang.cli.types import completes
from derivlang.studies.settings import SCALES


@click.command("reproduce", no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("recipe", shell_complete=completes("study"))
@option("--scale", type=click.Choice(SCALES), default="tiny", show_default=True,
              help="Scale: tiny takes half an hour on 2 cores, small hours, paper days on an accelerator.")  # fmt: skip
@study_options
def command(recipe: str, scale: str, out: Path | None, as_json: bool, **options: Any) -> None:
    """Reproduce RECIPE, a shipped study such as align-mlm, from data to report: `derivlang study RECIPE --scale SCALE`.

    The same command continues an interrupted study.

    \b
    derivlang reproduce align-mlm --data-dir DIR
    derivlang reproduce align-mlm --scale small --data-dir DIR -o out --cells trans-inv.align-mlm.1
    derivlang reproduce align-mlm --scale tiny --dry-run
    """
    study_command(recipe, scale, out, as_json, options)
