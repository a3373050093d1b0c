"""`derivlang verify A B`: whether two sets or runs are of one language."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from derivlang.cli.messages import echo


def show_comparison(one: Path, other: Path, *, as_json: bool) -> None:
    """Print whether two folders are of one language, and what differs. Exit with 1 if they are not."""
    from derivlang.store.same_language import compare, language_of

    found = compare(language_of(one), language_of(other))
    if as_json:
        echo(json.dumps(found, ensure_ascii=False))
    else:
        same = f"are of one language: {found['sets'][0]['spec']}"
        echo(f"{one} and {other} {same if found['ok'] else 'are of different languages'}")
        for difference in found["differences"]:
            echo(f"  {difference}")
        for note in found["notes"]:
            echo(f"note: {note}")
    sys.exit(0 if found["ok"] else 1)
