"""Transforms by name: the built-in ones, and those of other packages by entry point.

A package adds a transform under its own `pyproject.toml`:

    [project.entry-points."derivlang.transforms"]
    swap = "my_package.swap:Swap"
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.transforms.base import Transform

GROUP = "derivlang.transforms"
_BUILT_IN = {
    "identity": "derivlang.transforms.identity:Identity",
    "inv": "derivlang.transforms.inv:Inv",
    "perm": "derivlang.transforms.perm:Perm",
    "trans": "derivlang.transforms.trans:Trans",
}
_ADDED: dict[str, type[Transform]] = {}


def register(transform: type[Transform]) -> type[Transform]:
    """Register a transform for this process; a decorator, for notebooks and tests."""
    _ADDED[transform.name] = transform
    return transform


def transform_names() -> list[str]:
    return sorted({*_BUILT_IN, *_ADDED, *(point.name for point in _points())})


def find_transform(name: str) -> type[Transform]:
    """The class of this name; UsageError with near names, or if a plug-in is no Transform."""
    if name in _ADDED:
        return _ADDED[name]
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return getattr(import_module(module), attribute)  # type: ignore[no-any-return]
    for point in _points():
        if point.name == name:
            found = load_plug_in(point, "transform")
            if not (isinstance(found, type) and issubclass(found, Transform)):
                raise UsageError(f"the plug-in {name!r} ({point.value}) is no derivlang Transform", id="plug-in")
            return found
    raise unknown("transform", name, transform_names(), fix="`derivlang ls` lists the transforms")


def load_plug_in(point: EntryPoint, kind: str) -> Any:
    """What an entry point names; UsageError if its package cannot be imported."""
    try:
        return point.load()
    except Exception as error:
        raise UsageError(
            f"the {kind} plug-in {point.name!r} ({point.value}) cannot be loaded: {type(error).__name__}: {error}",
            fix="repair or uninstall the package that brings it",
            id="plug-in",
        ) from error


@cache
def _points():  # type: ignore[no-untyped-def]
    return tuple(entry_points(group=GROUP))
