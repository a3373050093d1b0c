"""The store of a place, and what makes a set there: a local folder, or a place with a URL."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.formats.places import is_remote
from derivlang.store.base import Store
from derivlang.store.folder_store import FolderStore
from derivlang.store.making import Making, begun_plan
from derivlang.store.making_folder import FolderMaking
from derivlang.store.manifest import read_manifest


def store_at(out: Path) -> Store:
    """Return the store of a place. StoreError for a URL where no set can be made."""
    if not is_remote(out):
        return FolderStore(out)
    from derivlang.store.url_store import UrlStore  # imported late: most sets are made in local folders

    return UrlStore(str(out))


def making_at(
    out: Path,
    plan: str,
    asked: Mapping[str, Any],
    kept: Mapping[str, bytes] = {},
    begun: Mapping[str, Any] = {},
) -> Making:
    """Return the run of a plan into a place. begun: what `plan.json` says, of a plan that is stored there.

    Other arguments as of `Making`. StoreError for a URL where no set can be made.
    """
    if not is_remote(out):
        return FolderMaking(out, plan, asked, kept, begun)
    from derivlang.store.making_url import UrlMaking

    return UrlMaking(out, plan, asked, kept, begun)


def plan_of(out: Path) -> str | None:
    """Return the hash of the plan of the set in a place, finished or begun; None if there is none that says it."""
    with suppress(StoreError):
        return str(read_manifest(out).get("plan"))
    return begun_plan(store_at(out)).get("plan")
