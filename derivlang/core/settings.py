"""Settings: one declaration for the type, default, check, help text and option of each.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class LogSettings:
        keep: int = setting(2, "Number of checkpoints to keep.", minimum=1)

        def __post_init__(self) -> None:
            check_settings(self)

    LogSettings(keep=0)                         raises UsageError: --keep: must be at least 1, got 0 [bad-value]
    @settings_options(LogSettings)              gives a click command the option --keep (cli/settings.py)
    LogSettings(**given(LogSettings, options))        builds the dataclass from the values of that command's options

The annotation is the type: `int`, `float`, `str`, `bool`, `Path`, `tuple[str, ...]`, `tuple[Path, ...]` or a `Literal`
of the choices, each with or without `| None`. A field without `setting` has neither an option nor a check. Modules that
declare settings import nothing heavy, so that help pages stay quick.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from derivlang.core.dependencies import OptionNeeds
from derivlang.core.errors import UsageError
from derivlang.core.urls import check_no_secrets, is_url

MAXIMUM = 2**31 - 1  # for whole numbers that declare no maximum

_KINDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A declared setting.

    name: the field's name. key: the name of its value among the options of a command. kind: its type without `None`.
    item: the type of each value of a tuple, else `kind`. choices: the values of a Literal, else (). option: as typed,
    or None if the command line has none. also: another spelling of it, or "". needs: what it needs of other options.
    subject: what it is about, if it has no effect on a run whose objective lacks it ("masked words"). unset: the text
    to show as the default if the default itself does not say it ("the model's"). in_file: a file, such as a model's
    description, may give it, too. file: a path names a file, not a folder. either: it names a file or a folder. commas:
    a list is typed as one text with commas, or in several options; it is a tuple of names, or stays a text.
    """

    name: str
    key: str
    kind: type
    item: type
    optional: bool
    choices: tuple[str, ...]
    default: Any
    help: str
    option: str | None
    also: str
    minimum: float | None
    maximum: float | None
    above: float | None
    below: float | None
    checked_by: Callable[[Any, str], object] | None
    needs: OptionNeeds
    subject: str
    unset: str
    in_file: bool
    file: bool
    either: bool
    commas: bool

    @property
    def help_text(self) -> str:
        """The help, and what the setting needs of others."""
        return self.needs.added_to(self.help)

    @property
    def is_open(self) -> bool:
        """Whether a setting that is not given follows from something else, such as a file, in place of its default."""
        return self.in_file or self.is_names or bool(self.unset) or self.default is None

    @property
    def is_several(self) -> bool:
        """Whether the option may be repeated, once for each value."""
        return self.kind is tuple and not self.commas

    @property
    def is_names(self) -> bool:
        """Whether a text with commas becomes a tuple of names."""
        return self.kind is tuple and self.commas

    @property
    def is_path(self) -> bool:
        """Whether a value, or each of several, is a path."""
        return hasattr(self.item, "__fspath__")

    def flag(self, value: bool) -> str:
        """Return the option of a flag with a value, as it is typed: --tie, --no-tie."""
        option = str(self.option)
        return option if value else f"--no-{option.removeprefix('--')}"

    def read(self, text: str) -> Any:
        """Return the value of a text as it is typed: "2" -> 2 of a whole number. Raise UsageError for another text."""
        if self.choices or self.is_names:
            return text
        if self.is_path and (wrong := wrong_path(text)):
            raise self._wrong(wrong)
        try:
            return self.item(text)
        except ValueError:
            raise self._wrong(f"must be {_KINDS[self.item]}, got {text!r}") from None

    def check(self, value: object) -> None:
        """Raise UsageError, with the option's name, for a value of another type or outside the bounds."""
        if value is None and self.optional:
            return
        if self.choices:
            if value not in self.choices:
                raise self._wrong(f"must be {' or '.join(self.choices)}, got {value!r}")
        elif self.kind in _KINDS:
            kinds = (int, float) if self.kind is float else self.kind
            if not isinstance(value, kinds) or (isinstance(value, bool) and self.kind is not bool):
                raise self._wrong(f"must be {_KINDS[self.kind]}, got {value!r}")
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                self._check_bounds(value)
        if self.checked_by is not None:
            self.checked_by(value, self._where)

    @property
    def _where(self) -> str:
        return self.option or self.name

    def _check_bounds(self, value: float) -> None:
        if not math.isfinite(value):
            raise self._wrong(f"must be a finite number, got {value}")
        maximum = MAXIMUM if self.kind is int and self.maximum is None else self.maximum
        for broken, bound, relation in (
            (self.minimum is not None and value < self.minimum, self.minimum, "at least"),
            (maximum is not None and value > maximum, maximum, "at most"),
            (self.above is not None and value <= self.above, self.above, "above"),
            (self.below is not None and value >= self.below, self.below, "below"),
        ):
            if broken:
                raise self._wrong(f"must be {relation} {bound:,}, got {value}")

    def _wrong(self, what: str) -> UsageError:
        return UsageError(what, where=self._where, id="bad-value")


