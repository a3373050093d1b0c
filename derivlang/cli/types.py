"""Types of arguments and options: whole numbers, paths and `--t`, with uniform messages.

A wrong value is a usage error (exit code 2), raised before anything is read or written. An option is given once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click
from click.shell_completion import CompletionItem

from derivlang.cli.messages import message_options
from derivlang.core.dependencies import OptionNeeds
from derivlang.core.errors import UsageError
from derivlang.core.messages import shortened
from derivlang.core.names import check_no_secrets, is_url
from derivlang.core.settings import Declared, wrong_path
from derivlang.formats.places import is_remote, located


class DependentOption(click.Option):
    """An option that is refused if it has two values. `Command.of` checks it against the others.

    needs: what it needs of others. commas: the value is a list with commas, and several values are one list.
    """

    def __init__(self, *args: Any, needs: OptionNeeds | None = None, commas: bool = False, **options: Any):
        super().__init__(*args, **options)
        self.needs, self.commas = needs, commas

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser collect all values that are typed: click's keeps only the last one."""
        several, self.multiple = self.multiple, True
        super().add_to_parser(parser, ctx)
        self.multiple = several

    def typed(self, opts: Mapping[str, Any]) -> Any:
        """Return the value on a command line, None if there is none. Raise UsageError for several different ones.

        A flag may be repeated. opts: the values of each option, as the parser collects them.
        """
        values = opts.get(self.name or "")
        if values is None or self.multiple:
            return values
        if self.commas:
            return ",".join(values)
        if len(set(values) if self.is_flag else values) > 1:
            told = "both on and off" if self.is_flag else f"{len(values)} times: {', '.join(map(repr, values))}"
            name = next(name for name in self.opts if name.startswith("--"))  # `--t` of `--t` and `-t`
            raise UsageError(f"is given {told}", where=name, fix="give it once", id="given-twice")
        return values[-1]

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Return the value. Raise UsageError if the option is typed twice."""
        if self.name in opts:
            opts = {**opts, self.name: self.typed(opts)}
        return super().handle_parse_result(ctx, opts, args)


_NAMES = {int: "integer", float: "float", str: "text"}  # as help shows them


class Value(click.ParamType):  # type: ignore[type-arg]
    """A value of a setting that is neither a path nor a choice; `Settings` checks its bounds."""

    def __init__(self, one: Declared):
        self.one, self.name = one, _NAMES[one.item]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value of a text. Raise UsageError for another text."""
        return self.one.read(value) if isinstance(value, str) else value


class LocalPath(click.Path):
    """A non-empty local path, converted to `Path`. writes: whether the command writes there."""

    def __init__(self, *, file: bool = True, folder: bool = True, writes: bool = False):
        super().__init__(file_okay=file, dir_okay=folder, path_type=Path)
        self.writes = writes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if wrong := wrong_path(str(value)):
            self.fail(wrong, param, ctx)
        return super().convert(value, param, ctx)


class PlacePath(LocalPath):
    """A local path, or the URL of something in a store, converted to what has the methods of `Path`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the place. Raise UsageError for a URL that cannot be read, StoreError for one that cannot be written.

        click's BadParameter for a wrong path.
        """
        if not (isinstance(value, str) and is_url(value)):
            return super().convert(value, param, ctx)
        place = located(value)
        if self.writes and is_remote(place):
            from derivlang.store.storage import store_at  # imported late: help pages do not need it

            store_at(place)
        return place


# What lists the names that may be given for an argument or an option.
NAMED = {
    "source": "derivlang.sources.named:SOURCES.names",
    "derived_source": "derivlang.sources.named:SOURCES.names",
    "spec": "derivlang.transforms.registry:TRANSFORMS.names",
    "objective": "derivlang.training.objectives.registry:OBJECTIVES.names",
    "model": "derivlang.training.config:MODELS.__iter__",
    "task": "derivlang.evaluation.tasks.registry:TASKS.names",
    "measure": "derivlang.evaluation.measures.registry:MEASURES.names",
    "parser": "derivlang.parsing.registry:parser_names",
    "grammar": "derivlang.grammar.grammar:shipped",
    "study": "derivlang.studies.file:shipped",
}


