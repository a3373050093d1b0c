"""Help pages with the options of a command in groups, each under a heading.

@click.command("make", cls=HeadedCommand)
@under("Run", settings_options(MakeOptions), ...)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
OPTIONS = "Options"  # the heading of all other options


def under(heading: str, *options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command, for a heading of its help page."""

    def add(command: Command) -> Command:
        others = len(_parameters(command))
        for option in reversed(options):
            command = option(command)
        for parameter in _parameters(command)[others:]:
            parameter.heading = heading  # type: ignore[attr-defined]
        return command

    return add


def grouped(command: click.Command, context: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return the options of a command as (spelling, help), by heading, in the order of its help page."""
    groups: dict[str, list[tuple[str, str]]] = {OPTIONS: []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            groups.setdefault(getattr(parameter, "heading", OPTIONS), []).append(record)
    return groups


class HeadedCommand(click.Command):
    """A command whose help page has headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of options for each heading."""
        for heading, records in grouped(self, ctx).items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _parameters(command: Any) -> list[click.Parameter]:
    """Return the parameters that decorators have added to a function so far, the last one first."""
    found: list[click.Parameter] = getattr(command, "__click_params__", [])
    return found
