"""What is wrong with the files of a derived set, and what in its folder is not of the set.

No row is derived here. `verify` and `push` share these rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from derivlang.core.errors import StoreError
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store.disk import LOCK, STAGE
from derivlang.store.listing import file_hash
from derivlang.store.manifest import CARD, Derived, data_folder
from derivlang.store.set_plan import begun_plan
from derivlang.store.storage import store_at


def foreign_files(derived: Derived) -> Iterator[str]:
    """Yield the names of files and folders that are not of the set; hidden ones are nobody's."""
    folder = derived.folder
    own = derived.own_files()
    tops = {name.partition("/")[0] for name in own} | {data_folder(derived.manifest)}
    begun = None
    with suppress(StoreError):  # a store where no set can be made
        begun = begun_plan(store_at(folder)).get("data")  # of a set that is about to replace this one
    for path in sorted(folder.iterdir()):
        if path.name not in tops | {begun} and path.name[0] != ".":
            yield path.name
    for top in (data_folder(derived.manifest), SPEC_FILES):
        if top in tops and (folder / top).is_dir():
            inside = (f"{top}/{path.name}" for path in sorted((folder / top).iterdir()) if path.name[0] != ".")
            yield from (name for name in inside if name not in own)


def notes_on_files(derived: Derived) -> list[dict[str, str]]:
    """Return what is unusual about the files and does not affect the data: leftovers of a run, the card's state."""
    folder = derived.folder
    stopped = "belongs to a run that was stopped or is still running"
    notes = [{"file": name, "what": stopped} for name in (STAGE, LOCK) if (folder / name).exists()]
    if what := state_of_card(derived):
        notes.append({"file": CARD, "what": f"the dataset card {what}"})
    return notes


def state_of_card(derived: Derived) -> str:
    """Return "is missing" or "was edited" of a card that is not as the set was made with it, else ""."""
    card = derived.folder / CARD
    if not card.is_file():
        return "is missing"
    return "was edited" if derived.manifest.get("card", file_hash(card)) != file_hash(card) else ""


def damaged_shards(derived: Derived) -> Iterator[tuple[str, str]]:
    """Yield the name of each shard that is not the one that the manifest lists, and what is wrong with it."""
    for split in derived.splits:
        for shard in derived.shards(split):
            path = derived.folder / shard["file"]
            if not path.is_file():
                yield shard["file"], "the file is missing"
            elif path.stat().st_size != shard["bytes"] or file_hash(path) != shard["sha256"]:
                yield shard["file"], "the file's hash is not the one in the manifest"
