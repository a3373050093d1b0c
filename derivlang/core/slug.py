"""Slug: a text as a part of a file's name.

trans,inv     ->    trans-inv
mallows:-2    ->    mallows-minus2        other than mallows:2
"""

from __future__ import annotations

import re

_SIGN = re.compile(r"(?<![A-Za-z0-9._-])-(?=[0-9.])")  # of a number, not the hyphen of `ner-2`


def slug(text: str, empty: str = "none") -> str:
    """Return the text with hyphens for everything except letters, digits, dots and underscores, signs as `minus`.

    empty: the result for a text without such characters.
    """
    return re.sub(r"[^A-Za-z0-9._]+", "-", _SIGN.sub("-minus", text)).strip("-.") or empty
