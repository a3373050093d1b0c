"""Transforms by name: the built-in ones, and those of other packages by entry point.

A package adds a transform in its `pyproject.toml`:

    [project.entry-points."derivlang.transforms"]
    swap = "my_package.swap:Swap"
"""

from __future__ import annotations

from derivlang.core.plugins import find_class, plug_ins
from derivlang.transforms.base import Transform

GROUP = "derivlang.transforms"
_BUILT_IN = {
    "identity": "derivlang.transforms.identity:Identity",
    "inv": "derivlang.transforms.inv:Inv",
    "lex": "derivlang.transforms.lex:Lex",
    "perm": "derivlang.transforms.perm:Perm",
    "syn": "derivlang.transforms.syn:Syn",
    "trans": "derivlang.transforms.trans:Trans",
}
_ADDED: dict[str, type[Transform]] = {}


def register(transform: type[Transform]) -> type[Transform]:
    """Register a transform for this process. Works as a decorator, for notebooks and tests."""
    _ADDED[transform.name] = transform
    return transform


def transform_names() -> list[str]:
    return sorted({*_BUILT_IN, *_ADDED, *plug_ins(GROUP)})


def find_transform(name: str) -> type[Transform]:
    """Return the class of this name.

    Raise UsageError with near names if there is none, or if a plug-in is not a Transform.
    """
    return find_class(name, Transform, GROUP, _BUILT_IN, _ADDED)
