"""The stage before the plan, for a source that one process should not read: ranks hash and count it.

    plan --defer    lists the files, and cuts them into pieces                        .derivlang/draft.json
    work            rank R counts the tasks R, R + N, …                               .derivlang/HASH16/NAME.count
                    the rank that finds all of them counted fits the lexicon, plans   .derivlang/plan.json

A task is counted when its record is there. Like a task that is made, it may be counted twice, and is lost with nobody
but the rank that counts it. What the plan is made from is what `make` would have read itself, so it is the same plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, StoreError
from derivlang.core.messages import counted
from derivlang.core.parse_errors import parse_errors
from derivlang.core.seal import hash_of, sealed
from derivlang.engine.build import Known, asked_for, reference_of, working
from derivlang.engine.job import Job, Plan, ShardTask, count_vocabulary
from derivlang.engine.options import MakeOptions
from derivlang.engine.plan import count_documents, layout, look_at, numbered
from derivlang.engine.stored import give, take
from derivlang.engine.vocabulary import TypeCounts
from derivlang.engine.watch import FileStamp, unchanged
from derivlang.sources.corpus import CorpusFile, FileSpan
from derivlang.sources.request import SourceRequest
from derivlang.store.making import Making
from derivlang.store.manifest import DIGEST, NAME, read_manifest
from derivlang.store.record import check_record, record_text
from derivlang.store.set_plan import BEGUN, DRAFT, TaskRecord, begun_plan, difference_of_sets, read_draft, stage_of
from derivlang.store.storage import Store, store_at

_SPAN = {"sha256?": DIGEST, "documents": int, "lines": int}
_ENTRY = {"task": str, "draft": str, "spans": [_SPAN]}  # of a record
_OPTIONS = {"splits": [str], "shard_tokens": int, "force": bool, "limit?": int}
_DRAFT = {"options": _OPTIONS, "job": dict, "reference?": str}
_NO_WORDS = string_array([]), np.zeros(0, np.int64)


class NotReady(StoreError):
    """Other ranks have to end a stage first."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h: the same command may succeed later


