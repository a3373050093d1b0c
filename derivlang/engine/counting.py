"""The stage before the plan, for a source that one process should not read: ranks hash and count it.

    plan --defer    lists the files, and cuts them into pieces                        .derivlang/plan.json
    work            rank R counts the tasks R, R + N, …                               .derivlang/HASH16/NAME.record
                    the rank that finds all of them counted fits the lexicon, plans   .derivlang/plan.json, another one

A task that counts is a task as any other: it is done when its record is there, may run twice, and is lost with nobody
but the rank that runs it. What the set is planned from is what `make` would have read itself, so it is the same plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, StoreError, parse_errors
from derivlang.core.messages import counted
from derivlang.core.seal import hash_of
from derivlang.engine.build import Vocabulary, asked_for, reference_of, working
from derivlang.engine.job import Events, Job, ShardTask, count_vocabulary
from derivlang.engine.options import MakeOptions
from derivlang.engine.plan import layout, look_at, numbered
from derivlang.engine.stored import give, take
from derivlang.engine.vocabulary import TypeCounts
from derivlang.formats.inspection import FileStamp, unchanged
from derivlang.sources.corpus import FileSpan
from derivlang.sources.read import count_documents
from derivlang.store.making import Making
from derivlang.store.manifest import NAME, read_manifest
from derivlang.store.record import check_record
from derivlang.store.set_plan import PLAN, Target, TaskRecord, begun_plan, difference_of_sets, stage_of
from derivlang.store.storage import store_at

_FORM = {"splits": [str], "shard_tokens": int, "force": bool}  # of the plan, beside the job
_NO_WORDS = string_array([]), np.zeros(0, np.int64)
_NO_SHARD = {"sha256": "", "bytes": 0, "rows": 0, "words": 0}


class NotReady(StoreError):
    """Other ranks have to end a stage first."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h: the same command may succeed later


def begin(job: Job, options: MakeOptions, events: Events) -> tuple[Job, Making] | None:
    """Plan the tasks that count a source, in `options.out`. Returns None if the set has been planned of them.

    The job that is returned has a layout of the wanted splits, and of the split that the lexicon is fitted on; its
    files have stamps and no hashes. StoreError if the place holds another set, finished or not, unless `options.force`
    is set.
    """
    job.corpus.splitter()  # raises for a language without word rules
    size, reference = options.shard_tokens, reference_of(job, options)
    plan = layout(job, splits=list(options.splits), shard_tokens=size, limited=options.limit is not None)
    splits = list(plan)
    if reference is None:  # a saved lexicon that does not fit is refused before anything is counted
        job.pipeline.fit(saved=job.lexicon_text, where=str(options.lexicon or "--lexicon"))
    elif reference not in plan:  # it is read for its words only
        plan |= layout(job, splits=[reference], shard_tokens=size)
    paths = [part.path for part in job.corpus.parts if part.split in plan]
    seen = {path: FileStamp.unhashed(path) if job.corpus.has_files else FileStamp() for path in paths}
    job = replace(job, seen=seen, plan=plan, limit=options.limit, fitted_on=reference)
    kept = job.pipeline.files_to_keep(fitted=False)
    given, files = give(job, kept)
    asked = asked_for(job, [], splits, size)
    content = {"stage": "count", "splits": splits, "shard_tokens": size, **given}
    making = Making(options.out, hash_of({"asked": asked, **content}), asked, kept)
    if begun_plan(making.store).get("counted") == making.plan:
        return None
    with making.held(str(job.pipeline), events.warn):
        making.open(job.names, force=options.force, counts=True)
        for name, text in files.items():
            making.store.put(f"{stage_of(making.plan)}/{name}", text)
        making.begin({**content, "force": options.force})  # which changes nothing in the set
    return job, making


def open_counting(out: Path) -> tuple[Job, MakeOptions, Making] | None:
    """Return what is to be counted in a place, None if nothing is. StoreError if the plan was damaged."""
    begun = begun_plan(store_at(out))
    if begun.get("stage") != "count":
        return None
    job, making = take(out, begun)
    fix = "plan the set again, in another place"
    with parse_errors(str(out / PLAN), "plan", error=StoreError, id="plan", fix=fix):
        check_record(begun, _FORM)
        settings = {name: begun[name] for name in ("shard_tokens", "force")}
        options = MakeOptions(out=out, splits=tuple(begun["splits"]), limit=job.limit, **settings)
        for split in {*options.splits, job.fitted_on} - {None, *job.plan}:
            raise ValueError(f"it has no split {split!r}")
    return job, options, making


