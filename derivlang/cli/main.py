"""`derivlang`: the group of commands, and the one place where errors become messages and exit codes.

0 done, 1 the data or the run failed, 2 usage, 130 interrupted. Results on stdout, talk and progress on stderr.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from derivlang import __version__
from derivlang.core.errors import DerivlangError

# Command -> what it does; the modules are imported when called, so that --help stays quick.
COMMANDS = {
    "make": "Make a derived language from a source.",
    "show": "Show source and derived sentences with their links.",
    "verify": "Check a derived set against its manifest, row by row.",
    "export": "Write a derived set in another format.",
    "undo": "Give the source of a derived set back.",
    "parse": "Parse a source once, for all the sets that `syn` makes of it.",
    "dict": "Write the bilingual dictionary of a pair, at a stated coverage.",
    "pair": "Write sentence pairs of a derived set with their word links.",
    "grammar": "List, show, score and fit word-order models.",
    "tokenizer": "Train tokenizers, and make their twins.",
    "parser": "Train, score and list parsers.",
    "align": "Link the words of two texts; score links.",
    "pretrain": "Train a model on a source and its derived language.",
    "evaluate": "Fine-tune and measure a pre-trained run.",
    "report": "Tables and figures of evaluated runs, beside the published numbers.",
    "reproduce": "A paper's study, from data to report.",
    "bench": "How fast training goes on this machine.",
    "ls": "List transforms, objectives, sources and scripts.",
}


class Lazy(click.Group):
    """A group whose help page needs no command's module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"derivlang.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **{**kwargs, "standalone_mode": False})
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except DerivlangError as error:
            click.echo(f"derivlang: {error}", err=True)
            sys.exit(error.exit_code)
        except (KeyboardInterrupt, click.Abort) as error:
            how = str(error.__cause__ or error) or "the same command"  # click's Abort hides what was said
            click.echo(f"derivlang: interrupted; {how} goes on from here", err=True)
            sys.exit(130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="derivlang")
def main() -> None:
    """Derived languages from natural ones, with every label and link.

    \b
    derivlang make --t trans,inv demo -o out
    """
