"""`make` and `parse`, and `plan`, `work` and `finish`: derived sets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from derivlang.commands.command import Command, Result, Spec, transforms
from derivlang.commands.folders import named_folder
from derivlang.core.dependencies import OptionNeeds
from derivlang.core.errors import UsageError
from derivlang.core.messages import warn
from derivlang.core.settings import setting
from derivlang.engine.options import (
    ColumnOptions,
    LabelOptions,
    MakeOptions,
    RowOptions,
    RunOptions,
)  # fmt: skip
from derivlang.formats.places import OptionalPath, PathLike, RequiredPath, located
from derivlang.formats.progress import reader
from derivlang.sources.request import SourceOptions, SourceRequest

if TYPE_CHECKING:
    from derivlang.commands.results import DerivedSet
    from derivlang.pipeline import Pipeline

_out_setting = partial(setting, None, also="-o", writes=True, place=located)
_seed_setting = partial(
    setting, None, "Seed of the transforms that state no seed.", minimum=0, maximum=2**63 - 1, unset="1"
)
TRANSFORMS = "Transforms, left to right, e.g. trans,inv or perm:window=3; `derivlang ls` lists them."


class MakingSource(Command[Result], SourceOptions, RowOptions, LabelOptions):
    """What commands that make a set have in common."""

    if TYPE_CHECKING:
        source: PathLike

    def request(self) -> SourceRequest:
        """Return the source. Warn of a given folder of corpora if the source is a path or a set of the hub."""
        from derivlang.sources.named import named_source

        source = str(self.source)
        other = named_source(source)[0] is None and (source.startswith("hub:") or os.path.lexists(source))
        if other and "data_dir" in self.given:
            warn(f"only a named source is looked up in a folder of corpora, so --data-dir has no effect on {source}")
        return self.part(SourceRequest, source=source)


@dataclass(frozen=True, eq=False, repr=False)
class MakeSet(MakingSource["DerivedSet"], RunOptions, ColumnOptions):
    """Make a derived language from SOURCE: a name, a file, a folder, hub:name/config, or a derived set.

    A file, a folder or a set may lie in a store: s3://bucket/folder.

    Without -o the set is written to a folder in the current folder, named after the source and the transforms. The same
    command continues an interrupted run.

    \b
    derivlang make --t trans,inv demo
    derivlang make --t trans:overlap=25,perm ner:fr
    derivlang make --t trans,inv wikitext103 --data-dir DIR -o OUT
    """

    source: PathLike
    spec: Annotated[Spec, transforms(TRANSFORMS)]
    out: OptionalPath = _out_setting("Folder or URL to write.", unset="SOURCE.TRANSFORMS, here")
    _: KW_ONLY
    seed: int | None = _seed_setting()

    def __call__(self) -> DerivedSet:
        """Return the set. Finished shards are kept."""
        from derivlang.commands.results import DerivedSet
        from derivlang.engine.make import make

        pipeline = seeded_pipeline(self.spec, self.seed)
        out = self.path("out") or named_folder(str(self.source), str(pipeline), self.changed("seed"))
        return DerivedSet(out, make(pipeline, self.request(), self.part(MakeOptions, out=out)))


@dataclass(frozen=True, eq=False, repr=False)
class ParseSource(MakingSource["DerivedSet"], RunOptions):
    """Parse SOURCE once, for all sets that `syn` derives from it.

    `make` parses a source by itself if a transform needs trees. It then takes parses from the cache, which this command
    fills.

    \b
    derivlang parse demo:nli
    derivlang parse wikitext103 --data-dir DIR --workers 8
    """

    # The parses that `make` reads are of one size, and are kept.
    needs: ClassVar[Mapping[str, OptionNeeds]] = {
        "shard_tokens": OptionNeeds(only_with="--out"),
        "force": OptionNeeds(only_with="--out"),
        "parses": OptionNeeds(excludes="--out"),
    }
    source: PathLike
    out: OptionalPath = _out_setting("Folder or URL to write.", unset="the cache that make reads")

    def __call__(self) -> DerivedSet:
        """Return the set, which `make` takes as its source."""
        from derivlang.commands.results import DerivedSet
        from derivlang.engine.job import Events
        from derivlang.engine.parse import parse, parses_folder

        options = self.part(MakeOptions, out=self.out or Path())
        if self.out is None:
            reader().begins(f"writing to {parses_folder(options)}{os.sep}, where make reads parses")
        summary = parse(self.request(), options, Events())
        return DerivedSet(summary["out"], summary)


@dataclass(frozen=True, eq=False, repr=False)
class PlanSet(MakingSource[dict[str, Any]], RunOptions, ColumnOptions):
    """Plan the derived set of SOURCE, or its parse, for ranks on one or many machines.

    Prints the commands that make the set: `derivlang work` for each rank, then `derivlang finish`. It has the bytes
    that `derivlang make` writes.

    \b
    derivlang plan --t trans,inv demo -o OUT
    derivlang plan --t trans,inv wikitext103 --data-dir DIR -o OUT
    """

    source: PathLike
    spec: Annotated[Spec | None, transforms(TRANSFORMS)]
    out: Annotated[RequiredPath, _out_setting("Folder or URL of the set, which all ranks see.")]
    _: KW_ONLY
    seed: int | None = _seed_setting()
    defer: bool = setting(
        False, "Let the ranks hash and count the source, before they derive it.", excludes="--workers"
    )

    def __call__(self) -> dict[str, Any]:
        """Return {"out", "stage", "plan", "tasks", "done"}: the stage that comes next, "count" or "derive"; the hash of
        the plan, None before it is made; the numbers of all tasks of that stage, and of those that are done. Without
        transforms, a parse of the source is planned."""
        from derivlang.engine.job import Events
        from derivlang.engine.ranks import plan

        if self.spec is None and self.seed is not None:
            raise UsageError("a parse draws nothing", where="--seed", fix="leave it out", id="unused-option")
        pipeline = None if self.spec is None else seeded_pipeline(self.spec, self.seed)
        return plan(pipeline, self.request(), self.part(MakeOptions, out=located(self.out)), Events(), defer=self.defer)


@dataclass(frozen=True, eq=False, repr=False)
class WorkOnSet(Command[dict[str, Any]]):
    """Run the tasks of one rank of the set that `derivlang plan` planned in PLACE.

    Rank R of N takes the tasks R, R + N, R + 2 N and so on. Tasks that are done already are left as they are, so the
    same command goes on after a stop.

    \b
    sbatch --array=0-3 --wrap 'derivlang work OUT --rank $SLURM_ARRAY_TASK_ID --world 4'
    derivlang work OUT --rank 0 --world 4
    """

    place: PathLike
    rank: Annotated[int, setting(None, "Number of this rank, from 0.", minimum=0)]
    world: Annotated[int, setting(None, "Number of ranks.", minimum=1)]
    _: KW_ONLY
    trust: bool = setting(
        False, "The plan is yours: count its files; do not hash them again if their stamps are the same."
    )
    stage: Literal["count", "derive"] | None = setting(
        None, "Only this stage of a plan that counts later (`plan --defer`).", unset="one after the other"
    )
    no_wait: bool = setting(False, "Exit with 75 where other ranks must end a stage first, in place of waiting.")

    def __call__(self) -> dict[str, Any]:
        """Return {"out", "rank", "world", "counted", "made", "found", "words", "seconds"}: the numbers of tasks that
        were counted, that were made and that had been made already, and of words of those made now."""
        from derivlang.engine.job import Events
        from derivlang.engine.ranks import work

        wait, place = not self.no_wait, located(self.place)
        return work(place, self.rank, self.world, Events(), trust=self.trust, stage=self.stage, wait=wait)


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
        from derivlang.engine.job import Events
        from derivlang.engine.ranks import finish

        return DerivedSet(self.place, finish(located(self.place), Events()))


def seeded_pipeline(spec: Spec, seed: int | None) -> Pipeline:
    """Return the pipeline of a spec. Raise UsageError for a seed beside a pipeline, which states its own."""
    from derivlang.pipeline import Pipeline, seeded

    if isinstance(spec, Pipeline) and seed is not None:
        raise UsageError("a pipeline states its own seeds", where="--seed", fix="leave it out", id="unused-option")
    return spec if isinstance(spec, Pipeline) else seeded(spec, seed, warn)
