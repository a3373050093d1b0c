"""Spec strings, and the base class of objects that have one: a name with parameters.

    name[:value][:key=value]...   joined by commas; values that contain , : = " are written in "..."

    @dataclass(frozen=True, kw_only=True)
    class Turn(Parameterised):
        '''Exchange of neighbours.'''
        name = "turn"
        every: int = param(1, "exchange every k-th pair", low=1)

The spec's text, its parser, the help and the checks follow from the fields. Transforms and training objectives are
subclasses.

A spec may name files:

    lex:en-fr.txt             file: str = param("", "…", file=Named())                       every value is a file
    weam:links=gold           links: str = param("gold", "…", file=Named(lambda: ("gold",)))   a name, or else a file
    syn:fr@N~my.tsv@V         grammar: str = param("fr", "…", file=Named(shipped, parts=…))    several in one value

Who wrote a spec decides which files it may name. A policy turns each file of a spec into the path to read, or refuses:

    any_file             the user's own spec: any path
    no_file              a spec of a visitor of the hosted page: none
    files_of(folder)     the spec of a set or a run, which somebody else may have made: only regular files inside its
                         folder `files/`, whatever path the spec states (formats/spec_paths.py)

A parameter with text that does not declare whether it names files can be set only in the user's own spec. So a
transform or an objective of another package is covered as soon as it is registered.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, Self, TypeAlias

from derivlang.core.errors import UsageError, unknown
from derivlang.core.settings import Declared, declared, setting

FilePolicy: TypeAlias = Callable[[str, "Named"], str]
Parts: TypeAlias = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Named:
    """What a text parameter may name.

    names: the names that are not files. parts: splits a value into (name or path, what follows it in the value), e.g.
    fr@N~my.tsv@V into (fr, @N~) and (my.tsv, @V). paths: the files that a path stands for, which may be missing.
    """

    names: Callable[[], Iterable[str]] = tuple
    parts: Callable[[str], Parts] = lambda value: ((value, ""),)
    paths: Callable[[str], Iterable[str]] = lambda path: (path,)


class FileText(str):
    """A value whose files a policy has changed. As a string it names the files to read.

    typed: the value as the spec states it. parts: as of `Named.parts`, with the files to read.
    """

    typed: str
    parts: Parts

    @classmethod
    def of(cls, typed: str, parts: Parts) -> FileText:
        """Return a value from its parts."""
        value = cls("".join(name + rest for name, rest in parts))
        value.typed, value.parts = typed, tuple(parts)
        return value


def any_file(path: str, named: Named) -> str:
    """Allow every path: the policy for the user's own specs."""
    return path


def no_file(path: str, named: Named) -> str:
    """Allow no file: the policy for specs of visitors. Raise UsageError."""
    raise UsageError(f"{path!r} names a file, which a spec cannot do here", id="spec-file")


def parts_of(value: str, named: Named) -> Parts:
    """Return the parts of a value, with the files to read."""
    return value.parts if isinstance(value, FileText) else named.parts(value)


DRAWS = ("rng", "seed")  # parameters that stand last in a spec
_MARKS = frozenset(',:="')
_KEY = re.compile('([^,:="]*)=')
_VALUE = re.compile('"((?:[^"]|"")*)"(?!")|[^,:"]*')


def param(
    default: Any,
    help: str,
    *,
    positional: bool = False,
    draws: bool = True,
    low: int | None = None,
    high: int | None = None,
    above: float | None = None,
    names: Callable[[], Iterable[str]] | None = None,
    file: Named | Literal[False] | None = None,
) -> Any:
    """Declare a parameter. positional: `name:value` sets it. draws: whether random choices depend on it.

    low, high: bounds that are allowed themselves. above: one that is not. Numbers are finite.
    names: returns the names that a text may be. file: what a text names, if it may name files; False if it never does,
    which `names` implies.
    """
    if names is not None:
        file = False
    elif file:
        names = file.names
    maximum = math.inf if high is None else high
    field = setting(default, help, option=False, minimum=low, maximum=maximum, above=above)
    facts = {"help": help, "positional": positional, "draws": draws, "low": low, "high": high}
    return dataclasses.field(default=default, metadata=field.metadata | facts | {"names": names, "file": file})


