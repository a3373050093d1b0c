"""One set made by many processes that share nothing but a store: plan, work, finish.

    plan    names the tasks, fits the lexicon, and stores both          once
    work    rank R of N runs the tasks R, R + N, R + 2 N, …             on any machine, as often as it takes
    finish  merges the records of all tasks, and writes the manifest    once

A task is done when its record is there. A rank that dies loses one shard, and whoever runs its tasks again goes on from
the others. Two ranks that run one task write the same bytes. So any scheduler can start ranks, and none is needed.
`make` is the same in one process: it plans, runs what is not done, and finishes.

A plan that is deferred has a stage before it, in which ranks hash and count the source (counting.py).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Collection
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from stat import S_ISLNK
from typing import Any, Literal

from derivlang.core.errors import StoreError, UsageError
from derivlang.engine import counting
from derivlang.engine.build import assemble, prepare, summary, working
from derivlang.engine.job import Events, Job, run_task
from derivlang.engine.make import job_of
from derivlang.engine.options import MakeOptions
from derivlang.engine.parse import parse_job
from derivlang.engine.stored import give, take, with_stamps
from derivlang.formats.inspection import inspecting
from derivlang.formats.places import is_remote
from derivlang.formats.progress import stage as showing
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.making import Making
from derivlang.store.manifest import NAME, read_manifest
from derivlang.store.set_plan import PLAN, begun_plan, read_plan, stage_of
from derivlang.store.storage import store_at

_PAUSES = (1.0, 30.0)  # seconds between two looks for a plan: at first, at most
_PATIENCE = 600.0  # seconds without a task that is counted, after which any rank counts and plans

Stage = Literal["count", "derive"]


@inspecting()
def plan(
    pipeline: Pipeline | None, request: SourceRequest, options: MakeOptions, events: Events, *, defer: bool = False
) -> dict[str, Any]:
    """Plan a derived set, so that ranks can make it, or a parse of the source if there is no pipeline.

    defer: let ranks hash and count the source, too. It has no effect where a set is finished, unless it is replaced:
    whether it is the same set is only known when the source is read.

    Returns {"out", "stage", "plan", "tasks", "done"}: the stage that comes next, "count" or "derive"; the hash of the
    plan, None before it is made; the numbers of all tasks of that stage, and of those that are done. For a finished
    set there are no tasks. Raises DerivlangError as `make`.
    """
    defer = defer and (options.force or store_at(options.out).get(NAME) is None)
    if pipeline is None:
        job, options = parse_job(request, options, events)
    else:
        job, options = job_of(pipeline, request, options, events, parses=not defer)
    if defer:
        begun = counting.begin(job, options, events)
        if begun is not None:
            numbers = {"tasks": len(begun[0].tasks), "done": len(begun[0].tasks) - len(counting.missing(*begun))}
            return {"out": str(options.out), "stage": "count", "plan": None, **numbers}
        job, making = open_plan(options.out)
        result = _numbers(job, making, making.done_of(job.names))
    else:
        result = prepare(job, options, events, partial(keep, options, events))
    numbers = {name: result.get(name, 0) for name in ("tasks", "done")}
    return {"out": str(options.out), "stage": "derive", "plan": result["plan"], **numbers}


def work(
    out: Path,
    rank: int,
    world: int,
    events: Events,
    *,
    trust: bool = False,
    stage: Stage | None = None,
    wait: bool = True,
) -> dict[str, Any]:
    """Run the tasks of one rank that are not done yet.

    rank: 0 to world - 1. trust: whether the user of this process made the plan. A plan in a file of this user is
    trusted, too; by any other plan each source file is hashed once before it is read. stage: "count" or "derive", of a
    plan that was deferred; None for both. wait: wait until other ranks have counted; else NotReady is raised.

    Returns {"out", "rank", "world", "counted", "made", "found", "words", "seconds"}: the numbers of tasks that were
    counted, that were made and that had been made already, and of words of those made now. Raises UsageError for a rank
    out of range, StoreError for a place without a plan, DataError if this process would write other bytes than the plan
    says.
    """
    if not 0 <= rank < world:
        raise UsageError(
            f"there is no rank {rank} of {world}",
            where="--rank",
            fix=f"ranks are 0 to {world - 1}" if world > 0 else "give --world, the number of ranks",
            id="rank",
        )
    began = time.perf_counter()
    counted, goes_on = _count(out, rank, world, events, trust=trust, stage=stage, wait=wait)
    made = found = words = 0
    if goes_on and stage != "count":
        if _is_finished(out):
            events.found(out)
        else:
            made, found, words = _derive(out, rank, world, events, trust=trust)
    seconds = round(time.perf_counter() - began, 3)
    numbers = {"counted": counted, "made": made, "found": found, "words": words}
    return {"out": str(out), "rank": rank, "world": world, **numbers, "seconds": seconds}


def finish(out: Path, events: Events) -> dict[str, Any]:
    """Make a finished set of the records of all tasks. Returns what `make` returns.

    StoreError if a task is not done yet, or for a place without a plan.
    """
    began = time.perf_counter()
    if (begun := counting.open_counting(out)) is not None:
        job, _, making = begun
        raise counting.unfinished(job, making, StoreError)
    if not _is_finished(out):
        job, making = open_plan(out)
        with making.held(str(job.pipeline), events.warn):
            if not _is_finished(out):  # another process may just have finished it
                return summary(out, assemble(job, making, events.warn, shards=True), began)
    events.found(out)
    manifest = read_manifest(out)
    making = Making(out, manifest["plan"], {})
    with making.held(manifest["spec"], events.warn) if making.is_begun() else nullcontext():
        making.sweep()
    return summary(out, manifest, began)


def _count(
    out: Path, rank: int, world: int, events: Events, *, trust: bool, stage: Stage | None, wait: bool
) -> tuple[int, bool]:
    """Count what a rank has to count, and come back when the set is planned.

    Returns the number of tasks counted here, and whether there is something to derive now. The rank that counts the
    last task plans the set. After some time in which nobody has counted anything, a rank that waits counts what is
    missing, and plans: so no rank waits for one that has died, or fails as that one did.
    """
    begun = counting.open_counting(out)
    if begun is None:
        return 0, True
    job, options, making = begun
    if not (trust or _is_mine(out / PLAN)):
        raise UsageError(
            "somebody else may have made this plan, and what its files hold would be counted into the place",
            where="--trust",
            fix="give --trust if the plan is yours, or plan without --defer",
            id="trust",
        )
    done, left, since, pause = 0, -1, time.monotonic(), _PAUSES[0]  # left: tasks not counted, at the last look
    while True:
        lost = time.monotonic() - since > _PATIENCE
        ran = 0 if stage == "derive" and not lost else counting.count(job, making, *((0, 1) if lost else (rank, world)))
        done += ran
        if not making.is_current():
            goes_on = counting.is_planned(making)
            if not goes_on:
                events.warn(f"{out}: another set has been begun here, so this rank ends")
            return done, goes_on
        missing = counting.missing(job, making)
        # Who has waited leaves it to the rank that counted the last task.
        if not missing and (ran or left < 0 or lost):
            with suppress(counting.NotReady):  # a record was damaged: it is counted again
                planned, vocabulary = counting.planned(job, making, options.splits)
                prepare(planned, options, events, partial(keep, options, events, counted=making.plan), vocabulary)
                return done, True
            continue
        if stage == "count":
            return done, False
        if not wait:
            raise counting.unfinished(job, making)
        if left < 0:
            events.warn(f"{out}: {counting.state(missing)}; waiting for other ranks")
        if len(missing) != left:
            left, since = len(missing), time.monotonic()
        with showing("waiting for other ranks"):
            time.sleep(pause * random.uniform(0.5, 1))
        pause = min(2 * pause, _PAUSES[1])


def _derive(out: Path, rank: int, world: int, events: Events, *, trust: bool) -> tuple[int, int, int]:
    """Run the tasks of a rank that are not done. Returns the numbers of tasks made and found, and of words made."""
    made = words = 0
    job, making = open_plan(out)
    mine = job.tasks[rank::world]
    done = making.done_of(task.name for task in mine)
    todo = [task for task in mine if task.name not in done]
    with working(job, todo):
        job = with_stamps(job, todo, trusted=trust or _is_mine(out / PLAN))
        for task in todo:
            try:
                words += run_task(job, task, making)[1]
            except StoreError:
                if making.is_current():
                    raise
                break
            made += 1
            if not making.is_current():
                break
    if todo and not making.is_current():  # others have run these tasks, too, or have begun another set
        making.retract(task.name for task in todo)
        if not _is_finished(out):
            events.warn(f"{out}: another set has been begun here, so this rank ends")
    return made, len(done), words


def keep(
    options: MakeOptions, events: Events, job: Job, making: Making, *, counted: str | None = None
) -> dict[str, Any]:
    """Store a prepared plan for ranks. counted: the hash of the plan whose tasks counted for it.

    Returns {"plan", "tasks", "done"} as `plan`; only the first for a set that is finished.
    """
    if options.force and _has_finished(making):  # ranks would find it complete
        making.sweep()
        events.found(options.out)
        return {"plan": making.plan}
    given, files = give(job, making.kept)
    begun, stage = begun_plan(making.store), stage_of(making.plan)
    if begun.get("facts", given["facts"]) != given["facts"]:
        for name in making.done:  # other versions have made them: one set has shards of one
            making.store.remove(f"{stage}/{name}.record")
        making.done.clear()
    for name, content in files.items():
        making.store.put(f"{stage}/{name}", content)
    of_counts = {} if counted is None else {"counted": counted}
    making.begin({**given, **of_counts})
    if making.follows:
        making.store.remove(f"{stage_of(making.follows)}/")
    return _numbers(job, making, making.done)


def _numbers(job: Job, making: Making, done: Collection[str]) -> dict[str, Any]:
    """Return what `plan` returns of a plan that is stored."""
    return {"plan": making.plan, "tasks": len(job.tasks), "done": len(done)}


def open_plan(out: Path) -> tuple[Job, Making]:
    """Return what was planned in a place, and its making. StoreError if nothing was, or if the plan was damaged."""
    store = store_at(out)
    begun = read_plan(store)
    if not begun:
        what, again = ("no set is planned here", "") if begun is None else (f"the plan was damaged ({PLAN})", " again")
        fix = f"plan it{again}: `derivlang plan --t SPEC SOURCE -o PLACE`"
        raise StoreError(what, where=str(out), fix=fix, id="not-planned")
    if "job" not in begun:
        raise StoreError(
            "this set was begun by `derivlang make`, which goes on with it",
            where=str(out),
            fix="run the same `make` command again, or plan it: `derivlang plan` with its options",
            id="not-planned",
        )
    job, making = take(out, begun)
    making.check_place()
    return job, making


def _is_finished(out: Path) -> bool:
    """Return whether the set that was planned in a place is finished."""
    store = store_at(out)
    if store.get(NAME) is None:
        return False
    begun = read_plan(store)
    if not begun:
        return begun is None  # a damaged plan is not
    return _has_finished(Making(out, begun["plan"], begun["asked"], begun=begun))


def _has_finished(making: Making) -> bool:
    """Return whether the set of a plan is in its place, whole."""
    with suppress(StoreError):  # another set is there, or one that was damaged
        return making.finished() is not None
    return False


def _is_mine(path: Path) -> bool:
    """Return whether a file of this machine, and its folder, belong to the user who runs this process.

    A link does not: whoever makes it needs only the path of a file.
    """
    if is_remote(path):
        return False
    found = [place.lstat() for place in (path, path.parent)]
    return all(one.st_uid == os.getuid() and not S_ISLNK(one.st_mode) for one in found)
