"""The languages of a run, as they are asked for.

    --language en=text:wikitext2 --language "la=t:trans,inv share:0.3" --language "fr=text:'my text.txt'"

`--source S --t SPEC` is short for two of them, with `text:` for --derived-source, `part:1/2` and `part:2/2` for
--halves. With --languages the other language has no rows, but its ids are part of the vocabulary.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path

from derivlang.core.errors import UsageError, unknown

OPTION = "--language"
UNREAD = "none"  # the part of a language that only the vocabulary has
_MOST = 100
_EXAMPLE = f'write e.g. {OPTION} "la=t:trans,inv share:0.3"; quote a path with spaces: "fr=text:\'my text.txt\'"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A language of a run.

    text: a source; "": the text of the first language. lang: of its word rules; "": the run's. t: transforms of it.
    ids: text, or own for a block of ids that no other language has. tokenizer: the folder of one of its own; "": the
    run's. share: of the rows of a step, 0.3, or from steps on, 0:0.9,1000:0.25; "": as many as its text has. part: of
    its text, 1/2 is the first half; "": all.
    """

    name: str
    text: str = ""
    lang: str = ""
    t: str = "identity"
    ids: str = "text"
    tokenizer: str = ""
    share: str = ""
    part: str = ""

    @property
    def shares(self) -> dict[int, Fraction]:
        """The shares by the step from which on they hold."""
        phases = [phase.rpartition(":") for phase in self.share.split(",")]
        return {int(begin or 0): Fraction(share) for begin, _, share in phases}

    def __str__(self) -> str:
        given = ((field.name, getattr(self, field.name)) for field in fields(self)[1:])
        return f"{self.name}=" + " ".join(f"{key}:{shlex.quote(value)}" for key, value in given if value)


KEYS = [field.name for field in fields(Language)[1:]]
_FORMS = {
    "ids": (r"text|own", "text or own"),
    "share": (r"(\d+:)?\d[\d./]*(,\d+:\d[\d./]*)*", "a number as 0.3 or 1/3, or steps and numbers as 0:0.9,1000:0.25"),
    "part": (r"[1-9]\d?/[1-9]\d?", "a part of the text, as 1/2"),
}


def read_languages(options: Sequence[str]) -> tuple[Language, ...]:
    """Return the languages of options, the first one and the others by name, so that a run depends on no other order.

    Raise UsageError for wrong ones, or if they do not fit each other.
    """
    languages = tuple(map(_read, options))
    names = [one.name.lower() for one in languages]
    first = languages[0]
    if not 2 <= len(languages) <= _MOST:
        raise _wrong(f"a run has 2 to {_MOST} languages, not {len(languages)}")
    if len(set(names)) < len(names):
        raise _wrong(f"two languages have the name {next(name for name in names if names.count(name) > 1)}")
    if not first.text:
        raise _wrong(f"the first language, {first.name}, needs a text")
    if first.t != "identity" or first.ids != "text" or first.tokenizer:
        raise _wrong(f"the first language, {first.name}, is the source, so it has no t, ids or tokenizer")
    for one in languages:
        if one.lang and not one.text:
            raise _wrong(f"{one.name} has a lang, but no text of its own")
    if len({bool(one.share) for one in languages}) > 1:
        raise _wrong(f"{next(one.name for one in languages if not one.share)} has no share, but others have one")
    if first.share:
        _check_shares(languages)
    same = {(first.text, first.lang), (first.text, "")}
    others = (replace(one, text="", lang="") if (one.text, one.lang) in same else one for one in languages[1:])
    return first, *sorted(others, key=lambda one: one.name)


def _read(option: str) -> Language:
    """Return the language of an option NAME=KEY:VALUE KEY:VALUE."""
    name, equals, rest = option.partition("=")
    try:
        pairs = [word.partition(":") for word in shlex.split(rest)]
    except ValueError:
        pairs = [(rest, "", "")]
    values = {key: value for key, _, value in pairs}
    where = f"{OPTION} {name}"
    for key, value in values.items():
        if key not in KEYS:
            raise unknown("setting of a language", key, KEYS, where=where, fix=_EXAMPLE)
        if not value:
            raise _wrong(f"{key} has no value", where)
        if key in _FORMS and not re.fullmatch(_FORMS[key][0], value):
            raise _wrong(f"{key} must be {_FORMS[key][1]}, got {value}", where)
    if not equals or not re.fullmatch(r"[A-Za-z]\w{0,31}", name, re.ASCII):
        raise _wrong(f"{option!r} is not NAME=KEY:VALUE with a name of letters, digits and _", where)
    if len(values) < len(pairs):
        raise _wrong("a setting is given twice", where)
    if "part" in values and Fraction(values["part"]) > 1:
        raise _wrong(f"the text has no part {values['part']}", where)
    return Language(name=name, **values)