@dataclass(frozen=True, kw_only=True)
class Parameterised:
    """A name with parameters. The constructor raises UsageError for a parameter out of its range."""

    name: ClassVar[str] = ""
    # Names for several parameters at once: `name:as=PRESET` sets them, and others may follow.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    # What to write in place of a parameter that papers or other programs have under this name.
    instead: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        for name, one in self.declared().items():
            if getattr(self, name) is not one.default:
                one.check(getattr(self, name))
        self.validate()

    def validate(self) -> None:
        """Raise DerivlangError for parameters that exclude each other, or name a broken file. Runs at construction."""

    def __str__(self) -> str:
        parts, in_place = [self.name], True
        for field in self.spec_fields():
            value = getattr(self, field.name)
            if value != field.default:
                text = quote(text_of(value))
                parts.append(text if field.metadata["positional"] and in_place else f"{key_of(field)}={text}")
            elif field.metadata["positional"]:
                in_place = False  # a later value without a name would be taken for this one
        return ":".join(parts)

    @property
    def with_defaults(self) -> str:
        """The spec with every parameter: hop:words=4:… for hop."""
        fields = self.spec_fields()
        return ":".join([self.name, *(f"{key_of(f)}={quote(text_of(getattr(self, f.name)))}" for f in fields)])

    @classmethod
    @cache
    def spec_fields(cls) -> tuple[dataclasses.Field[Any], ...]:
        """Return the parameters in the order of a spec.

        Inherited ones without a name in it stand first, all others before the first of `DRAWS`, or last.
        """
        fields, names = dataclasses.fields(cls), cls.__annotations__
        own = [field for field in fields if field.name in names]
        at = next((place for place, field in enumerate(own) if field.name in DRAWS), len(own))
        inherited = [field for field in fields if field.name not in names]
        first = [field for field in inherited if field.metadata.get("positional")]
        return (*first, *own[:at], *(field for field in inherited if field not in first), *own[at:])

    @classmethod
    @cache
    def declared(cls) -> Mapping[str, Declared]:
        """Return the settings that the parameters are, by the name of the field. Raise UsageError for other fields."""
        for field in cls.spec_fields():
            if "positional" not in field.metadata:
                raise UsageError(
                    f"{cls.name}: the field {field.name} is not declared as a parameter",
                    fix=f"{field.name}: … = param({field.default!r}, 'what it is')",
                    id="plug-in",
                )
        kind: type = cls
        return {
            name: dataclasses.replace(one, where=f"{cls.name}:{name.removesuffix('_')}")
            for name, one in declared(kind).items()
        }

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the docstring."""
        return (cls.__doc__ or cls.name).strip().splitlines()[0]

    @classmethod
    def parameters(cls) -> list[dict[str, Any]]:
        """Return name, type, default and help of each parameter, for `ls` and for help pages.

        names: those that a text may be. file: whether it may name a file, None if nothing declares it.
        """
        return [
            {
                "name": key_of(field),
                "type": cls.declared()[field.name].type_name,
                "default": field.default,
                "help": field.metadata["help"],
                "positional": field.metadata["positional"],
                "low": field.metadata["low"],
                "high": field.metadata["high"],
                "names": list(field.metadata["names"]()) if field.metadata["names"] else [],
                "file": None if field.metadata["file"] is None else bool(field.metadata["file"]),
            }
            for field in cls.spec_fields()
        ]

    @classmethod
    def bounded(cls, values: list[str], keyed: dict[str, str], files: FilePolicy) -> tuple[list[str], dict[str, str]]:
        """Return the values of a parsed spec with the files that a policy allows.

        Raise UsageError spec-file for any other file, and for text if nothing declares whether it names a file.
        """
        fields, kinds = cls.spec_fields(), cls.declared()
        named = {key_of(field): field.metadata.get("file") for field in fields if kinds[field.name].is_text}
        slots = [key_of(field) for field in fields if field.metadata.get("positional")]

        def of(parameter: str, value: str) -> str:
            of_files = named.get(parameter, False)
            if of_files is None:
                raise UsageError(
                    f"{cls.name}: nothing declares whether {parameter}={value} names a file, so only your own specs "
                    "can set it",
                    fix="declare it in the class: param(…, file=Named()) or param(…, file=False)",
                    id="spec-file",
                )
            if not of_files:
                return value
            known = set(of_files.names())
            before = of_files.parts(value)
            parts = [(part if part in known else files(part, of_files), rest) for part, rest in before]
            return value if parts == list(before) else FileText.of(value, parts)

        if files is any_file:
            return values, keyed
        places = [*slots, *[""] * len(values)]  # of values too many, which the constructor refuses
        return (
            [of(parameter, value) for parameter, value in zip(places, values, strict=False)],
            {parameter: of(parameter, value) for parameter, value in keyed.items()},
        )

    @classmethod
    def from_values(cls, values: list[str], keyed: dict[str, str]) -> Self:
        """Return the object of a parsed spec: `name:value:key=value` -> values ["value"], keyed {"key": "value"}."""
        names = {key_of(field): field.name for field in cls.spec_fields()}
        return cls(**{names[key]: value for key, value in cls.typed_values(values, keyed).items()})

    @classmethod
    def typed_values(cls, values: list[str], keyed: dict[str, str]) -> dict[str, Any]:
        """Return the values of a parsed spec by parameter, in their types and ranges; no file is opened."""
        fields = {key_of(field): field for field in cls.spec_fields()}
        declared = cls.declared()
        slots = [name for name, field in fields.items() if field.metadata["positional"]]
        if len(values) > len(slots):
            takes = f"takes {len(slots)}" if slots else "takes none"
            value = values[len(slots)]
            example = f"{value}=yes" if value in fields and declared[fields[value].name].kind is bool else "key=value"
            quoted = ""
            if slots and fields[slots[-1]].metadata["file"] and not keyed:
                quoted = f"; a name that holds a colon is quoted: {cls.name}:{quote(':'.join(values))}"
            raise UsageError(
                f"{cls.name}: a value without a name ({value!r}) is one too many; it {takes}",
                fix=f"write parameters as {example}; {cls.name} has: {', '.join(fields) or 'none'}{quoted}",
                id="bad-spec",
            )
        given = dict(zip(slots, values, strict=False))
        preset = keyed.get("as") if cls.presets else None
        if preset is not None and preset not in cls.presets:
            raise unknown(f"preset of {cls.name}", preset, cls.presets)
        for key, value in keyed.items():
            if key == "as" and preset is not None:
                continue
            if key not in fields:
                fix = f"write {cls.instead[key]}" if key in cls.instead else None
                raise unknown(f"parameter of {cls.name}", key, fields, fix=fix)
            if key in given:
                raise UsageError(f"{cls.name}: {key} is given twice", id="bad-spec")
            given[key] = value
        typed = {key: declared[fields[key].name].read(value) for key, value in given.items()}
        for key, value in typed.items():
            declared[fields[key].name].check(value)
        return {**cls.presets[preset], **typed} if preset is not None else typed


def key_of(field: dataclasses.Field[Any]) -> str:
    """Return the name of a parameter in a spec: `from` of the field `from_`, since Python reserves some names."""
    return field.name.removesuffix("_")


def read_spec(spec: str, where: str = "--t", example: str = "trans,inv") -> list[tuple[str, list[str], dict[str, str]]]:
    """Return (name, values, keyed values) of each part. Raise UsageError, at the option `where`, for a wrong spec."""
    for place, character in enumerate(spec):
        if character == "\0" or "\ud800" <= character <= "\udfff":  # not possible in a file name or in a manifest
            raise UsageError(
                f"character {place + 1} of the spec is U+{ord(character):04X}, which is not text",
                where=where,
                fix="write the spec in UTF-8; rename files whose names are not UTF-8",
                id="bad-spec",
            )

    def fail(what: str) -> UsageError:
        return UsageError(
            f"{what} in {spec!r}",
            where=where,
            fix=f'a spec is name[:value][:key=value]..., separated by commas, e.g. "{example}"',
            id="bad-spec",
        )

    out: list[tuple[str, list[str], dict[str, str]]] = []
    at, is_name = 0, True
    while at <= len(spec):
        key = None if is_name else _KEY.match(spec, at)
        found = _VALUE.match(spec, key.end() if key else at)
        assert found is not None  # it may be empty
        quoted, at = found[1] is not None, found.end()
        if spec[at : at + 1] not in ("", ",", ":"):
            what = "text after a quoted value" if quoted else "a quote inside a value" if found[0] else "an open quote"
            raise fail(what)
        value = found[1].replace('""', '"') if quoted else found[0].strip()
        if not value and not quoted:
            raise fail("an empty part")
        if is_name:
            out.append((value, [], {}))
        elif key is None:
            out[-1][1].append(value)
        else:
            name, _, keyed = out[-1]
            if key[1].strip() in keyed:
                raise UsageError(f"{name}: {key[1].strip()} is given twice", where=where, id="bad-spec")
            keyed[key[1].strip()] = value
        is_name = spec[at : at + 1] == ","
        at += 1
    return out


def quote(value: str) -> str:
    """Return a value as written in a spec: if necessary in double quotes, with inner ones doubled."""
    if value and _MARKS.isdisjoint(value) and value == value.strip():
        return value
    return '"' + value.replace('"', '""') + '"'


def text_of(value: Any) -> str:
    """Return a value as text that a spec reads back: yes and no for a bool."""
    if isinstance(value, FileText):
        return value.typed
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value) if isinstance(value, float) else str(value)
