"""The boundary between derivlang's readers and the parsers of foreign data.

A reader does not list the exceptions that a parser may raise. It runs the parser inside `parse_errors`, which turns
each of them into an error of derivlang with its file and line.

    with parse_errors(lambda: f"{path}:{line}", "JSON"):
        json.loads(text)          # 5,000 digits, nesting 100,000 deep, a lone surrogate: always a DataError
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from derivlang.core.errors import DataError, DerivlangError

_RUST = "pyo3_runtime"  # a panic of a Rust library is a BaseException, but not an Exception
_LONGEST = 200  # maximum number of characters of a parser's message, which may quote the whole input


@contextmanager
def parse_errors(
    where: str | Callable[[], str],
    what: str,
    *,
    error: type[DerivlangError] = DataError,
    id: str = "unreadable",
    fix: str | None = None,
    within: type[DerivlangError] | tuple[()] = (),
) -> Iterator[None]:
    """Raise `error` in place of any exception of the block that is not a DerivlangError.

    where: `file:line`, a file or an option; a function is called when something fails, so that it can name the line
    that was being read. what: a noun for the content ("JSON", "manifest"). The original exception is the cause.
    within: errors of derivlang for which the content is at fault, too, such as an error of a spec in a manifest.
    """
    try:
        yield
    except DerivlangError as caught:
        if isinstance(caught, error) or not isinstance(caught, within):
            raise
        place, told = where if isinstance(where, str) else where(), reason(ValueError(caught.what))
        raise error(f"this is not a valid {what}: {told}", where=place, fix=fix, id=id) from caught
    except OSError as caught:
        place = where if isinstance(where, str) else where()
        raise error(f"cannot be read: {caught.strerror or reason(caught)}", where=place, fix=fix, id=id) from caught
    except BaseException as caught:
        if not isinstance(caught, Exception) and type(caught).__module__ != _RUST:
            raise  # an interrupt, not a fault of the bytes
        place = where if isinstance(where, str) else where()
        raise error(f"this is not a valid {what}: {reason(caught)}", where=place, fix=fix, id=id) from caught


def causes(caught: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes."""
    at: BaseException | None = caught
    while at is not None:
        yield at
        at = at.__cause__ or at.__context__


def reason(caught: BaseException) -> str:
    """Return the first line of an exception's message, for people."""
    if isinstance(caught, RecursionError):
        return "it is nested too deeply"
    if isinstance(caught, MemoryError):
        return "it does not fit into memory"
    if isinstance(caught, KeyError):
        return f"{caught} is missing"
    lines = str(caught).splitlines()
    text = lines[0].rstrip(".") if lines and lines[0].strip() else type(caught).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
