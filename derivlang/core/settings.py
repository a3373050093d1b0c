"""Settings: one declaration for the type, default, check, help text and option of each.

    @dataclass(frozen=True, kw_only=True)
    class SessionSettings(Settings):
        keep: int = setting(2, "Number of checkpoints to keep.", minimum=1)
        data: OptionalPath = setting(None, "Folder of encoded data.")

    SessionSettings(keep=0)             raises UsageError: --keep: must be at least 1, got 0 [bad-value]
    SessionSettings(data="d").data      Path("d"): a path may be a text, a list of names a text with commas

The annotation is the type: `int`, `float`, `str`, `bool`, `Path`, `tuple[str, ...]`, `tuple[Path, ...]` or a `Literal`
of the choices, each with or without `| None`; of `Takes[A, B]` it is A, and a user may give B.
A required option has no default, and its setting in `Annotated`. A field without `setting` has neither an option nor a
check. Modules that declare settings import nothing heavy, so that help pages stay quick.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Number
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from derivlang.core.dependencies import OptionNeeds
from derivlang.core.errors import UsageError
from derivlang.core.messages import shortened
from derivlang.core.names import check_no_secrets, is_url

OPTIONS = "Options"  # the heading of all other options of a help page
MAXIMUM = 2**31 - 1  # for whole numbers that declare no maximum

_KINDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A declared setting.

    name: the field's name. required: whether it has no default. kind: its type without `None`. item: the type of each
    value of a tuple, else `kind`. choices: the values of a Literal, else (). option: as typed, or None if the command
    line has none. also: other spellings of it. where: what messages call it. needs: what it needs of other options.
    subject: what it is about, if it has no effect on a run whose objective lacks it ("masked words"). unset: the text
    to show as the default if the default itself does not say it ("the model's"). in_file: a file, such as a model's
    description, may give it, too. file: a path names a file, not a folder. either: it names a file or a folder. commas:
    a list is typed as one text with commas, or in several options; it is a tuple of names, or stays a text. heading: of
    the help page, "" for the heading of the class. place: returns the path of a text, which may be a URL; None: a path
    of this machine. writes: the command writes there. metavar: what help shows for a value. per_task: one value for all
    tasks, or one for each.
    """

    name: str
    kind: type
    item: type
    optional: bool
    choices: tuple[str, ...]
    default: Any
    help: str
    option: str | None
    also: tuple[str, ...]
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
    heading: str
    place: Callable[[str], Any] | None
    writes: bool
    metavar: str | None
    where: str
    per_task: bool = False
    required: bool = False

    @property
    def help_text(self) -> str:
        """The help, and what the setting needs of others."""
        return self.needs.added_to(self.help)

    @property
    def type_name(self) -> str:
        """The type as `ls` lists it: yes|no, a|b, int."""
        return "yes|no" if self.kind is bool else "|".join(self.choices) or self.kind.__name__

    @property
    def is_text(self) -> bool:
        """Whether any text is a value."""
        return self.kind is str and not self.choices

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
        if self.choices or self.is_names or self.item in (str, object):  # object: of a spec
            return text
        if self.kind is bool:
            if text not in ("yes", "no"):
                raise self._wrong(f"must be yes or no, got {text!r}")
            return text == "yes"
        if self.is_path and (wrong := wrong_path(text)):
            raise self._wrong(wrong)
        try:
            return self.item(text)
        except ValueError:
            raise self._wrong(f"must be {_KINDS[self.item]}, got {shortened(text)!r}") from None

    def of_python(self, value: Any) -> Any:
        """Return the value that a user of Python gave in the type of the setting: a path may be a text, for example."""
        if value is None:
            return value
        if self.per_task:
            try:
                return tuple(map(self.read, value.split(","))) if isinstance(value, str) else _several(value)
            except UsageError as error:
                error.fix = "give one value, or one for each task, separated by commas"
                raise
        if self.choices:
            return value
        if self.kind is not tuple:
            if self.kind is str and self.commas and isinstance(value, (list, tuple)):
                return ",".join(map(str, value))
            return self._of_python(value)
        if isinstance(value, str) and self.commas:
            return names(value, self.where)
        return tuple(map(self._of_python, _several(value)))

    def _of_python(self, value: Any) -> Any:
        if self.is_path and self.place is None and (wrong := wrong_path(str(value))):
            raise self._wrong(wrong)
        if self.is_path and isinstance(value, str):
            return self.item(value) if self.place is None else self.place(value)
        # A percentage may be a number, a name may be a path.
        is_named = hasattr(value, "__fspath__") or (isinstance(value, Number) and not isinstance(value, bool))
        return str(value) if self.item is str and is_named else value

    def check(self, value: object) -> None:
        """Raise UsageError, with the option's name, for a value of another type or outside the bounds."""
        if value is None and self.optional:
            return
        if self.per_task and isinstance(value, tuple):
            for one in value:
                dataclasses.replace(self, per_task=False).check(one)
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
            self.checked_by(value, self.where)

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
                raise self._wrong(f"must be {relation} {bound:,}, got {shortened(value)}")

    def _wrong(self, what: str) -> UsageError:
        return UsageError(what, where=self.where, id="bad-value")


