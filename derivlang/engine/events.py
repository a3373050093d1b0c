"""Events: what a caller may follow while a set is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from derivlang.core.messages import warn
from derivlang.engine.job import Result
from derivlang.formats.progress import found


@dataclass(frozen=True, slots=True)
class Events:
    """Callbacks of a run.

    warn: a warning, by default one of `warnings`. done: a task is done. found: the folder of a set that is complete
    already, so that nothing is made.
    Stages and their progress are reported by `formats/progress.py`.
    """

    warn: Callable[[str], None] = warn
    done: Callable[[Result], None] = lambda result: None
    found: Callable[[Path], None] = found