@dataclass(frozen=True, slots=True)
class Counting:
    """The tasks that are counted before a set is planned in a place.

    hash, content: of the draft. asked: as in it. tasks: a layout of the wanted splits, and of `reference`, the split
    that the lexicon is fitted on; None if nothing is fitted. job: its files have stamps and no hashes.
    """

    options: MakeOptions
    hash: str
    content: bytes
    asked: Mapping[str, Any]
    job: Job
    tasks: Plan
    reference: str | None
    request: SourceRequest

    @property
    def store(self) -> Store:
        """Where the records are."""
        return store_at(self.options.out)

    def all(self) -> list[ShardTask]:
        """Return all tasks, in the order of the plan."""
        return [task for tasks in self.tasks.values() for task in tasks]

    def missing(self) -> list[ShardTask]:
        """Return the tasks that have no record."""
        there = self.store.sizes(stage_of(self.hash))
        return [task for task in self.all() if self._record(task) not in there]

    def is_current(self) -> bool:
        """Return whether the place still waits for these counts."""
        return self.store.get(DRAFT) == self.content

    def is_planned(self) -> bool:
        """Return whether this set, and no other one, is planned or finished in the place now."""
        recorded = begun_plan(self.store).get("asked")
        if recorded is None and self.store.get(NAME) is not None:
            manifest = read_manifest(self.options.out)
            recorded = {"options": [], **manifest, "splits": list(manifest["splits"])}
        return recorded is not None and not difference_of_sets(recorded, self.asked)

    def run(self, rank: int, world: int) -> int:
        """Count the tasks of one rank that are not counted yet. Returns their number.

        DataError if a file is not the one that was planned.
        """
        missing = {task.name for task in self.missing()}
        todo = [task for task in self.all()[rank::world] if task.name in missing]
        with working(self.job, todo, "counting"):
            for done, task in enumerate(todo):
                self.store.put(self._record(task), self._count(task).dump())
                if not self.is_current():  # others have counted it, too: nobody else would remove the record
                    Making(self.options.out, self.hash, {}).retract(())
                    return done
        return len(todo)

    def _count(self, task: ShardTask) -> TaskRecord:
        job, has_files = self.job, self.job.corpus.has_files
        seen = {span.part.path: job.seen[span.part.path] for span in task.spans} if has_files else {}
        for path, stamp in seen.items():
            if not stamp.is_at(path):
                raise _other_file(path)
        last = self.tasks[_split_of(task)][-1].spans[-1]
        with unchanged(seen):
            # A file is hashed where it begins, and the documents behind the last span count for no other.
            hashes = [look_at(job, span.part).sha256 if not span.piece.begin else None for span in task.spans]
            counts = [(0, 0) if span is last else count_documents(job, span) for span in task.spans]
            is_counted = _split_of(task) == self.reference
            types, numbers = count_vocabulary(replace(job, seen=seen), [task]) if is_counted else _NO_WORDS
        spans = [
            {"sha256": sha256, "documents": documents, "lines": lines}
            for sha256, (documents, lines) in zip(hashes, counts, strict=True)
        ]
        return TaskRecord({"task": task.name, "draft": self.hash, "spans": spans}, types, numbers)

    def result(self) -> Known:
        """Return what all ranks have found. StoreError if a task is not counted yet."""
        seen, vocabulary = dict(self.job.seen), TypeCounts()
        documents: dict[FileSpan, tuple[int, int]] = {}
        tasks, missing = self.all(), list[ShardTask]()
        for task, content in zip(tasks, self.store.get_all(map(self._record, tasks)), strict=True):
            record = TaskRecord.load(content, _ENTRY)
            if record is None or not self._is_of(record.entry, task):
                missing.append(task)
                continue
            for span, found in zip(task.spans, record.entry["spans"], strict=True):
                if found.get("sha256") is not None:
                    seen[span.part.path] = replace(seen[span.part.path], sha256=found.get("sha256"))
                documents[span] = found["documents"], found["lines"]
            if _split_of(task) == self.reference:  # in the order of the plan, in which types are first met
                vocabulary.add(record.types, record.counts)
        if missing:
            self.store.remove(*map(self._record, missing))  # a damaged one would be taken for counted
            raise self.unfinished()
        wanted = {split: tasks for split, tasks in self.tasks.items() if split in self.options.splits}
        plan = numbered(wanted, self.options.limit, documents.__getitem__)
        return Known(seen, plan, self.reference, None if self.reference is None else vocabulary.result())

    def unfinished(self, kind: type[StoreError] = NotReady) -> StoreError:
        """Return the error for a set that is not planned yet."""
        return kind(
            self.state(self.missing()),
            where=str(self.options.out),
            fix="run `derivlang work` for each rank: ranks count what is missing, then plan the set",
            id="unfinished",
        )

    @staticmethod
    def state(missing: Sequence[ShardTask]) -> str:
        """Return what is missing, for messages."""
        if not missing:
            return "all tasks are counted, but the set is not planned yet"
        return f"{counted(len(missing), 'task')} not counted yet, the first: {missing[0].name}"

    def _is_of(self, entry: Mapping[str, Any], task: ShardTask) -> bool:
        """Return whether an entry belongs to a task, and has a hash for just the files that begin in it."""
        hashed = [found.get("sha256") is not None for found in entry["spans"]]
        of_task = [not span.piece.begin for span in task.spans]
        return (entry["task"], entry["draft"], hashed) == (task.name, self.hash, of_task)

    def _record(self, task: ShardTask) -> str:
        return f"{stage_of(self.hash)}/{task.name}.count"


