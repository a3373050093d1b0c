"""Fonts: which ones a page asks for, and what to install where letters are not shown."""

from __future__ import annotations

from collections.abc import Iterable

# Local fonts alone: a page loads nothing. The later ones have the letters of derivlang's scripts.
FONTS = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans Georgian", "Noto Sans Armenian", '
    '"Noto Sans Math", "Noto Sans Hebrew", "Noto Sans Arabic", "DejaVu Sans", Sylfaen, Mshtakan, "Cambria Math", '
    '"STIX Two Math", "Segoe UI Symbol", sans-serif'
)
# (name, first and last code point, font that has the letters)
_SCRIPTS = (
    ("Georgian", 0x10A0, 0x10FF, "Noto Sans Georgian"),
    ("Georgian capital", 0x1C90, 0x1CBF, "Noto Sans Georgian"),
    ("Georgian church", 0x2D00, 0x2D2F, "Noto Sans Georgian"),
    ("Armenian", 0x0530, 0x058F, "Noto Sans Armenian"),
    ("double-struck and other mathematical", 0x1D400, 0x1D7FF, "Noto Sans Math"),
    ("double-struck and other mathematical", 0x2102, 0x2124, "Noto Sans Math"),
    ("full-width", 0xFF01, 0xFFEE, "Noto Sans CJK"),
)
_PACKAGES = {"Noto Sans CJK": "fonts-noto-cjk"}  # of Debian; the others are in fonts-noto-core
_PRIVATE = ((0xE000, 0xF8FF), (0xF0000, 0x10FFFF))


def font_notes(words: Iterable[str]) -> list[str]:
    """Return a sentence for each kind of letters that not every machine can show, and for private-use characters."""
    codes = sorted({ord(c) for word in words for c in word})
    fonts: dict[str, list[str]] = {}
    for name, first, last, font in _SCRIPTS:
        if any(first <= code <= last for code in codes):
            fonts.setdefault(font, []).append(name)
    notes = []
    if fonts:
        letters = [name for names in fonts.values() for name in dict.fromkeys(names)]
        packages = sorted({_PACKAGES.get(font, "fonts-noto-core") for font in fonts})
        notes.append(
            f"If you see boxes instead of {_listed(letters)} characters, install {_listed(list(fonts))} "
            f"(Debian and Ubuntu: {' '.join(packages)}; other systems: fonts.google.com/noto)."
        )
    if any(first <= code <= last for code in codes for first, last in _PRIVATE):
        notes.append(
            "Some words have private-use characters, which no font shows: their letters have no counterpart in the "
            "chosen script (docs/reference/scripts.md). The links and the table say which words they are."
        )
    return notes


def _listed(names: list[str]) -> str:
    """Return names as a sentence lists them: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
