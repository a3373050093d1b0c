"""The files of a derived set, by its manifest."""

from __future__ import annotations

from pathlib import Path

from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store.card import CARD
from derivlang.store.manifest import LEXICON, NAME, Derived


def own_files(derived: Derived) -> dict[str, Path]:
    """Return the files of a set by their names in the folder, the manifest last. They need not be there."""
    shards = [shard["file"] for split in derived.splits for shard in derived.shards(split)]
    kept = [f"{SPEC_FILES}/{file}" for file in sorted(derived.pipeline.files_to_keep())]
    lexicon = [LEXICON] if derived.manifest["lexicon"] else []
    return {name: derived.folder / name for name in (CARD, *lexicon, *kept, *shards, NAME)}
