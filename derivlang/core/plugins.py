"""What other packages bring by entry point, loaded one at a time, so that a broken one breaks nothing else."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from derivlang.core.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@cache
def plug_ins(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group, by name."""
    from importlib.metadata import entry_points  # a third of the package's own start-up time

    return {point.name: point for point in entry_points(group=group)}


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
