r"""Lists of words as files, plain or compressed: a word in each line; or a word and its count, with a tab between.

    word	count             the header may be left out
    the	129
    \\	3               a word is escaped as in lexicon.tsv: `\t`, `\n`, `\r`, `\\`

A dictionary that `derivlang dict -o NAME.tsv` wrote is such a file, too: its columns are source, derived and count, and
the count is of the source word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from derivlang.core.errors import DataError
from derivlang.core.lexicon import escape, unescape
from derivlang.formats.opening import utf8_text

_HEADERS = ("word\tcount", "source\tderived\tcount")
_COUNT = re.compile("[0-9]{1,18}")


def read_counts(path: Path) -> dict[str, int]:
    """Return the count of each word of a file, plain or compressed.

    Raises DataError missing-file, encoding, and word-counts: no line, a line without a count, two counts of one word.
    """
    counts = parse_counts(utf8_text(path).removeprefix("\ufeff"), str(path))
    if not counts:
        raise _broken(str(path), 1, "the file has no word with a count")
    return counts


def write_counts(words: Iterable[str], counts: Iterable[int]) -> str:
    """Return words and their counts as the text of a file."""
    rows = (f"{escape(word)}\t{count}" for word, count in zip(words, counts, strict=True))
    return "".join(f"{row}\n" for row in [_HEADERS[0], *rows])


def parse_counts(text: str, where: str) -> dict[str, int]:
    """Return the count of each word of a text. Raise DataError word-counts; where: the text's name in errors."""
    counts: dict[str, int] = {}
    # Not splitlines: it also cuts at characters that may stand inside a word.
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and line in _HEADERS):
            continue
        cells = line.split("\t")
        if len(cells) not in (2, 3) or not cells[0] or not _COUNT.fullmatch(cells[-1]):
            raise _broken(where, number, f"{line[:60]!r} is not a word and its count, separated by a tab")
        word, count = unescape(cells[0]), int(cells[-1])
        if counts.setdefault(word, count) != count:
            raise _broken(where, number, f"the word {word!r} has the counts {counts[word]} and {count}")
    return counts


def _broken(where: str, number: int, what: str) -> DataError:
    return DataError(
        what,
        where=f"{where}:{number}",
        fix="give lines as the<TAB>129, or a .tsv that `derivlang dict` wrote",
        id="word-counts",
    )


def read_word_list(path: Path) -> list[str]:
    """Return the words of a file, each once, in order of their first lines. White space around them is left out.

    Raises DataError missing-file, encoding, and word-list: no word, or a line with several.
    """
    # Not splitlines, which also cuts at characters inside words.
    lines = [line.strip() for line in utf8_text(path).removeprefix("\ufeff").split("\n")]
    for number, line in enumerate(lines, 1):
        if len(line.split()) > 1:
            raise _broken_list(path, number, f"{line[:60]!r} is more than one word")
    words = list(dict.fromkeys(filter(None, lines)))
    if not words:
        raise _broken_list(path, 1, "the file has no word")
    return words


def _broken_list(path: Path, number: int, what: str) -> DataError:
    return DataError(what, where=f"{path}:{number}", fix="write one word in each line", id="word-list")
