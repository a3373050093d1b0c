"""Read log.jsonl, the log of a run: one JSON object a line, each with the number of its step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError
from derivlang.core.parse_errors import parse_errors

LOG = "log.jsonl"


def read_log(run: Path) -> list[dict[str, Any]]:
    """Return the entries of a run's log up to the first damaged line, as the last may be cut off; [] without a log."""
    path = run / LOG
    if not path.exists():
        return []
    out = []
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            with parse_errors(str(path), "log"):
                entry = json.loads(line)
                _ = entry["step"] <= 0
        except DataError:
            break
        out.append(entry)
    return out
