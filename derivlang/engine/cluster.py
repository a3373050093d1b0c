"""`make --engine dask:ADDRESS`: the workers of a Dask cluster run the ranks of a plan, and this process makes the set.

Workers must see the source and the output folder as this process does, and have its versions: every rank compares
them with the plan (plan_file.py).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, DerivlangError, UsageError
from derivlang.core.parse_errors import reason
from derivlang.engine.build import Planned, assemble, working
from derivlang.engine.events import Events
from derivlang.engine.options import MakeOptions
from derivlang.engine.plan import total_size
from derivlang.engine.ranks import keep, open_plan, work
from derivlang.formats.progress import bytes_read, words_done
from derivlang.sources.request import SourceRequest
from derivlang.store.manifest import read_manifest

PATIENCE = 60.0  # seconds to wait without a scheduler or a worker
CONNECT = 10.0  # seconds to wait until a scheduler answers
_LOOK = 0.2  # seconds between two looks at results and workers
_RANKS = 1000  # maximum number of ranks: each of them reads the whole plan


def run_ranks(
    address: str, request: SourceRequest, options: MakeOptions, events: Events, planned: Planned
) -> dict[str, Any]:
    """Run the tasks that are not done yet on a cluster, and finish the set. Returns its manifest.

    address: of the scheduler. UsageError if none answers there, DataError for a cluster that cannot make the set.
    """
    making, tasks = planned.making, planned.tasks
    world, out = min(len(tasks), _RANKS), making.out.absolute()
    with _connected(address) as client:
        if "tasks" not in keep(request, options, events, planned):  # it is finished
            return read_manifest(making.out)
        _check_workers(client, out)  # a worker without the package ends when it gets a rank
        left = {rank: [task for task in tasks[rank::world] if task.name not in making.done] for rank in range(world)}
        ranks = [rank for rank in left if left[rank]]
        with working(planned.job, planned.todo):
            for worked in _results(client, address, out, partial(_work, out, world), ranks):
                mine = left[worked["rank"]]
                making.check_current(task.name for task in mine)
                bytes_read(total_size(mine) or 0)
                words_done(worked["words"])
    return assemble(planned, events.warn)


def _work(out: Path, world: int, rank: int) -> dict[str, Any]:
    """Run a rank on a worker."""
    return work(out, rank, world, Events(), trust=True)


def _check(out: Path) -> None:
    """Raise DerivlangError on a worker that cannot run ranks of the set that is planned in a place."""
    open_plan(out)


def _results(client: Any, address: str, out: Path, work: Callable[[int], Any], ranks: list[int]) -> Iterator[Any]:
    """Yield what each rank returns. DataError if one fails, or if there is no worker for some time."""
    from distributed import as_completed

    # pure=False: the scheduler must not answer with the result of an earlier call.
    futures = client.map(work, ranks, pure=False)
    done = as_completed(futures, loop=client.loop, with_results=True, raise_errors=False)
    left, seen = len(futures), time.monotonic()  # seen: when there was a worker last
    while left:
        for future, result in done.next_batch(block=False):
            if future.status != "finished":
                raise _failed(client, out, result[1] if isinstance(result, tuple) else result)
            left -= 1
            yield result
        if _has_workers(client):
            seen = time.monotonic()
        elif time.monotonic() - seen > PATIENCE:
            raise DataError(
                f"the Dask cluster at {address} has had no worker for {PATIENCE:.0f} seconds",
                where="--engine",
                fix=f"start one: dask worker {address}; the same command goes on from the finished shards",
                id="no-workers",
            )
        time.sleep(_LOOK if left else 0)


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


def _check_workers(client: Any, out: Path) -> None:
    """Raise DataError, with the list of workers, if some cannot run the ranks of a set."""
    replies = client.run(_check, out, on_error="return") if _has_workers(client) else {}
    # An OSError is of a worker that has just died.
    others = {worker: reply for worker, reply in replies.items() if reply and not isinstance(reply, OSError)}
    if others:
        told = (
            f"{worker}: {getattr(reply, 'what', None) or reason(reply)}" for worker, reply in sorted(others.items())
        )
        raise DataError(
            f"Dask workers cannot make this set: {'; '.join(told)}",
            where="--engine",
            fix="give the workers the same packages and folders",
            id="other-workers",
        )


def _has_workers(client: Any) -> bool:
    """Return whether the scheduler is there, and has a worker."""
    try:
        return bool(client.status == "running" and client.nthreads())
    except (OSError, TimeoutError):  # the scheduler is gone as well
        return False


def _failed(client: Any, out: Path, error: BaseException) -> DerivlangError:
    """Return the error of a rank as one of derivlang's. DataError for workers that have joined later and differ."""
    if isinstance(error, DerivlangError):
        _check_workers(client, out)
        return error
    return DataError(
        f"a task failed on the Dask cluster: {reason(error)}",
        where="--engine",
        fix="see the workers' logs (lack of memory kills workers); the same command goes on from the finished shards",
        id="worker-died",
    )
