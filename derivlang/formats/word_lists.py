"""A list of words as a file: a word in each line, plain or compressed.

the
of
"""

from __future__ import annotations

from pathlib import Path

from derivlang.core.errors import DataError
from derivlang.formats.whole import utf8_text


def read_word_list(path: Path) -> list[str]:
    """Return the words of a file, each once, in order of their first lines. White space around them is left out.

    Raises DataError missing-file, encoding, and word-list: no word, or a line with several.
    """
    # Not splitlines, which also cuts at characters inside words.
    lines = [line.strip() for line in utf8_text(path).removeprefix("\ufeff").split("\n")]
    for number, line in enumerate(lines, 1):
        if len(line.split()) > 1:
            raise _broken(path, number, f"{line[:60]!r} is more than one word")
    words = list(dict.fromkeys(filter(None, lines)))
    if not words:
        raise _broken(path, 1, "the file has no word")
    return words


def _broken(path: Path, number: int, what: str) -> DataError:
    return DataError(what, where=f"{path}:{number}", fix="write one word in each line", id="word-list")
