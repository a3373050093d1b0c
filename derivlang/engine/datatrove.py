"""Steps for the pipelines of datatrove: ranks are the tasks of its executors (`pip install 'derivlang[datatrove]'`).

    LocalPipelineExecutor([Work("OUT")], tasks=4, workers=2, skip_completed=False).run()

A task is completed for datatrove when `work` has returned, so when all shards of its rank have their records. Its mark
stays when a record is lost later, or when another set is planned in the place. With `skip_completed=False` only the
records say what is done: a rank that is done looks at its records and ends.

No other module imports this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from derivlang.core.dependencies import module_of
from derivlang.engine import ranks
from derivlang.engine.events import Events
from derivlang.formats.places import located

_PipelineStep = module_of("datatrove.pipeline.base", "derivlang.engine.datatrove").PipelineStep


class _Step(_PipelineStep):  # type: ignore[misc, valid-type]
    """A step for the set that was planned in a place: a folder or a URL."""

    type = "derivlang"

    def __init__(self, place: Path | str) -> None:
        super().__init__()
        self.place = str(place)  # datatrove writes the attributes of a step as JSON


class Work(_Step):
    """Run the tasks of one rank of a planned set, as `derivlang work` does.

    place: where the set was planned. trust: whether the plan is yours, as of `derivlang work`. The executor says rank
    and number of ranks: `tasks=` is the latter.
    """

    name = "work"

    def __init__(self, place: Path | str, *, trust: bool = False) -> None:
        super().__init__(place)
        self.trust = trust

    def run(self, data: Iterable[Any] | None = None, rank: int = 0, world_size: int = 1) -> Iterable[Any]:
        """Run the tasks of a rank that are not done. Returns `data`, of which nothing is used.

        Statistics: `counted`, `made` and `found`, the numbers of tasks that were counted, that were made and that had
        been made already, and `words`, of those made now. Raises DerivlangError as `derivlang work`.
        """
        with self.track_time("rank"):
            worked = ranks.work(located(self.place), rank, world_size, Events(), trust=self.trust)
        for name in ("counted", "made", "found", "words"):
            self.stat_update(name, value=worked[name], unit="rank")
        return data or ()


class Finish(_Step):
    """Finish a planned set, as `derivlang finish` does: for an executor with one task, that `depends` on another.

    place: where the set was planned.
    """

    name = "finish"

    def run(self, data: Iterable[Any] | None = None, rank: int = 0, world_size: int = 1) -> Iterable[Any]:
        """Finish the set. Returns `data`, of which nothing is used. Raises StoreError if a task is not done."""
        with self.track_time("set"):
            ranks.finish(located(self.place), Events())
        return data or ()
