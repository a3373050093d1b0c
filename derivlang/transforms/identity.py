"""identity: the source itself, as a control in experiments and the lower bound of benchmarks."""

from __future__ import annotations

from dataclasses import dataclass

from derivlang.transforms.base import Transform


@dataclass(frozen=True, kw_only=True)
class Identity(Transform):
    """The source itself, as a control."""

    name = "identity"
