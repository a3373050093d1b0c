"""Click options that are given once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from derivlang.core.dependencies import OptionNeeds
from derivlang.core.errors import UsageError


class DependentOption(click.Option):
    """An option that is refused if it has two values. `Command.of` checks it against the others.

    needs: what it needs of others. commas: the value is a list with commas, and several values are one list.
    """

    def __init__(self, *args: Any, needs: OptionNeeds | None = None, commas: bool = False, **options: Any):
        super().__init__(*args, **options)
        self.needs, self.commas = needs, commas

    @property
    def long_name(self) -> str:
        """The name for messages: `--t` of `--t` and `-t`."""
        return next(name for name in self.opts if name.startswith("--"))

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
            raise UsageError(f"is given {told}", where=self.long_name, fix="give it once", id="given-twice")
        return values[-1]

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Return the value. Raise UsageError if the option is typed twice."""
        if self.name in opts:
            opts = {**opts, self.name: self.typed(opts)}
        return super().handle_parse_result(ctx, opts, args)
