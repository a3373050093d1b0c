"""Run the tasks of a plan in this process, or in a pool of processes. Both write the same bytes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from types import ModuleType
from typing import Any, TypeVar

from derivlang.core.errors import DataError, UsageError
from derivlang.core.plugins import SCRIPT, script_has_added
from derivlang.engine.job import Job, ShardTask, run_task
from derivlang.formats.progress import bytes_read, receive_all, words_done
from derivlang.store.set_plan import Target

Out = TypeVar("Out")
_FUNCTION: list[Callable[[Any], Any]] = []  # of a worker
_AHEAD = 4  # tasks that are given to a pool, for each worker


def run_tasks(job: Job, tasks: list[ShardTask], target: Target, workers: int) -> Iterator[tuple[str, int]]:
    """Run tasks, and yield what `run_task` returns, as they are done.

    workers: number of processes; 1 for this process. Where the system can, they are forked from a server that has
    imported this module.
    """
    if workers == 1:
        return (run_task(job, task, target) for task in tasks)
    again = "the same command goes on from the finished shards"
    return in_processes(partial(run_task, job, target=target), tasks, workers, again)


def in_processes(function: Callable[[Any], Out], tasks: Sequence[Any], workers: int, again: str = "") -> Iterator[Out]:
    """Yield what a function returns for each task, as they are done, from a pool of processes.

    again: what a message says of the tasks that are done, if a process dies. The function is pickled once for each
    worker, tasks and results as they come. A few tasks for each worker wait at a time, so that this process needs no
    more memory for many tasks than for few.
    """
    from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool

    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload([__name__, "concurrent.futures.process"])
    counts = context.Array("q", 2)  # bytes read and words done by all workers
    shown = [0, 0]

    def report() -> None:
        for i, tell in enumerate((bytes_read, words_done)):
            count = counts[i]
            tell(count - shown[i])
            shown[i] = count

    with ProcessPoolExecutor(
        min(workers, len(tasks)), mp_context=context, initializer=_begin_worker, initargs=(counts, function)
    ) as executor:
        left, waiting = iter(tasks), set[Future[Out]]()
        try:
            while True:
                with _without_script(), _whole():  # a worker may begin with any task
                    more = islice(left, _AHEAD * workers - len(waiting))
                    waiting |= {executor.submit(_run_here, task) for task in more}
                if not waiting:
                    break
                # The timeout lets the progress bar move while no task ends.
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED, timeout=0.2)
                report()
                yield from (future.result() for future in done)
        except BrokenProcessPool:
            raise DataError(
                "a worker process died, probably for lack of memory",
                where="--workers",
                fix="; ".join(["take fewer --workers", *([again] if again else [])]),
                id="worker-died",
            ) from None
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def _without_script() -> Iterator[None]:
    """Let workers that begin in the block not run the user's script, which would call `make` again.

    Workers import the module `__main__` of their parent. They need nothing of it, unless the script has added an object
    to a registry: then it must call `make` under `if __name__ == "__main__":`, as Python asks for.
    """
    script = sys.modules[SCRIPT]
    if not script_has_added():
        sys.modules[SCRIPT] = ModuleType(SCRIPT)
    try:
        yield
    finally:
        sys.modules[SCRIPT] = script


@contextmanager
def _whole() -> Iterator[None]:
    """Heed Ctrl-C and SIGTERM after the block: a worker whose start they cut off would print a traceback."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    asked = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(one, lambda number, frame: came.append(number)) for one in asked]
    try:
        yield
    finally:
        for one, handler in zip(asked, before, strict=True):
            signal.signal(one, handler)
    for number in came:
        signal.raise_signal(number)


def _run_here(task: Any) -> Any:
    """Return what the function of this worker returns for a task."""
    return _FUNCTION[0](task)


def _begin_worker(counts: Any, function: Callable[[Any], Any]) -> None:
    """Start a worker: it leaves Ctrl-C to the main process, ends with it, and adds its progress to `counts`."""
    _FUNCTION.append(function)

    def add(i: int, n: int) -> None:
        with counts.get_lock():
            counts[i] += n

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    receive_all({"bytes": partial(add, 0), "words": partial(add, 1)})
    main = multiprocessing.parent_process()
    assert main is not None

    def end() -> None:
        # The parent of a worker is the fork server, but this waits on a pipe that only the main process holds open. So
        # the worker ends with the main process, however that ends.
        main.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def check_main() -> None:
    """Raise UsageError in a worker that runs the user's script, which would begin the same work again."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # as multiprocessing itself asks
        raise UsageError(
            "a worker process runs the script again, and would do all its work again",
            where="--workers",
            fix='put the call under `if __name__ == "__main__":`',
            id="script",
        )
