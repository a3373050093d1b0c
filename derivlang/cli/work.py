"""`derivlang work`: the tasks of one rank of a planned set."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.headings import HeadedCommand
from derivlang.cli.messages import echo
from derivlang.cli.options import Bar, events
from derivlang.cli.settings import settings_options
from derivlang.cli.types import OUT_FOLDER
from derivlang.engine.options import RankOptions


@click.command("work", cls=HeadedCommand, no_args_is_help=True)
@click.argument("place", type=OUT_FOLDER)
@settings_options(RankOptions)
@option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(place: Path, as_json: bool, **options: Any) -> None:
    """Run the tasks of one rank of the set that `derivlang plan` planned in PLACE.

    Rank R of N takes the tasks R, R + N, R + 2 N and so on. Tasks that are done already are left as they are, so the
    same command goes on after a stop. Without --rank, the environment of an array job says which rank this is.

    \b
    sbatch --array=0-3 --wrap 'derivlang work OUT --world 4'
    derivlang work OUT --rank 0 --world 4
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from derivlang.core.messages import counted
    from derivlang.engine.launchers import rank_of
    from derivlang.engine.ranks import work

    ranks = RankOptions(**options)
    rank, world = rank_of(ranks)
    with Bar():
        worked = work(place, rank, world, events(), trust=ranks.trust, stage=ranks.stage, wait=not ranks.no_wait)
    if as_json:
        echo(json.dumps(worked))
        return
    found = f", {worked['found']:,} done before" if worked["found"] else ""
    counts = f"{counted(worked['counted'], 'task')} counted" if worked["counted"] or ranks.stage == "count" else ""
    made = "" if ranks.stage == "count" else f"{counted(worked['made'], 'task')} done{found}"
    echo(f"rank {rank} of {world}: {', '.join(filter(None, (counts, made)))}")
