"""Help pages with the options of a command in groups, each under a heading: the attribute `heading` of an option.

With `usual=("source", "out")`, --help shows only these options, and --help-all shows all.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import click

from derivlang.cli.messages import echo
from derivlang.core.settings import OPTIONS as OPTIONS

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
