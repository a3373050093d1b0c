"""Scripts: involutions on Unicode code points that turn text into another script, and back.

The rule uses fixed ranges, as Unicode categories differ between Python versions:

    f(c) = c          for white space, C0 and C1 controls, surrogates, noncharacters
    f(c) = partner    for the pairs of the script's table, `NAME.tsv` beside this file
    f(c) = c + N      for all other code points of planes 0 and 1, unless c + N is a noncharacter
    f(p) = p - N      for those images p; any other code point above plane 1 stays

So f(f(text)) = text for every string. N is 0xF0000, so that the images are private use, planes 15 and 16. Format
characters, combining marks and the BMP private-use area get no special treatment. Capital and small letters stay
distinct, but `lower(f(x)) = f(lower(x))` does not always hold. Pairs are swapped, so letters of the target script in
the text become Latin ones.

    load_script("georgian").map_text("Go to ACL")  ->  "Გო ტო ᲐᲪᲚ"

A file holds every version of its table. The line `# table 2` begins the pairs that table 2 adds to table 1. Published
pairs never change, so sets made with an older table remain readable.

    load_script("georgian").map_text("Café")       ->  "Ცაფⴄ"
    load_script("georgian", 1).map_text("Café")    ->  "Ცაფ" and a private-use character

An *offset script* has no table and another N. Its name is `offset=N`; `private` is the one with N = 0xF0000. The images
must lie in planes 2 to 13, or in planes 15 and 16. In plane 14 letters would become tags and variation selectors, which
no font shows. Letters among the images (planes 2 and 3 have CJK ideographs) become letters of planes 0 and 1.

    load_script("offset=200000").map_text("a")     ->  U+30DA1

`CLONES` has the N of six scripts of this kind whose images share no plane with each other, or with any letter.
"""

import functools
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

__all__ = ["CLONES", "Script", "is_script", "load_script", "offset_name", "parse_script", "script_names"]

CODEPOINTS = 0x110000  # all of Unicode
SWAPPED_PLANES = 0x20000  # planes 0 and 1, which a script may change
PRIVATE_OFFSET = 0xF0000  # moves plane 0 to 15 and plane 1 to 16, the last two planes
# Moves planes 0 and 1 to 4 and 5, which are unassigned as all planes up to 13, then to 6 and 7, and so on.
CLONES = (0x40000, 0x60000, 0x80000, 0xA0000, 0xC0000, PRIVATE_OFFSET)

# First and last code point of each range of planes 0 and 1 that no script moves.
FIXED_RANGES = (
    (0x0000, 0x0020),  # C0 controls and space
    (0x007F, 0x00A0),  # delete, C1 controls, no-break space
    (0x1680, 0x1680),  # Ogham space
    (0x2000, 0x200A),  # typographic spaces
    (0x2028, 0x2029),  # line and paragraph separator
    (0x202F, 0x202F),  # narrow no-break space
    (0x205F, 0x205F),  # mathematical space
    (0x3000, 0x3000),  # ideographic space
    (0xD800, 0xDFFF),  # surrogates
    (0xFDD0, 0xFDEF),  # noncharacters, as the ranges below
    (0xFFFE, 0xFFFF),
    (0x1FFFE, 0x1FFFF),
)

PRIVATE = "private"  # the offset script that has a name of its own
PRIVATE_DESCRIPTION = "Private use: every code point of planes 0 and 1 that can move goes to planes 15 and 16"


