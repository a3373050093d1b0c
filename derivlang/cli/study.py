"""`derivlang study`: run a grid of runs that a TOML file describes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.studies import list_studies, study_command, study_options
from derivlang.cli.types import completes
from derivlang.studies.settings import SCALES


@click.command("study", no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", metavar="FILE", required=False, shell_complete=completes("study"))
@option(
    "--list",
    "listed",
    is_flag=True,
    excludes="FILE, --scale, --dry-run, --array, --data-only",
    help="Print the shipped studies by paper, with their sizes.",
)
@option("--scale", type=click.Choice(SCALES),
              help="Scale, of a study that has several.  [default: its first]")  # fmt: skip
@study_options
def command(file: str | None, listed: bool, scale: str | None, out: Path | None, as_json: bool, **options: Any) -> None:
    """Run the study of FILE, a TOML file or the name of a shipped study, from data to report.

    A study has a cell for every combination of its factors' levels: a run of pretrain, then evaluate. The same command
    continues an interrupted study, and adds the cells of new levels. --list prints the shipped studies.

    \b
    derivlang study overlap.toml -o overlap --data-dir DIR --workers 2
    derivlang study overlap.toml -o overlap --cells "perm.*,identity.0.1"
    derivlang study alignment-methods --scale tiny -o methods --dry-run
    derivlang study --list
    """
    if listed:
        list_studies(as_json=as_json)
        return
    if file is None:
        context = click.get_current_context()
        raise click.MissingParameter(ctx=context, param=context.command.params[0])
    study_command(file, scale, out, as_json, options)
