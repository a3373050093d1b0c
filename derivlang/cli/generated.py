"""The command line of a command (commands/command.py): arguments, options under headings, help page, what is printed.

An option has the name, type, default and help of a declared setting (core/settings.py).

    command = command_line(Match, "match", show, arguments=[click.Argument(["source"])], json_of=asdict)

`show(asked, result)` prints for people; --json prints `json_of(result)`, of a list each element in a line.

A help page has the options of a command in groups, each under a heading: the attribute `heading` of an option. With
`usual=("source", "out")`, --help shows only these options, and --help-all shows all.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from derivlang.cli.messages import echo
from derivlang.cli.options import AS_JSON, Bar
from derivlang.cli.options import as_json as as_json
from derivlang.cli.types import NAMED, DependentOption, LocalPath, PlacePath, SpecOption, Value, completes
from derivlang.commands.command import Command
from derivlang.core.settings import OPTIONS as OPTIONS
from derivlang.core.settings import Declared, declared


def option_of(one: Declared, *, completed: bool = True) -> DependentOption:
    """Return the option of a setting. completed: whether a shell completes the names of its values.

    The value is None if it is not given and `unset` names its default, or a file may give the setting.
    """
    assert one.option is not None
    if one.name == "spec":
        return SpecOption(help=_help(one), required=one.required, multiple=one.kind is tuple)
    left_open = one.is_open or one.per_task
    default, spelling = None if left_open else one.default, one.option
    metavar = one.metavar or (("NAME[,...]" if one.choices else "N[,N...]") if one.per_task else None)
    facts: dict[str, Any] = {
        "commas": one.commas or one.per_task, "multiple": one.is_several, "metavar": metavar,
        **({} if one.required else {"default": default}),  # click takes a given None for a value
    }  # fmt: skip
    if one.kind is bool and left_open:
        spelling = f"{one.option}/{one.flag(False)}"
    elif one.kind is bool:
        facts["is_flag"], facts["default"] = True, False
    elif not facts["commas"]:
        facts["type"] = type_of(one)
    if completed and one.name in NAMED:
        facts["shell_complete"] = completes(one.name)
    show = not (left_open or one.required or one.kind in (bool, tuple) or one.default == "")
    return DependentOption(
        [spelling, *one.also, one.name], needs=one.needs, required=one.required, show_default=show,
        help=_help(one), **facts,
    )  # fmt: skip


def _help(one: Declared) -> str:
    """Return the help of an option, with a default that click does not show."""
    shown = one.unset or ("" if one.required or one.default in (None, ()) else default_text(one))
    return one.help_text + (f"  [default: {shown}]" if shown and (one.is_open or one.per_task) else "")


def default_text(one: Declared) -> str:
    """Return the default of a setting as a help page shows it."""
    if one.kind is bool:
        assert one.option is not None
        return ("" if one.default else "no-") + one.option.removeprefix("--")
    return f"{one.default:g}" if one.kind is float else str(one.default)


def type_of(one: Declared) -> Any:
    """Return the click type of a setting; for a tuple, the type of each value."""
    if one.choices:
        return click.Choice(one.choices)
    if one.is_path:
        kind = LocalPath if one.place is None else PlacePath
        return kind(file=one.file or one.either, folder=not one.file, writes=one.writes)
    return Value(one)


_ALL = "derivlang.help-all"  # in a context's `meta`: whether all options are shown


def grouped(command: click.Command, context: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return the options of a command as (spelling, help), by heading, in the order of its help page."""
    groups: dict[str, list[tuple[str, str]]] = {OPTIONS: []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            groups.setdefault(getattr(parameter, "heading", OPTIONS), []).append(record)
    return groups


class HeadedCommand(click.Command):
    """A command whose help page has headings. usual: names of the options that --help shows; () for all."""

    def __init__(self, *args: Any, usual: Collection[str] = (), **options: Any):
        super().__init__(*args, **options)
        self.usual = usual
        if usual:
            help = "Show all options and exit."
            self.params.append(
                click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_all, help=help)
            )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a command line. Name --source where a source is given without it, as `make` takes it."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if "extra argument" in error.message and any("--source" in one.opts for one in self.params):
                raise click.UsageError(f"{error.message}; give the source as --source SOURCE", ctx) from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of options for each heading, or one of the usual options."""
        if not self.usual or ctx.meta.get(_ALL):
            for heading, records in grouped(self, ctx).items():
                with formatter.section(heading):
                    formatter.write_dl(records)
            return
        usual = [option for option in self.get_params(ctx) if option.name in (*self.usual, "help_all")]
        shown = [*usual, *filter(None, [self.get_help_option(ctx)])]
        with formatter.section(OPTIONS):
            formatter.write_dl([record for option in shown if (record := option.get_help_record(ctx)) is not None])
        others = sum(map(len, grouped(self, ctx).values())) - len(shown)
        formatter.write(f"\n--help-all shows {others} more.\n")


def _all(context: click.Context, option: click.Parameter, typed: bool) -> None:
    if typed and not context.resilient_parsing:
        context.meta[_ALL] = True
        echo(context.get_help())
        context.exit()


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
