"""Parts of a model that are not trained, as --freeze names them: embeddings, encoder, layers=0-3."""

from __future__ import annotations

import re
from typing import Any

from derivlang.core.errors import UsageError, unknown

_FREEZE = re.compile(r"embeddings|encoder|layers=[0-9]{1,4}(-[0-9]{1,4})?")


def layers_of(part: str) -> tuple[int, int]:
    """Return the first and the last layer of `layers=2` or `layers=0-3`."""
    first, _, last = part.removeprefix("layers=").partition("-")
    return int(first), int(last or first)


def check_layers(parts: str, n_layers: int) -> None:
    """Raise UsageError if parts to freeze name a layer that a model does not have."""
    for part in parts.split(","):
        if part.startswith("layers=") and layers_of(part)[1] >= n_layers:
            raise UsageError(f"{part}: the model has the layers 0 to {n_layers - 1}", where="--freeze", id="bad-value")


def check_freeze(value: Any, option: str) -> None:
    """Raise UsageError unless a text lists parts of a model, with commas. option: its name."""
    for part in filter(None, value.split(",")):
        if not _FREEZE.fullmatch(part):
            raise unknown("part to freeze", part, ("embeddings", "encoder", "layers=0-3"), where=option, id="freeze")
        if part.startswith("layers=") and layers_of(part)[0] > layers_of(part)[1]:
            raise UsageError(f"{part} names no layer", where=option, fix="write e.g. layers=0-3", id="bad-value")
