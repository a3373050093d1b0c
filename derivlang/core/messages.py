"""What the package says while it works: warnings, and log entries of its stages.

    warn("no test split was found")     a DerivlangWarning, by Python's `warnings`, at the line that called derivlang
    logging.getLogger("derivlang")      DEBUG: each stage with its time (formats/progress.py)
    counted(1, "row"), counted(1200, "row")     "1 row", "1,200 rows"

Functions that warn take a callback, whose default is `warn`. The command line gives its own (cli/messages.py), which
prints on stderr. Functions of Python have arguments where the command line has options:

command line    pass --lang xx for rules that fit most alphabets
Python          pass language='xx' for rules that fit most alphabets
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from derivlang.core.errors import DerivlangError, visible

LOGGER = "derivlang"


class DerivlangWarning(UserWarning):
    """Something that a user should know, and that does not stop the work."""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, which takes an s unless the count is 1; of `entry`, `entries`."""
    plural = f"{noun.removesuffix('y')}ies" if noun.endswith("try") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def first_names(names: Iterable[object], most: int = 3) -> str:
    """Return the first names of several, and the number of the others: a, b, c, d, e -> "a, b, c and 2 more"."""
    several = list(map(str, names))
    more = f" and {len(several) - most:,} more" if len(several) > most else ""
    return ", ".join(several[:most]) + more


def shortened(value: object) -> str:
    """Return a value as messages quote it: at most 40 characters."""
    text = str(value)
    return text if len(text) <= 40 else f"{text[:40]}… ({len(text):,} characters)"


def in_shell(*words: object) -> str:
    """Return words of a command as they are typed: `my dict.tsv` -> `'my dict.tsv'`."""
    return shlex.join(map(str, words))


# What a message becomes for who reads it: Python has arguments where the command line has options (`errors_in_python`).
wording: ContextVar[Callable[[str], str]] = ContextVar("wording", default=str)


def warn(message: str) -> None:
    """Issue a DerivlangWarning for the first caller outside this package (and its context managers)."""
    import inspect  # imported late: help pages load this module
    import warnings

    level, frame = 1, inspect.currentframe()
    own = ("derivlang", "contextlib")
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in own:
        level, frame = level + 1, frame.f_back
    warnings.warn(visible(wording.get()(message), keep="\t\n"), DerivlangWarning, stacklevel=level)


# Of `derive` and `map_dataset`; other functions have the names of their options (`commands/command.py`).
_ARGUMENTS = {
    "--lexicon": "lexicon=",
    "--lang": "lang=",
    "--words": "words=",
    "--parser": "parser=",
    "--sentences": "sentences=",
    "--repair-tags": "repair_tags=True",
    "--label-column": "Columns(labels=)",
    "--entities": "policies.entities",
    "--answers": "policies.answers",
    "--mwt": "policies.mwt",
    "--t": "spec",
}
# Values that messages give an option. Commands (`derivlang make --answers atomic`) stay as they are.
_VALUE = (
    r"(?: (?:(?P<value>(?:FILE|xx|ja|th|zh|unicode|space|stanza|spacy|token|word|tsv|DIR)\b[^\s,;)]*)"
    r"|(?P<number>\d+(?:\.\d+)?(?![\w%]))))?"
)


def in_python(text: str, arguments: Mapping[str, str] = _ARGUMENTS) -> str:
    """Return a message with arguments in place of options. arguments: option -> what stands for it.

    >>> in_python("name a parser: --parser stanza, --parser spacy:NAME, or leave --parser out")
    "name a parser: parser='stanza', parser='spacy:NAME', or leave parser= out"
    >>> in_python("pass --steps 60", {"--steps": "steps="})
    'pass steps=60'
    """

    def argument(match: re.Match[str]) -> str:
        if match["option"] is None:
            return match[0]
        return arguments[match["option"]] + (repr(match["value"]) if match["value"] else match["number"] or "")

    return _pattern(tuple(arguments)).sub(argument, text)


@cache
def _pattern(options: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"`[^`]*`|(?<![\w-])(?P<option>{'|'.join(options)})(?![\w-]){_VALUE}")


@contextmanager
def errors_in_python(arguments: Mapping[str, str] = _ARGUMENTS) -> Iterator[None]:
    """Translate the errors and warnings of the block. Works as a decorator, too. arguments: as of `in_python`."""
    token = wording.set(lambda message: in_python(message, arguments))
    try:
        yield
    except DerivlangError as error:
        texts = (error.what, error.where, error.fix)
        what, where, fix = (None if text is None else in_python(text, arguments) for text in texts)
        if error.where is not None and error.where in arguments:
            where = arguments[error.where].partition("=")[0]
        raise type(error)(what or "", where=where, fix=fix, id=error.id) from error
    finally:
        wording.reset(token)
