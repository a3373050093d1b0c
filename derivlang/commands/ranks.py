"""`plan`, `work` and `finish`: derived sets that several processes make."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from derivlang.commands.command import Command, Spec, transforms
from derivlang.commands.sets import TRANSFORMS, MakingSource, out_setting, seed_setting, seeded_pipeline
from derivlang.core.errors import UsageError
from derivlang.core.settings import setting
from derivlang.engine.options import ColumnOptions, MakeOptions, PlanOptions, RankOptions
from derivlang.formats.places import PathLike, RequiredPath, located

if TYPE_CHECKING:
    from derivlang.commands.results import DerivedSet


@dataclass(frozen=True, eq=False, repr=False)
class PlanSet(MakingSource[dict[str, Any]], PlanOptions, ColumnOptions):
    """Plan the derived set of SOURCE, or its parse, for ranks on one or many machines.

    Prints the commands that make the set: `derivlang work` for each rank, then `derivlang finish`. It has the bytes
    that `derivlang make` writes.

    \b
    derivlang plan --t trans,inv demo -o OUT
    derivlang plan --t trans,inv wikitext103 --data-dir DIR -o OUT
    """

    source: PathLike
    spec: Annotated[Spec | None, transforms(TRANSFORMS)]
    out: Annotated[RequiredPath, out_setting("Folder or URL of the set, which all ranks see.")]
    _: KW_ONLY
    seed: int | None = seed_setting()
    defer: bool = setting(
        False, "Let the ranks hash and count the source, before they derive it.", excludes="--workers"
    )

    def __call__(self) -> dict[str, Any]:
        """Return {"out", "stage", "plan", "tasks", "done"}: the stage that comes next, "count" or "derive"; the hash of
        the plan, None before it is made; the numbers of all tasks of that stage, and of those that are done. Without
        transforms, a parse of the source is planned."""
        from derivlang.engine.events import Events
        from derivlang.engine.ranks import plan

        if self.spec is None and self.seed is not None:
            raise UsageError("a parse draws nothing", where="--seed", fix="leave it out", id="unused-option")
        pipeline = None if self.spec is None else seeded_pipeline(self.spec, self.seed)
        return plan(pipeline, self.request(), self.part(MakeOptions, out=located(self.out)), Events(), defer=self.defer)


@dataclass(frozen=True, eq=False, repr=False)
class WorkOnSet(Command[dict[str, Any]], RankOptions):
    """Run the tasks of one rank of the set that `derivlang plan` planned in PLACE.

    Rank R of N takes the tasks R, R + N, R + 2 N and so on. Tasks that are done already are left as they are, so the
    same command goes on after a stop. Without --rank, the environment of an array job says which rank this is.

    \b
    sbatch --array=0-3 --wrap 'derivlang work OUT --world 4'
    derivlang work OUT --rank 0 --world 4
    """

    place: PathLike

    def __call__(self) -> dict[str, Any]:
        """Return {"out", "rank", "world", "counted", "made", "found", "words", "seconds"}: the numbers of tasks that
        were counted, that were made and that had been made already, and of words of those made now."""
        from derivlang.engine.events import Events
        from derivlang.engine.launchers import rank_of
        from derivlang.engine.ranks import work

        rank, world = rank_of(self.part(RankOptions))
        wait = not self.no_wait
        return work(located(self.place), rank, world, Events(), trust=self.trust, stage=self.stage, wait=wait)


@dataclass(frozen=True, eq=False, repr=False)
class FinishSet(Command["DerivedSet"]):
    """Finish the set that `derivlang plan` planned in PLACE, when all tasks are done.

    \b
    derivlang finish OUT
    """

    place: PathLike

    def __call__(self) -> DerivedSet:
        """Return the set. Raise StoreError if a task is not done."""
        from derivlang.commands.results import DerivedSet
        from derivlang.engine.events import Events
        from derivlang.engine.ranks import finish

        return DerivedSet(self.place, finish(located(self.place), Events()))
