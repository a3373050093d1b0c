"""Make derivlang/display/letters: web fonts of the letters that scripts write, and letters.css, which declares them.

python docs/fonts.py FOLDER

FOLDER holds the unpacked Debian packages fonts-noto-core 20201225-1 and fonts-noto-cjk 1:20220127+repack1-1 (Noto
Sans 2.x and Noto Sans CJK JP 2.004, SIL Open Font License 1.1). Needs fonttools and brotli. Run it by hand when a
table of scripts gets new pairs, and commit what it writes.

Each file has the characters of one font, so that a page carries only the files that it needs.
"""

from __future__ import annotations

import io
import re
import sys
from itertools import groupby
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

PACKAGE = Path(__file__).parents[1] / "derivlang"
OUT = PACKAGE / "display" / "letters"
SCRIPTS = PACKAGE / "transforms" / "scripts"
CJK = "opentype/noto/NotoSansCJK-Regular.ttc"
# (name of the file, font, first and last code point that it may take); the first that has a character takes it
PARTS = (
    ("fullwidth", CJK, 0x2000, 0xFFEF),
    ("double-struck", "NotoSansMath", 0x2100, 0x1D7FF),
    ("punctuation", "NotoSans", 0x2000, 0x2E7F),
    ("georgian", "NotoSansGeorgian", 0x10D0, 0x1CBF),
    ("georgian-church", "NotoSansGeorgian", 0x10A0, 0x2D2F),
    ("armenian", "NotoSansArmenian", 0x0530, 0x058F),
    ("greek", "NotoSans", 0x0370, 0x03FF),
    ("greek-accents", "NotoSans", 0x1F00, 0x1FFF),
    ("coptic", "NotoSansCoptic", 0x03E2, 0x2CFF),
    ("cyrillic", "NotoSans", 0x0400, 0x045F),
    ("cyrillic-more", "NotoSans", 0x0460, 0xA69F),
    ("glagolitic", "NotoSansGlagolitic", 0x2C00, 0x2C5F),
    ("devanagari", "NotoSansDevanagari", 0x0900, 0x097F),
    ("lao", "NotoSansLao", 0x0E80, 0x0EFF),
    ("myanmar", "NotoSansMyanmar", 0x1000, 0x109F),
    ("khmer", "NotoSansKhmer", 0x1780, 0x17FF),
)


def main(folder: Path) -> None:
    """Write the fonts and their declarations."""
    left = written()
    rules = []
    for name, font, first, last in PARTS:
        opened = _open(folder, font)
        codes = {code for code in left & set(opened.getBestCmap()) if first <= code <= last}
        left -= codes
        size = _write(opened, codes, OUT / f"{name}.woff2")
        rules.append(
            f'@font-face {{ font-family: derivlang; src: url({name}.woff2) format("woff2"); '
            f"unicode-range: {ranges(codes)}; }}\n"
        )
        print(f"{name:16} {len(codes):4} characters {size:6} bytes")
    if left:
        raise SystemExit("no font has " + " ".join(f"U+{code:04X}" for code in sorted(left)))
    (OUT / "letters.css").write_text("".join(rules), "utf-8")


def written() -> set[int]:
    """Return the code points in the second column of the tables: what Latin text becomes."""
    tables = [path.read_text("utf-8") for path in SCRIPTS.glob("*.tsv")]
    return {ord(target) for table in tables for target in re.findall(r"^(?!# ).+\t(.)$", table, re.MULTILINE)}


def ranges(codes: set[int]) -> str:
    """Return code points as CSS writes them: {0x41, 0x42, 0x61}  ->  U+41-42,U+61."""
    runs = [list(run) for _, run in groupby(enumerate(sorted(codes)), lambda pair: pair[1] - pair[0])]
    ends = [(run[0][1], run[-1][1]) for run in runs]
    return ",".join(f"U+{first:X}" + (f"-{last:X}" if last > first else "") for first, last in ends)


def _open(folder: Path, font: str) -> TTFont:
    (path,) = folder.rglob(font if font == CJK else f"truetype/noto/{font}-Regular.ttf")
    return TTFont(path, fontNumber=0)


def _write(font: TTFont, codes: set[int], path: Path) -> int:
    # The outline of .notdef is the box of a character that no font has: private use stays visible.
    options = Options(hinting=False, layout_features=[], glyph_names=False, notdef_outline=True, flavor="woff2")
    options.name_IDs = [0, 1, 5]  # copyright, name and version; OFL.txt has the licence
    options.drop_tables += ["STAT", "BASE", "GSUB", "GPOS", "GDEF", "vhea", "vmtx", "VORG", "MATH", "meta", "DSIG"]
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=codes)
    subsetter.subset(font)
    font.flavor = "woff2"
    font.recalcTimestamp = False  # the same bytes at every run
    stream = io.BytesIO()
    font.save(stream)
    path.write_bytes(stream.getvalue())
    return len(stream.getvalue())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
