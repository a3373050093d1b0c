"""Build a set from a job: plan, fit the lexicon, run the tasks, write the manifest and the card.

job ──make_plan──▶ tasks ──engine──▶ shards and records ──Making.close──▶ the finished set
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
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
from derivlang.engine.job import Events, Job, ShardTask, count_vocabulary
from derivlang.engine.manifest import Files, asked_of, manifest_of, plan_hash
from derivlang.engine.options import MakeOptions
from derivlang.engine.plan import files_of, layout, look, make_plan, source_files, total_size
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


Vocabulary = tuple[pa.Array, Int64]  # types, Arrow strings [T], and their counts, int64[T]


def build(job: Job, options: MakeOptions, events: Events) -> dict[str, Any]:
    """Make the set of a job in `options.out`, unless it is there already. Returns its manifest."""
    return prepare(job, options, events, partial(_run, options.workers, events))


def prepare(
    job: Job,
    options: MakeOptions,
    events: Events,
    go_on: Callable[[Job, Making], dict[str, Any]],
    vocabulary: Vocabulary | None = None,
) -> dict[str, Any]:
    """Plan the set of a job and fit its lexicon, and return what `go_on` returns, which is called while it is held.

    job: planned, or the source is looked at. vocabulary: of the split that the lexicon is fitted on; None to count it.
    Returns the manifest if the set is there already. What a failed run has written is removed, unless it is of use.
    """
    with stage(LOOKING):
        job.corpus.splitter()  # raises for a language without word rules before any work is announced
    job = job if job.plan else look_at_source(job, options)
    read_anew()
    if options.force and not is_remote(options.out) and options.out.exists():  # else nothing is replaced
        out = options.out.resolve()
        if any(out in path.resolve().parents for path in job.seen if not is_remote(path)):
            raise over_own_source()
    files, apart = files_of(job), source_files(job.for_lexicon, _apart(job, list(job.plan)))
    kept = job.pipeline.files_to_keep()  # before the fingerprint, so that another content would be noticed
    fingerprint = job.pipeline.fingerprint(job.lexicon_text)
    asked = asked_for(job, files, list(job.plan), options.shard_tokens)
    making = Making(options.out, plan_hash(job, files, apart), asked, kept)
    # While another run may be changing the folder, it is looked at when that has ended.
    finished = None if making.is_begun() else making.finished(force=options.force)
    if finished is not None:
        making.sweep()
    else:
        with making.held(str(job.pipeline), events.warn):
            finished = making.open(job.names, force=options.force, warn=events.warn)
            if finished is None:
                try:
                    return go_on(_fit(job, options, events, vocabulary, fingerprint), making)
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


def look_at_source(job: Job, options: MakeOptions) -> Job:
    """Hash the files of a source, and plan its set. Returns the job with both."""
    wanted = [split_name(split) for split in options.splits] or job.corpus.splits
    job = replace(job, limit=options.limit, fitted_on=reference_of(job, options))
    seen, apart = look(job, wanted), _apart(job, wanted)
    if apart:
        seen |= look(job.for_lexicon, apart)
    with stage("planning"):
        plan = make_plan(job, splits=wanted, shard_tokens=options.shard_tokens, limit=options.limit)
    return replace(job, seen=seen, plan=plan)


def _apart(job: Job, wanted: Collection[str]) -> list[str]:
    """Return the split that is read only for the lexicon, as a list; [] if there is none."""
    split = job.fitted_on
    return [split] if split and (job.reference is not None or split not in wanted) else []


def asked_for(job: Job, files: Files, splits: list[str], shard_tokens: int) -> dict[str, Any]:
    """Return what was asked for, as `plan.json` records it."""
    asked = asked_of(job, files) | {
        "splits": splits,
        "limit": job.limit,
        "columns_left_out": list(job.drop_columns),
        "options": list(job.options),
        "shard_tokens": shard_tokens,
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


def _fit(job: Job, options: MakeOptions, events: Events, vocabulary: Vocabulary | None, fingerprint: str) -> Job:
    """Return the job with its lexicon: saved, or fitted on the whole split `fitted_on`, whatever the limit.

    fingerprint: of the pipeline when the set was planned. DataError if a file of the pipeline has changed since.
    """
    split, counted = job.fitted_on, None
    if split is not None:
        if split != "train" and "train" in job.corpus.expected:
            events.warn(f"no train split here: the kept types are fitted on {split}")
        counted = vocabulary or vocabulary_of(job.for_lexicon, split, options.workers, options.shard_tokens)
    lexicon = job.pipeline.fit(*(counted or ()), saved=job.lexicon_text, where=str(options.lexicon or "--lexicon"))
    if job.pipeline.fingerprint(job.lexicon_text) != fingerprint:
        raise DataError(
            "a dictionary of the pipeline changed while it was read",
            where="--t",
            fix="run the same command again",
            id="source-changed",
        )
    return replace(job, lexicon=lexicon, lexicon_text=job.pipeline.save(lexicon))


def vocabulary_of(job: Job, split: str, workers: int = 1, shard_tokens: int = 0) -> Vocabulary:
    """Return the vocabulary of a split, as `count_vocabulary` does.

    workers: processes that share its tasks. shard_tokens: words of each task, if there are several.
    """
    tasks = layout(job, splits=[split], shard_tokens=shard_tokens if workers > 1 else None)[split]
    with stage("counting words", total=total_size(tasks)):
        if min(workers, len(tasks)) < 2:
            return count_vocabulary(job, tasks)
        vocabulary, waiting, added = TypeCounts(), dict[int, Vocabulary](), 0
        for number, found in in_processes(partial(_count, job), list(enumerate(tasks)), workers):
            waiting[number] = found
            while added in waiting:  # in the order of the tasks, in which types are first met
                vocabulary.add(*waiting.pop(added))
                added += 1
        return vocabulary.result()


def _count(job: Job, numbered: tuple[int, ShardTask]) -> tuple[int, Vocabulary]:
    number, task = numbered
    return number, count_vocabulary(job, [task])


def _run(workers: int, events: Events, job: Job, making: Making) -> dict[str, Any]:
    """Run the tasks that are not done yet, and finish the set. Returns its manifest."""
    todo = [task for task in job.tasks if task.name not in making.done]
    if making.follows:  # from here on, ranks need not count
        making.begin()
    with working(job, todo):
        for name, _ in run_tasks(job, todo, making, workers) if todo else ():
            making.check_current([name])
    return assemble(job, making, events.warn)


def working(job: Job, tasks: list[ShardTask], what: str = "making") -> AbstractContextManager[None]:
    """Return the stage in which tasks run, for progress bars. what: the name of it."""
    # A parser works for long on the bytes of one read, and the bytes of a set on the hub are unknown.
    by_words = job.parser is not None or not job.corpus.has_files
    what = what if job.parser is None else "parsing"
    return stage(what, "words") if by_words else stage(what, total=total_size(tasks))


def assemble(job: Job, making: Making, warn: Callable[[str], None], *, shards: bool = False) -> dict[str, Any]:
    """Make a finished set of the records of all tasks. Returns its manifest. StoreError if a record is missing.

    shards: look for the shards of all tasks, too: others have made them.
    """
    results: dict[str, list[dict[str, Any]]] = {split: [] for split in job.plan}
    vocabulary, marked = TypeCounts(), Counter[ShardTask]()
    # In the order of the plan, so that the manifest does not depend on who was first.
    for task, record in zip(job.tasks, making.all_records(job.names, shards=shards), strict=True):
        results[task.split].append(record.entry)
        marked[task] = int(record.counts[to_numpy(pc.match_substring(record.types, _MARK))].sum())
        vocabulary.add(record.types, record.counts)
    types, counts = vocabulary.result()
    if marked.total() and job.corpus.is_raw and job.corpus.words != "space":
        has = f"{counted(marked.total(), 'word')} with U+FEFF, a byte-order mark, as joined files have"
        warn(f"{first_names(_marked_files(job, +marked))}: {has}; it is kept")
    for message in job.pipeline.warnings(job.lexicon, types, counts):
        warn(message)
    shared, several = shares(types, counts, job.lexicon), len(job.pipeline.transforms) > 1
    if several and shared.get("same_types") == len(types) and not job.pipeline.has_order:
        warn(f"{job.pipeline} leaves every word of the source as it is")
    manifest = manifest_of(job, files_of(job), making.plan, results, shared)
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
