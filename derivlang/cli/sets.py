"""`derivlang make` and `parse`; `plan`, `work` and `finish`: derived sets."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from derivlang.cli.generated import command_line, with_bar
from derivlang.cli.messages import echo, say
from derivlang.cli.options import show_set
from derivlang.cli.types import OUT_FOLDER, source_argument
from derivlang.commands.sets import FinishSet, MakeSet, ParseSource, PlanSet, WorkOnSet, seeded_pipeline
from derivlang.core.errors import UsageError
from derivlang.core.messages import counted, in_shell
from derivlang.core.names import is_url
from derivlang.core.settings import setting

if TYPE_CHECKING:
    from derivlang.commands.results import DerivedSet


def _run_make(asked: MakeSet) -> DerivedSet:
    from derivlang.store.manifest import LEXICON

    made: DerivedSet = with_bar(asked)
    show_set(asked, made)
    if asked.lexicon is None and seeded_pipeline(asked.spec, asked.seed).needs_counts():
        say(
            f"the lexicon was fitted on the training split of this source, or its first; for other sources of this "
            f"language give "
            f"--lexicon {in_shell(made.path / LEXICON)} (`derivlang verify {in_shell(made.path)} OTHER` "
            "compares two sets)"
        )
    return made


make_command = command_line(MakeSet, "make", arguments=[source_argument()], run=_run_make)


parse_command = command_line(
    ParseSource, "parse", show_set, arguments=[source_argument()], json_of=lambda made: made.summary
)


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


def _show_plan(asked: _PrintedPlan, planned: dict[str, Any]) -> None:
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
plan_command = command_line(
    _PrintedPlan,
    "plan",
    _show_plan,
    arguments=[source_argument()],
    optional=("spec",),
    first=("spec", "parse", "out", "seed", "world", "defer"),
)


def _show_work(asked: WorkOnSet, worked: dict[str, Any]) -> None:
    found = f", {worked['found']:,} done before" if worked["found"] else ""
    counts = f"{counted(worked['counted'], 'task')} counted" if worked["counted"] or asked.stage == "count" else ""
    made = "" if asked.stage == "count" else f"{counted(worked['made'], 'task')} done{found}"
    echo(f"rank {worked['rank']} of {worked['world']}: {', '.join(filter(None, (counts, made)))}")


work_command = command_line(WorkOnSet, "work", _show_work, arguments=[click.Argument(["place"], type=OUT_FOLDER)])


finish_command = command_line(
    FinishSet, "finish", show_set, arguments=[click.Argument(["place"], type=OUT_FOLDER)],
    json_of=lambda made: made.summary,
)  # fmt: skip
