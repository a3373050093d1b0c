"""`make` and `parse`, and `plan`, `work` and `finish`: derived sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from derivlang.commands.shared import InFolder, PathLike, request_of
from derivlang.core.errors import UsageError
from derivlang.core.keywords import takes
from derivlang.core.messages import warn
from derivlang.core.policies import Policies
from derivlang.core.settings import given
from derivlang.display.bar import ProgressBar
from derivlang.engine.events import Events
from derivlang.engine.options import MakeOptions, RankOptions
from derivlang.formats.places import located
from derivlang.pipeline import Pipeline, seeded
from derivlang.sources.request import SourceRequest
from derivlang.store.settings import ExportOptions

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict


class DerivedSet(InFolder):
    """A derived set. path: its folder."""

    @property
    def manifest(self) -> dict[str, Any]:
        """What the set says of itself. Raise StoreError if the folder is not a derived set."""
        from derivlang.store.manifest import read_manifest

        return read_manifest(self.path)

    def dataset(self, split: str | None = None) -> Dataset | DatasetDict:
        """Return the set, or a split of it, as `datasets.load_dataset` does. Raise StoreError as `manifest`.

        The files are named, so that `load_dataset` takes no other files of the folder.
        """
        import datasets

        splits = self.manifest["splits"]
        files = {name: [str(self.path / shard["file"]) for shard in one["shards"]] for name, one in splits.items()}
        loaded: Dataset | DatasetDict = datasets.load_dataset("parquet", data_files=files, split=split)
        return loaded

    def verify(self) -> dict[str, Any]:
        """Derive every row again and compare.

        Return {"ok", "out", "splits", "problems", "notes"}; problems has at most one entry per file. Raise StoreError
        if the folder is not a derived set.
        """
        from derivlang.store.verify import verify

        with ProgressBar():
            return verify(self.path)

    @takes(ExportOptions)
    def export(self, out: PathLike, **options: Any) -> dict[str, Any]:
        """Write a split in another format, as `derivlang export` does.

        out: the file to write; its suffix names the format, unless `format` does. Return {"out", "rows", "spaces"}, and
        of tsv and csv "formulas": the numbers of rows, of words with a space, and of cells that a spreadsheet would
        run. Raise DerivlangError as the command.
        """
        from derivlang.store.export import export

        with ProgressBar():
            return export(self.path, ExportOptions(**given(ExportOptions, options)), located(out))

    @takes()
    def undo(self, out: PathLike, split: str | None = None, *, force: bool = False) -> list[dict[str, Any]]:
        """Write the source back: a split to a file, or each split to a file of a folder.

        Return {"out", "rows", "format"} of each file. Raise DerivlangError as `derivlang undo`.
        """
        from derivlang.store.undo_splits import undo_to

        with ProgressBar():
            return undo_to(self.path, split, located(out), force=force)


@takes(MakeOptions, Policies, SourceRequest)
def make(
    source: PathLike, spec: str | Pipeline, out: PathLike, *, seed: int | None = None, **options: Any
) -> DerivedSet:
    """Make a derived set, as `derivlang make` does. The same call continues one that was interrupted.

    source: a name, a file, a folder, hub:NAME or a derived set; of a file, a folder or a set in a store its URL, such
    as s3://bucket/folder. spec: the transforms. out: the folder to write. seed: of transforms that state none; a
    pipeline states its own. Raise DerivlangError as the command; finished shards are kept.
    """
    from derivlang.engine.make import make as run

    pipeline = _pipeline(spec, seed)
    settings = _settings(out, options)
    with ProgressBar():
        run(pipeline, request_of(source, options), settings)
    return DerivedSet(out)


@takes(MakeOptions, Policies, SourceRequest, without=("parses",))
def parse(source: PathLike, out: PathLike, **options: Any) -> DerivedSet:
    """Parse a source once, for all sets that `syn` derives from it, as `derivlang parse -o` does.

    out: the folder to write, which `make` takes as its source. Raise DerivlangError as the command.
    """
    from derivlang.engine.parse import parse as run

    settings = _settings(out, options)
    with ProgressBar():
        run(request_of(source, options), settings, Events())
    return DerivedSet(out)


@takes(MakeOptions, Policies, SourceRequest, without=("engine",))
def plan(
    source: PathLike,
    spec: str | Pipeline | None,
    out: PathLike,
    *,
    seed: int | None = None,
    defer: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Plan a derived set, for processes that call `work`, as `derivlang plan` does.

    spec: the transforms, None to plan what `parse` makes. defer: let these processes read the source: nothing is hashed
    or counted here. Other arguments as of `make`.

    Return {"out", "stage", "plan", "tasks", "done"}: the stage that comes next, "count" or "derive"; the hash of the
    plan, None before it is made; the numbers of all tasks of that stage, and of those that are done. Raise
    DerivlangError as the command.
    """
    from derivlang.engine.ranks import plan as run

    if spec is None and seed is not None:
        raise UsageError("a parse draws nothing", where="--seed", fix="leave it out", id="unused-option")
    settings = _settings(out, options)
    with ProgressBar():
        return run(
            None if spec is None else _pipeline(spec, seed),
            request_of(source, options),
            settings,
            Events(),
            defer=defer,
        )


@takes(RankOptions)
def work(place: PathLike, **options: Any) -> dict[str, Any]:
    """Run the tasks of one rank of a planned set, as `derivlang work` does.

    place: where it was planned. Return {"out", "rank", "world", "counted", "made", "found", "words", "seconds"}: the
    numbers of tasks that were counted, that were made and that had been made already, and of words of those made now.
    Raise DerivlangError as the command.
    """
    from derivlang.engine.launchers import rank_of
    from derivlang.engine.ranks import work as run

    ranks = RankOptions(**given(RankOptions, options))
    rank, world = rank_of(ranks)
    with ProgressBar():
        place = located(place)
        return run(place, rank, world, Events(), trust=ranks.trust, stage=ranks.stage, wait=not ranks.no_wait)


@takes()
def finish(place: PathLike) -> DerivedSet:
    """Finish a planned set when all its tasks are done, as `derivlang finish` does.

    place: where it was planned. Raise StoreError if a task is not done.
    """
    from derivlang.engine.ranks import finish as run

    with ProgressBar():
        run(located(place), Events())
    return DerivedSet(place)


def _settings(out: PathLike, options: Mapping[str, Any]) -> MakeOptions:
    policies = Policies(**given(Policies, options))
    return MakeOptions(out=located(out), policies=policies, **given(MakeOptions, options))


def _pipeline(spec: str | Pipeline, seed: int | None) -> Pipeline:
    """Return the pipeline of a spec. UsageError for a seed beside a pipeline."""
    if isinstance(spec, Pipeline) and seed is not None:
        raise UsageError("a pipeline states its own seeds", where="--seed", fix="leave it out", id="unused-option")
    return spec if isinstance(spec, Pipeline) else seeded(spec, seed, warn)
