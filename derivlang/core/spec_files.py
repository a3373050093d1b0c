"""Files that a spec names, and which of them may be read.

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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from derivlang.core.errors import UsageError

FilePolicy: TypeAlias = Callable[[str, "Named"], str]
Parts: TypeAlias = Sequence[tuple[str, str]]


def _no_names() -> tuple[str, ...]:
    return ()


def _one_part(value: str) -> Parts:
    return ((value, ""),)


def _itself(path: str) -> tuple[str, ...]:
    return (path,)


@dataclass(frozen=True, slots=True)
class Named:
    """What a text parameter may name.

    names: the names that are not files. parts: splits a value into (name or path, what follows it in the value), e.g.
    fr@N~my.tsv@V into (fr, @N~) and (my.tsv, @V). paths: the files that a path stands for, which may be missing.
    """

    names: Callable[[], Iterable[str]] = _no_names
    parts: Callable[[str], Parts] = _one_part
    paths: Callable[[str], Iterable[str]] = _itself


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


def bounded(
    name: str,
    declared: Mapping[str, Any],
    positional: Sequence[str],
    values: list[str],
    keyed: dict[str, str],
    policy: FilePolicy,
) -> tuple[list[str], dict[str, str]]:
    """Return the values of a parsed spec with the files that a policy allows. Raise UsageError for any other.

    name: the transform's or objective's name. declared: the declaration of each text parameter, by name: a `Named`,
    False (it never names a file) or None. positional: the parameters that `values` set, in order.
    """

    def of(parameter: str, value: str) -> str:
        named = declared.get(parameter, False)
        if named is None:
            raise UsageError(
                f"{name}: nothing declares whether {parameter}={value} names a file, so only your own specs can set it",
                fix="declare it in the class: param(…, file=Named()) or param(…, file=False)",
                id="spec-file",
            )
        if not named:
            return value
        known = set(named.names())
        before = named.parts(value)
        parts = [(part if part in known else policy(part, named), rest) for part, rest in before]
        return value if parts == list(before) else FileText.of(value, parts)

    if policy is any_file:
        return values, keyed
    places = [*positional, *[""] * len(values)]  # of values too many, which the constructor refuses
    return (
        [of(parameter, value) for parameter, value in zip(places, values, strict=False)],
        {parameter: of(parameter, value) for parameter, value in keyed.items()},
    )
