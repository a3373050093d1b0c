r"""Text for a terminal: control characters as visible escapes.

A terminal obeys them: ESC [ 8 m hides what follows, CR writes over the line, U+202E turns the rest of it around. Words
and file names may come from other people, so messages and rows show such characters as JSON and Python write them:

    red ESC [31m    ->    red \u001b[31m

The marks of direction that Arabic and Hebrew text needs (U+200E, U+200F, U+061C) reorder nothing else, and stay.
"""

from __future__ import annotations

import re

# C0, DEL and C1; embeddings, overrides and isolates of direction
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str, keep: str = "") -> str:
    r"""Return a text with its control characters as `\u001b`. keep: those that stay, such as line ends.

    In JSON the escapes mean the same characters.
    """
    return _CONTROLS.sub(lambda match: match[0] if match[0] in keep else f"\\u{ord(match[0]):04x}", text)
