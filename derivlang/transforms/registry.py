"""Transforms by name: the built-in ones, and those of other packages by entry point.

A package adds a transform under its own `pyproject.toml`:

    [project.entry-points."derivlang.transforms"]
    swap = "my_package.swap:Swap"
"""

from __future__ import annotations

from importlib import import_module

from derivlang.core.errors import UsageError, unknown
from derivlang.core.plugins import load_plug_in, plug_ins
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
    """Register a transform for this process; a decorator, for notebooks and tests."""
    _ADDED[transform.name] = transform
    return transform


def transform_names() -> list[str]:
    return sorted({*_BUILT_IN, *_ADDED, *plug_ins(GROUP)})


def find_transform(name: str) -> type[Transform]:
    """The class of this name; UsageError with near names, or if a plug-in is no Transform."""
    if name in _ADDED:
        return _ADDED[name]
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return getattr(import_module(module), attribute)  # type: ignore[no-any-return]
    if name in plug_ins(GROUP):
        found = load_plug_in(GROUP, name)
        if not (isinstance(found, type) and issubclass(found, Transform)):
            raise UsageError(f"the plug-in {name!r} is no derivlang Transform", id="plug-in")
        return found
    raise unknown("transform", name, transform_names(), fix="`derivlang ls` lists the transforms")
