"""The Dask engine: run the tasks of a plan on the workers of a Dask cluster.

Workers must see the same folders and read the same files as this process. Each reports what the bytes of a shard
depend on (`Facts`) before anything runs, and again with every task, since workers may join later.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from derivlang.core.errors import DataError, DerivlangError, UsageError
from derivlang.core.parse_errors import reason
from derivlang.engine.facts import Facts, differences, facts_of
from derivlang.engine.job import Job, Result, ShardTask, run_task
from derivlang.engine.plan import size_of
from derivlang.formats.progress import bytes_read, words_done
from derivlang.sources.corpus import CorpusFile
from derivlang.store.making import Target, begun_plan

PATIENCE = 60.0  # seconds to wait without a scheduler or a worker
CONNECT = 10.0  # seconds to wait until a scheduler answers
_AHEAD, _LEAST_AHEAD = 4, 64  # tasks that are sent, for each thread of the workers, and in all
_POLL, _LOOK = 0.05, 1.0  # seconds between two looks at results, and at workers


def dask(address: str) -> Callable[[Job, list[ShardTask], Target], Iterator[Result]]:
    """Return the engine of the cluster whose scheduler has this address."""
    if not address:
        raise UsageError(
            "dask: needs the address of a scheduler", where="--engine", fix="e.g. dask:tcp://host:8786", id="engine"
        )

    def run(job: Job, tasks: list[ShardTask], target: Target) -> Iterator[Result]:
        job, tasks = _absolute(job, tasks)
        target = replace(target, store=target.store.absolute())
        expected = facts_of(job)
        with _connected(address) as client:
            _check_workers(client, partial(_told, job, expected, target))
            for result in _results(client, partial(_run_task, job, expected, target), tasks, address):
                bytes_read(size_of(result.task) or 0)
                words_done(result.words)
                yield result

    return run


def _results(
    client: Any, work: Callable[[ShardTask], Result], tasks: list[ShardTask], address: str
) -> Iterator[Result]:
    """Yield each result as it is done. Scheduler, workers and this process then forget it.

    A few tasks for each thread of the workers are sent at a time, so that the scheduler and this process need no more
    memory for many tasks than for few.
    """
    from distributed import as_completed

    done = as_completed(loop=client.loop, with_results=True, raise_errors=False)
    sent = ended = threads = 0
    seen = time.monotonic()  # when there was a worker last
    looked = seen - 2 * _LOOK
    while ended < len(tasks):
        now = time.monotonic()
        if now - looked > _LOOK:
            looked, threads = now, _threads(client)
            seen = now if threads else seen
        if now - seen > PATIENCE and not done.has_ready():
            raise DataError(
                f"the Dask cluster at {address} has had no worker for {PATIENCE:.0f} seconds",
                where="--engine",
                fix=f"start one: dask worker {address}; the same command goes on from the finished shards",
                id="no-workers",
            )
        more = tasks[sent : ended + max(_LEAST_AHEAD, _AHEAD * threads)]
        if more and client.status == "running":
            # pure=False: the scheduler must not answer with the result of an earlier call.
            done.update(client.map(work, more, pure=False))
            sent += len(more)
        if not done.has_ready():
            time.sleep(_POLL)
        for future, result in done.next_batch(block=False):
            if future.status != "finished":
                raise _failed(result[1] if isinstance(result, tuple) else result)
            future.release()
            ended += 1
            yield result


def _run_task(job: Job, expected: Facts, target: Target, task: ShardTask) -> Result:
    """Run a task on a worker. DataError if this worker would write other bytes than the main process."""
    if others := _told(job, expected, target):
        raise _other_workers([f"{socket.gethostname()}: {others}"])
    return run_task(job, task, target)


def _told(job: Job, expected: Facts, target: Target) -> str:
    """Return why this worker would write other bytes than the main process, or elsewhere; "" if it would not."""
    told = [differences(facts_of(job), expected)]
    if begun_plan(target.store).get("plan") != target.plan:
        told.append("it does not see the output folder")
    return ", ".join(filter(None, told))


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Connect to the scheduler. UsageError if the package is missing or no scheduler answers."""
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(
            "the Dask engine needs the package distributed",
            where="--engine",
            fix="pip install 'derivlang[dask]'",
            id="missing-package",
        ) from None
    log = logging.getLogger("distributed")
    level = log.level
    log.setLevel(logging.CRITICAL)  # the errors raised here are enough
    try:
        try:
            with ThreadPoolExecutor(1) as thread:  # this thread may have an event loop already, as in Jupyter
                thread.submit(asyncio.run, _greet(address)).result()
            client = Client(address, timeout=CONNECT, set_as_default=False)
        except Exception as error:  # each kind of address fails in its own way
            raise UsageError(
                f"no Dask scheduler answers at {address!r}: {reason(error)}",
                where="--engine",
                fix="give the address that `dask scheduler` prints, e.g. dask:tcp://host:8786",
                id="no-scheduler",
            ) from error
        with client:
            yield client
    finally:
        log.setLevel(level)


async def _greet(address: str) -> None:
    """Connect once. A `Client` that fails to connect takes 20 seconds to close and prints a traceback."""
    from distributed import Security
    from distributed.comm.core import connect

    comm = await connect(address, timeout=CONNECT, **Security().get_connection_args("client"))
    await comm.close()


def _check_workers(client: Any, told_by: Callable[[], str]) -> None:
    """Raise DataError, with the list of workers, if some would write other bytes than this process."""
    others = []
    for worker, reply in sorted(client.run(told_by, on_error="return").items()):
        told = reply if isinstance(reply, str) else str(reply) or type(reply).__name__
        if told:
            others.append(f"{worker}: {told}")
    if others:
        raise _other_workers(others)


def _other_workers(told: list[str]) -> DataError:
    return DataError(
        f"Dask workers would write other bytes than this process: {'; '.join(told)}",
        where="--engine",
        fix="give the workers the same packages and folders; name grammars and parsers by absolute paths",
        id="other-workers",
    )


def _threads(client: Any) -> int:
    """Return how many tasks the workers can run at once, 0 without a worker or a scheduler."""
    try:
        return sum(client.nthreads().values()) if client.status == "running" else 0
    except (OSError, TimeoutError):  # the scheduler is gone as well
        return 0


def _failed(error: BaseException) -> DerivlangError:
    """Return the error of a task as one of derivlang's."""
    if isinstance(error, DerivlangError):
        return error
    return DataError(
        f"a task failed on the Dask cluster: {reason(error)}",
        where="--engine",
        fix="see the workers' logs (lack of memory kills workers); the same command goes on from the finished shards",
        id="worker-died",
    )


def _absolute(job: Job, tasks: list[ShardTask]) -> tuple[Job, list[ShardTask]]:
    """Return job and tasks with absolute paths, since workers have other working folders."""

    def absolute(part: CorpusFile) -> CorpusFile:
        return replace(part, path=part.path.absolute()) if job.corpus.has_files else part

    corpus = replace(job.corpus, parts=tuple(map(absolute, job.corpus.parts)))
    seen = {path.absolute(): stamp for path, stamp in job.seen.items()}
    return replace(job, corpus=corpus, seen=seen), [
        replace(
            task,
            spans=tuple(replace(span, part=absolute(span.part)) for span in task.spans),
        )
        for task in tasks
    ]
