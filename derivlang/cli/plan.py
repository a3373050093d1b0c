"""`derivlang plan`: what ranks need to make a derived set together."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.headings import HeadedCommand, under
from derivlang.cli.messages import echo
from derivlang.cli.options import (
    Bar,
    events,
    request_of,
    settings_of,
    source_options,
    spec_option,
    warn_of_data_dir,
)
from derivlang.cli.settings import settings_options
from derivlang.cli.types import OUT_FOLDER, SEED, WholeNumber, completes
from derivlang.core.errors import UsageError
from derivlang.engine.options import MakeOptions

_MOST_RANKS = 100  # in the command lines that are printed


@click.command("plan", cls=HeadedCommand, no_args_is_help=True)
@click.argument("source", shell_complete=completes("source"))
@spec_option("Transforms, left to right, e.g. trans,inv or perm:window=3; `derivlang ls` lists them.")
@option("--parse", is_flag=True, excludes="--t, --seed, --columns, --lexicon, --parses",
        help="Plan what `derivlang parse` makes, a source with trees.")  # fmt: skip
@option("-o", "--out", type=OUT_FOLDER, required=True, help="Folder or URL of the set, which all ranks see.")
@option("--seed", type=SEED, help="Seed of the transforms that state no seed.  [default: 1]")
@option(
    "--world", type=WholeNumber(1), help="Number of ranks in the printed commands.  [default: one a task, at most 100]"
)
@option("--defer", is_flag=True, excludes="--workers",
        help="Let the ranks hash and count the source, before they derive it.")  # fmt: skip
@settings_options(MakeOptions, only=("lexicon", "columns"))
@source_options
@under("Run", settings_options(MakeOptions, only=("workers", "shard_tokens", "force", "parser", "parses")))
@option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    source: str,
    spec: str | None,
    parse: bool,
    out: Path,
    world: int | None,
    defer: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Plan the derived set of SOURCE, or its parse, for ranks on one or many machines.

    Prints the commands that make the set: `derivlang work` for each rank, then `derivlang finish`. It has the bytes
    that `derivlang make` writes.

    \b
    derivlang plan --t trans,inv demo -o OUT
    derivlang plan --t trans,inv wikitext103 --data-dir DIR -o OUT
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from derivlang.core.messages import counted, warn
    from derivlang.engine.launchers import commands_for
    from derivlang.engine.ranks import plan
    from derivlang.pipeline import seeded

    if spec is None and not parse:
        raise UsageError(
            "there is nothing to plan",
            where="--t",
            fix="give the transforms, e.g. --t trans,inv, or --parse",
            id="usage",
        )
    pipeline = None if spec is None else seeded(spec, options["seed"], warn)
    warn_of_data_dir(source)
    with Bar():
        planned = plan(pipeline, request_of(source, options), settings_of(out, options), events(), defer=defer)
    if as_json:
        echo(json.dumps(planned))
        return
    if not planned["tasks"]:
        return  # it is complete, which was said
    done = f", {planned['done']:,} of them done" if planned["done"] else ""
    stage = " to count first" if planned["stage"] == "count" else ""
    echo(f"{planned['out']}{os.sep}  {counted(planned['tasks'], 'task')}{stage}{done}")
    for where, line in commands_for(planned["out"], world or min(planned["tasks"], _MOST_RANKS)):
        echo(f"# {where}\n{line}")
