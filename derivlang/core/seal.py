"""Seal a record, a JSON object: its last field is a hash of all others, so that a changed value is noticed.

{"seed": 1, "sha256": "3f0c…"}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

HASH = "sha256"  # the field with the hash


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the hash of all its other fields as its last field."""
    return {**{name: value for name, value in record.items() if name != HASH}, HASH: hash_of(record)}


def hash_of(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record without its hash, as JSON with sorted keys and no white space."""
    rest = {name: value for name, value in record.items() if name != HASH}
    text = json.dumps(rest, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_intact(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the hash of its content."""
    return bool(record.get(HASH) == hash_of(record))


def check_intact(record: Mapping[str, Any]) -> None:
    """Raise ValueError if a record does not have the hash of its content: a value was changed, or the hash removed."""
    if not is_intact(record):
        raise ValueError("a value was changed after it was written")
