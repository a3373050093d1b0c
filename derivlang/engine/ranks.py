"""One set made by many processes that share nothing but a store: plan, work, finish.

    plan    names the tasks, fits the lexicon, and stores both          once
    work    rank R of N runs the tasks R, R + N, R + 2 N, …             on any machine, as often as it takes
    finish  merges the records of all tasks, and writes the manifest    once

A task is done when its record is there. A rank that dies loses one shard, and whoever runs its tasks again goes on from
the others. Two ranks that run one task write the same bytes. So any scheduler can start ranks, and none is needed.
`make` is the same in one process: it plans, runs what is not done, and finishes.
"""

from __future__ import annotations

import os
import time
from contextlib import nullcontext, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.core.parse_errors import parse_errors
from derivlang.engine import build
from derivlang.engine.build import Planned, assemble, prepare, summary, working
from derivlang.engine.events import Events
from derivlang.engine.facts import Facts, differences, facts_of, versions
from derivlang.engine.job import run_task
from derivlang.engine.make import job_of
from derivlang.engine.options import MakeOptions
from derivlang.engine.stored import restored, stored, with_stamps
from derivlang.formats.places import is_remote
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.at import making_at, store_at
from derivlang.store.base import Store
from derivlang.store.making import PLAN, Making, begun_plan, is_of_set, read_plan, stage_of
from derivlang.store.manifest import LEXICON, NAME, read_manifest
from derivlang.store.record import check_types

FORMAT = 1  # of a plan
_SOURCE_LEXICON = "source-lexicon.tsv"  # of a derived source
_KEPT = f"{SPEC_FILES}/"


def plan(pipeline: Pipeline, request: SourceRequest, options: MakeOptions, events: Events) -> dict[str, Any]:
    """Plan a derived set, so that ranks can make it.

    Returns {"out", "plan", "tasks", "done"}: the hash of the plan, and the numbers of all tasks and of those that are
    done; of a finished set {"out", "plan", "tasks": 0, "done": 0}. Raises DerivlangError as `make`.
    """
    job, options = job_of(pipeline, request, options, events)

    def keep(planned: Planned) -> dict[str, Any]:
        if options.force and _has_finished(planned.making):  # ranks would find it complete
            planned.making.sweep()
            events.found(options.out)
            return {"plan": planned.making.plan}
        _keep(planned, request)
        names = build.names_of(planned.plan)
        return {"plan": planned.making.plan, "tasks": len(names), "done": len(planned.making.done)}

    planned = prepare(job, options, events, keep)
    numbers = {name: planned.get(name, 0) for name in ("tasks", "done")}
    return {"out": str(options.out), "plan": planned["plan"], **numbers}


def work(out: Path, rank: int, world: int, events: Events, *, trust: bool = False) -> dict[str, Any]:
    """Run the tasks of one rank that are not done yet.

    rank: 0 to world - 1. trust: whether the user of this process made the plan. A plan in a file of this user is
    trusted, too; by any other plan each source file is hashed once before it is read.

    Returns {"out", "rank", "world", "made", "found", "words", "seconds"}: the numbers of tasks that were run and that
    were done already, and of words of the former. Raises UsageError for a rank out of range, StoreError for a place
    without a plan, DataError if this process would write other bytes than the plan says.
    """
    if not 0 <= rank < world:
        raise UsageError(
            f"there is no rank {rank} of {world}",
            where="--rank",
            fix=f"ranks are 0 to {world - 1}" if world > 0 else "give --world, the number of ranks",
            id="rank",
        )
    began = time.perf_counter()
    made = found = words = 0
    if _is_finished(out):
        events.found(out)
    else:
        planned = _open(out)
        making = planned.making
        mine = [task for tasks in planned.plan.values() for task in tasks][rank::world]
        done = making.done_of(task.name for task in mine)
        todo, found = [task for task in mine if task.name not in done], len(done)
        with working(planned.job, todo):
            job = with_stamps(planned.job, todo, trusted=trust or _is_mine(out / PLAN))
            for task in todo:
                try:
                    result = run_task(job, task, making.target)
                except StoreError:
                    if making.is_current():
                        raise
                    break
                made, words = made + 1, words + result.words
                events.done(result)
                if not making.is_current():
                    break
        if todo and not making.is_current():  # others have run these tasks, too, or have begun another set
            making.retract(task.name for task in todo)
            if not _is_finished(out):
                events.warn(f"{out}: another set has been begun here, so this rank ends")
    seconds = round(time.perf_counter() - began, 3)
    told = {"out": str(out), "rank": rank, "world": world, "made": made, "found": found}
    return {**told, "words": words, "seconds": seconds}


