"""Memory that was freed and is taken again: a process that makes a set of labelled rows keeps it from batch to batch.

glibc gives memory at the end of its heap back to the system once 128 kB of it are free, a limit that grows with the
largest array freed. The next batch takes the same memory again, at the cost of a page fault and a zeroed page each:
100,000 of them for 33 MB of JSON lines.
"""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of mallopt(3)
# Bytes that may lie free, and bytes of an array that is kept: arrays of a table of labelled rows are smaller. Running
# text gains nothing, and its peak would rise.
_KEPT, _LARGEST = 32 << 20, 6 << 20


def keep_freed() -> None:
    """Keep some freed memory in this process from now on. Do nothing where the C library is not glibc."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _LARGEST)
