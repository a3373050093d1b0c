"""What is printed: messages on stderr, and how many of them (-q, -v); the standard streams; colours.

    derivlang: writing to demo.trans-inv/           `say`; not with -q
    derivlang: warning: no test split was found     `warn`; always
    derivlang: making: 1,234 bytes, 0.3 s           the package's log entries (core/messages.py), with -v

Both options stand before a command or among its options. Results go to stdout and are not messages. Commands print both
with `echo`, which no control character of a word or a file name passes.

The caller may have closed the standard streams of the process (`>&-`), and they may be full. A closed stream is opened
again as the null device: else the next file that the process opens gets its number, and what is printed goes into that
file. To read a closed standard input or to write to a closed standard output stays an error; messages to a closed or
full standard error are lost.

Colours are only where standard output is a terminal, and never with NO_COLOR (no-color.org).
"""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import click

from derivlang.core.errors import visible
from derivlang.core.messages import DerivlangWarning

# Number, name, how the null device is opened (stdin and stdout so that their use is an error), and the file's mode.
_STREAMS = (
    (0, "stdin", os.O_WRONLY, "r"),
    (1, "stdout", os.O_RDONLY, "w"),
    (2, "stderr", os.O_WRONLY, "w"),
)
_NAMES = {"stdin": "standard input", "stdout": "standard output"}
_closed: list[str] = []


def open_closed_streams() -> None:
    """Open each standard stream that is closed, as the null device."""
    for number, name, flags, mode in _STREAMS:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # gets the lowest number that is free, which is this one
            _closed.append(name)
        if getattr(sys, name) is None:
            stream = open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def fault_of(error: OSError) -> str:
    """Return what the system says about an error, in plain words for a closed stream."""
    streams = [_NAMES[name] for name in _closed if name in _NAMES]
    if error.errno == errno.EBADF and error.filename is None and streams:
        return f"{' or '.join(streams)} is closed"
    return error.strerror or str(error)


def message(line: str) -> None:
    """Print a line on stderr, with control characters as visible escapes (`core/errors.py`).

    Where that is impossible, the command goes on without its messages.
    """
    try:
        click.echo(visible(line, keep="\t\n"), err=True)
    except OSError:
        give_up(sys.stderr)


def give_up(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that Python does not fail again when it flushes it at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# Blue and yellow, which colour-blind readers can distinguish, before green, magenta and cyan.
_LABELS = ("blue", "yellow", "magenta", "cyan", "green", "bright_blue", "bright_yellow")
_STYLES = {
    "soft": {"dim": True},
    "earlier": {"fg": "blue"},
    "later": {"fg": "yellow"},
    "deleted": {"dim": True},
    "inserted": {"bold": True},
}


def has_colours() -> bool:
    """Return whether standard output shows colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, kind: str) -> str:
    """Return a text in the colour of a kind (`display/view.py`), unchanged where there are no colours."""
    if not text or not has_colours():
        return text
    if kind.startswith("label "):
        return click.style(text, fg=_LABELS[int(kind.removeprefix("label ")) % len(_LABELS)], bold=True)
    style = _STYLES.get(kind)
    return click.style(text, **style) if style else text  # type: ignore[arg-type]


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
    """Print the package's own `warnings` of the block as `warn` does, each once, whatever Python's filters say."""
    before, shown = warnings.showwarning, set[str]()

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, DerivlangWarning):
            if str(message) not in shown:
                warn(str(message))
            shown.add(str(message))
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
