"""identity: the source itself, for controls and for the floor of the benchmarks."""

from __future__ import annotations

from dataclasses import dataclass

from derivlang.transforms.base import Transform


@dataclass(frozen=True, kw_only=True)
class Identity(Transform):
    """The source itself, as a control."""

    name = "identity"
