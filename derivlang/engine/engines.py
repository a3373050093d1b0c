"""Engines: what runs the tasks of a plan: this process, a pool of processes, or a Dask cluster.

Each is `run(job, tasks) -> iterator of results` in the order of completion; the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from derivlang.core.errors import DataError, UsageError
from derivlang.engine.job import Job, Result, Task, run_task

Engine = Callable[[Job, list[Task]], Iterator[Result]]


def local(job: Job, tasks: list[Task]) -> Iterator[Result]:
    """One task after the other, in this process."""
    for task in tasks:
        yield run_task(job, task)


def pool(workers: int) -> Engine:
    """A pool of processes, forked from a server that has imported everything once."""

    def run(job: Job, tasks: list[Task]) -> Iterator[Result]:
        import multiprocessing
        import signal
        from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
        from concurrent.futures.process import BrokenProcessPool

        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if context.get_start_method() == "forkserver":
            context.set_forkserver_preload(["derivlang.engine.job"])
        with ProcessPoolExecutor(
            min(workers, len(tasks)),
            mp_context=context,
            initializer=signal.signal,  # Ctrl-C is this process's to answer
            initargs=(signal.SIGINT, signal.SIG_IGN),
        ) as executor:
            waiting = {executor.submit(run_task, job, task) for task in tasks}
            try:
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_EXCEPTION, timeout=0.2)
                    yield from (future.result() for future in done)
            except BrokenProcessPool:
                raise DataError(
                    "a worker process died, probably for lack of memory",
                    where="--workers",
                    fix="take fewer --workers; the same command goes on from the finished shards",
                    id="worker-died",
                ) from None
            finally:
                for future in waiting:
                    future.cancel()

    return run


def dask(address: str) -> Engine:
    """The workers of a running Dask cluster, which must see the same folders."""

    def run(job: Job, tasks: list[Task]) -> Iterator[Result]:
        try:
            from distributed import Client, as_completed
        except ImportError:
            raise UsageError(
                "the Dask engine needs the package distributed",
                where="--engine",
                fix="pip install 'derivlang[dask]'",
                id="missing-package",
            ) from None
        with Client(address) as client:
            futures = client.map(lambda task: run_task(job, task), tasks, pure=False)
            for future in as_completed(futures):
                yield future.result()

    return run


def choose(engine: str, workers: int) -> Engine:
    """`local`, or `dask:ADDRESS`; local with several workers is a pool."""
    if engine.startswith("dask:"):
        return dask(engine.removeprefix("dask:"))
    if engine != "local":
        raise UsageError(
            f"there is no engine {engine!r}; there are: local, dask:ADDRESS", where="--engine", id="engine"
        )
    return local if workers <= 1 else pool(workers)
