"""Fonts of a page: web fonts with the letters that scripts write, local fonts for all else.

`letters/letters.css` declares the web fonts, one file for the letters of a script; docs/fonts.py makes both. A page is
one file, so it carries those fonts whose characters it has:

    faces("Წელცომე ．")  ->  @font-face rules of georgian.woff2 and fullwidth.woff2, as data: URLs
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

# The web fonts stand first: a word with letters that only some local fonts have is in one font, not in two.
FONTS = (
    'derivlang, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans Hebrew", "Noto Sans Arabic", '
    '"DejaVu Sans", sans-serif'
)
_FOLDER = resources.files(__package__ or "") / "letters"
_UNSHOWN = ((0xE000, 0xF8FF), (0x40000, 0xDFFFF), (0xF0000, 0x10FFFF))  # private use and unassigned planes


@dataclass(frozen=True, slots=True)
class Face:
    """A web font. rule: its `@font-face`, which names file. codes: the code points that it has."""

    rule: str
    file: str
    codes: frozenset[int]


@cache
def shipped_faces() -> tuple[Face, ...]:
    """Return the web fonts of the package."""
    rules = (_FOLDER / "letters.css").read_text("utf-8").splitlines()
    return tuple(Face(rule, re.findall(r"url\((.*?)\)", rule)[0], _codes(rule)) for rule in rules)


def faces(text: str) -> str:
    """Return the rules of the web fonts that have characters of a text, with the fonts in them."""
    codes = set(map(ord, text))
    return "".join(f"{_inlined(face)}\n" for face in shipped_faces() if not codes.isdisjoint(face.codes))


def font_notes(words: Iterable[str]) -> list[str]:
    """Return a sentence if there are private-use or unassigned characters, which no font shows, else nothing."""
    codes = {ord(c) for word in words for c in word}
    if not any(first <= code <= last for code in codes for first, last in _UNSHOWN):
        return []
    return [
        "Some words have private-use or unassigned characters, which no font shows: their letters have no counterpart "
        "in the chosen script (docs/reference/scripts.md). The links and the table say which words they are."
    ]


@cache
def _inlined(face: Face) -> str:
    data = base64.b64encode((_FOLDER / face.file).read_bytes()).decode()
    return face.rule.replace(f"url({face.file})", f"url(data:font/woff2;base64,{data})")


def _codes(rule: str) -> frozenset[int]:
    """Return the code points of the `unicode-range` of a rule."""
    codes: set[int] = set()
    for first, last in re.findall(r"U\+([0-9A-F]+)(?:-([0-9A-F]+))?", rule):
        codes |= set(range(int(first, 16), int(last or first, 16) + 1))
    return frozenset(codes)
