"""Build a set from a job: plan, fit the lexicon, run the tasks, write the manifest and the card.

job ──make_plan──▶ tasks ──engine──▶ shards and records ──Making.close──▶ the finished set
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64
from derivlang.core.arrow import to_numpy
from derivlang.core.errors import DataError, DerivlangError, StoreError, UsageError
from derivlang.core.messages import counted, first_names
from derivlang.core.names import split_name
from derivlang.engine.engines import in_processes, run_tasks
from derivlang.engine.job import Events, Job, Plan, ShardTask, count_vocabulary, tasks_of
from derivlang.engine.manifest import Files, asked_of, manifest_of, plan_hash
from derivlang.engine.options import MakeOptions
from derivlang.engine.plan import (
    layout,
    look,
    make_plan,
    source_files,
    total_size,
)
from derivlang.engine.vocabulary import TypeCounts, shares
from derivlang.formats.inspection import read_anew
from derivlang.formats.opening import open_lines
from derivlang.formats.places import is_remote
from derivlang.formats.progress import LOOKING, stage
from derivlang.sources.read import warn_of_relations
from derivlang.store.card import card
from derivlang.store.making import Making
from derivlang.store.manifest import CARD, COUNTS, LEXICON, NAME, document_of, dump, shards_of

_MARK = "\ufeff"  # a byte-order mark


@dataclass(frozen=True, slots=True)
class Planned:
    """What a set is made from, found by this process or by ranks (counting.py).

    job: its files are hashed. plan: all tasks, those that are done included. limit: of rows per split. reference: the
    split that the lexicon is fitted on, None if nothing is fitted. vocabulary: its types and counts, Arrow strings [T]
    and int64[T]; None while they are not counted.
    """

    job: Job
    plan: Plan
    limit: int | None
    reference: str | None = None
    vocabulary: tuple[pa.Array, Int64] | None = None

    @property
    def files(self) -> Files:
        """The files of the source, as the manifest lists them."""
        return self.job.corpus.options.get("files") or source_files(self.job, list(self.plan))


def build(job: Job, options: MakeOptions, events: Events, planned: Planned | None = None) -> dict[str, Any]:
    """Make the set of a job in `options.out`, unless it is there already. Returns its manifest.

    planned: None to look at the source.
    """
    return prepare(job, options, events, partial(_run, options.workers, events), planned)


def prepare(
    job: Job,
    options: MakeOptions,
    events: Events,
    go_on: Callable[[Planned, Making], dict[str, Any]],
    planned: Planned | None = None,
) -> dict[str, Any]:
    """Plan the set of a job and fit its lexicon, and return what `go_on` returns, which is called while it is held.

    planned: None to look at the source. Returns the manifest if the set is there already. What a failed run has
    written is removed, unless it is of use.
    """
    with stage(LOOKING):
        job.corpus.splitter()  # raises for a language without word rules before any work is announced
    planned = planned or look_at_source(job, options)
    read_anew()
    if options.force and not is_remote(options.out) and options.out.exists():  # else nothing is replaced
        out = options.out.resolve()
        if any(out in path.resolve().parents for path in planned.job.seen if not is_remote(path)):
            raise over_own_source()
    job, plan, files = planned.job, planned.plan, planned.files
    fitted_on = source_files(job.for_lexicon, _apart(job, planned.reference, plan))
    hash = plan_hash(job, plan, files, fitted_on)
    kept = job.pipeline.files_to_keep()  # before the fingerprint, so that another content would be noticed
    before, fingerprint = job.lexicon_text, job.pipeline.fingerprint(job.lexicon_text)
    making = Making(options.out, hash, asked_for(job, files, list(plan), options), kept)
    if not making.is_begun():  # else another run may be changing the folder: it is looked at when that has ended
        finished = making.finished(force=options.force)
        if finished is not None:
            making.sweep()
            events.found(options.out)
            return finished
    with making.held(str(job.pipeline), events.warn):
        finished = making.open(names_of(plan), force=options.force, warn=events.warn)
        if finished is not None:
            events.found(options.out)
            return finished
        try:
            planned = _fit(planned, options, events)
            if job.pipeline.fingerprint(before) != fingerprint:
                raise DataError(
                    "a dictionary of the pipeline changed while it was read",
                    where="--t",
                    fix="run the same command again",
                    id="source-changed",
                )
            return go_on(planned, making)
        except BaseException as error:
            finished = making.finished() if isinstance(error, StoreError) and making.is_by_others() else None
            if finished is None:
                making.give_up()
                raise
            making.sweep()
            events.found(options.out)
            return finished


def over_own_source() -> UsageError:
    """Return the error for a set whose source is in its place."""
    fix = "choose another folder"
    return UsageError("a set cannot be written over its own source", where="-o", fix=fix, id="output")


def look_at_source(job: Job, options: MakeOptions) -> Planned:
    """Hash the files of a source, and plan its set."""
    reference = reference_of(job, options)
    wanted = [split_name(split) for split in options.splits] or job.corpus.splits
    seen, apart = look(job, wanted), _apart(job, reference, wanted)
    if apart:
        seen |= look(job.for_lexicon, apart)
    with stage("planning"):
        plan = make_plan(job, splits=wanted, shard_tokens=options.shard_tokens, limit=options.limit)
        return Planned(replace(job, seen=seen), plan, options.limit, reference)


def _apart(job: Job, reference: str | None, wanted: Collection[str]) -> list[str]:
    """Return the split that is read only for the lexicon, as a list; [] if there is none."""
    return [reference] if reference and (job.reference is not None or reference not in wanted) else []


def asked_for(job: Job, files: Files, splits: list[str], options: MakeOptions) -> dict[str, Any]:
    """Return what was asked for, as `plan.json` records it."""
    asked = asked_of(job, files) | {
        "splits": splits,
        "limit": options.limit,
        "columns_left_out": list(job.drop_columns),
        "options": list(job.options),
        "shard_tokens": options.shard_tokens,
    }
    del asked["fingerprint"]  # a finished set's fingerprint includes the fitted lexicon
    return asked


def summary(out: Path, manifest: dict[str, Any], began: float) -> dict[str, Any]:
    """Return what `make` returns. began: the `time.perf_counter()` of its start."""
    splits = {name: {key: entry[key] for key in COUNTS if key in entry} for name, entry in manifest["splits"].items()}
    seconds = time.perf_counter() - began
    tokens = sum(entry["tokens"] for entry in splits.values())
    return {
        "out": str(out),
        "splits": splits,
        "document": document_of(manifest),
        "changed": manifest["changed"],
        "dropped": manifest["dropped"],
        "seconds": round(seconds, 3),
        "tokens_per_second": round(tokens / seconds),
    }


def reference_of(job: Job, options: MakeOptions) -> str | None:
    """Return the split that the lexicon is fitted on (train, else the first), or None if nothing is fitted."""
    needed = options.lexicon is None and job.pipeline.needs_counts(job.lexicon_text)
    return job.for_lexicon.corpus.splits[0] if needed else None


def _fit(planned: Planned, options: MakeOptions, events: Events) -> Planned:
    """Return the set with its lexicon: saved, or fitted on the whole split `reference`, whatever the limit."""
    job, reference = planned.job, planned.reference
    where = str(options.lexicon or "--lexicon")
    if reference is None:
        lexicon = job.pipeline.fit(saved=job.lexicon_text, where=where)
    else:
        if reference != "train" and "train" in job.corpus.expected:
            events.warn(f"no train split here: the kept types are fitted on {reference}")
        types, counts = planned.vocabulary or vocabulary_of(
            job.for_lexicon, reference, options.workers, options.shard_tokens
        )
        lexicon = job.pipeline.fit(types, counts, saved=job.lexicon_text, where=where)
    return replace(planned, job=replace(job, lexicon=lexicon, lexicon_text=job.pipeline.save(lexicon)))


def vocabulary_of(job: Job, split: str, workers: int = 1, shard_tokens: int = 0) -> tuple[pa.Array, Int64]:
    """Return the vocabulary of a split, as `count_vocabulary` does.

    workers: processes that share its tasks. shard_tokens: words of each task, if there are several.
    """
    tasks = layout(job, splits=[split], shard_tokens=shard_tokens if workers > 1 else None)[split]
    with stage("counting words", total=total_size(tasks)):
        if min(workers, len(tasks)) < 2:
            return count_vocabulary(job, tasks)
        vocabulary, waiting, added = TypeCounts(), dict[int, tuple[pa.Array, Int64]](), 0
        for number, found in in_processes(partial(_count, job), list(enumerate(tasks)), workers):
            waiting[number] = found
            while added in waiting:  # in the order of the tasks, in which types are first met
                vocabulary.add(*waiting.pop(added))
                added += 1
        return vocabulary.result()


def _count(job: Job, numbered: tuple[int, ShardTask]) -> tuple[int, tuple[pa.Array, Int64]]:
    number, task = numbered
    return number, count_vocabulary(job, [task])


def _run(workers: int, events: Events, planned: Planned, making: Making) -> dict[str, Any]:
    """Run the tasks that are not done yet, and finish the set. Returns its manifest."""
    todo = [task for task in tasks_of(planned.plan) if task.name not in making.done]
    if making.follows:  # from here on, ranks need not count
        making.begin()
    with working(planned.job, todo):
        for result in run_tasks(planned.job, todo, making.target, workers) if todo else ():
            making.check_current([result.task.name])
            events.done(result)
    return assemble(planned, making, events.warn)


def working(job: Job, tasks: list[ShardTask], what: str = "making") -> AbstractContextManager[None]:
    """Return the stage in which tasks run, for progress bars. what: the name of it."""
    # A parser works for long on the bytes of one read, and the bytes of a set on the hub are unknown.
    by_words = job.parser is not None or not job.corpus.has_files
    what = what if job.parser is None else "parsing"
    return stage(what, "words") if by_words else stage(what, total=total_size(tasks))


def assemble(planned: Planned, making: Making, warn: Callable[[str], None], *, shards: bool = False) -> dict[str, Any]:
    """Make a finished set of the records of all tasks. Returns its manifest. StoreError if a record is missing.

    shards: look for the shards of all tasks, too: others have made them.
    """
    job, plan = planned.job, planned.plan
    tasks = [(split, task) for split, some in plan.items() for task in some]
    results: dict[str, list[dict[str, Any]]] = {split: [] for split in plan}
    vocabulary, marked = TypeCounts(), Counter[ShardTask]()
    # In the order of the plan, so that the manifest does not depend on who was first.
    for (split, task), record in zip(tasks, making.records(names_of(plan), shards=shards), strict=True):
        results[split].append(record.entry)
        marked[task] = int(record.counts[to_numpy(pc.match_substring(record.types, _MARK))].sum())
        vocabulary.add(record.types, record.counts)
    types, counts = vocabulary.result()
    if marked.total() and job.corpus.is_raw and job.corpus.words != "space":
        has = f"{counted(marked.total(), 'word')} with U+FEFF, a byte-order mark, as joined files have"
        warn(f"{first_names(_marked_files(job, +marked))}: {has}; it is kept")
    for message in job.pipeline.warnings(job.lexicon, types, counts):
        warn(message)
    shared = shares(types, counts, job.lexicon)
    if shared.get("same_types") == len(types) and not job.pipeline.has_order:
        warn(f"{job.pipeline} leaves every word of the source as it is")
    manifest = manifest_of(job, plan, planned.files, making.plan, results, shared, planned.limit)
    warn_of_relations(manifest["changed"], job.corpus.name, warn)
    text = card(manifest, job.pipeline.with_defaults)
    manifest["card"] = sha256(text.encode()).hexdigest()
    texts = {CARD: text, NAME: dump(manifest)}
    texts |= {} if job.lexicon_text is None else {LEXICON: job.lexicon_text}
    making.close(texts, shards_of(manifest))
    return manifest


def _marked_files(job: Job, tasks: Iterable[ShardTask]) -> list[str]:
    """Return the names of files with a byte-order mark inside, of those that some tasks read.

    All of them if the mark is in none as it is: JSON may have it as an escape.
    """
    files = {span.part.path: span.part.name for task in tasks for span in task.spans}
    found = []
    for path, name in files.items():
        with suppress(DerivlangError):  # a file that is gone, or has another form than text
            if any(_MARK in line for _, line in open_lines(path, job.encoding)):
                found.append(name)
    return found or list(files.values())


def names_of(plan: Plan) -> list[str]:
    """Return the names of all tasks, in the order of the plan."""
    return [task.name for task in tasks_of(plan)]
