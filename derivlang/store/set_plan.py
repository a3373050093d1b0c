"""The plan of a set that is being made: where its tasks write, and what `plan.json` and `draft.json` say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import Any

from derivlang.core.seal import is_intact
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store.manifest import CARD, DIGEST, LEXICON, NAME
from derivlang.store.record import check_record, difference
from derivlang.store.storage import Store
from derivlang.store.task_record import STAGE, TASK, TaskRecord

DATA = "data"
FILES = {NAME, LEXICON, CARD}
PLAN = f"{STAGE}/plan.json"
DRAFT = f"{STAGE}/draft.json"  # of a plan whose source is still counted (engine/counting.py)
SHARD = re.compile(rf"data(-[0-9a-f]{{8}})?/{TASK.pattern}\.parquet")
BEGUN = "begun, but not finished: "  # the state of a set
# The difference of two sets of which only the hashes of their plans differ.
OTHER_PLAN = "its shards have another size, its transforms other files or rules, or another version made it"
_SPEC_FILE = re.compile(rf"{SPEC_FILES}/(?!\.\.?$)[^/\\\0]+")


@dataclass(frozen=True, slots=True)
class Target:
    """Where the tasks of a plan put what they make. It can be pickled.

    plan: the hash of the plan. final: the folder of the shards in the finished set.
    """

    store: Store
    plan: str
    final: str = DATA

    @property
    def data(self) -> str:
        """The folder of the shards until the set is finished."""
        return f"{stage_of(self.plan)}/{DATA}" if self.store.is_local else self.final

    def file(self, task: str) -> str:
        """Return the name of the shard of a task in the finished set."""
        return f"{self.final}/{task}.parquet"

    def record(self, task: str) -> TaskRecord | None:
        """Return the record of a task of this plan; None if the task is not done, or the record was damaged."""
        return next(self.records([task]))

    def records(self, tasks: Iterable[str]) -> Iterator[TaskRecord | None]:
        """Yield the records of tasks, in their order, as `record` returns them."""
        first, second = tee(tasks)
        for task, content in zip(first, self.store.get_all(map(self._record, second)), strict=True):
            record = TaskRecord.load(content)
            if record is not None:
                entry = record.entry
                ours = (entry["task"], entry["plan"], entry["shard"]["file"]) == (task, self.plan, self.file(task))
                record = record if ours else None
            yield record

    def whole(self) -> Callable[[TaskRecord | None], bool]:
        """Return the check whether a task has a record and its shard. A task without rows has no shard."""
        is_there = self.store.matching()

        def is_whole(record: TaskRecord | None) -> bool:
            if record is None:
                return False
            shard = record.entry["shard"]
            # A run that was killed at its end may have put it in its place already.
            places = (f"{self.data}/{Path(shard['file']).name}", shard["file"])
            return not shard["rows"] or any(is_there(place, shard) for place in places)

        return is_whole

    def done_of(self, tasks: Iterable[str]) -> set[str]:
        """Return the tasks that have a record and their shard."""
        names, is_whole = list(tasks), self.whole()
        return {name for name, record in zip(names, self.records(names), strict=True) if is_whole(record)}

    def has_rows(self) -> bool:
        """Return whether some task is done that has rows."""
        is_whole = self.whole()
        tasks = (Path(name).stem for name in self.store.sizes(stage_of(self.plan)) if name.endswith(".record"))
        return any(record and record.entry["shard"]["rows"] and is_whole(record) for record in self.records(tasks))

    def where(self, task: str) -> str:
        """Return the place of the shard of a task, for messages."""
        return self.store.where(f"{self.data}/{task}.parquet")

    def writing(self, task: str) -> AbstractContextManager[Path]:
        """Give the place on the local disk where the shard of a task is written (`Store.writing`)."""
        return self.store.writing(f"{self.data}/{task}.parquet")

    def commit(self, task: str, record: TaskRecord) -> None:
        """Write the record of a task, whose shard is there."""
        entry = {"task": task, "plan": self.plan, **record.entry}
        self.store.put(self._record(task), TaskRecord(entry, record.types, record.counts).dump())

    def _record(self, task: str) -> str:
        return f"{stage_of(self.plan)}/{task}.record"


def difference_of_sets(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Return the first difference of two sets as they were asked for, "" if there is none.

    The files of the source are left out: while they are counted, their content is not known.
    """
    known, wanted = (
        {name: value for name, value in one.items() if name != "source"}
        | {f"source.{name}": value for name, value in (one.get("source") or {}).items() if name != "files"}
        for one in (recorded, asked)
    )
    return difference(known, {name: value for name, value in wanted.items() if name in known})


def is_of_set(name: object) -> bool:
    """Return whether a name is one that files of a set have."""
    return isinstance(name, str) and (name in FILES or any(one.fullmatch(name) for one in (SHARD, _SPEC_FILE)))


def stage_of(plan: str) -> str:
    """Return the folder in a store of what belongs to a plan until the set is finished. plan: its hash."""
    return f"{STAGE}/{plan[:16]}"


def begun_plan(store: Store) -> dict[str, Any]:
    """Return what a set that was begun says of its plan: the hash `plan`, `asked`, …; {} if nothing does."""
    return read_plan(store) or {}


def read_plan(store: Store) -> dict[str, Any] | None:
    """Return what `plan.json` says; {} if it is damaged, None if there is none."""
    content = store.get(PLAN)
    if content is None:
        return None
    return _sealed(content, "plan")


def read_draft(content: bytes | None) -> dict[str, Any] | None:
    """Return what `draft.json` says, given its content; {} if it is damaged, None if there is none."""
    return None if content is None else _sealed(content, "draft")


def _sealed(content: bytes, name: str) -> dict[str, Any]:
    """Return the content of a plan or a draft, {} if it is damaged. name: of its hash, which names a folder."""
    with suppress(ValueError, RecursionError):
        found = json.loads(content)
        check_record(found, {name: DIGEST, "asked": {"source?": dict}})
        if is_intact(found):
            return dict(found)
    return {}


def of_draft(store: Store) -> set[str]:
    """Return what a draft has in the stage: its file, and the folder of its records. They stay until it is planned."""
    draft = read_draft(store.get(DRAFT))
    return {DRAFT, stage_of(draft["draft"])} if draft else set()
