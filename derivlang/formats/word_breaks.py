"""Words by the default word boundaries of Unicode (UAX #29), from Python's tables of characters.

    co<soft hyphen>operation, don't, 3.5, 👩<ZWJ>👧      one word each
    日本カタカナ                                  日 | 本 | カタカナ

Each character becomes a letter for its Word_Break property, and a pattern over these letters has the rules. Categories
come from `unicodedata`; the tables list what no category says, up to Unicode 17. Pieces hold no white space, so rules
about it (WB3, WB3a, WB3b, WB3d) never apply.
"""

from __future__ import annotations

import re
import unicodedata

VERSION = unicodedata.unidata_version
# Letter of the pattern -> code points. Earlier rows win over later ones and over categories, but for marks.
_TABLES = {
    "Z": "200d",  # zero width joiner
    "Q": "27",  # apostrophe
    "D": "22",  # double quote
    "M": "3a b7 387 55f 5f4 2027 fe13 fe55 ff1a",  # MidLetter
    "m": "2c 3b 37e 589 60c-60d 66c 7f8 2044 fe50 fe54 ff0c ff1b",  # MidNum
    "B": "2e 2018-2019 2024 fe52 ff07 ff0e",  # MidNumLet
    "R": "1f1e6-1f1ff",  # regional indicators
    "N": "600-605 66b 6dd 890-891 8e2 19da 110bd 110cd",  # Numeric, but not decimal digits
    "K": "3031-3035 309b-309c 30a0-30fa 30fc-30ff 31f0-31ff 32d0-32fe 3300-3357 ff66-ff9d 1aff0-1affe 1b000 "
    "1b120-1b128 1b155 1b164-1b168",  # Katakana
    "H": "5d0-5ea 5ef-5f2 fb1d fb1f-fb28 fb2a-fb4f",  # Hebrew letters
    "a": "2139 24c2 1f170-1f171 1f17e-1f17f",  # letters that are pictographic
    "A": "b8 2c2-2c5 2d2-2d7 2de-2df 2e5-2eb 2ed 2ef-2ff 55a-55c 55e 58a 5f3 70f 24b6-24e9 a708-a716 a720-a721 "
    "a789-a78a ab5b 1f130-1f149 1f150-1f169 1f170-1f189",  # ALetter, but not letters
    # Pictographic.
    "P": "a9 ae 203c 2049 2122 2194-2199 21a9-21aa 231a-231b 2328 23cf 23e9-23f3 23f8-23fa 25aa-25ab 25b6 25c0 "
    "25fb-25fe 2600-2604 260e 2611 2614-2615 2618 261d 2620 2622-2623 2626 262a 262e-262f 2638-263a 2640 2642 "
    "2648-2653 265f-2660 2663 2665-2666 2668 267b 267e-267f 2692-2697 2699 269b-269c 26a0-26a1 26a7 26aa-26ab "
    "26b0-26b1 26bd-26be 26c4-26c5 26c8 26ce-26cf 26d1 26d3-26d4 26e9-26ea 26f0-26f5 26f7-26fa 26fd 2702 2705 "
    "2708-270d 270f 2712 2714 2716 271d 2721 2728 2733-2734 2744 2747 274c 274e 2753-2755 2757 2763-2764 "
    "2795-2797 27a1 27b0 27bf 2934-2935 2b05-2b07 2b1b-2b1c 2b50 2b55 3030 303d 3297 3299 1f000-1f12f "
    "1f18e-1f1e5 1f200-1f3fa 1f400-1faff 1fc00-1fffd",
    # Letters that are words by themselves: ideographs, Hiragana, and scripts whose words no rule finds (Thai, Khmer …).
    "O": "200b e00-eff 1000-109f 1780-17ff 1950-19df 1a20-1aaf 3006-3007 3021-3029 3038-303a 3041-309f 3400-9fff "
    "a9e0-a9ff aa60-aadf f900-faff 11700-1174f 17000-18d7f 1b001-1b2ff 20000-3fffd",
}
_SPANS = [
    (int(span.partition("-")[0], 16), int(span.rpartition("-")[2], 16), letter)
    for letter, table in _TABLES.items()
    for span in table.split()
]
# Extend, Format: what belongs to the character before it (WB4), beside the categories of marks and format characters.
_EXTEND = re.compile("[\u200c\uff9e\uff9f\U0001f3fb-\U0001f3ff]")
_OF_CATEGORY = {"Lu": "A", "Ll": "A", "Lt": "A", "Lm": "A", "Lo": "A", "Nl": "A", "Nd": "N", "Pc": "X", "Cf": "E"}
_WORD = re.compile(
    """
    [AaHNKX] (?:
        (?<=[AaHNX])[AaHNX]+                         # WB5, WB8 to WB10, WB13a, WB13b
      | (?<=[KX])K | (?<=K)X                         # WB13, WB13a, WB13b
      | (?<=[AaH])[MBQ][AaH] | (?<=N)[mBQ]N          # WB6 and WB7, WB11 and WB12
      | (?<=H)DH | (?<=H)Q                           # WB7b and WB7c, WB7a
    )*
    | RR                                             # WB15, WB16
    | .                                              # WB999
    """,
    re.VERBOSE,
)


class _Properties(dict[int, str]):
    """The letter of each character, found when it is first seen."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _property(code)
        return found


def _property(code: int) -> str:
    category = unicodedata.category(chr(code))
    if category in ("Mn", "Mc", "Me") or _EXTEND.match(chr(code)):
        return "E"
    listed = (letter for first, last, letter in _SPANS if first <= code <= last)
    return (category != "Nd" and next(listed, None)) or _OF_CATEGORY.get(category, "O")


_PROPERTIES = _Properties()


def unicode_words(piece: str) -> list[str]:
    """Return the words of a piece without white space, in order; joined, they are the piece."""
    letters = piece.translate(_PROPERTIES)
    if "E" not in letters and "Z" not in letters:
        return [piece[word.start() : word.end()] for word in _WORD.finditer(letters)]
    # WB4: marks and joiners belong to what is before them, so the pattern sees the text without them.
    kept = [i for i, letter in enumerate(letters) if i == 0 or letter not in "EZ"]
    starts = [kept[word.start()] for word in _WORD.finditer("".join(letters[i] for i in kept))]
    # WB3c: a joiner joins pictures.
    starts = [at for at in starts if at == 0 or letters[at - 1] != "Z" or letters[at] not in "aP"]
    return [piece[begin:end] for begin, end in zip(starts, [*starts[1:], len(piece)], strict=True)]
