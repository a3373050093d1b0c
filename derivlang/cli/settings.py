"""Click options from declared settings (core/settings.py): name, type, default and help of each."""

from __future__ import annotations

from typing import Any

import click

from derivlang.cli.types import NAMED, DependentOption, LocalPath, PlacePath, SpecOption, WholeNumber, completes
from derivlang.core.settings import MAXIMUM, Declared


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
    if one.kind is int:
        return WholeNumber(int(one.minimum or 0), int(MAXIMUM if one.maximum is None else one.maximum))
    if one.is_path:
        kind = LocalPath if one.place is None else PlacePath
        return kind(file=one.file or one.either, folder=not one.file, writes=one.writes)
    return one.item
