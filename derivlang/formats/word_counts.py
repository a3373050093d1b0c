r"""Word counts as a file: a word and its count in each line, with a tab between.

    word	count             the header may be left out
    the	129
    \\	3               a word is escaped as in lexicon.tsv: `\t`, `\n`, `\r`, `\\`

A dictionary that `derivlang dict -o NAME.tsv` wrote is such a file, too: its columns are source, derived and count, and
the count is of the source word.
"""

from __future__ import annotations

import re
from pathlib import Path

from derivlang.core.errors import DataError
from derivlang.core.lexicon import unescape
from derivlang.formats.whole import utf8_text

_HEADERS = ("word\tcount", "source\tderived\tcount")
_COUNT = re.compile("[0-9]{1,18}")


def read_counts(path: Path) -> dict[str, int]:
    """Return the count of each word of a file, plain or compressed.

    Raises DataError missing-file, encoding, and word-counts: no line, a line without a count, two counts of one word.
    """
    # Not splitlines, which also cuts at characters inside words.
    lines = utf8_text(path).removeprefix("\ufeff").split("\n")
    counts: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and line in _HEADERS):
            continue
        cells = line.split("\t")
        if len(cells) not in (2, 3) or not cells[0] or not _COUNT.fullmatch(cells[-1]):
            raise _broken(path, number, f"{line[:60]!r} is not a word and its count, separated by a tab")
        word, count = unescape(cells[0]), int(cells[-1])
        if counts.setdefault(word, count) != count:
            raise _broken(path, number, f"the word {word!r} has the counts {counts[word]} and {count}")
    if not counts:
        raise _broken(path, 1, "the file has no word with a count")
    return counts


def _broken(path: Path, number: int, what: str) -> DataError:
    return DataError(
        what,
        where=f"{path}:{number}",
        fix="give lines as the<TAB>129, or a .tsv that `derivlang dict` wrote",
        id="word-counts",
    )
