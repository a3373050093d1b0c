"""One BLAS thread for derivlang's own matrix products.

The matrices here are small, so a product costs less than the synchronisation of BLAS threads, which wait for each
other on a loaded machine (10 to 15 times the CPU time). Worker processes share the cores instead. BLAS libraries read
their environment variables when numpy is imported, which is too early for a library to set them. So the limit is set
at run time, for the length of a call. numpy code outside the call keeps its threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_limited = Lock()  # held by the call that has set the limit, which applies to the whole process


@contextmanager
def one_thread() -> Iterator[None]:
    """Run numpy's matrix products on one thread inside the block. Works as a decorator, too.

    Only the block that sets the limit restores the user's setting. A block inside it, or at the same time in another
    Python thread, does nothing; otherwise it would take 1 for the user's setting and restore that.
    """
    if not _limited.acquire(blocking=False):
        yield
        return
    try:
        with _blas().limit(limits=1):
            yield
    finally:
        _limited.release()


@cache
def _blas() -> Any:
    """Return the controller of the BLAS libraries that numpy has loaded."""
    import numpy as np  # noqa: F401 (loads them)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
