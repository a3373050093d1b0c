"""The stage before the plan, for a source that one process should not read: ranks hash and count it.

    plan --defer    lists the files, and cuts them into pieces                        .derivlang/plan.json
    work            rank R counts the tasks R, R + N, …                               .derivlang/HASH16/NAME.record
                    the rank that finds all of them counted fits the lexicon, plans   .derivlang/plan.json, another one

A task that counts is a task as any other: it is done when its record is there, may run twice, and is lost with nobody
but the rank that runs it. What the set is planned from is what `make` would have read itself, so it is the same plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, StoreError, parse_errors
from derivlang.core.messages import counted
from derivlang.core.seal import hash_of
from derivlang.engine.build import Planned, asked_for, names_of, reference_of, working
from derivlang.engine.job import Events, Job, Plan, ShardTask, count_vocabulary, tasks_of
from derivlang.engine.options import MakeOptions
from derivlang.engine.plan import layout, look_at, numbered
from derivlang.engine.stored import give, take
from derivlang.engine.vocabulary import TypeCounts
from derivlang.formats.inspection import FileStamp, unchanged
from derivlang.sources.corpus import FileSpan
from derivlang.sources.read import count_documents
from derivlang.sources.request import SourceRequest
from derivlang.store.making import Making
from derivlang.store.manifest import NAME, read_manifest
from derivlang.store.set_plan import PLAN, TaskRecord, begun_plan, difference_of_sets, stage_of
from derivlang.store.storage import store_at

_OPTIONS = {"splits": [str], "shard_tokens": int, "force": bool, "limit?": int}
_FORM = {"options": _OPTIONS, "reference?": str}  # of the plan
_NO_WORDS = string_array([]), np.zeros(0, np.int64)
_NO_SHARD = {"sha256": "", "bytes": 0, "rows": 0, "words": 0}


class NotReady(StoreError):
    """Other ranks have to end a stage first."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h: the same command may succeed later


@dataclass(frozen=True, slots=True)
class Counting:
    """The tasks that count a source before its set is planned.

    making: of the plan of these tasks. tasks: a layout of the wanted splits, and of `reference`, the split that the
    lexicon is fitted on; None if nothing is fitted. job: its files have stamps and no hashes.
    """

    options: MakeOptions
    making: Making
    job: Job
    tasks: Plan
    reference: str | None
    request: SourceRequest

    def missing(self) -> list[ShardTask]:
        """Return the tasks that have no record."""
        recorded = self.making.target.recorded(names_of(self.tasks))
        return [task for task in tasks_of(self.tasks) if task.name not in recorded]

    def is_planned(self) -> bool:
        """Return whether this set, and no other one, is planned or finished in the place now."""
        recorded = begun_plan(self.making.store).get("asked")
        if recorded is None and self.making.store.get(NAME) is not None:
            manifest = read_manifest(self.options.out)
            recorded = {"options": [], **manifest, "splits": list(manifest["splits"])}
        return recorded is not None and not difference_of_sets(recorded, self.making.asked)

    def run(self, rank: int, world: int) -> int:
        """Count the tasks of one rank that are not counted yet. Returns their number.

        DataError if a file is not the one that was planned.
        """
        missing = {task.name for task in self.missing()}
        todo = [task for task in tasks_of(self.tasks)[rank::world] if task.name in missing]
        with working(self.job, todo, "counting"):
            for done, task in enumerate(todo):
                self._count(task)
                if not self.making.is_current():  # others have counted it, too: nobody else would remove the record
                    self.making.retract(())
                    return done
        return len(todo)

    def _count(self, task: ShardTask) -> None:
        """Count a task, and write its record."""
        job, has_files, target = self.job, self.job.corpus.has_files, self.making.target
        seen = {span.part.path: job.seen[span.part.path] for span in task.spans} if has_files else {}
        for path, stamp in seen.items():
            if not stamp.is_at(path):
                raise DataError(
                    "this is not the file that was planned: it was changed, or is a copy of it",
                    where=str(path),
                    fix="plan the set again with --force; without --defer a plan knows files by their content, so "
                    "copies will do",
                    id="source-changed",
                )
        last = self.tasks[_split_of(task)][-1].spans[-1]
        with unchanged(seen):
            # A file is hashed where it begins, and the documents behind the last span count for no other.
            hashes = [look_at(job, span.part).sha256 if not span.piece.begin else None for span in task.spans]
            counts = [
                (0, 0) if span is last else count_documents(job.corpus, span, job.encoding) for span in task.spans
            ]
            is_counted = _split_of(task) == self.reference
            types, numbers = count_vocabulary(replace(job, seen=seen), [task]) if is_counted else _NO_WORDS
        entry = {
            "shard": {"file": target.file(task.name), **_NO_SHARD},
            **dict.fromkeys(("documents", "sentences", "tokens"), 0),
            "counts": {},
            "spans": [
                {"sha256": sha256, "documents": documents, "lines": lines}
                for sha256, (documents, lines) in zip(hashes, counts, strict=True)
            ],
        }
        target.commit(task.name, TaskRecord(entry, types, numbers))

    def result(self) -> Planned:
        """Return what all ranks have found. StoreError if a task is not counted yet."""
        seen, vocabulary, target = dict(self.job.seen), TypeCounts(), self.making.target
        documents: dict[FileSpan, tuple[int, int]] = {}
        missing = list[ShardTask]()
        for task, record in zip(tasks_of(self.tasks), target.records(names_of(self.tasks)), strict=True):
            spans = [] if record is None else record.entry.get("spans") or []
            hashed = [found.get("sha256") is not None for found in spans]
            if record is None or hashed != [not span.piece.begin for span in task.spans]:
                missing.append(task)
                continue
            for span, found in zip(task.spans, spans, strict=True):
                if found.get("sha256") is not None:
                    seen[span.part.path] = replace(seen[span.part.path], sha256=found["sha256"])
                documents[span] = found["documents"], found["lines"]
            if _split_of(task) == self.reference:  # in the order of the plan, in which types are first met
                vocabulary.add(record.types, record.counts)
        if missing:
            # A damaged record would be taken for one.
            target.store.remove(*(target.record_file(task.name) for task in missing))
            raise self.unfinished()
        wanted = {split: tasks for split, tasks in self.tasks.items() if split in self.options.splits}
        plan = numbered(wanted, self.options.limit, documents.__getitem__)
        words = None if self.reference is None else vocabulary.result()
        return Planned(replace(self.job, seen=seen), plan, self.options.limit, self.reference, words)

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


