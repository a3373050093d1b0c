"""Scripts: involutions on Unicode code points that turn text into another script, and back.

The rule, by frozen ranges and never by category (categories differ between Python versions):

    f(c) = c          for white space, C0 and C1 controls, surrogates, noncharacters, planes 2-14
    f(c) = partner    for the pairs of the script's table, `NAME.tsv` beside this file
    f(c) = c+0xF0000  for all other code points of planes 0 and 1: into private use, planes 15 and 16
    f(p) = p-0xF0000  for those images p; any other code point of planes 15 and 16 stays

So f(f(text)) = text for every string. Format characters, combining marks and BMP private use are code points
as any other; capitals stay apart from small letters, but `lower(f(x)) = f(lower(x))` is not promised. A pair
swaps: letters of the script that the text already has come out as Latin ones.

    load_script("georgian").map_text("Go to ACL")  ->  "Გო ტო ᲐᲪᲚ"
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

__all__ = ["Script", "load_script", "parse_script", "script_names"]

CODEPOINTS = 0x110000  # all of Unicode
SWAPPED_PLANES = 0x20000  # planes 0 and 1: what a script may change
PRIVATE_SHIFT = 0xF0000  # takes plane 0 to 15 and plane 1 to 16, that is to the last two

# First and last of each range of planes 0 and 1 that no script moves. Planes 2-14 are out of reach anyway.
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
    (0xFDD0, 0xFDEF),  # noncharacters, here and below; U+FFDD0 to FFDEF have no partner and stay too
    (0xFFFE, 0xFFFF),
    (0x1FFFE, 0x1FFFF),
)

PRIVATE = "private"  # the script without a table, hence without a file
PRIVATE_TEXT = "# Private use: every code point of planes 0 and 1 that can move goes to planes 15 and 16\n"


@dataclass(frozen=True, slots=True, eq=False)
class Script:
    """An involution on code points: `table[table[c]] == c` for each c in 0 .. 0x10FFFF.

    table: uint32[0x110000], read-only. description: the first line of the script's file.
    """

    name: str
    description: str
    table: npt.NDArray[np.uint32]

    def map_codepoints(self, codepoints: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """The image of each code point, a new array of the same shape; IndexError above 0x10FFFF."""
        return self.table[codepoints]

    def map_text(self, text: str) -> str:
        """The image of a string, as many code points as it has; lone surrogates stay as they are."""
        codepoints = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        return self.map_codepoints(codepoints).astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")

    @property
    def swapped(self) -> int:
        """How many pairs the script's file lists: those whose two sides both lie outside planes 15 and 16."""
        low = self.table[:SWAPPED_PLANES]
        moved = low != np.arange(SWAPPED_PLANES, dtype=np.uint32)
        return int(np.count_nonzero(moved & (low < SWAPPED_PLANES))) // 2


def script_names() -> list[str]:
    """The scripts that `load_script` knows, sorted: the table files of this package, and "private"."""
    files = [entry.name for entry in resources.files(__name__).iterdir()]
    return sorted([PRIVATE, *(file.removesuffix(".tsv") for file in files if file.endswith(".tsv"))])


@functools.cache
def load_script(name: str) -> Script:
    """The script of that name, read once. KeyError(name) if there is none: the caller knows how to say so."""
    if name not in script_names():
        raise KeyError(name)
    if name == PRIVATE:
        return parse_script(PRIVATE_TEXT, name=name, file=name)
    file = f"{name}.tsv"
    text = resources.files(__name__).joinpath(file).read_text(encoding="utf-8")
    return parse_script(text, name=name, file=file)


def parse_script(text: str, *, name: str, file: str) -> Script:
    """The script whose table file has this text; `file` is what errors call it.

    A line is `# comment` (the first is the description), empty, or `source TAB target`: a swap of two
    characters, each literal or as `U+0023`. ValueError with file and line for a line of another form, a code
    point that occurs twice, a fixed point, or one outside planes 0 and 1.
    """
    description = ""
    line_of: dict[int, int] = {}  # code point -> the line that has it
    pairs: list[tuple[int, int]] = []
    fixed = _fixed_points()
    # Not splitlines(): it also cuts at characters such as U+2028, and the line numbers would be wrong.
    for number, line in enumerate(text.split("\n"), start=1):
        # `#<TAB>x` is meant as a pair, and as a comment it would vanish unseen.
        if line.startswith("#") and not line.startswith("#\t"):
            description = description or line.removeprefix("#").strip()
            continue
        if not line:
            continue
        try:
            source, target = _pair(line)
            for codepoint in (source, target):
                if codepoint in line_of:
                    raise ValueError(f"U+{codepoint:04X} is already in line {line_of[codepoint]}")
                if codepoint >= SWAPPED_PLANES or fixed[codepoint]:
                    raise ValueError(f"U+{codepoint:04X} is a code point that no table may move")
                line_of[codepoint] = number
        except ValueError as error:
            raise ValueError(f"{file}:{number}: {error}; change the line {line!r}") from None
        pairs.append((source, target))
    if not description:
        raise ValueError(f"{file}:1: no description; expected a first line '# what the script is'")
    return Script(name=name, description=description, table=_involution(pairs, fixed))


def _pair(line: str) -> tuple[int, int]:
    """The two code points that a line of a table file swaps."""
    cells = line.split("\t")
    if len(cells) != 2:
        raise ValueError(f"expected source TAB target, found {len(cells)} column(s)")
    return _codepoint(cells[0]), _codepoint(cells[1])


def _codepoint(cell: str) -> int:
    """The code point that a cell of a table file stands for."""
    if re.fullmatch(r"U\+[0-9A-F]{4,6}", cell):
        return int(cell[2:], 16)
    if len(cell) != 1 or cell == "#":
        raise ValueError(f"{cell!r} is not one character (a number sign is written U+0023)")
    return ord(cell)


def _fixed_points() -> npt.NDArray[np.bool_]:
    """bool[SWAPPED_PLANES]: what stays in planes 0 and 1."""
    fixed = np.zeros(SWAPPED_PLANES, dtype=np.bool_)
    for first, last in FIXED_RANGES:
        fixed[first : last + 1] = True
    return fixed


def _involution(pairs: Sequence[tuple[int, int]], fixed: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """The whole table of a script, read-only: the pairs first, then private use for what is left."""
    table = np.arange(CODEPOINTS, dtype=np.uint32)
    low, high = table[:SWAPPED_PLANES].copy(), table[PRIVATE_SHIFT:].copy()
    to_private = ~fixed
    to_private[[codepoint for pair in pairs for codepoint in pair]] = False
    table[:SWAPPED_PLANES] = np.where(to_private, high, low)
    table[PRIVATE_SHIFT:] = np.where(to_private, low, high)
    for source, target in pairs:
        table[source], table[target] = target, source
    table.setflags(write=False)
    return table
