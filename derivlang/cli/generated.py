"""The command line of a command (commands/command.py): arguments, options under headings, help page, what is printed.

    command = command_line(Match, "match", show, arguments=[click.Argument(["source"])], json_of=asdict)

`show(asked, result)` prints for people; --json prints `json_of(result)`, of a list each element in a line.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from derivlang.cli.headings import OPTIONS, HeadedCommand
from derivlang.cli.messages import echo
from derivlang.cli.options import AS_JSON, Bar
from derivlang.cli.options import as_json as as_json
from derivlang.cli.settings import option_of
from derivlang.commands.command import Command
from derivlang.core.settings import declared

Result = TypeVar("Result")


def with_bar(asked: Command[Result]) -> Result:
    """Run a command with a progress bar, and return its result."""
    with Bar():
        return asked()


def command_line(
    kind: type[Command[Result]],
    name: str,
    show: Callable[[Any, Any], None] | None = None,
    *,
    arguments: Sequence[click.Argument] = (),
    json_of: Callable[[Any], Any] = lambda result: result,
    json_help: str = "Print the result as JSON.",
    on_stderr: Callable[[Any], bool] = lambda asked: False,
    silent: Callable[[Any], bool] = lambda asked: False,
    run: Callable[[Any], Any] = with_bar,
    summary: str | None = None,
    first: Sequence[str] = (),
    last: Sequence[str] = (),
    optional: Collection[str] = (),
    usual: Collection[str] = (),
    completed: bool = True,
    bare: bool = False,
    cls: type[HeadedCommand] = HeadedCommand,
) -> HeadedCommand:
    """Return the click command of a command.

    show: None if `run` prints. json_help: "" for a command without --json. on_stderr: whether the JSON goes to standard
    error, since the result goes to standard output. silent: whether nothing is printed of the result. run: runs the
    command. summary: of the list of a group. first, last: options that stand before or after the others. optional:
    options that the command line can do without. usual: options that --help shows, () for all.
    completed: whether a shell completes names of values. bare: whether it may be called without arguments.
    """

    def call(**values: Any) -> None:
        context = click.get_current_context()
        asked = kind.of(
            {
                one: value
                for one, value in values.items()
                if one in optional
                or (one != AS_JSON and context.get_parameter_source(one) is ParameterSource.COMMANDLINE)
            }
        )
        result = run(asked)
        if show is None or silent(asked):
            return
        if not as_json():
            show(asked, result)
            return
        lines = json_of(result)
        for line in lines if isinstance(lines, list) else [lines]:
            echo(json.dumps(line, ensure_ascii=False), err=on_stderr(asked))

    flag = click.Option(["--json", AS_JSON], is_flag=True, help=json_help)
    options = [*_options(kind, completed), *([flag] if json_help else [])]
    for one in options:
        if one.name in optional:
            one.required = False
    places = {name: place - len(first) for place, name in enumerate(first)} | {
        name: place for place, name in enumerate(last, 1)
    }
    options.sort(key=lambda one: places.get(str(one.name), 0))
    return cls(
        name,
        params=[*arguments, *options],
        callback=call,
        help=inspect.getdoc(kind),
        short_help=summary,
        usual=usual,
        no_args_is_help=not bare,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _options(kind: type, completed: bool) -> Iterator[click.Option]:
    """Yield the options of a command with their headings: its own, then the options of its base classes."""
    every = dict(declared(kind))
    own = [one for one in reversed(kind.__mro__) if issubclass(one, Command)]
    for group in (group for one in own for group in (one, *one.__bases__) if one is group or group not in own):
        for one in [group] if group in own else reversed(group.__mro__):
            for name in vars(one).get("__annotations__", ()):
                found = every.pop(name, None)
                if found is not None and found.option is not None:
                    option = option_of(found, completed=completed)
                    option.heading = found.heading or getattr(group, "heading", "") or OPTIONS  # type: ignore[attr-defined]
                    yield option
