"""What other packages bring by entry point, loaded one at a time, so that a broken one breaks nothing else."""

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
    """The entry points of a group, by name."""
    from importlib.metadata import entry_points  # a third of the package's own start-up time

    return {point.name: point for point in entry_points(group=group)}


def find_class(
    name: str, base: type[Found], group: str, built_in: Mapping[str, str], added: Mapping[str, type[Found]]
) -> type[Found]:
    """The class of a name: registered in this process, built in ("module:attribute"), or of an entry point.

    UsageError with near names, or if a plug-in is no `base`.
    """
    kind = base.__name__
    if name in added:
        return added[name]
    if name in built_in:
        module, _, attribute = built_in[name].partition(":")
        return getattr(import_module(module), attribute)  # type: ignore[no-any-return]
    if name in plug_ins(group):
        found = load_plug_in(group, name)
        if not (isinstance(found, type) and issubclass(found, base)):
            raise UsageError(f"the plug-in {name!r} is no derivlang {kind}", id="plug-in")
        return found
    names = {*added, *built_in, *plug_ins(group)}
    raise unknown(kind.lower(), name, names, fix=f"`derivlang ls` lists the {kind.lower()}s")


def load_plug_in(group: str, name: str) -> Any:
    """What an entry point names; UsageError if its package cannot be imported."""
    point = plug_ins(group)[name]
    try:
        return point.load()
    except Exception as error:
        raise UsageError(
            f"the plug-in {name!r} ({point.value}) cannot be loaded: {type(error).__name__}: {error}",
            fix="repair or uninstall the package that brings it",
            id="plug-in",
        ) from error