def _wrong(what: str, where: str = OPTION) -> UsageError:
    return UsageError(what, where=where, fix=_EXAMPLE, id="languages")


def _check_shares(languages: Sequence[Language]) -> None:
    """Raise UsageError for shares of languages that are wrong."""
    try:
        phases = phases_of(languages)
    except (ValueError, ZeroDivisionError):
        raise _wrong("a share is not a number") from None
    for begin, shares in phases:
        if sum(shares) != 1:
            raise _wrong(f"the shares from step {begin:,} on add up to {float(sum(shares)):g}, not to 1")
    for one in languages:
        if not any(one.shares.values()):
            raise _wrong(f"{one.name} never has rows: its share is 0")


def phases_of(languages: Sequence[Language]) -> tuple[tuple[int, tuple[Fraction, ...]], ...]:
    """Return the shares of all languages from each step on at which one changes; none if they have no shares."""
    if not languages or not languages[0].share:
        return ()
    every = [{0: Fraction(0)} | one.shares for one in languages]
    begins = sorted({begin for shares in every for begin in shares})
    return tuple((begin, tuple(s[max(at for at in s if at <= begin)] for s in every)) for begin in begins)


def by_text(languages: Sequence[Language]) -> list[tuple[int, ...]]:
    """Return the numbers of the languages of each text, the first language's text first."""
    texts: dict[tuple[str, str], tuple[int, ...]] = {}
    for number, one in enumerate(languages):
        text = (one.text, one.lang) if number else ("", "")
        texts[text] = (*texts.get(text, ()), number)
    return list(texts.values())


def only_file(files: Sequence[Path], option: str) -> Path | None:
    """Return the file of an option of a run of two languages, None without one. Raise UsageError for several."""
    if len(files) > 1:
        raise UsageError(f"{len(files)} files of two languages", where=option, fix="give one", id="given-twice")
    return next(iter(files), None)


def named_pairs(files: Sequence[Path], languages: Sequence[Language], option: str) -> dict[tuple[int, int], Path]:
    """Return the files of an option NAME-NAME=FILE, by the numbers of both languages. Raise UsageError for others."""
    found: dict[tuple[int, int], Path] = {}
    numbers_of = {one.name: number for number, one in enumerate(languages)}
    for file in files:
        names, equals, path = str(file).partition("=")
        sides = names.split("-")
        if not equals or not path or len(sides) != 2:
            fix = f"write e.g. {option} en-fr=FILE"
            raise UsageError(f"{str(file)!r} is not NAME-NAME=FILE", where=option, fix=fix, id="languages")
        for name in sides:
            if name not in numbers_of:
                raise unknown("language", name, list(numbers_of), where=option, id="languages")
        left, right = (numbers_of[name] for name in sides)
        if left == right or {(left, right), (right, left)} & found.keys():
            what = "has one language" if left == right else "is given twice"
            raise UsageError(f"{names} {what}", where=option, fix="give each two languages one file", id="languages")
        found[left, right] = Path(path)
    return found


def paired_languages(
    asked: Sequence[Language], files: Sequence[Path], *, named: bool
) -> dict[tuple[int, int], Path | None]:
    """Return where the sentence pairs of two languages, by number, come from: a file, or None for a text of both.

    Of each text, its first language is paired with the others. files: of --pairs. named: whether each has its
    languages, en-fr=FILE. Raise UsageError for others.
    """
    if files and not named:
        return {(0, 1): only_file(files, "--pairs")}
    found: dict[tuple[int, int], Path | None] = {
        (numbers[0], other): None for numbers in by_text(asked) for other in numbers[1:]
    }
    for (left, right), path in named_pairs(files, asked, "--pairs").items():
        found.pop((right, left), None)
        found[left, right] = path
    return found