def completes(named: str) -> Any:
    """Return the `shell_complete` of an argument or option: a key of NAMED.

    A shell completes the name after the last comma: trans,pe -> trans,perm. Where no name fits, it completes files.
    """

    def complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        before, comma, begun = typed.rpartition(",")
        names = [name for name in resolve_name(NAMED[named])() if name.startswith(begun)]
        return [CompletionItem(before + comma + name) for name in names] or [CompletionItem(typed, type="file")]

    return complete


def source_argument(name: str = "source", **facts: Any) -> click.Argument:
    """Return the argument that names a source. facts: as of `click.Argument`."""
    return click.Argument([name], required=True, shell_complete=completes("source"), **facts)


PATH = LocalPath()
FILE = LocalPath(folder=False)
FOLDER = LocalPath(file=False)
SET = PlacePath()  # of a file `read_manifest` says what to do
OUT_FOLDER = PlacePath(file=False, writes=True)


class SpecOption(DependentOption):
    """The option `--t`, also spelt `-t` and `--transform`. Help shows `-t, --t`, messages only `--t`."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(["--t", "-t", "--transform", "spec"], **{"shell_complete": completes("spec"), **options})

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Return the value. Raise click.UsageError for transforms that follow it as words: --t trans inv demo."""
        spec = self.typed(opts)
        named = [p.name for p in ctx.command.params if isinstance(p, click.Argument) and p.nargs == 1]
        typed = [str(opts[name]) for name in named if opts.get(name or "") is not None] + args
        # One word too many, or a source that does not exist; otherwise `inv` may be the name of a file, or a text.
        words = named and typed and (args or named[0] == "source")
        if isinstance(spec, str) and words and not ctx.resilient_parsing:
            self._refuse_words(ctx, spec, typed, str(named[0]))
        return super().handle_parse_result(ctx, opts, args)

    def _refuse_words(self, ctx: click.Context, spec: str, typed: list[str], first: str) -> None:
        # Imported late: help pages do not need it.
        from derivlang.sources.named import SOURCES
        from derivlang.transforms.registry import TRANSFORMS

        def is_transform(word: str) -> bool:
            name = word.rstrip(",").partition(":")[0]
            # `in TRANSFORMS` searches all packages for plug-ins, 15 to 30 ms, unless the name is built in.
            return not os.path.lexists(word) and name not in SOURCES.built_in and name in TRANSFORMS

        words = [word for word in typed if is_transform(word)]
        if words:
            joined = ",".join(word.strip(",") for word in (spec, *words))
            what = f"the {first}" if words[0] == typed[0] else "a further argument"
            ctx.fail(f"commas join transforms: --t {joined}; {_quoted(words[0])} was taken for {what}")

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return record and ("-t, --t TEXT", record[1])

    def get_error_hint(self, ctx: click.Context | None, *args: Any) -> str:
        return "'--t'"


class Group(click.Group):
    """A group of commands that suggests similar names for a mistyped one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of some arguments. Raise click.UsageError with similar names for an unknown one."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"there is no command {_quoted(name)}{near_names(name, self.list_commands(ctx))}")
        resolved, command, rest = super().resolve_command(ctx, args)
        if command is not None and not any(param.name == "quiet" for param in command.params):
            command.params += message_options(hidden=True)
        return resolved, command, rest


def near_names(name: str, names: Sequence[str]) -> str:
    """Return a suggestion such as `; did you mean show?`, or "" if no name is similar."""
    import difflib  # imported late: help pages do not need it

    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def check_arguments(arguments: Sequence[str]) -> None:
    """Raise click.UsageError for an argument with a NUL character or with bytes other than UTF-8.

    Raise UsageError for a URL that holds credentials, before a message quotes it.
    """
    for argument in arguments:
        check_no_secrets(argument.partition("=")[2] if argument.startswith("-") else argument)
        if "\0" in argument:
            raise click.UsageError(f"the argument {_quoted(argument)} holds a NUL character")
        try:
            argument.encode()
        except UnicodeEncodeError:
            what = f"the argument {_quoted(argument)} is not valid UTF-8; rename the file, or use a link to it"
            with suppress(UnicodeDecodeError):  # under PYTHONUTF8=0, Python may decode arguments by another encoding
                os.fsencode(argument).decode()
                what = f"Python does not read the argument {_quoted(argument)} as UTF-8; set PYTHONUTF8=1"
            raise click.UsageError(what) from None


def _quoted(value: Any) -> str:
    return ascii(shortened(value)) if not str(value).isprintable() else repr(shortened(value))
