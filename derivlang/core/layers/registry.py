"""Kinds of layers by name: the built-in ones, and those of other packages by entry point.

A package adds a kind in its own `pyproject.toml`; a `Field` of a schema names it:

    [project.entry-points."derivlang.layers"]
    referents = "my_package.referents:Referents"
"""

from __future__ import annotations

from derivlang.core.errors import unknown
from derivlang.core.layers.base import Layer
from derivlang.core.plugins import find_class, plug_ins

GROUP = "derivlang.layers"
_BUILT_IN = {
    "answers": "derivlang.core.layers.answers:Answers",
    "entities": "derivlang.core.layers.spans:Spans",
    "misc": "derivlang.core.layers.misc:Misc",
    "parsed-tags": "derivlang.core.layers.parse:ParsedTags",
    "parsed-tree": "derivlang.core.layers.parse:ParsedTree",
    "tags": "derivlang.core.layers.words:Words",
    "tree": "derivlang.core.layers.tree:Tree",
    "value": "derivlang.core.layers.values:Values",
}
_ADDED: dict[str, type[Layer]] = {}


def register_layer(kind: str, layer: type[Layer]) -> None:
    """Register a kind of layer for this process, for notebooks and tests."""
    _ADDED[kind] = layer


def layer_kinds() -> list[str]:
    return sorted({*_BUILT_IN, *_ADDED, *plug_ins(GROUP)})


def find_layer(kind: str) -> type[Layer]:
    """Return the class of a kind. Raise UsageError with near names, or if a plug-in is not a Layer."""
    if kind not in _BUILT_IN and kind not in layer_kinds():
        raise unknown("layer", kind, layer_kinds(), fix="install the package that brings it")
    return find_class(kind, Layer, GROUP, _BUILT_IN, _ADDED)  # type: ignore[type-abstract]  # only for issubclass
