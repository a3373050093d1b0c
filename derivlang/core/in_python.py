"""Messages for Python, whose functions have arguments where the command line has options.

command line    pass --lang xx for rules that fit most alphabets
Python          pass language='xx' for rules that fit most alphabets
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache

from derivlang.core.errors import DerivlangError
from derivlang.core.messages import wording

# Of `derive` and `map_dataset`; other functions have the names of their options (`commands/command.py`).
_ARGUMENTS = {
    "--lexicon": "lexicon=",
    "--lang": "language=",
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
_VALUE = r"(?: (?P<value>(?:FILE|xx|ja|th|zh|unicode|space|stanza|spacy)\b[^\s,;)]*))?"


def in_python(text: str, arguments: Mapping[str, str] = _ARGUMENTS) -> str:
    """Return a message with arguments in place of options. arguments: option -> what stands for it.

    >>> in_python("name a parser: --parser stanza, --parser spacy:NAME, or leave --parser out")
    "name a parser: parser='stanza', parser='spacy:NAME', or leave parser= out"
    """

    def argument(match: re.Match[str]) -> str:
        if match["option"] is None:
            return match[0]
        return arguments[match["option"]] + (repr(match["value"]) if match["value"] else "")

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
