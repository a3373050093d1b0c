"""Rows as HTML: a fragment for a notebook, or one self-contained page, of templates that escape all text.

Nothing is loaded and no script runs: what the pointer or the focus shows is CSS. A drawing that is wider than its place
scrolls. A page is one file, so it carries the web fonts whose characters it has, with local fonts for all else.
`letters/letters.css` declares them, one file for the letters of a script; docs/fonts.py makes both.

    faces("Წელცომე ．")  ->  @font-face rules of georgian.woff2 and fullwidth.woff2, as data: URLs
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from derivlang.core.errors import UsageError
from derivlang.display.drawing import colours_of, draw, is_rtl, kinds_of
from derivlang.display.rows import LinkedLines

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # characters that no XML 1.0 file may hold
# The web fonts stand first: a word with letters that only some local fonts have is in one font, not in two.
FONTS = (
    'derivlang, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans Hebrew", "Noto Sans Arabic", '
    '"DejaVu Sans", sans-serif'
)
_FOLDER = resources.files(__package__ or "") / "letters"
_UNSHOWN = ((0xE000, 0xF8FF), (0x40000, 0xDFFFF), (0xF0000, 0x10FFFF))  # private use and unassigned planes
# Hues of Okabe and Ito (2008), darkened for white ground and lightened for dark; labels repeat what they say.
_LIGHT = ("#00805d", "#0072b2", "#c04a00", "#a0527d", "#8f6200", "#1f7fb0", "#6b6b00")
_DARK = ("#33c79b", "#56b4e9", "#f28b4b", "#e09cc4", "#e6b84d", "#9ad5f7", "#d0d050")
_LIGHT_RULES = (
    "color-scheme: light; --dl-ground: #fff; --dl-ink: #1c1e21; --dl-soft: #5c6370; --dl-line: #d9dce1; "
    "--dl-band: #f4f5f7; --dl-same: #8a919c; --dl-earlier: #0072b2; --dl-later: #c04a00; --dl-lit: #b0006d; "
    + " ".join(f"--dl-{n}: {colour};" for n, colour in enumerate(_LIGHT))
)
_DARK_RULES = (
    "color-scheme: dark; --dl-ground: #15171a; --dl-ink: #e6e8eb; --dl-soft: #a0a7b3; --dl-line: #363b43; "
    "--dl-band: #1e2126; --dl-same: #7d8590; --dl-earlier: #56b4e9; --dl-later: #f2a05c; --dl-lit: #ff9ad5; "
    + " ".join(f"--dl-{n}: {colour};" for n, colour in enumerate(_DARK))
)
_ON_POINTER = (".lit", ":hover", ".pair {")  # parts of rules that a picture does not need
_KINDS = {
    "same": "in its place",
    "earlier": "moved forward",
    "later": "moved back",
    "deleted": "deleted",
    "inserted": "inserted",
}


def page(rows: Sequence[LinkedLines], title: str, told: str = "") -> str:
    """Return a whole page. told: a sentence to show below the title. Raise UsageError without jinja2."""
    return _template("page.html").render(title=title, told=told, body=fragment(rows), fonts=FONTS).lstrip()


def fragment(rows: Sequence[LinkedLines]) -> str:
    """Return rows as a piece of HTML with its style, for a notebook or for part of a page."""
    colours = colours_of(rows)
    template = _template("figure.html")
    figures = [
        template.render(
            row=row,
            drawing=draw(row, colours),
            rtl=is_rtl(row.source.words),
            label=summary(row),
            table=_table(row),
            labelled=bool(row.derived.head or row.derived.tags or row.derived.spans or row.source.spans),
        )
        for row in rows
    ]
    words = (word for row in rows for line in (row.source, row.derived) for word in line.words)
    return _template("fragment.html").render(
        style=faces("".join(figures)) + style(),
        figures=figures,
        notes=font_notes(words),
        key=_key(rows, colours),
    )


def standalone_svg(row: LinkedLines) -> str:
    """Return the drawing of a row as an SVG file of its own, which follows light and dark."""
    rules = _drawing_rules().replace(".dl svg ", "svg ")
    rules = "".join(f"{rule}\n" for rule in rules.splitlines() if not any(part in rule for part in _ON_POINTER))
    style = (
        f"svg {{ {_LIGHT_RULES} font-family: {FONTS}; }}\n"
        f"@media (prefers-color-scheme: dark) {{ svg {{ {_DARK_RULES} }} }}\n{rules}"
    )
    macro = _template("svg.html").module.svg  # type: ignore[attr-defined]
    drawing, said = draw(row, colours_of([row])), summary(row)
    letters = faces(str(macro(drawing, said, False)))
    return _NO_XML.sub("\ufffd", str(macro(drawing, said, False, letters + style)))


def summary(row: LinkedLines) -> str:
    """Return a sentence about a row, the name of its drawing for a screen reader."""
    kinds = [kind for _, _, kind in kinds_of(row)]
    moved = sum(kind in ("earlier", "later") for kind in kinds)
    return f"{len(row.source.words)} source words linked to {len(row.derived.words)} derived words; {moved} moved"


def style() -> str:
    """Return the style sheet."""
    rules = _read("style.css").replace("DARK", _DARK_RULES).replace("LIGHT", _LIGHT_RULES).replace("FONTS", FONTS)
    return rules + _drawing_rules()


def _drawing_rules() -> str:
    """Return the rules for the inside of a drawing, with the colours of labels."""
    return _read("drawing.css") + "".join(
        f".dl svg .c{n} {{ fill: var(--dl-{n}); stroke: var(--dl-{n}); }}\n"
        f".dl svg text.t{n} {{ fill: var(--dl-{n}); }}\n"
        for n in range(len(_LIGHT))
    )


def _read(name: str) -> str:
    return (resources.files(__package__ or "") / name).read_text("utf-8")


def _table(row: LinkedLines) -> list[tuple[int, int, str, list[str]]]:
    """Return (derived position, source position, what happened, labels) of each pair, in derived order."""
    pairs = sorted(kinds_of(row), key=lambda pair: (pair[1] < 0, pair[1], pair[0]))
    source, derived = row.source.labels(), row.derived.labels()
    return [(place, word, _KINDS[kind], derived[place] if place >= 0 else source[word]) for word, place, kind in pairs]


def _key(rows: Sequence[LinkedLines], colours: dict[str, int]) -> dict[str, Any]:
    """Return what the key explains: kinds of links and labels of spans that occur."""
    kinds = {kind for row in rows for _, _, kind in kinds_of(row)}
    labels = {span.label for row in rows for line in (row.source, row.derived) for span in line.spans}
    return {
        "kinds": {kind: said for kind, said in _KINDS.items() if kind in kinds} if kinds != {"same"} else {},
        "labels": {label: number % len(_LIGHT) for label, number in colours.items() if label in labels},
    }


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError:
        raise UsageError("a drawing needs jinja2", fix="pip install jinja2", id="missing-package") from None
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["px"] = lambda number: f"{number:.1f}".removesuffix(".0")
    return environment


def _template(name: str) -> Template:
    return _environment().get_template(name)


# Fonts


@cache
def shipped_faces() -> dict[str, frozenset[int]]:
    """Return the `@font-face` rules of the web fonts of the package, with the code points that each has."""
    return {rule: _codes(rule) for rule in (_FOLDER / "letters.css").read_text("utf-8").splitlines()}


def faces(text: str) -> str:
    """Return the rules of the web fonts that have characters of a text, with the fonts in them."""
    codes = set(map(ord, text))
    return "".join(f"{_inlined(rule)}\n" for rule, own in shipped_faces().items() if not codes.isdisjoint(own))


def font_notes(words: Iterable[str]) -> list[str]:
    """Return a sentence if there are private-use or unassigned characters, which no font shows, else nothing."""
    codes = {ord(c) for word in words for c in word}
    if not any(first <= code <= last for code in codes for first, last in _UNSHOWN):
        return []
    return [
        "Some words have private-use or unassigned characters, which no font shows: their letters have no counterpart "
        "in the chosen script (docs/reference/scripts.md). The links and the table say which words they are."
    ]


def file_of(rule: str) -> str:
    """Return the file that a `@font-face` rule names."""
    return str(re.findall(r"url\((.*?)\)", rule)[0])


@cache
def _inlined(rule: str) -> str:
    file = file_of(rule)
    data = base64.b64encode((_FOLDER / file).read_bytes()).decode()
    return rule.replace(f"url({file})", f"url(data:font/woff2;base64,{data})")


def _codes(rule: str) -> frozenset[int]:
    """Return the code points of the `unicode-range` of a rule."""
    codes: set[int] = set()
    for first, last in re.findall(r"U\+([0-9A-F]+)(?:-([0-9A-F]+))?", rule):
        codes |= set(range(int(first, 16), int(last or first, 16) + 1))
    return frozenset(codes)
