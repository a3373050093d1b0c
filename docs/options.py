"""The page of the options of every command, from the help pages: `conf.py` writes it when the site is built."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from derivlang.cli.generated import OPTIONS, grouped
from derivlang.cli.main import COMMANDS, main

HEAD = """# Options

The help pages of all commands: `derivlang COMMAND --help` shows the same (of `pretrain`, `--help-all`).
Every command also takes `-h, --help`, `-v, --verbose` and `-q, --quiet`.
[Commands](commands.md) says where they write and what they print.

<!-- Not run on this page: the test suite runs the last example of every command. -->
"""

TABLE = """
{}

| option | |
|---|---|
"""


def page() -> str:
    """The text of docs/reference/options.md."""
    # click keeps the help option of a command for all later contexts, so these have the names of `main`.
    context = click.Context(main, info_name="derivlang", **main.context_settings)
    commands = [main.get_command(context, name) for name in COMMANDS]
    return HEAD + "".join(part for command in commands if command is not None for part in _section(command, context))


def _section(command: click.Command, above: click.Context) -> Iterator[str]:
    """The parts of the page for a command and its subcommands."""
    context = click.Context(command, info_name=command.name, parent=above)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"\n## {context.command_path}\n\n`{usage}`\n{_text(command)}"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from _section(found, context)
        return
    for heading, records in grouped(command, context).items():
        rows = [
            f"| `{_cell(spelling)}` | {_cell(help)} |\n"
            for spelling, help in records
            if not spelling.endswith("--help")
        ]
        if rows:
            yield TABLE.format(f"**{heading}**").replace(f"**{OPTIONS}**\n\n", "") + "".join(rows)


def _text(command: click.Command) -> str:
    """The text of a help page; paragraphs that begin with \\b, its examples, are code."""
    parts = inspect.cleandoc(command.help or "").split("\n\n")
    return "".join(
        "\n```sh\n" + part.removeprefix("\b\n") + "\n```\n"
        if part.startswith("\b")
        else "\n" + part.replace("<", "&lt;") + "\n"
        for part in parts
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
