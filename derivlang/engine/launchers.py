"""Array jobs: which rank a process is, as its scheduler says, and the commands that start all ranks.

Slurm, sbatch --array=0-3        SLURM_ARRAY_TASK_ID=2   SLURM_ARRAY_TASK_COUNT=4     rank 2 of 4, or of --world
Kubernetes, an indexed job       JOB_COMPLETION_INDEX=2                               rank 2 of --world
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from derivlang.core.errors import UsageError
from derivlang.core.names import is_url
from derivlang.engine.options import RankOptions


@dataclass(frozen=True, slots=True)
class _Array:
    """The environment variables of an array job: of a task's number, and of the count of tasks.

    first: the number of the first task. limits: of the least and the greatest number. If these are not 0 and the count
    less 1, some tasks of a larger array are run again, and the count is not the number of ranks.
    """

    number: str
    count: str = ""
    first: int = 0
    limits: tuple[str, str] | None = None

    def world(self, environment: Mapping[str, str]) -> int | None:
        """Return the number of ranks, None if the environment does not say it."""
        count = environment.get(self.count, "")
        if not count.isdecimal():
            return None
        found = tuple(environment.get(name) for name in self.limits or ())
        return int(count) if found in ((), ("0", str(int(count) - 1))) else None


_ARRAYS = (
    _Array(
        "SLURM_ARRAY_TASK_ID",
        "SLURM_ARRAY_TASK_COUNT",
        limits=("SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX"),
    ),
    _Array("JOB_COMPLETION_INDEX"),  # Kubernetes does not say how many there are
    _Array("PBS_ARRAY_INDEX"),
    _Array("SGE_TASK_ID", first=1),
    _Array("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE"),
)
_SAY = "array jobs of Slurm, Kubernetes, PBS, SGE and AWS Batch say their number"


def rank_of(options: RankOptions, environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Return (rank, number of ranks): as given, else as the array job says that this process belongs to.

    UsageError if neither says them.
    """
    array = next((array for array in _ARRAYS if environment.get(array.number, "").isdecimal()), None)
    rank, world = options.rank, options.world
    if rank is None and array is not None:
        rank = int(environment[array.number]) - array.first
        world = world or array.world(environment)
    if rank is None:
        fix = f"e.g. --rank 0 --world 4; {_SAY}"
        raise UsageError("no array job says which rank this process is", where="--rank", fix=fix, id="rank")
    if world is None:
        fix = f"e.g. --rank 0 --world 4; {_SAY}"
        raise UsageError("the number of ranks is not known", where="--world", fix=fix, id="rank")
    return rank, world


def commands_for(place: str, world: int) -> Iterator[tuple[str, str]]:
    """Yield (where, command line) for all that makes a planned set with `world` ranks."""
    # A local plan belongs to the user who makes it, which a rank sees.
    work = f"derivlang work {shlex.quote(place)}{' --trust' if is_url(place) else ''}"
    finish = f"derivlang finish {shlex.quote(place)}"
    yield f"each rank, R = 0 to {world - 1}", f"{work} --rank R --world {world}"
    yield "Slurm", f"sbatch --array=0-{world - 1} --wrap {shlex.quote(f'{work} --world {world}')}"
    yield f"Kubernetes, completionMode: Indexed, completions: {world}", f"{work} --world {world}"
    yield "then", finish
