"""`derivlang study`: run a grid of runs that a TOML file describes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from derivlang.cli.options import ends_well
from derivlang.cli.studies import study_command, study_options
from derivlang.cli.types import completes


@click.command("study", no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", metavar="FILE", shell_complete=completes("study"))
@click.option("--scale", type=click.Choice(["tiny", "small", "paper"]),
              help="Scale of a shipped study whose name is given without one.")  # fmt: skip
@study_options
@ends_well()
def command(file: str, scale: str | None, out: Path | None, as_json: bool, **options: Any) -> None:
    """Run the study of FILE, a TOML file or the name of a shipped study, from data to report.

    A study has a cell for every combination of its factors' levels: a run of pretrain, then evaluate. The same command
    continues an interrupted study, and adds the cells of new levels. The shipped studies are align-mlm-tiny,
    align-mlm-seeds, align-mlm-small, align-mlm-paper, alignment-methods-tiny and alignment-methods-small.

    \b
    derivlang study overlap.toml -o overlap --data-dir DIR --workers 2
    derivlang study overlap.toml -o overlap --cells "perm.*,identity.0.1"
    derivlang study alignment-methods --scale tiny -o methods --dry-run
    """
    from derivlang.studies.asked import name_of

    study_command(name_of(file, scale), out, as_json, options)
