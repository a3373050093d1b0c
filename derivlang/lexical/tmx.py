"""TMX 1.4b: sentence pairs for translation memories and CAT tools.

    <tu tuid="0"><prop type="x-links">0-1 1-0</prop>
      <tuv xml:lang="en"><seg>hello world</seg></tuv><tuv xml:lang="en-x-derived"><seg>…</seg></tuv></tu>

Characters that XML 1.0 does not allow (most controls, U+FFFE, U+FFFF) become U+FFFD and are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def head(language: str, version: str) -> str:
    """Return the text before the first pair."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
        f'<header creationtool="derivlang" creationtoolversion={quoteattr(version)} segtype="sentence" '
        f'o-tmf="derivlang" adminlang="en" srclang={_attribute(language)} datatype="plaintext"/>\n<body>\n'
    )


TAIL = "</body>\n</tmx>\n"


def units(rows: Iterable[tuple[int, str, str, str]], language: str) -> tuple[str, int]:
    """Return (text of some pairs: id, source, derived, links; number of characters that became U+FFFD)."""
    out = []
    unfit = 0
    source, derived = _attribute(language), _attribute(f"{language}-x-derived")
    for number, ours, theirs, links in rows:
        ours, a = _UNFIT.subn("\ufffd", ours)
        theirs, b = _UNFIT.subn("\ufffd", theirs)
        unfit += a + b
        out.append(
            f'<tu tuid="{number}"><prop type="x-links">{links}</prop>'
            f"<tuv xml:lang={source}><seg>{escape(ours)}</seg></tuv>"
            f"<tuv xml:lang={derived}><seg>{escape(theirs)}</seg></tuv></tu>\n"
        )
    return "".join(out), unfit


def _attribute(text: str) -> str:
    return quoteattr(_UNFIT.sub("\ufffd", text))
