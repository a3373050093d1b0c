"""Click options from declared settings (core/settings.py): name, type, default and help of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import click

from derivlang.cli.dependent import option
from derivlang.cli.types import FILE, FOLDER, NAMED, PATH, WholeNumber, completes
from derivlang.core.dependencies import OptionNeeds
from derivlang.core.settings import MAXIMUM, Declared, declared

Command = TypeVar("Command", bound=Callable[..., Any])


def settings_options(
    kind: type,
    *,
    only: Collection[str] = (),
    without: Collection[str] = (),
    required: Collection[str] = (),
    unset: Mapping[str, str] | None = None,
    needs: Mapping[str, OptionNeeds] | None = None,
    **more: Any,
) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of a dataclass's settings to a click command.

    only: names of the settings to add. without: names of settings to leave out. required: names of settings that must
    be given, whatever default they have. unset: the default to show for settings whose default depends on something
    else. needs: what some need of other options of this command, by name. more: further arguments of every
    `click.option`.

    An option has the value None if it is not given and a file may give the setting, or `unset` names its default.
    `core.settings.given` omits it, so that the dataclass's default applies.
    """
    settings = [
        replace(one, unset=(unset or {}).get(name, one.unset), needs=(needs or {}).get(name, one.needs))
        for name, one in declared(kind).items()
        if one.option and (not only or name in only) and name not in without
    ]

    def add(command: Command) -> Command:
        for one in reversed(settings):
            command = option_of(one, required=one.name in required, **more)(command)
        return command

    return add


def option_of(one: Declared, *, required: bool = False, **more: Any) -> Callable[[Command], Command]:
    """Return the decorator that adds the option of a setting. more: as of `settings_options`."""
    assert one.option is not None
    left_open = one.is_open or bool(more)
    default = None if left_open or required else one.default
    facts: dict[str, Any] = {"help": one.help_text, "default": default, "required": required, "commas": one.commas}
    spelling = one.option
    if one.kind is bool and left_open:
        spelling = f"{one.option}/{one.flag(False)}"
    elif one.kind is bool:
        facts["is_flag"] = True
    elif one.is_several:
        facts["multiple"] = True
        if one.item is not str:
            facts["type"] = type_of(one)
    elif not more and not one.commas:
        facts["type"] = type_of(one)
    if one.name in NAMED:
        facts["shell_complete"] = completes(one.name)
    shown = one.unset or ("" if one.default in (None, ()) else default_text(one))
    if left_open and shown:
        facts["help"] += f"  [default: {shown}]"
    facts["show_default"] = not (left_open or required or one.kind in (bool, tuple) or one.default == "")
    spellings = (spelling, one.also) if one.also else (spelling,)
    return option(*spellings, one.key, dependencies=one.needs, **{**facts, **more})


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
        return PATH if one.either else FILE if one.file else FOLDER
    return one.item
