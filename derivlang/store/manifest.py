"""The manifest `derivlang.json`: everything that `verify`, `undo`, `export` and a reader of a table need.

It holds no time, no path of a machine and no worker count: the same plan gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from derivlang.core.batch import Policies
from derivlang.core.errors import StoreError, UsageError
from derivlang.core.lexicon import Lexicon
from derivlang.core.schema import Schema
from derivlang.core.splits import split_name
from derivlang.pipeline import Pipeline

NAME = "derivlang.json"
LEXICON = "lexicon.tsv"
FORMAT = 1


class Derived:
    """A derived folder: its manifest, schema, pipeline and lexicon. StoreError if it is none."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.manifest = read_manifest(folder)
        with _usable(folder / NAME):
            self.schema = Schema.from_json(self.manifest["schema"])
            self.pipeline = Pipeline.parse(self.manifest["spec"])
            self.policies = Policies(**self.manifest["policies"])
            for entry in self.manifest["splits"].values():
                if not all({"file", "sha256", "bytes"} <= set(shard) for shard in entry["shards"]):
                    raise ValueError("a shard without file, sha256 and bytes")
            text = self.lexicon_text()
        self.lexicon: Lexicon = self.pipeline.fit(saved=text, where=str(folder / LEXICON))

    def lexicon_text(self) -> str | None:
        name = self.manifest["lexicon"]
        return (self.folder / name).read_text("utf-8") if name else None

    @property
    def splits(self) -> list[str]:
        return list(self.manifest["splits"])

    def shards(self, split: str) -> list[dict[str, Any]]:
        """The shards of a split, in order; StoreError with the splits that there are."""
        if split not in self.manifest["splits"]:
            raise StoreError(
                f"there is no split {split!r}; there are: {', '.join(self.splits)}",
                where=str(self.folder),
                id="unknown-split",
            )
        return list(self.manifest["splits"][split]["shards"])

    def choose_split(self, split: str | None, *, first: bool = False) -> str:
        """The split of this name (`dev` is validation); without one the only split, or the first if `first`."""
        if split is not None:
            return split if split in self.splits else split_name(split)
        if first or len(self.splits) == 1:
            return self.splits[0]
        raise StoreError(
            f"the set has several splits: {', '.join(self.splits)}",
            where=str(self.folder),
            fix="name one: --split NAME",
            id="which-split",
        )


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder; StoreError where there is none, or none that this version can read."""
    path = folder / NAME
    if not folder.is_dir():
        raise StoreError("there is no such folder", where=str(folder), id="missing-folder")
    if not path.exists():
        unfinished = (folder / ".derivlang").exists()
        raise StoreError(
            "this set is not finished" if unfinished else "this is no derived set: it has no derivlang.json",
            where=str(folder),
            fix="run the same `make` command again: it goes on from where it stopped" if unfinished else None,
            id="unfinished" if unfinished else "no-manifest",
        )
    with _usable(path):
        manifest: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if manifest["format"] != FORMAT:
            raise ValueError(f"its format is {manifest['format']}, this version reads {FORMAT}: make the set again")
        if missing := {"spec", "plan", "schema", "splits", "source", "lexicon", "policies"} - set(manifest):
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
    return manifest


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    """Whatever is wrong with a manifest, as one StoreError."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise StoreError(
            f"the manifest cannot be used: {what}",
            where=str(path),
            fix="restore the file, or make the set again in another folder",
            id="manifest",
        ) from error


def dump(manifest: dict[str, Any]) -> str:
    return json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"
