"""Click options that depend on others, as `core/dependencies.py` says it.

@option("--row", only_with="--split", help="First row to show.")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from derivlang.core.dependencies import OptionNeeds

Command = TypeVar("Command", bound=Callable[..., Any])


class DependentOption(click.Option):
    """An option that is checked against the others of its command line. dependencies: None for none."""

    def __init__(self, *args: Any, dependencies: OptionNeeds | None = None, **options: Any):
        super().__init__(*args, **options)
        self.dependencies = dependencies

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Return the value. Raise UsageError if the option is typed, and does not go with the others."""
        parsed = super().handle_parse_result(ctx, opts, args)  # first: a wrong value is reported first
        if self.dependencies is not None and self.name in opts and not ctx.resilient_parsing:
            given = [one for one in ctx.command.params if _is_typed(one, opts)]
            names = {name for one in given for name in (*one.opts, (one.name or "").upper())}
            self.dependencies.check(next(name for name in self.opts if name.startswith("--")), names)
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