def missing(job: Job, making: Making) -> list[ShardTask]:
    """Return the tasks that have no record."""
    recorded = making.recorded(job.names)
    return [task for task in job.tasks if task.name not in recorded]


def is_planned(making: Making) -> bool:
    """Return whether this set, and no other one, is planned or finished in the place now."""
    recorded = begun_plan(making.store).get("asked")
    if recorded is None and making.store.get(NAME) is not None:
        manifest = read_manifest(making.out)
        recorded = {"options": [], **manifest, "splits": list(manifest["splits"])}
    return recorded is not None and not difference_of_sets(recorded, making.asked)


def count(job: Job, making: Making, rank: int, world: int) -> int:
    """Count the tasks of one rank that are not counted yet. Returns their number.

    DataError if a file is not the one that was planned.
    """
    left = {task.name for task in missing(job, making)}
    todo = [task for task in job.tasks[rank::world] if task.name in left]
    with working(job, todo, "counting"):
        for done, task in enumerate(todo):
            _count(job, task, making)
            if not making.is_current():  # others have counted it, too: nobody else would remove the record
                making.retract(())
                return done
    return len(todo)


def _count(job: Job, task: ShardTask, target: Target) -> None:
    """Count a task, and write its record."""
    seen = {span.part.path: job.seen[span.part.path] for span in task.spans} if job.corpus.has_files else {}
    for path, stamp in seen.items():
        if not stamp.is_at(path):
            raise DataError(
                "this is not the file that was planned: it was changed, or is a copy of it",
                where=str(path),
                fix="plan the set again with --force; without --defer a plan knows files by their content, so "
                "copies will do",
                id="source-changed",
            )
    last = job.plan[task.split][-1].spans[-1]
    spans = []
    with unchanged(seen):
        for span in task.spans:
            # A file is hashed where it begins, and the documents behind the last span count for no other.
            sha256 = None if span.piece.begin else look_at(job, span.part).sha256
            documents, lines = (0, 0) if span is last else count_documents(job.corpus, span, job.encoding)
            spans.append({"sha256": sha256, "documents": documents, "lines": lines})
        is_counted = task.split == job.fitted_on
        types, numbers = count_vocabulary(replace(job, seen=seen), [task]) if is_counted else _NO_WORDS
    entry = {
        "shard": {"file": target.file(task.name), **_NO_SHARD},
        **dict.fromkeys(("documents", "sentences", "tokens"), 0),
        "counts": {},
        "spans": spans,
    }
    target.commit(task.name, TaskRecord(entry, types, numbers))


def planned(job: Job, making: Making, splits: Sequence[str]) -> tuple[Job, Vocabulary | None]:
    """Return the job with the plan of some splits, and the vocabulary that its lexicon is fitted on.

    They are what `make` would have found itself. StoreError if a task is not counted yet.
    """
    seen, vocabulary = dict(job.seen), TypeCounts()
    documents: dict[FileSpan, tuple[int, int]] = {}
    lost = list[str]()
    for task, record in zip(job.tasks, making.records(job.names), strict=True):
        spans = [] if record is None else record.entry.get("spans") or []
        hashed = [found.get("sha256") is not None for found in spans]
        if record is None or hashed != [not span.piece.begin for span in task.spans]:
            lost.append(making.record_file(task.name))
            continue
        for span, found in zip(task.spans, spans, strict=True):
            if not span.piece.begin:
                seen[span.part.path] = replace(seen[span.part.path], sha256=found["sha256"])
            documents[span] = found["documents"], found["lines"]
        if task.split == job.fitted_on:  # in the order of the plan, in which types are first met
            vocabulary.add(record.types, record.counts)
    if lost:
        making.store.remove(*lost)  # a damaged record would be taken for one
        raise unfinished(job, making)
    wanted = {split: tasks for split, tasks in job.plan.items() if split in splits}
    plan = numbered(wanted, job.limit, documents.__getitem__)
    return replace(job, seen=seen, plan=plan), None if job.fitted_on is None else vocabulary.result()


def unfinished(job: Job, making: Making, kind: type[StoreError] = NotReady) -> StoreError:
    """Return the error for a set that is not planned yet."""
    return kind(
        state(missing(job, making)),
        where=str(making.out),
        fix="run `derivlang work` for each rank: ranks count what is missing, then plan the set",
        id="unfinished",
    )


def state(left: Sequence[ShardTask]) -> str:
    """Say which tasks are not counted yet, as a part of a message."""
    if not left:
        return "all tasks are counted, but the set is not planned yet"
    return f"{counted(len(left), 'task')} not counted yet, the first: {left[0].name}"
