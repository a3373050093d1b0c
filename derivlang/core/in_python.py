"""Messages for Python: `derive` and `map_dataset` have arguments where the command line has options.

command line    pass --lang xx for rules that fit most alphabets
Python          pass language='xx' for rules that fit most alphabets
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from derivlang.core.errors import DerivlangError

_ARGUMENTS = {
    "--lexicon": "lexicon=",
    "--lang": "language=",
    "--words": "words=",
    "--parser": "parser=",
    "--sentences": "sentences=",
    "--repair-tags": "repair_tags=True",
    "--entities": "policies.entities",
    "--answers": "policies.answers",
    "--mwt": "policies.mwt",
    "--t": "spec",
}
# An option with a value that messages give it. Commands (`derivlang make --answers atomic`) stay as they are.
_OPTION = re.compile(
    rf"`[^`]*`|(?P<option>{'|'.join(_ARGUMENTS)})(?![\w-])"
    r"(?: (?P<value>(?:FILE|xx|ja|th|zh|unicode|space|stanza|spacy)\b[^\s,;)]*))?"
)


def in_python(text: str) -> str:
    """Return a message with arguments in place of options.

    >>> in_python("name a parser: --parser stanza, --parser spacy:NAME, or leave --parser out")
    "name a parser: parser='stanza', parser='spacy:NAME', or leave parser= out"
    """
    return _OPTION.sub(_argument, text)


def _argument(found: re.Match[str]) -> str:
    if found["option"] is None:
        return found[0]
    return _ARGUMENTS[found["option"]] + (repr(found["value"]) if found["value"] else "")


@contextmanager
def errors_in_python() -> Iterator[None]:
    """Translate the errors of the block. Works as a decorator, too."""
    try:
        yield
    except DerivlangError as error:
        texts = (error.what, error.where, error.fix)
        what, where, fix = (None if text is None else in_python(text) for text in texts)
        raise type(error)(what or "", where=where, fix=fix, id=error.id) from error
