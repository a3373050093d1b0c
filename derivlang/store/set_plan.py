"""The plan of a set that is being made: what its tasks write and where, and what `plan.json` says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.errors import DerivlangError, StoreError, parse_errors
from derivlang.core.seal import is_intact
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store.disk import STAGE
from derivlang.store.manifest import CARD, DIGEST, LEXICON, NAME
from derivlang.store.record import check_record, difference
from derivlang.store.storage import Store

TASK = re.compile(r"[^/\\\0]+-\d{5,}-of-\d{5,}")  # name of a task
_ENTRY = {
    **dict.fromkeys(("task", "plan"), str),
    "shard": {"file": str, "sha256": str, **dict.fromkeys(("bytes", "rows", "words"), int)},
    **dict.fromkeys(("documents", "sentences", "tokens", "articles?"), int),
    "counts": {"*": int},
    "spans?": [{"sha256?": DIGEST, "documents": int, "lines": int}],  # of a task that counts (engine/counting.py)
}
_VOCABULARY = pa.schema([("type", pa.string()), ("count", pa.int64())])


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """What a finished task has made: its shard, its counts, and the vocabulary of what it read.

        3f0c…       SHA-256 of all that follows
        ARROW1…     types and their counts, an Arrow stream; the entry is JSON in the metadata of its schema:
                    {"task": "train-00000-of-00002", "plan": …, "shard": …}

    A record is written after its shard, whole or not at all. So a task with a record is done, and the records of all
    tasks are what a finished set is made of. A record that was damaged is as if it were not there: the task runs again.

    entry: JSON values. types, counts: the vocabulary, Arrow strings [T] and int64[T].
    """

    entry: dict[str, Any]
    types: pa.Array
    counts: Int64

    def dump(self) -> bytes:
        """Return the record as bytes."""
        schema = _VOCABULARY.with_metadata({"entry": json.dumps(self.entry, ensure_ascii=False)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(pa.table([self.types, to_arrow(self.counts)], schema=schema))
        body: bytes = sink.getvalue().to_pybytes()
        return sha256(body).hexdigest().encode() + b"\n" + body

    @classmethod
    def load(cls, content: bytes | None) -> TaskRecord | None:
        """Return the record in some bytes; None if there are none, or if they were damaged."""
        digest, _, body = (content or b"").partition(b"\n")
        if digest.decode("latin-1") != sha256(body).hexdigest():
            return None
        # An error: somebody else has written it, and the task runs again.
        with suppress(DerivlangError), parse_errors("record", "record of a task", error=StoreError):
            table = pa.ipc.open_stream(body).read_all().combine_chunks()
            entry = json.loads(table.schema.metadata[b"entry"])
            check_record(entry, _ENTRY)
            if table.schema != _VOCABULARY or any(column.null_count for column in table.columns):
                raise ValueError("it has no vocabulary")
            types = table["type"].chunk(0) if table.num_rows else string_array([])
            return cls(entry, types, to_numpy(table["count"]))
        return None


DATA = "data"
FILES = {NAME, LEXICON, CARD}
PLAN = f"{STAGE}/plan.json"
SHARD = re.compile(rf"data(-[0-9a-f]{{8}})?/{TASK.pattern}\.parquet")
BEGUN = "begun, but not finished: "  # the state of a set
# The difference of two sets of which only the hashes of their plans differ.
OTHER_PLAN = "its shards have another size, its transforms other files or rules, or another version made it"
_SPEC_FILE = re.compile(rf"{SPEC_FILES}/(?!\.\.?$)[^/\\\0]+")


@dataclass
class Target:
    """Where the tasks of a plan put what they make. It can be pickled, and so can a `Making`.

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

    def records(self, tasks: Iterable[str]) -> Iterator[TaskRecord | None]:
        """Yield the records of tasks of this plan, in their order; None for one that is not done, or was damaged."""
        names = list(tasks)
        for task, content in zip(names, self.store.get_all(map(self.record_file, names)), strict=True):
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
        self.store.put(self.record_file(task), TaskRecord(entry, record.types, record.counts).dump())

    def record_file(self, task: str) -> str:
        """Return the name of the file of a task's record."""
        return f"{stage_of(self.plan)}/{task}.record"

    def recorded(self, tasks: Iterable[str]) -> set[str]:
        """Return the tasks that have a record, which is not read."""
        there = self.store.sizes(stage_of(self.plan))
        return {task for task in tasks if self.record_file(task) in there}


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
    with suppress(ValueError, RecursionError):
        found = json.loads(content)
        check_record(found, {"plan": DIGEST, "asked": {"source?": dict}})  # the hash names a folder
        if is_intact(found):
            return dict(found)
    return {}
