"""`derivlang`: the group of commands, and the only place where errors become messages and exit codes.

Exit codes: 0 done, 1 the data or the run failed, 2 usage error, 75 other ranks
must end a stage first (`work --no-wait`), 130 interrupted. Results go to stdout, messages and
progress to stderr.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import current_thread, main_thread
from typing import Any, NoReturn

import click

from derivlang.cli.messages import (
    fault_of,
    give_up,
    message,
    message_options,
    open_closed_streams,
    shortened,
    warnings_as_lines,
)
from derivlang.cli.types import Group, check_arguments
from derivlang.core.errors import DerivlangError
from derivlang.core.version import __version__, with_commit

# Summary of each command. Its module is imported only when it is called, which keeps --help fast.
COMMANDS = {
    "derive": "Derive a text, or the lines of standard input.",
    "make": "Make a derived language from a source.",
    "plan": "Plan a derived set, for ranks on one or many machines.",
    "work": "Run the tasks of one rank of a planned set.",
    "finish": "Finish a planned set when all its tasks are done.",
    "show": "Show source and derived sentences with their links.",
    "explore": "Open a page to try transforms and look at a set.",
    "stats": "Measure how far derived languages are from their source.",
    "match": "Find a language that is as far from the source as another one.",
    "verify": "Check a derived set row by row, or compare two languages.",
    "export": "Write a derived set in another format.",
    "push": "Send a set or a run to the Hugging Face hub.",
    "undo": "Restore the source of a derived set.",
    "parse": "Parse a source once, for all sets that `syn` derives from it.",
    "dict": "Write the bilingual dictionary of a language pair.",
    "pair": "Write sentence pairs of a derived set with their word links.",
    "grammar": "List, show, score and fit word-order models.",
    "tokenizer": "Train tokenizers and make their twins.",
    "parser": "Train, score and list parsers.",
    "align": "Link the words of two texts, and score links.",
    "pretrain": "Train a model on a source and its derived language.",
    "evaluate": "Fine-tune and measure a pre-trained run.",
    "report": "Write tables and figures of evaluated runs.",
    "study": "Run a grid of runs that a file describes.",
    "ls": "List transforms, objectives, sources and scripts.",
}
# Modules of several commands; any other command has the module of its name.
MODULES = {
    **dict.fromkeys(("make", "parse", "plan", "work", "finish"), "sets"),
    **dict.fromkeys(("export", "undo", "push"), "results"),
    **dict.fromkeys(("stats", "match"), "distance"),
    **dict.fromkeys(("dict", "pair", "tokenizer"), "lexical"),
}
# The same command goes on where it was.
_CONTINUED = {"make", "plan", "work", "finish", "parse", "pretrain", "evaluate", "study", "push"}


class Lazy(Group):
    """A group that prints its help page without importing the commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the help page."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command; its module is imported now."""
        if name not in COMMANDS:
            return None
        module = import_module(f"derivlang.cli.{MODULES.get(name, name)}")
        command: click.Command = getattr(module, f"{name}_command" if name in MODULES else "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from COMMANDS, where click would import every module."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command line. Errors become a message on stderr and an exit code."""
        # numpy is not imported yet. The idle threads of its OpenBLAS would spin for 0.04 s of CPU before they sleep;
        # 2^4 ticks is the shortest time.
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
        given = args[0] if args else kwargs.pop("args", None)
        arguments = list(sys.argv[1:] if given is None else given)
        continues = next((word for word in arguments if word in COMMANDS), "") in _CONTINUED
        with reported(continues=continues):
            check_arguments(arguments)
            return super().main(arguments, *args[1:], **{**kwargs, "standalone_mode": False})


@contextmanager
def reported(*, continues: bool) -> Iterator[None]:
    """End the process with a message on stderr and an exit code if the block raises an error.

    A request to end (SIGTERM: a cluster's, or a study's to its cells) is heeded as Ctrl-C, with all left in order.
    continues: whether the same command goes on after an interruption.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if current_thread() is main_thread() else None
    open_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):  # where it is not UTF-8, a letter that it lacks is escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with warnings_as_lines():
            yield
        sys.stdout.flush()
    except click.ClickException as error:
        told = io.StringIO()
        error.show(told)
        message(told.getvalue().removesuffix("\n"))
        sys.exit(error.exit_code)
    except DerivlangError as error:
        _fail(error)
    except ModuleNotFoundError as error:
        missing = import_module("derivlang.core.dependencies").missing_package(error)
        if missing is None:
            raise
        _fail(missing)
    except (KeyboardInterrupt, click.Abort) as error:
        how = str(error.__cause__ or error)  # click's Abort keeps the text in its cause
        if not how and continues:
            how = "the same command"
        message(f"derivlang: interrupted{how and f'; {how} continues from here'}")
        sys.exit(130)
    except BrokenPipeError:
        give_up(sys.stdout)
        sys.exit(1)
    except OSError as error:  # of a file whose reader or writer did not handle the error
        give_up(sys.stdout)
        what = f"{error.filename}: " if error.filename is not None else ""
        message(f"derivlang: {shortened(what)}{fault_of(error)} [system]")
        sys.exit(1)
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _fail(error: DerivlangError) -> NoReturn:
    message(f"derivlang: {shortened(str(error))}")
    sys.exit(error.exit_code)


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(with_commit(__version__), prog_name="derivlang", message="%(prog)s %(version)s")
def main() -> None:
    """Make derived languages from natural ones, with every label and link.

    \b
    derivlang make --t trans,inv demo
    """


main.params += message_options()


def run() -> None:
    """Run the command line as a process of its own.

    While libraries are loaded, the collector looks through their modules again and again, a fifth of the time in which
    training begins: it waits for more objects here. At the end, when modules are cleared, it does not look at all.
    """
    gc.set_threshold(20_000)
    atexit.register(gc.freeze)
    sys.exit(main())
