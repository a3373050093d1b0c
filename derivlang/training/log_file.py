"""Read log.jsonl, the log of a run: one JSON object per line, each with the number of its step."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from derivlang.core.parse_errors import parse_errors
from derivlang.store.record import check_types, short

LOG = "log.jsonl"
_OBJECTS = ("parts", "tokens_per_step")


def read_log(run: Path) -> list[dict[str, Any]]:
    """Return the entries of a run's log; [] without a log.

    A last line without an end was cut off while it was written, and is left out. Raise DataError for any other line
    that is not an entry.
    """
    path = run / LOG
    if not path.exists():
        return []
    with parse_errors(str(path), "log"):
        *lines, _cut_off = path.read_bytes().split(b"\n")
    out = []
    for number, line in enumerate(lines, 1):
        with parse_errors(f"{path}:{number}", "entry of a log", fix="remove the line"):
            out.append(_entry(line))
    return out


def _entry(line: bytes) -> dict[str, Any]:
    """Raise an exception unless all values, also inside objects, are finite numbers, and the step is a whole one."""
    entry: dict[str, Any] = json.loads(line)
    check_types(entry, {"step": int})
    for name, value in entry.items():
        numbers = value.values() if name in _OBJECTS else [value]
        if not all(isinstance(number, (int, float)) and math.isfinite(number) for number in numbers):
            raise ValueError(f"{name} is {short(value)}")
    return entry
