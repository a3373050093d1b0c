"""A set that is being made: the plan, the records of its tasks, and how the finished set comes to its place.

    .derivlang/plan.json                                         the hash of the plan, and what was asked for
    .derivlang/3f0c9a12b4d5e6f7/train-00000-of-00002.record      a finished task of this plan (task_record.py)
    .derivlang/3f0c9a12b4d5e6f7/train-00000-of-00002.parquet     its shard, in a folder: it is moved to data/ at last
    data/train-00000-of-00002.parquet                            its shard, at a URL: it stays there

Each plan has a stage of its own, so that a process which still works for another plan does no harm.

A run that fails leaves an older set as it was, and the same plan goes on from the finished tasks. A place that holds
anything but a derived set is never touched. `making_folder.py` is for local folders, `making_url.py` for URLs.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError, StoreError
from derivlang.core.messages import counted
from derivlang.core.seal import is_intact, sealed
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store.base import Store
from derivlang.store.manifest import CARD, DIGEST, LEXICON, NAME, Derived, read_manifest, shards_of
from derivlang.store.record import check_record, difference, record_text
from derivlang.store.task_record import STAGE, TASK, TaskRecord

DATA = "data"
FILES = {NAME, LEXICON, CARD}
PLAN = f"{STAGE}/plan.json"
DRAFT = f"{STAGE}/draft.json"  # of a plan whose source is still counted (engine/counting.py)
SHARD = re.compile(rf"data(-[0-9a-f]{{8}})?/{TASK.pattern}\.parquet")
_SPEC_FILE = re.compile(rf"{SPEC_FILES}/(?!\.\.?$)[^/\\\0]+")

BEGUN = "begun, but not finished: "  # the state of a set
# The difference of two sets of which only the hashes of their plans differ.
OTHER_PLAN = "its shards have another size, its transforms other files or rules, or another version made it"

Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Target:
    """Where the tasks of a plan put what they make. It can be pickled.

    plan: the hash of the plan. data: the folder of the shards until the set is finished. final: their folder then.
    """

    store: Store
    plan: str
    data: str
    final: str = DATA

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


class Making(ABC):
    """The run of one plan into one place.

    with making.held(spec, warn):       # another run of this plan waits, a run of another plan is refused
        if (manifest := making.open(tasks, force=force)) is None:
            ...                         # run the tasks that are not in `done`, then close(); give_up() after a failure

    done: the names of the tasks that earlier runs have finished.
    """

    def __init__(
        self,
        out: Path,
        store: Store,
        plan: str,
        asked: Mapping[str, Any],
        kept: Mapping[str, bytes] = {},
        begun: Mapping[str, Any] = {},
    ):
        """plan: the hash of everything that the set depends on. asked: the part of it that people know by name.

        kept: the content of the files that the spec names, for the folder `files/`. begun: what `plan.json` says, if it
        is of this plan.
        """
        self.out, self.store, self.plan, self.asked, self.kept = out, store, plan, asked, kept
        self.done: set[str] = set()
        self._seen: tuple[bytes | None, bool] = (None, False)  # the last `plan.json`, and whether it was of this plan
        self._begun_before = False  # whether an earlier run of this plan has left something that must stay
        self._take(begun)

    def _take(self, begun: Mapping[str, Any]) -> None:
        """Take what `plan.json` says of what this set replaces."""
        self._replaces = {name for name in begun.get("replaces", []) if is_of_set(name)}

    @property
    @abstractmethod
    def target(self) -> Target:
        """Where the tasks put what they make."""

    @abstractmethod
    def check_place(self, *, force: bool = False) -> None:
        """Raise StoreError if the place holds anything but a derived set, finished or not.

        force: the set is to be replaced.
        """

    @abstractmethod
    def is_begun(self) -> bool:
        """Return whether a run is at work in the place, or was killed and left something there."""

    @abstractmethod
    def held(self, spec: str, warn: Warn) -> AbstractContextManager[None]:
        """Hold the place during the block, if it can be held, so that no other process makes a set there.

        Warns once and waits if a run of the same plan holds it. StoreError if a run of another plan holds it, or if the
        place holds anything but a derived set. spec: named in the error of a run that is refused.
        """

    def finished(self, *, force: bool = False, warn: Warn = lambda message: None) -> dict[str, Any] | None:
        """Return the manifest if this plan is already done in the place; writes nothing.

        warn: called with the file that is missing or damaged in a set of this plan, which has to be made again.
        StoreError if the place holds anything but a derived set, or (without `force`) the set of another plan.
        """
        self.check_place(force=force)
        if force or not (self.out / NAME).exists():
            return None
        manifest = read_manifest(self.out)
        if manifest.get("plan") != self.plan:
            raise self.other({"options": [], **manifest, "splits": list(manifest["splits"])})
        damaged = self._damaged(manifest) if is_intact(manifest) else NAME
        if damaged is not None:
            warn(f"{self.store.where(damaged)} is missing or was changed; the set is made again")
            return None
        return manifest

    def _damaged(self, manifest: Mapping[str, Any]) -> str | None:
        """Return the first file of the set that is missing or does not match its manifest, None if it is whole."""
        is_whole = self.in_place()
        damaged = [shard["file"] for shard in shards_of(manifest) if not is_whole(shard)]
        copies = {f"{SPEC_FILES}/{name}": content for name, content in self.kept.items()}
        damaged += [name for name, content in copies.items() if self.store.get(name) != content]
        if not damaged and manifest["lexicon"] and not self._has_fingerprint():
            damaged.append(str(manifest["lexicon"]))
        return next(iter(damaged), None)

    def _has_fingerprint(self) -> bool:
        """Return whether lexicon.tsv fits the fingerprint in the manifest."""
        with suppress(DerivlangError, ValueError):
            return Derived(self.out).has_fingerprint()
        return False

    @abstractmethod
    def open(
        self, tasks: Iterable[str], *, force: bool = False, warn: Warn = lambda message: None
    ) -> dict[str, Any] | None:
        """Prepare the place, which must be held, for the run. Returns the manifest if this plan is already done there.

        tasks: the names of all tasks of the plan. StoreError as in `finished`, and for an unfinished set of another
        plan.
        """

    @abstractmethod
    def close(self, files: Mapping[str, str], shards: Sequence[Mapping[str, Any]]) -> None:
        """Put the finished set in its place: the shards, then these texts by file name, the manifest last.

        shards: the entries of the manifest. StoreError if one is not there any more.
        """

    @abstractmethod
    def give_up(self) -> None:
        """Remove what a failed run has written, unless it goes on from an earlier one, or some task has rows."""

    def begin(self, details: Mapping[str, Any] = {}) -> None:
        """Write down which plan this is. details: what ranks need of it, JSON values."""
        self.store.put(PLAN, self.dump(details))

    def dump(self, details: Mapping[str, Any]) -> bytes:
        """Return the content of `plan.json`."""
        plan = {"plan": self.plan, "asked": self.asked, "replaces": sorted(self._replaces), **details}
        return record_text(sealed(plan)).encode()

    def is_current(self) -> bool:
        """Return whether the place still waits for this plan: it is neither finished nor replaced by another one."""
        content = self.store.get(PLAN)
        if content != self._seen[0]:  # a large plan is parsed once, and not after each task
            self._seen = content, begun_plan(self.store).get("plan") == self.plan
        return self._seen[1]

    @abstractmethod
    def check_current(self, tasks: Iterable[str]) -> None:
        """Raise StoreError if another set has been begun in a place that cannot be held. tasks: just done, removed."""

    def is_by_others(self) -> bool:
        """Return whether other processes have finished the set of this plan, in a place that cannot be held."""
        return False

    @abstractmethod
    def retract(self, tasks: Iterable[str]) -> None:
        """Remove what tasks have written after their plan was finished by others, or replaced by another one."""

    @abstractmethod
    def sweep(self) -> None:
        """Remove what a run of this plan has left beside the finished set, if it was killed just before its end.

        Nothing is removed if `plan.json` is of another plan, or was damaged.
        """

    @abstractmethod
    def in_place(self) -> Callable[[Mapping[str, Any]], bool]:
        """Return the check whether a shard of the finished set is there as its manifest says."""

    @abstractmethod
    def shards(self) -> Callable[[Mapping[str, Any]], bool]:
        """Return the check whether the shard of a finished task is there as it was recorded."""

    def done_of(self, tasks: Iterable[str]) -> set[str]:
        """Return the tasks that have a record and their shard."""
        names, is_whole = list(tasks), self._whole()
        return {name for name, record in zip(names, self.target.records(names), strict=True) if is_whole(record)}

    def records(self, tasks: Sequence[str], *, shards: bool = False) -> Iterator[TaskRecord]:
        """Yield the records of tasks, in their order, each read once.

        shards: look for their shards, too, as others may have made them. StoreError if a task is not done, after all
        have been looked at.
        """
        is_whole, missing = self._whole() if shards else _is_there, list[str]()
        for task, record in zip(tasks, self.target.records(tasks), strict=True):
            if record is None or not is_whole(record):
                missing.append(task)
            elif not missing:
                yield record
        if missing:
            raise self.unfinished(missing)

    def _whole(self) -> Callable[[TaskRecord | None], bool]:
        """Return the check whether a task has a record and its shard. A task without rows has no shard."""
        has_shard = self.shards()
        return lambda record: bool(record and (not record.entry["shard"]["rows"] or has_shard(record.entry["shard"])))

    def unfinished(self, tasks: list[str]) -> StoreError:
        """Return the error for tasks that have no record."""
        return StoreError(
            f"{counted(len(tasks), 'task')} not done yet, the first: {tasks[0]}",
            where=str(self.out),
            fix="run `derivlang work` for each rank again, or `make`: they take the tasks that are not done",
            id="unfinished",
        )

    def older_files(self) -> set[str]:
        """Return the names of the files of the set that is there; none if there is none that can be read."""
        with suppress(DerivlangError):
            return set(Derived(self.out, changed=True).own_files())
        return set()

    def check_draft(self, *, force: bool = False) -> None:
        """Raise StoreError if ranks count for another set here, which is not to be replaced."""
        draft = read_draft(self.store.get(DRAFT))
        if draft and not force and (told := difference_of_sets(draft["asked"], self.asked)):
            raise self.other(draft["asked"], BEGUN, told)

    def other(self, recorded: Mapping[str, Any], state: str = "", told: str = "") -> StoreError:
        """Return the error for a set of another plan. recorded: what its manifest or its plan says of it.

        told: the difference, if it is known.
        """
        known = {name: value for name, value in self.asked.items() if name in recorded}
        told = told or difference(recorded, known)
        told = told or OTHER_PLAN
        return StoreError(
            f"the folder holds another set ({state}{told})",
            where=str(self.out),
            fix="choose another folder with -o, or pass --force to replace it",
            id="other-plan",
        )


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


def _is_there(record: TaskRecord | None) -> bool:
    return record is not None


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