def begin(job: Job, request: SourceRequest, options: MakeOptions) -> Counting | None:
    """Store the draft of a plan in `options.out`. Returns its tasks; None if a plan has been made of them already.

    StoreError if the place holds another set, finished or not, unless `options.force` is set.
    """
    job.corpus.splitter()  # raises for a language without word rules
    size, reference = options.shard_tokens, reference_of(job, options)
    tasks = layout(job, splits=list(options.splits), shard_tokens=size, limited=options.limit is not None)
    options = replace(options, splits=tuple(tasks))
    if reference is not None and reference not in tasks:  # it is read for its words only
        tasks |= layout(job, splits=[reference], shard_tokens=size)
    if reference is None:  # a saved lexicon that does not fit is refused before anything is counted
        job.pipeline.fit(saved=job.lexicon_text, where=str(options.lexicon or "--lexicon"))
    job = replace(job, seen={part.path: _unhashed(job, part) for part in job.corpus.parts if part.split in tasks})
    kept = job.pipeline.files_to_keep(fitted=False)
    given, files = give(job, tasks, kept, request)
    splits = list(options.splits)
    settings = {"splits": splits, "shard_tokens": size, "limit": options.limit}
    asked = asked_for(job, [], splits, options)
    content = {"asked": asked, "reference": reference, "options": settings, **given}
    hash = hash_of(content)
    store, making = store_at(options.out), Making(options.out, hash, asked, kept)
    making.check_place(force=options.force)
    plan, older = begun_plan(store), read_draft(store.get(DRAFT))
    if plan.get("draft") == hash:
        return None
    for begun in (plan, older):
        if begun and begun.get("draft") != hash and not options.force:
            told = difference_of_sets(begun["asked"], asked) or "its source was changed, or is counted in another way"
            raise making.other(begun["asked"], BEGUN, told)
    for name, text in files.items():
        store.put(f"{stage_of(hash)}/{name}", text)
    content["options"] = {**settings, "force": options.force}  # which changes nothing in the set
    draft = record_text(sealed({"draft": hash, **content})).encode()
    store.put(DRAFT, draft)
    return Counting(options, hash, draft, asked, job, tasks, reference, request)


def open_draft(out: Path) -> Counting | None:
    """Return what is to be counted in a place, None if there is no draft. StoreError if it was damaged."""
    content = store_at(out).get(DRAFT)
    drafted = read_draft(content)
    if content is None or drafted is None:
        return None
    where = str(out / DRAFT)
    with parse_errors(where, "draft", error=StoreError, id="plan", fix="plan the set again, in another place"):
        if not drafted:
            raise ValueError("it was damaged")
        check_record(drafted, _DRAFT)
        options = MakeOptions(out=out, **{**drafted["options"], "splits": tuple(drafted["options"]["splits"])})
        job, tasks, _ = take(out, DRAFT, drafted["draft"], drafted, fitted=False)
        reference = drafted["reference"]
        for split in (*options.splits, *([] if reference is None else [reference])):
            if split not in tasks:
                raise ValueError(f"it has no split {split!r}")
        request = SourceRequest(**(drafted["job"]["request"] or {"source": job.corpus.name}))
        return Counting(options, drafted["draft"], content, drafted["asked"], job, tasks, reference, request)


def remove_draft(out: Path) -> None:
    """Remove the draft of a set once the set is planned, and the counts that ranks made for it."""
    store = store_at(out)
    drafted = read_draft(store.get(DRAFT))
    if drafted is not None:
        store.remove(DRAFT)
    if drafted:
        Making(out, drafted["draft"], {}).retract(())


def _unhashed(job: Job, part: CorpusFile) -> FileStamp:
    """Return a file as it is now, without its hash."""
    return FileStamp.unhashed(part.path) if job.corpus.has_files else FileStamp((0, 0, 0, 0), "")


def _split_of(task: ShardTask) -> str:
    return task.spans[0].part.split


def _other_file(path: Path) -> DataError:
    return DataError(
        "this is not the file that was planned: it was changed, or is a copy of it",
        where=str(path),
        fix="plan the set again with --force; without --defer a plan knows files by their content, so copies will do",
        id="source-changed",
    )