def finish(out: Path, events: Events) -> dict[str, Any]:
    """Make a finished set of the records of all tasks. Returns what `make` returns.

    StoreError if a task is not done yet, or for a place without a plan.
    """
    began = time.perf_counter()
    if not _is_finished(out):
        planned = _open(out)
        making = planned.making
        with making.held(str(planned.job.pipeline), events.warn):
            if not _is_finished(out):  # another process may just have finished it
                return summary(out, assemble(planned, events.warn, shards=True), began)
    events.found(out)
    manifest = read_manifest(out)
    making = making_at(out, manifest["plan"], {})
    with making.held(manifest["spec"], events.warn) if making.is_begun() else nullcontext():
        making.sweep()
    return summary(out, manifest, began)


def _keep(planned: Planned, request: SourceRequest) -> None:
    """Store a plan for ranks, `plan.json` last."""
    job, making = planned.job, planned.making
    facts, stage = facts_of(job), stage_of(making.plan)
    begun = begun_plan(making.store)
    if "facts" in begun and differences(begun["facts"], facts):
        for name in making.done:  # other versions have made them: one set has shards of one
            making.store.remove(f"{stage}/{name}.record")
        making.done.clear()
    texts = {LEXICON: job.lexicon_text, _SOURCE_LEXICON: job.corpus.lexicon_text}
    files = {name: text.encode() for name, text in texts.items() if text is not None}
    files |= {f"{_KEPT}{name}": content for name, content in making.kept.items()}
    for name, content in files.items():
        making.store.put(f"{stage}/{name}", content)
    making.begin(
        {
            "format": FORMAT,
            "facts": facts,
            "texts": {name: sha256(content).hexdigest() for name, content in files.items()},
            "files": planned.files,
            "limit": planned.limit,
            "job": stored(job, planned.plan, request),
        }
    )


def _open(out: Path) -> Planned:
    """Return what was planned in a place. StoreError if nothing was, or if the plan was damaged."""
    store = store_at(out)
    begun = begun_plan(store)
    if not begun:
        fix = "plan it: `derivlang plan --t SPEC SOURCE -o PLACE`"
        raise StoreError("no set is planned here", where=str(out), fix=fix, id="not-planned")
    if "job" not in begun:
        raise StoreError(
            "this set was begun by `derivlang make`, which goes on with it",
            where=str(out),
            fix="run the same `make` command again, or plan it: `derivlang plan` with its options",
            id="not-planned",
        )
    where = str(out / PLAN)
    with parse_errors(where, "plan", error=StoreError, id="plan", fix="plan the set again, in another place"):
        if begun.get("format") != FORMAT:
            raise ValueError(f"its format is {begun.get('format')}, this version reads {FORMAT}")
        check_types(begun, {"facts": dict, "texts": dict, "files": list, "job": dict}, {"limit": int})
        _check_facts(versions(), {name: begun["facts"].get(name) for name in versions()}, out)
        stage = stage_of(begun["plan"])
        files = {name: _content(store, stage, name, digest) for name, digest in begun["texts"].items()}
        kept = {name.removeprefix(_KEPT): content for name, content in files.items() if name.startswith(_KEPT)}
        fitted, of_source = (files[name].decode() if name in files else None for name in (LEXICON, _SOURCE_LEXICON))
        making = making_at(out, begun["plan"], begun["asked"], kept, begun)
        try:
            job, tasks = restored(begun["job"], fitted, of_source, out / stage, where)
        except UsageError as error:  # in its spec: nobody typed it here
            raise ValueError(error.what) from error
        _check_facts(facts_of(job), begun["facts"], out)
        making.check_place()
        return Planned(job, tasks, begun["files"], making, begun["limit"])


def _content(store: Store, stage: str, name: str, digest: str) -> bytes:
    """Return a file that was stored with the plan. ValueError if it is not the same."""
    if name not in (LEXICON, _SOURCE_LEXICON) and not is_of_set(name):
        raise ValueError(f"{name!r} is not a file of a plan")
    content = store.get(f"{stage}/{name}")
    if content is None or sha256(content).hexdigest() != digest:
        raise ValueError(f"{name} is missing or was changed")
    return content


def _check_facts(here: Facts, planned: Facts, out: Path) -> None:
    """Raise DataError if this process would write other bytes than the one that made the plan."""
    if told := differences(planned, here):
        raise DataError(
            f"the set was planned with {told}: this process would write other bytes",
            where=str(out),
            fix="install the same versions, or plan the set again with those that are here: all its tasks run again",
            id="other-workers",
        )


def _is_finished(out: Path) -> bool:
    """Return whether the set that was planned in a place is finished."""
    store = store_at(out)
    if store.get(NAME) is None:
        return False
    begun = read_plan(store)
    if not begun:
        return begun is None  # a damaged plan is not
    return _has_finished(making_at(out, begun["plan"], begun["asked"], begun=begun))


def _has_finished(making: Making) -> bool:
    """Return whether the set of a plan is in its place, whole."""
    with suppress(StoreError):  # another set is there, or one that was damaged
        return making.finished() is not None
    return False


def _is_mine(path: Path) -> bool:
    """Return whether a file of this machine belongs to the user who runs this process."""
    if is_remote(path) or not hasattr(os, "getuid"):
        return False
    return path.stat().st_uid == os.getuid()