def begin(job: Job, request: SourceRequest, options: MakeOptions, events: Events) -> Counting | None:
    """Plan the tasks that count a source, in `options.out`. Returns them; None if the set has been planned of them.

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
    paths = [part.path for part in job.corpus.parts if part.split in tasks]
    seen = {path: FileStamp.unhashed(path) if job.corpus.has_files else FileStamp() for path in paths}
    job = replace(job, seen=seen)
    kept = job.pipeline.files_to_keep(fitted=False)
    given, files = give(job, tasks, kept, request)
    splits = list(options.splits)
    settings = {"splits": splits, "shard_tokens": size, "limit": options.limit}
    asked = asked_for(job, [], splits, options)
    content = {"stage": "count", "reference": reference, "options": settings, **given}
    making = Making(options.out, hash_of({"asked": asked, **content}), asked, kept)
    if begun_plan(making.store).get("counted") == making.plan:
        return None
    with making.held(str(job.pipeline), events.warn):
        making.open(names_of(tasks), force=options.force, counts=True)
        for name, text in files.items():
            making.store.put(f"{stage_of(making.plan)}/{name}", text)
        making.begin({**content, "options": {**settings, "force": options.force}})  # it changes nothing in the set
    return Counting(options, making, job, tasks, reference, request)


def open_counting(out: Path) -> Counting | None:
    """Return what is to be counted in a place, None if nothing is. StoreError if the plan was damaged."""
    begun = begun_plan(store_at(out))
    if begun.get("stage") != "count":
        return None
    job, tasks, making = take(out, begun, _FORM, fitted=False)
    where = str(out / PLAN)
    with parse_errors(where, "plan", error=StoreError, id="plan", fix="plan the set again, in another place"):
        options = MakeOptions(out=out, **{**begun["options"], "splits": tuple(begun["options"]["splits"])})
        reference = begun["reference"]
        for split in (*options.splits, *([] if reference is None else [reference])):
            if split not in tasks:
                raise ValueError(f"it has no split {split!r}")
        request = SourceRequest(**(begun["job"]["request"] or {"source": job.corpus.name}))
        return Counting(options, making, job, tasks, reference, request)


def _split_of(task: ShardTask) -> str:
    return task.spans[0].part.split
