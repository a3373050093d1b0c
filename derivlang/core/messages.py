"""What the package says while it works: warnings, and log entries of its stages.

    warn("no test split was found")     a DerivlangWarning, by Python's `warnings`, at the line that called derivlang
    logging.getLogger("derivlang")      DEBUG: each stage with its time (formats/progress.py)
    counted(1, "row"), counted(1200, "row")     "1 row", "1,200 rows"

Functions that warn take a callback, whose default is `warn`. The command line gives its own (cli/messages.py), which
prints on stderr.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar

from derivlang.core.visible import visible

LOGGER = "derivlang"


class DerivlangWarning(UserWarning):
    """Something that a user should know, and that does not stop the work."""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, which takes an s unless the count is 1; of `entry`, `entries`."""
    plural = f"{noun.removesuffix('y')}ies" if noun.endswith("try") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def first_names(names: Iterable[object], most: int = 3) -> str:
    """Return the first names of several, and the number of the others: a, b, c, d, e -> "a, b, c and 2 more"."""
    several = list(map(str, names))
    more = f" and {len(several) - most:,} more" if len(several) > most else ""
    return ", ".join(several[:most]) + more


# What a message becomes for who reads it: Python has arguments where the command line has options (`in_python.py`).
wording: ContextVar[Callable[[str], str]] = ContextVar("wording", default=str)


def warn(message: str) -> None:
    """Issue a DerivlangWarning for the first caller outside this package (and its context managers)."""
    import inspect  # imported late: help pages load this module
    import warnings

    level, frame = 1, inspect.currentframe()
    own = ("derivlang", "contextlib")
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in own:
        level, frame = level + 1, frame.f_back
    warnings.warn(visible(wording.get()(message), keep="\t\n"), DerivlangWarning, stacklevel=level)
