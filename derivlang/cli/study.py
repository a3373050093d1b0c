"""`derivlang study`: run a grid of runs that a TOML file describes."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import click

from derivlang.cli.generated import as_json, command_line
from derivlang.cli.messages import echo, say
from derivlang.cli.options import Bar
from derivlang.cli.types import completes
from derivlang.core.dependencies import OptionNeeds
from derivlang.core.messages import counted
from derivlang.core.settings import replaces, setting
from derivlang.studies.study import RunStudy


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _PrintedStudy(RunStudy):
    """`study`, with the options that Python does not have."""

    needs: ClassVar[Mapping[str, OptionNeeds]] = {
        "data_only": OptionNeeds(excludes="--dry-run, --array"),
        "dry_run": OptionNeeds(excludes="--array, --data-only"),
    }
    array: bool = setting(
        False, "Print one command per cell, write OUT/array.sh for Slurm; run nothing.",
        excludes="--dry-run, --data-only, --workers",
    )  # fmt: skip
    force: bool = replaces(only_with="--array")
    listed: bool = setting(
        False, "Print the shipped studies by paper, with their sizes.", option="--list",
        excludes="FILE, --scale, --dry-run, --array, --data-only",
    )  # fmt: skip


def _run(asked: Any) -> None:
    """Run a study, or what else the options ask for, and print the result."""
    if asked.listed:
        _list_studies(as_json=as_json())
        return
    if asked.file is None:  # the command line can do without it
        context = click.get_current_context()
        raise click.MissingParameter(ctx=context, param=context.command.params[0])
    if asked.array:
        _array(asked)
        return
    began = time.perf_counter()
    with Bar(shown=False):
        summary = asked.summary()
    if asked.dry_run:
        _print_dry_run(summary)
        return
    summary["seconds"] = round(time.perf_counter() - began, 1)
    what = summary.get("report") or summary["out"]
    echo(json.dumps(summary) if as_json() else f"{what}  in {summary['seconds'] / 60:.1f} minutes")


def _list_studies(*, as_json: bool) -> None:
    """Print the shipped studies."""
    from derivlang.core.dependencies import EXTRAS, require_torch

    require_torch(*EXTRAS["train"])  # what a cell reads follows from its objective
    from derivlang.studies.estimate import lines_of, listing

    studies = listing()
    echo(json.dumps(studies, ensure_ascii=False) if as_json else "\n".join(lines_of(studies)))


def _array(asked: Any) -> None:
    """Write the scripts of an array, and print their commands."""
    from derivlang.studies.plan import write_array
    from derivlang.studies.settings import Extent

    study, place = asked.planned()
    scripts = write_array(study, place, asked.part(Extent), force=asked.force)
    commands = [command for some in scripts.values() for command in some]
    echo(json.dumps({"commands": commands}) if as_json() else "\n".join(commands))
    first, *later = (str(place.out / script) for script in scripts)
    after = f", then {', '.join(later)}, each when the one before is done (--dependency=afterok:JOB)" if later else ""
    say(f"wrote {first}: first --data-only, then sbatch it{after}, then the same command without --array")


def _print_dry_run(found: dict[str, Any]) -> None:
    """Print the commands with sizes, estimated time and disk."""
    if as_json():
        echo(json.dumps(found))
        return
    echo(f"in {found['out']}:")
    for step in found["steps"]:
        size = f"{step['tokens']:>14,} sub-words" if step["tokens"] else " " * 24
        took = "      done" if step["done"] else f"{step['seconds']:8.0f} s"
        echo(f"{took} {size}  {step['command']}")
    cells, disk = found["cells"], found["bytes"]
    minutes = counted(math.ceil(found["seconds"] / 60), "minute")
    echo(
        f"{counted(cells, 'cell')}: about {minutes} with {found['workers']} in parallel, "
        f"{sum(step['seconds'] for step in found['steps']) / cells / 60:,.1f} per cell, at "
        f"{found['tokens_per_second']:,.0f} sub-words per second ({found['rate']}); about "
        + (f"{disk / 1e9:,.1f} GB of disk" if disk >= 1e9 else f"{disk / 1e6:,.0f} MB of disk")
    )
    for what in found["not_counted"]:
        echo(what)


_PrintedStudy.__doc__ = RunStudy.__doc__
command = command_line(
    _PrintedStudy,
    "study",
    arguments=[click.Argument(["file"], required=False, metavar="FILE", shell_complete=completes("study"))],
    run=_run, first=("listed", "scale", "out"), optional=("file",),
    last=("data_only", "dry_run", "array", "force", "rate", "as_json"),
)  # fmt: skip