def setting(
    default: Any,
    help: str,
    *,
    option: str | Literal[False] = "",
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
    heading: str = "",
    place: Callable[[str], Any] | None = None,
    writes: bool = False,
    metavar: str | None = None,
    **needs: str,
) -> Any:
    """Return a field of a dataclass of settings.

    help: a noun phrase. option: its name, if it differs from the field's name with hyphens; False for none. also: other
    spellings, with commas. minimum, maximum: bounds that are allowed themselves. above, below: bounds that are not.
    check: called with the value and the option's name; raises UsageError. The others: see `Declared`. needs: only_with,
    requires, excludes: see `OptionNeeds`.
    """
    return dataclasses.field(
        default=default,
        metadata={
            "setting": {
                "help": help, "option": option,
                "also": tuple(filter(None, also.split(", "))), "minimum": minimum, "maximum": maximum,
                "above": above, "below": below, "checked_by": check, "needs": OptionNeeds(**needs), "subject": subject,
                "unset": unset, "in_file": in_file, "file": file, "either": either, "commas": commas,
                "heading": heading, "place": place, "writes": writes, "metavar": metavar,
            }
        },
    )  # fmt: skip


def replaces(*, only_with: str = "") -> Any:
    """Return the setting of a command that writes a file: whether one that it would not write is replaced."""
    return setting(False, "Replace a file that holds something else.", only_with=only_with)


@cache  # reading annotations is a quarter of what a help page costs
def declared(kind: type) -> Mapping[str, Declared]:
    """Return the declared settings of a dataclass, by the name of the field, in the order of the fields."""
    hints, needs = get_type_hints(kind, include_extras=True), (kind if issubclass(kind, Settings) else Settings).needs
    per_task = (kind if issubclass(kind, Settings) else Settings).per_task
    settings = {}
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        required = get_origin(hint) is Annotated
        hint, *rest = get_args(hint) if required else (hint, field)
        if "setting" not in rest[0].metadata:
            continue
        facts = rest[0].metadata["setting"] | ({"needs": needs[field.name]} if field.name in needs else {})
        option = facts.pop("option")
        optional = types.NoneType in get_args(hint)
        if get_origin(hint) in (types.UnionType, Union):  # the second: of a Literal
            hint = get_args(hint)[0]
        choices = get_args(hint) if get_origin(hint) is Literal else ()
        plain = str if choices else get_origin(hint) or hint
        plain = tuple if plain is Sequence else plain
        settings[field.name] = Declared(
            name=field.name,
            kind=plain,
            item=get_args(hint)[0] if plain is tuple else plain,
            optional=optional,
            choices=choices,
            default=None if required else field.default,
            required=required,
            per_task=field.name in per_task,
            option=None if option is False else option or (option := "--" + field.name.replace("_", "-")),
            where=option or field.name,
            **facts,
        )
    return types.MappingProxyType(settings)


class Settings:
    """Base class of dataclasses of settings. The constructor raises UsageError for the first wrong value.

    heading: of the help page, for the options of the class. needs: what settings need of others in this class, by name.
    per_task: the names of settings that have one value for all tasks, or one for each: a tuple.
    """

    heading: ClassVar[str] = ""
    needs: ClassVar[Mapping[str, OptionNeeds]] = {}
    per_task: ClassVar[Collection[str]] = ()

    def __post_init__(self) -> None:
        kind: type = type(self)
        for name, one in declared(kind).items():
            value = getattr(self, name)
            if value is not one.default:
                value = one.of_python(value)
                object.__setattr__(self, name, value)
                one.check(value)


def given(kind: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a dataclass that some options give: those that are present and not None."""
    values = {name: options.get(name) for name, one in declared(kind).items()}
    return {name: value for name, value in values.items() if value is not None}


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


def _several(value: Any) -> tuple[Any, ...]:
    """Return the values of a list, or the only value; of a table what is typed for it.

    {"overlap": 25} -> ("overlap=25",)     {"la": {"t": "trans,inv", "share": 0.3}} -> ("la=t:trans,inv share:0.3",)
    """
    if isinstance(value, Mapping):
        return tuple(f"{name}={_table(one) if isinstance(one, Mapping) else one}" for name, one in value.items())
    return (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)


def _table(values: Mapping[str, Any]) -> str:
    return " ".join(f"{key}:{shlex.quote(text_of(value))}" for key, value in values.items())
