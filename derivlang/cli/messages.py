"""Messages on stderr, and how many of them: -q, -v.

    derivlang: writing to demo.trans-inv/           `say`; not with -q
    derivlang: warning: no test split was found     `warn`; always
    derivlang: making: 1,234 bytes, 0.3 s           the package's log entries (core/messages.py), with -v

Both options stand before a command or among its options. Results go to stdout and are not messages. Commands print both
with `echo`, which no control character of a word or a file name passes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from derivlang.cli.streams import message
from derivlang.core.errors import visible
from derivlang.core.messages import DerivlangWarning

_QUIET, _VERBOSE = f"{__name__}.quiet", f"{__name__}.verbose"  # keys of click's meta, which subcommands share


def echo(text: str, *, err: bool = False, escaped: bool = False) -> None:
    """Print a text on stdout or stderr, with control characters as visible escapes (`core/errors.py`).

    escaped: the words of the text are escaped already, and its control characters are our own colours.
    """
    if err:
        message(text)
    else:
        click.echo(text if escaped else visible(text, keep="\t\n"))


def say(what: str) -> None:
    """Print a line on stderr, with the name of the program."""
    tell(f"derivlang: {shortened(what)}")


def tell(line: str) -> None:
    """Print a line on stderr, without the name."""
    if not is_quiet():
        message(line)


def warn(what: str) -> None:
    """Print a warning on stderr."""
    message(f"derivlang: warning: {shortened(what)}")


def shortened(text: str) -> str:
    """Return a message with overlong paths and values cut."""
    return re.sub(r"\S{500,}", lambda match: f"{match[0][:200]}…", text)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print the package's own `warnings` of the block as `warn` does, whatever Python's filters say (`-W`)."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, DerivlangWarning):
            warn(str(message))
        else:
            before(message, category, *rest, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", DerivlangWarning)
        warnings.showwarning = show
        yield


def is_quiet() -> bool:
    """Return whether the command has the option -q."""
    context = click.get_current_context(silent=True)
    return context is not None and _QUIET in context.meta


def message_options(*, hidden: bool = False) -> list[click.Option]:
    """Return the options -v and -q."""
    return [
        click.Option(["-v", "--verbose"], is_flag=True, expose_value=False, hidden=hidden, callback=_verbose,
                     help="Print each stage with its time."),
        click.Option(["-q", "--quiet"], is_flag=True, expose_value=False, hidden=hidden, callback=_quiet,
                     help="Print only warnings and errors, no progress."),
    ]  # fmt: skip


def _quiet(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        context.meta[_QUIET] = True


def _verbose(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value and _VERBOSE not in context.meta:
        context.meta[_VERBOSE] = True
        context.with_resource(_log_shown())


@contextmanager
def _log_shown() -> Iterator[None]:
    """Print the log entries of the package on stderr."""
    import logging  # imported late: help pages do not need it

    from derivlang.core.messages import LOGGER

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message(f"derivlang: {shortened(record.getMessage())}")

    logger, handler = logging.getLogger(LOGGER), Lines()
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False  # libraries may give the root logger a handler, too
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
