"""Click options that are given once, and may depend on others, as `core/dependencies.py` says it.

@option("--row", only_with="--split", help="First row to show.")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from derivlang.core.dependencies import OptionNeeds
from derivlang.core.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])


class DependentOption(click.Option):
    """An option that is checked against the others of its command line, and refused if it has two values.

    dependencies: None for none. commas: the value is a list with commas, and several values are one list.
    """

    def __init__(self, *args: Any, dependencies: OptionNeeds | None = None, commas: bool = False, **options: Any):
        super().__init__(*args, **options)
        self.dependencies, self.commas = dependencies, commas

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
        """Return the value. Raise UsageError if the option is typed twice, or does not go with the others."""
        if self.name not in opts:
            return super().handle_parse_result(ctx, opts, args)
        # First of the value: a wrong one is reported first.
        parsed = super().handle_parse_result(ctx, {**opts, self.name: self.typed(opts)}, args)
        if self.dependencies is not None and not ctx.resilient_parsing:
            given = [one for one in ctx.command.params if _is_typed(one, opts)]
            names = {name for one in given for name in (*one.opts, (one.name or "").upper())}
            self.dependencies.check(self.long_name, names)
        return parsed


def option(*spellings: str, cls: type[DependentOption] | None = None, **facts: Any) -> Callable[[Command], Command]:
    """Return the decorator of an option, as `click.option`, that may have what `OptionNeeds` has: only_with, excludes.

    Its help says what it depends on.
    """
    needs = {name: facts.pop(name) for name in ("only_with", "requires", "excludes", "extra") if name in facts}
    if needs:
        facts["dependencies"] = OptionNeeds(**needs)
        facts["help"] = facts["dependencies"].added_to(facts["help"])
    return click.option(*spellings, cls=cls or DependentOption, **facts)


def _is_typed(one: click.Parameter, typed: Mapping[str, Any]) -> bool:
    """Return whether a parameter is on the command line. typed: its options, and all arguments, typed or not."""
    value = typed.get(one.name or "")
    return one.name in typed and (
        isinstance(one, click.Option) or (isinstance(value, str | list | tuple) and bool(value))
    )
