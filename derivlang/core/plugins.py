"""Plug-ins of other packages, found by entry point. Each is loaded separately, so a broken one breaks nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from derivlang.core.errors import UsageError, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


Found = TypeVar("Found")


@cache
def plug_ins(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name."""
    from importlib.metadata import entry_points  # imported late: a third of the package's start-up time

    return {point.name: point for point in entry_points(group=group)}


def find_class(
    name: str, base: type[Found], group: str, built_in: Mapping[str, str], added: Mapping[str, type[Found]]
) -> type[Found]:
    """Return the class of a name: registered in this process, built in ("module:attribute"), or from an entry point.

    Raise UsageError with similar names if there is none, or if a plug-in is not a `base`.
    """
    found = _find(name, base.__name__.lower(), group, built_in, added)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise UsageError(f"the plug-in {name!r} is no derivlang {base.__name__}", id="plug-in")
    return found


def find_object(
    name: str, base: type[Found], kind: str, group: str, built_in: Mapping[str, str], added: Mapping[str, Found]
) -> Found:
    """Return the object of a name, an instance of `base`; otherwise like `find_class`."""
    found = _find(name, kind, group, built_in, added)
    if not isinstance(found, base):
        raise UsageError(f"the plug-in {name!r} is no derivlang {base.__name__}", id="plug-in")
    return found


def _find(name: str, kind: str, group: str, built_in: Mapping[str, str], added: Mapping[str, Any]) -> Any:
    if name in added:
        return added[name]
    if name in built_in:
        module, _, attribute = built_in[name].partition(":")
        return getattr(import_module(module), attribute)
    if name in plug_ins(group):
        return load_plug_in(group, name)
    names = {*added, *built_in, *plug_ins(group)}
    raise unknown(kind, name, names, fix=f"`derivlang ls` lists the {kind}s")


def load_plug_in(group: str, name: str) -> Any:
    """Load the object of an entry point. Raise UsageError if its package cannot be imported."""
    point = plug_ins(group)[name]
    try:
        return point.load()
    except Exception as error:
        raise UsageError(
            f"the plug-in {name!r} ({point.value}) cannot be loaded: {type(error).__name__}: {error}",
            fix="repair or uninstall its package",
            id="plug-in",
        ) from error
