"""The manifest `derivlang.json`: everything that `verify`, `undo`, `export` and a reader of a table need.

It holds no time, no path of a machine and no worker count: the same plan gives the same bytes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.core.lexicon import Lexicon
from derivlang.core.schema import Schema
from derivlang.pipeline import Pipeline

NAME = "derivlang.json"
LEXICON = "lexicon.tsv"
FORMAT = 1


class Derived:
    """A derived folder: its manifest, schema, pipeline and lexicon. StoreError if it is none."""

    def __init__(self, folder: Path):
        self.folder = folder
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
        try:
            self.manifest: dict[str, Any] = json.loads(path.read_text("utf-8"))
            if self.manifest["format"] != FORMAT:
                raise StoreError(
                    f"the set has format {self.manifest['format']}, this version reads {FORMAT}",
                    where=str(path),
                    fix="make it again",
                    id="manifest",
                )
            self.schema = Schema.from_json(self.manifest["schema"])
            self.pipeline = Pipeline.parse(self.manifest["spec"])
            text = self.lexicon_text()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"the manifest cannot be used: {error!r}", where=str(path), id="manifest") from error
        self.lexicon: Lexicon = self.pipeline.fit(saved=text or "", where=str(folder / LEXICON))

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

    def split_or_only(self, split: str | None) -> str:
        """The named split; without a name, the only one."""
        if split is not None:
            return split
        if len(self.splits) == 1:
            return self.splits[0]
        raise StoreError(
            f"the set has several splits: {', '.join(self.splits)}",
            where=str(self.folder),
            fix="name one: --split NAME",
            id="which-split",
        )


def dump(manifest: dict[str, Any]) -> str:
    return json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"
