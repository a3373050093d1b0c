"""What a study knows of `pretrain` and `evaluate`: their options, and how values of a file become arguments.

    {"objective": "mlm", "tie": False, "lr": 2e-3}   ->   --objective mlm --no-tie --lr 2e-3

A declared setting of a command is a key of a study without a line here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from derivlang.commands.evaluate import Evaluate
from derivlang.commands.pretrain import Pretrain
from derivlang.core.errors import UsageError, unknown
from derivlang.core.settings import Declared, declared, text_of

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


LANGUAGES = "[languages]"  # the name of --language in a study, which no factor can have; `language` is often a factor
NAMES_TEXT = ("source", "derived-source")  # options of `pretrain` that name a source, which may be a path
NAMES_FILE = ("dictionary", "pairs")

# Options that a study gives to its commands, and what a user gives instead.
_MACHINE = {
    "data-dir": "give --data-dir to derivlang study",
    "parses": "give --parses to derivlang study",
    "threads": "write threads in [study]",
    "json": "leave it out",
    "force": "remove a run's folder to make it again",
}


@dataclass(frozen=True)
class CommandOptions:
    """The options of a command, by name without hyphens in front.

    reserved: options that a study gives itself, with what a user gives instead. run: the field of the command that
    names the run, which the study gives, too.
    """

    command: str
    kind: type[Pretrain | Evaluate]
    reserved: Mapping[str, str]
    run: str

    @cached_property
    def options(self) -> dict[str, Declared]:
        """The declared settings by their key; `language` is [languages]."""
        kind: type = self.kind
        every = [one for one in declared(kind).values() if one.option]
        return {LANGUAGES if one.name == "language" else str(one.option).removeprefix("--"): one for one in every}

    def check_key(self, key: str, value: Any, where: str) -> None:
        """Raise UsageError for a name that is not an option, or for a value of another type."""
        if key in self.reserved:
            raise UsageError(
                f"a study gives --{key} to {self.command} itself", where=where, fix=self.reserved[key], id="study"
            )
        if key not in self.options:
            raise unknown(f"option of {self.command}", key, self.options.keys() - self.reserved, where=where)
        one, told = self.options[key], json.dumps(value, default=str)
        if isinstance(value, list) and not one.is_several:
            fix = "a list of levels stands in [factors]; values with commas are one text"
            raise UsageError(f"{key} = {told} must be one value, not a list", where=where, fix=fix, id="bad-value")
        values, flag = value if isinstance(value, list) else [value], one.kind is bool
        if flag and not isinstance(value, bool) and not (isinstance(value, str) and "{" in value):
            raise UsageError(f"{key} = {told} must be true or false", where=where, id="bad-value")
        for each in values:
            if not isinstance(each, (str, int, float)) or (isinstance(each, bool) and not flag):
                raise UsageError(f"{key} = {told} must be text or a number", where=where, id="bad-value")

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise DerivlangError for values that the command would refuse."""
        settings = {one.name: _read(one, value) for one, value in self._typed(values)}
        self.kind.of({**settings, self.run: "run"}).check()

    def arguments(self, values: Mapping[str, Any], where: str = "") -> tuple[str, ...]:
        """Return the arguments for some values.

        Raise UsageError, with `where`, if a factor or a formula gives a flag another value than true or false.
        """
        arguments: list[str] = []
        for one, value in self._typed(values, where):
            several = value if isinstance(value, list) else [value]
            typed = [[one.flag(each)] if one.kind is bool else [str(one.option), text_of(each)] for each in several]
            arguments += chain.from_iterable(typed)
        return tuple(arguments)

    def _typed(self, values: Mapping[str, Any], where: str = "") -> list[tuple[Declared, Any]]:
        """Return the settings of some values. A flag that is off by default is left out if its value is false."""
        pairs = [(self.options[key], value) for key, value in values.items()]
        for key, value in values.items():
            if self.options[key].kind is bool and value not in (False, True):
                raise UsageError(f"{key} = {json.dumps(value)} must be true or false", where=where, id="bad-value")
        return [(one, value) for one, value in pairs if one.kind is not bool or value or one.is_open]


def _read(one: Declared, value: Any) -> Any:
    """Return the value of a setting as the command line reads it. Raise UsageError if it is wrong."""
    if one.kind is bool:
        return value
    texts = map(text_of, value if isinstance(value, list) else [value])
    several = tuple(text if one.per_task else one.read(text) for text in texts)
    return several if one.is_several else several[0]


PRETRAIN = CommandOptions(
    "pretrain",
    Pretrain,
    {
        **_MACHINE,
        "out": "leave it out: a run is in OUT/runs",
        "data": "leave it out: encoded data is in OUT/data",
        "factor": "leave it out",
        "resume": "leave it out",
        "data-only": "give --data-only to derivlang study",
    },
    "out",
)
EVALUATE = CommandOptions(
    "evaluate",
    Evaluate,
    {
        **_MACHINE,
        **dict.fromkeys(("init", "t", "source", "out", "target"), "leave it out: a study evaluates its own runs"),
    },
    "run",
)