def setting(
    default: Any,
    help: str,
    *,
    option: str | Literal[False] = "",
    key: str = "",
    also: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    check: Callable[[Any, str], object] | None = None,
    subject: str = "",
    unset: str = "",
    in_file: bool = False,
    file: bool = False,
    either: bool = False,
    commas: bool = False,
    **needs: str,
) -> Any:
    """Return a field of a dataclass of settings.

    help: a noun phrase. option: its name, if it differs from the field's name with hyphens; False for none. key: if it
    differs from the field's name. also: another spelling of the option. minimum, maximum: bounds that are allowed
    themselves. above, below: bounds that are not. check: called with the value and the option's name; raises
    UsageError. subject, unset, in_file, file, either, commas: see `Declared`. needs: only_with, requires, excludes,
    extra: see `OptionNeeds`.
    """
    return dataclasses.field(
        default=default,
        metadata={
            "setting": {
                "help": help, "option": option, "key": key, "also": also, "minimum": minimum, "maximum": maximum,
                "above": above, "below": below, "checked_by": check, "needs": OptionNeeds(**needs), "subject": subject,
                "unset": unset, "in_file": in_file, "file": file, "either": either, "commas": commas,
            }
        },
    )  # fmt: skip


def replaces() -> Any:
    """Return the setting of a command that writes a file: whether one that it would not write is replaced."""
    return setting(False, "Replace a file that holds something else.")


@cache  # reading annotations is a quarter of what a help page costs, and every settings object is checked
def declared(kind: type) -> Mapping[str, Declared]:
    """Return the declared settings of a dataclass, by the name of the field, in the order of the fields."""
    hints = get_type_hints(kind)
    settings = {}
    for field in dataclasses.fields(kind):
        if "setting" not in field.metadata:
            continue
        facts = dict(field.metadata["setting"])
        option, key = facts.pop("option"), facts.pop("key")
        hint, optional = _without_none(hints[field.name])
        choices = get_args(hint) if get_origin(hint) is Literal else ()
        plain = str if choices else get_origin(hint) or hint
        settings[field.name] = Declared(
            name=field.name,
            key=key or field.name,
            kind=plain,
            item=get_args(hint)[0] if plain is tuple else plain,
            optional=optional,
            choices=choices,
            default=field.default,
            option=None if option is False else option or "--" + field.name.replace("_", "-"),
            **facts,
        )
    return types.MappingProxyType(settings)


def check_settings(settings: Any) -> None:
    """Raise UsageError for the first declared setting of a dataclass whose value is not allowed."""
    kind: type = type(settings)
    for name, one in declared(kind).items():
        one.check(getattr(settings, name))


def given(kind: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a dataclass that some options give: those that are present and not None."""
    passed = {name: (one, options[one.key]) for name, one in declared(kind).items() if options.get(one.key) is not None}
    return {name: names(value, str(one.option)) if one.is_names else value for name, (one, value) in passed.items()}


def with_defaults(kinds: Iterable[type], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return some options with those that are not given, as a command has them: with their default, or None."""
    every = (one for kind in kinds for one in declared(kind).values())
    return {one.key: None if one.is_open else one.default for one in every} | dict(options)


def names(text: str | None, option: str) -> tuple[str, ...]:
    """The names of an option's list with commas, () if the option is not given. UsageError if it names nothing."""
    if text is None:
        return ()
    parts = tuple(name.strip() for name in text.split(",") if name.strip())
    if not parts:
        raise UsageError(
            f"{text!r} names nothing", where=option, fix="give a name, or leave the option out", id="usage"
        )
    return parts


def typed(settings: Any, names: Iterable[str]) -> list[str]:
    """Return some settings of a dataclass as they are typed, those with their default left out.

    header=False, names=("a", "b"), quoting=True  ->  ["--no-header", "--column-names=a,b", "--quoting"]
    """
    kind: type = type(settings)
    arguments: list[str] = []
    for name in names:
        one, value = declared(kind)[name], getattr(settings, name)
        if value == one.default:
            continue
        option = str(one.option)
        if one.kind is bool:
            arguments.append(one.flag(value))
        elif one.is_several:
            arguments += [f"{option}={each}" for each in value]
        else:
            arguments.append(f"{option}={','.join(value) if one.is_names else value}")
    return arguments


def wrong_path(text: str) -> str:
    """Return what is wrong with the text of a local path, or ""."""
    if not text:
        return "must not be empty"
    if is_url(text):  # Path would read s3://bucket/out as a folder `s3:`
        check_no_secrets(text)
        return f"{text!r} is not a local path, which this must be; copy it to or from the store with the store's tools"
    return ""


def text_of(value: str | int | float | bool) -> str:
    """Return a value as it is typed on a command line and written in a study's file: true, 25, 0.002, perm."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _without_none(hint: Any) -> tuple[Any, bool]:
    """Return (the type without `| None`, whether it had `| None`)."""
    if get_origin(hint) not in (types.UnionType, Union):  # the second: of a Literal
        return hint, False
    (kind,) = (kind for kind in get_args(hint) if kind is not types.NoneType)
    return kind, True
