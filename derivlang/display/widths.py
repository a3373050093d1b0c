"""Widths of words without a browser, and the direction of a line.

A width is estimated by classes of characters, in em, and rather too wide than too narrow: it only decides how far apart
words stand. No font is read, so the same row gives the same drawing everywhere.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_NARROW = frozenset("iljtfrI.,:;'’‘|!()[]{}/\\-`\"·")
_WIDE = frozenset("mwMWQOGDHNU@%&—…")
# First and last code point of scripts with wide letters, and their width.
_SCRIPTS = (
    (0x0530, 0x058F, 0.70),  # Armenian
    (0x0590, 0x08FF, 0.58),  # Hebrew, Arabic
    (0x0900, 0x0DFF, 0.70),  # scripts of India
    (0x1C90, 0x1CBF, 0.80),  # Georgian capitals
    (0x10A0, 0x10FF, 0.66),  # Georgian
    (0x2D00, 0x2D2F, 0.70),  # Georgian, church script
    (0x1D400, 0x1D7FF, 0.80),  # mathematical letters
)
_ISOLATE, _END = "\u2068", "\u2069"  # first strong isolate, pop directional isolate


def width(text: str) -> float:
    """Return the estimated width of a text, in em."""
    return sum(map(_of_character, text))


def _of_character(character: str) -> float:
    if character in _NARROW:
        return 0.38
    if character in _WIDE:
        return 0.90
    if character.isascii():
        return 0.70 if character.isupper() else 0.60
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    code = ord(character)
    return next((em for first, last, em in _SCRIPTS if first <= code <= last), 0.72 if character.isupper() else 0.64)


def is_rtl(words: Iterable[str]) -> bool:
    """Return whether most words with a direction begin with a letter that is written from right to left."""
    right = left = 0
    for word in words:
        first = next((d for d in map(unicodedata.bidirectional, word) if d in ("L", "R", "AL")), "")
        right += first in ("R", "AL")
        left += first == "L"
    return right > left


def isolated(text: str) -> str:
    """Return a text that keeps its own direction beside other text: a word with right-to-left letters is enclosed."""
    if any(unicodedata.bidirectional(c) in ("R", "AL") for c in text):
        return f"{_ISOLATE}{text}{_END}"
    return text
