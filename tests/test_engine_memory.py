"""A process that makes a set takes freed memory again without asking the system for it."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import numpy as np
from derivlang.engine.job import keep_freed
if sys.argv[1] == "kept":
    keep_freed()
for _ in range(4):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(3 << 20, np.uint8) for _ in range(10)]
    del arrays
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="only glibc has this setting"
)
def test_freed_memory_is_kept() -> None:
    assert 10 * faults("kept") < faults("not kept")
