"""Colours of the terminal: only where standard output is one, and never with NO_COLOR (no-color.org)."""

from __future__ import annotations

import os
import sys

import click

# Blue and yellow, which colour-blind readers can distinguish, before green, magenta and cyan.
_LABELS = ("blue", "yellow", "magenta", "cyan", "green", "bright_blue", "bright_yellow")
_STYLES = {
    "soft": {"dim": True},
    "earlier": {"fg": "blue"},
    "later": {"fg": "yellow"},
    "deleted": {"dim": True},
    "inserted": {"bold": True},
}


def has_colours() -> bool:
    """Return whether standard output shows colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, kind: str) -> str:
    """Return a text in the colour of a kind (`display/view.py`), unchanged where there are no colours."""
    if not text or not has_colours():
        return text
    if kind.startswith("label "):
        return click.style(text, fg=_LABELS[int(kind.removeprefix("label ")) % len(_LABELS)], bold=True)
    style = _STYLES.get(kind)
    return click.style(text, **style) if style else text  # type: ignore[arg-type]
