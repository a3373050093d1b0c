"""`derivlang plan`: what ranks need to make a derived set together."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import Any

from derivlang.cli.generated import command_line
from derivlang.cli.messages import echo
from derivlang.cli.types import source_argument
from derivlang.commands.sets import PlanSet
from derivlang.core.errors import UsageError
from derivlang.core.messages import counted
from derivlang.core.names import is_url
from derivlang.core.settings import setting

_MOST_RANKS = 100  # in the command lines that are printed


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _PrintedPlan(PlanSet):
    """The command with what only the command line has. `parse`: in Python, there are no transforms."""

    parse: bool = setting(
        False, "Plan what `derivlang parse` makes, a source with trees.",
        excludes="--t, --seed, --columns, --lexicon, --parses",
    )  # fmt: skip
    world: int | None = setting(
        None, "Number of ranks in the printed commands.", minimum=1, unset="one a task, at most 100"
    )

    def __call__(self) -> dict[str, Any]:
        if self.spec is None and not self.parse:
            fix = "give the transforms, e.g. --t trans,inv, or --parse"
            raise UsageError("there is nothing to plan", where="--t", fix=fix, id="usage")
        return super().__call__()


def _show(asked: _PrintedPlan, planned: dict[str, Any]) -> None:
    if not planned["tasks"]:
        return  # it is complete, which was said
    done = f", {planned['done']:,} of them done" if planned["done"] else ""
    stage = " to count first" if planned["stage"] == "count" else ""
    echo(f"{planned['out']}{os.sep}  {counted(planned['tasks'], 'task')}{stage}{done}")
    # A local plan belongs to the user who makes it, which a rank sees.
    place, trust = shlex.quote(planned["out"]), " --trust" * is_url(planned["out"])
    world = asked.world or min(planned["tasks"], _MOST_RANKS)
    work = f"derivlang work {place}{trust} --world {world} --rank"
    echo(f"# each rank, R = 0 to {world - 1}\n{work} R")
    echo(f"# Slurm\nsbatch --array=0-{world - 1} --wrap {shlex.quote(f'{work} $SLURM_ARRAY_TASK_ID')}")
    echo(f"# Kubernetes, completionMode: Indexed, completions: {world}\n{work} $(JOB_COMPLETION_INDEX)")
    echo(f"# then\nderivlang finish {place}")


_PrintedPlan.__doc__ = PlanSet.__doc__
command = command_line(
    _PrintedPlan,
    "plan",
    _show,
    arguments=[source_argument()],
    optional=("spec",),
    first=("spec", "parse", "out", "seed", "world", "defer"),
)
