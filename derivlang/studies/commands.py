"""What a study knows of `pretrain` and `evaluate`: their options, and how values of a file become arguments.

    {"objective": "mlm", "tie": False, "lr": 2e-3}   ->   --objective mlm --no-tie --lr 2e-3

The command line hands its options over as `CommandOptions`, so that an option of a command is a key of a study without
a line here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.settings import text_of

Level = str | int | float | bool


class TypedFloat(float):
    """A number of a TOML file that prints as it is written there: 2e-3, not 0.002."""

    text: str

    def __new__(cls, text: str) -> TypedFloat:
        """Return the number of a text, with the text."""
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class CommandOption:
    """An option of a command. no: its opposite, `--no-tie`, or "". flag: it takes no value. many: it may be repeated.
    is_path: its value is the path of a file or folder."""

    spelling: str
    no: str = ""
    flag: bool = False
    many: bool = False
    is_path: bool = False


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """The options of a command, by name without hyphens in front.

    reserved: options that a study gives itself, with what a user gives instead. check: raises DerivlangError for
    arguments that the command would refuse.
    """

    command: str
    options: Mapping[str, CommandOption]
    reserved: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Sequence[str]], None] = lambda arguments: None

    def check_key(self, key: str, value: Any, where: str) -> None:
        """Raise UsageError for a name that is no option, or for a value of another type."""
        if key in self.reserved:
            raise UsageError(
                f"a study gives --{key} to {self.command} itself", where=where, fix=self.reserved[key], id="study"
            )
        if key not in self.options:
            raise unknown(f"option of {self.command}", key, self.options, where=where)
        option, given = self.options[key], json.dumps(value, default=str)
        if isinstance(value, list) and not option.many:
            fix = "a list of levels stands in [factors]; values with commas are one text"
            raise UsageError(f"{key} = {given} must be one value, not a list", where=where, fix=fix, id="bad-value")
        values = value if isinstance(value, list) else [value]
        if option.flag and not isinstance(value, bool) and not (isinstance(value, str) and "{" in value):
            raise UsageError(f"{key} = {given} must be true or false", where=where, id="bad-value")
        for one in values:
            if not isinstance(one, (str, int, float)) or (isinstance(one, bool) and not option.flag):
                raise UsageError(f"{key} = {given} must be text or a number", where=where, id="bad-value")

    def check_flags(self, values: Mapping[str, Any], where: str) -> None:
        """Raise UsageError for a flag that a factor or a formula makes neither true nor false."""
        for key, value in values.items():
            if self.options[key].flag and value not in (False, True):
                raise UsageError(f"{key} = {json.dumps(value)} must be true or false", where=where, id="bad-value")

    def arguments(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the arguments for some values."""
        found: list[str] = []
        for key, value in values.items():
            option = self.options[key]
            if option.flag:
                found += [spelling for spelling in [option.spelling if value else option.no] if spelling]
                continue
            for one in value if isinstance(value, list) else [value]:
                found += [option.spelling, text_of(one)]
        return tuple(found)
