"""Signs in raw text that it would be read wrong without a message: another language than English, wrapped lines.

Raw text is split by the rules of English unless the user names its language, and each line of a text file is a
paragraph.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Words of which any English text of some length has many; other languages in Latin letters have hardly one of them.
_ENGLISH = frozenset("the and to that it with you he she they this are not from have my".split())
_FEWEST, _LEAST = 50, 0.02  # different words to judge by, and the share of English ones below which it is in doubt
_WRAPPED_LINES, _WIDTHS = 20, range(40, 101)  # lines to judge by, and the widths at which people wrap
_RAGGED = 15  # characters by which a wrapped line is shorter than the widest, as the next word does not fit
_MOST = 0.8  # of the lines
_ENDS = re.compile(r"""[.!?:…。]["'”’»)\]]*$""")


def is_not_english(texts: Sequence[str]) -> bool:
    """Return whether texts have hardly any of the most frequent words of English."""
    words = [word.lower() for text in texts for word in text.split()]
    return len(set(words)) >= _FEWEST and sum(word in _ENGLISH for word in words) < _LEAST * len(words)


def is_wrapped(lines: Sequence[str]) -> bool:
    """Return whether paragraphs are broken into lines of nearly one width, most of which end within a sentence.

    lines: with the blank lines that follow them, which end a paragraph.
    """
    inner = [line.strip() for line in lines if line.count("\n") == 1]
    width = max(map(len, inner), default=0)
    if len(inner) < _WRAPPED_LINES or width not in _WIDTHS:
        return False
    full = [line for line in inner if len(line) > width - _RAGGED]
    within = [line for line in full if not _ENDS.search(line)]
    return len(full) >= _MOST * len(inner) and len(within) >= _MOST * len(full)
