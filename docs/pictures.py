"""Write the pictures of the README, docs/images/*.svg: a sentence under `trans,inv` and one under `syn:fr`.

python docs/pictures.py

Words in other than Latin letters are written as outlines, so that the picture needs no fonts. The outlines are those of
a font with the letters, which fontconfig finds here (Noto Sans Georgian, SIL Open Font License).
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

from fontTools.pens.svgPathPen import SVGPathPen
from fontTools.ttLib import TTFont

from derivlang import derive
from derivlang.display.page import standalone_svg

PICTURES = {
    "trans-inv": ("Welcome to ACL .", "trans,inv"),
    "syn-fr": ("She bought the old red car yesterday .", "syn:fr"),
}
FOLDER = Path(__file__).parent / "images"
_SIZE = 15
_TEXT = re.compile(r'<text x="([\d.]+)" y="([\d.]+)" class="(word[^"]*)">([^<]*)</text>')


def picture(text: str, spec: str) -> str:
    """The drawing of a sentence, with words in other letters as outlines."""
    return _TEXT.sub(_outlined, standalone_svg(derive(text.split(), spec).linked()))


def _outlined(found: re.Match[str]) -> str:
    x, y, kind, word = float(found[1]), float(found[2]), found[3], unescape(found[4])
    if word.isascii():
        return found[0]
    width, outlines = 0.0, ""
    for character in word:
        if "！" <= character <= "～":  # full-width forms: few fonts have them, and their ASCII twins look the same
            character = chr(ord(character) - 0xFEE0)
        font = _font_with(character)
        scale = _SIZE / font["head"].unitsPerEm
        glyphs, name = font.getGlyphSet(), font.getBestCmap()[ord(character)]
        pen = SVGPathPen(glyphs, ntos=lambda number: f"{number:.0f}")
        glyphs[name].draw(pen)
        outlines += (
            f'<path transform="translate({width:.1f} 0) scale({scale:.4f} -{scale:.4f})" d="{pen.getCommands()}"/>'
        )
        width += glyphs[name].width * scale
    place = f"translate({x - width / 2:.1f} {y:.1f})"
    return f'<g class="{kind}" transform="{place}" fill="var(--dl-ink)">{outlines}</g>'


@cache
def _font_with(character: str) -> Any:
    """The first upright sans-serif font of Noto that has a character."""
    query = ["fc-list", f":charset={ord(character):x}", "file"]
    files = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()
    found = sorted(file.rstrip(":") for file in files if re.search(r"NotoSans\w*-Regular", file))
    if not found:
        raise SystemExit(f"no font here has {character!r}: install fonts-noto-core")
    return TTFont(found[0])


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, (text, spec) in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(picture(text, spec), "utf-8")


if __name__ == "__main__":
    main()