@dataclass(frozen=True, slots=True, eq=False)
class Script:
    """An involution on code points: `table[table[c]] == c` for each c in 0 .. 0x10FFFF.

    table: uint32[0x110000], read-only. description: first line of the script's file. version: version of the table,
    from 1.
    """

    name: str
    description: str
    version: int
    table: npt.NDArray[np.uint32]

    def map_codepoints(self, codepoints: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """Return the image of each code point, a new array of the same shape. Raise IndexError above 0x10FFFF."""
        return self.table.take(codepoints)

    def map_text(self, text: str) -> str:
        """Return the image of a string, with the same number of code points. Lone surrogates stay."""
        codepoints = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        return self.map_codepoints(codepoints).astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle only the name and the version: the table has 4 MB, and the package of the reader has it too."""
        return load_script, (self.name, self.version)


@functools.cache
def script_names() -> tuple[str, ...]:
    """Return the sorted names of all scripts: the table files of this package, and "private"."""
    files = [entry.name for entry in resources.files(__name__).iterdir()]
    return tuple(sorted([PRIVATE, *(file.removesuffix(".tsv") for file in files if file.endswith(".tsv"))]))


@functools.cache
def load_script(name: str, version: int = 0) -> Script:
    """Return the script of that name with a version of its table (0: the newest), read once per process.

    Raise KeyError(name) if there is no such script, KeyError(version) if it has no such table.
    """
    if not is_script(name):
        raise KeyError(name)
    offset = _offset_of(name)
    if offset is None:
        text = resources.files(__name__).joinpath(f"{name}.tsv").read_text(encoding="utf-8")
        return parse_script(text, name=name, version=version)
    if version > 1:
        raise KeyError(version)
    description = PRIVATE_DESCRIPTION if name == PRIVATE else f"Code points of planes 0 and 1 that can move: + {offset}"
    return Script(name, description, 1, _involution((), offset))


def is_script(name: object) -> bool:
    """Return whether `load_script` knows a name: one of `script_names`, or `offset=N`."""
    return name in script_names() or (isinstance(name, str) and _offset_of(name) is not None)


def offset_name(offset: int) -> str:
    """Return the name of the script that moves planes 0 and 1 by a number. Raise ValueError if none does."""
    if not (SWAPPED_PLANES <= offset <= CLONES[-2] or offset == PRIVATE_OFFSET):
        raise ValueError(f"must be from {SWAPPED_PLANES} to {CLONES[-2]}, or {PRIVATE_OFFSET}")
    return PRIVATE if offset == PRIVATE_OFFSET else f"offset={offset}"


def _offset_of(name: str) -> int | None:
    """Return the number of an offset script's name, None for any other name."""
    if name == PRIVATE:
        return PRIVATE_OFFSET
    match = re.fullmatch(r"offset=([0-9]{6})", name)
    with suppress(ValueError):
        return int(match[1]) if match and offset_name(int(match[1])) == name else None
    return None


def parse_script(text: str, *, name: str, version: int = 0) -> Script:
    """Return the script whose table file has this text. version: of the table; 0: the newest.

    The first line is the description. Another line is empty, a `# comment`, `# table N`, which begins the pairs that
    table N adds, or `source TAB target`: a swap of two characters, each literal or as `U+0023`. The tests of the
    package check its files. Raise KeyError(version) for a table that the file lacks.
    """
    # Not splitlines(): it also cuts at characters such as U+2028.
    description, *lines = text.split("\n")
    tables: list[list[list[int]]] = [[]]
    for line in lines:
        if line.startswith("# table "):
            tables.append([])
        elif line and not line.startswith("#"):
            tables[-1].append([int(cell[2:], 16) if len(cell) > 1 else ord(cell) for cell in line.split("\t")])
    if version > len(tables):
        raise KeyError(version)
    pairs = [pair for table in tables[: version or None] for pair in table]
    return Script(name, description.removeprefix("# "), version or len(tables), _involution(pairs))


def _involution(pairs: Sequence[Sequence[int]], offset: int = PRIVATE_OFFSET) -> npt.NDArray[np.uint32]:
    """Return the whole read-only table of a script: its pairs, and an offset for all other movable code points."""
    table = np.arange(CODEPOINTS, dtype=np.uint32)
    images = slice(offset, offset + SWAPPED_PLANES)
    low, high = table[:SWAPPED_PLANES].copy(), table[images].copy()
    moves = (high & 0xFFFE) != 0xFFFE  # the last two code points of each plane are noncharacters
    for first, last in FIXED_RANGES:
        moves[first : last + 1] = False
    moves[[codepoint for pair in pairs for codepoint in pair]] = False
    table[:SWAPPED_PLANES] = np.where(moves, high, low)
    table[images] = np.where(moves, low, high)
    for source, target in pairs:
        table[source], table[target] = target, source
    table.setflags(write=False)
    return table
