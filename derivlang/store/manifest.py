"""The manifest `derivlang.json`: everything that `verify`, `undo`, `export` and readers of a table need.

It holds no time, no path of a machine and no number of workers, so the same plan gives the same bytes.
"""

from __future__ import annotations

import codecs
import glob
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from derivlang.core.batch import Batch
from derivlang.core.errors import DerivlangError, LayerError, StoreError, parse_errors
from derivlang.core.from_table import from_table
from derivlang.core.layers.base import LAYERS
from derivlang.core.lexicon import Lexicon
from derivlang.core.messages import in_shell
from derivlang.core.names import split_name
from derivlang.core.order import Order
from derivlang.core.plugins import Registry
from derivlang.core.policies import Policies
from derivlang.core.schema import Schema
from derivlang.core.seal import is_intact, sealed
from derivlang.formats.opening import is_utf8
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.formats.spec_paths import files_of
from derivlang.pipeline import Pipeline
from derivlang.store.record import read_record, record_text
from derivlang.store.shards import read_shard

NAME = "derivlang.json"
LEXICON = "lexicon.tsv"
CARD = "README.md"
FORMAT = 2  # of a derived folder: a version reads the folders of one format
# The version of the rules that belong to no transform: reading, the columns of sentences, Parquet files. Raise it when
# a change of the code changes a byte of some set. It is part of the plan's hash; the package version is not.
OUTPUT_VERSION = 3
_FIX = "restore the file, or make the set again in another folder"

_SHARD_FILE = re.compile(r"data(-[0-9a-f]{8})?/[^/\\\0]+\.parquet")
DIGEST = re.compile(r"[0-9a-f]{64}")
# Forms of what is read (`check_record`): of a schema, an entry of a shard, and the manifest.
SCHEMA = {
    "sides": [{"name": str, "words?": str, "text?": str}],
    "fields": [
        {"column": str, "kind": str, "lexical": bool, "classes?": [str], "given?": str, "scheme?": str,
         "given_classes?": [str]}
    ],
    "running": bool,
    "parsed": bool,
}  # fmt: skip
SHARD_ENTRY = {"file": _SHARD_FILE, "sha256": DIGEST, "bytes": int, "rows": int, "words": int}
_SPLIT = {"documents": int, "sentences": int, "tokens": int, "articles?": int, "shards": [SHARD_ENTRY]}
_MANIFEST = {
    "format": FORMAT,
    **dict.fromkeys(("spec", "fingerprint", "words", "sentences", "encoding"), str),
    "source": {
        **dict.fromkeys(("name", "format", "language", "licence", "citation", "revision?"), str),
        "files": [{"split": str, "name": str}],
    },
    "policies": {"*": str},
    "schema": SCHEMA,
    "splits": {"*": _SPLIT},
    "changed": {"*": int},
    "dropped": {"*": int},
    "columns_left_out": [str],
    "plan": DIGEST,
    "options?": [str],
    "plug_ins?": {"*": str},
}
_LONGEST = 255  # bytes; file systems take no longer names of files


class Derived:
    """A derived folder: its manifest, schema, pipeline and lexicon.

    StoreError if the folder is not a derived set, or if a value of its manifest was changed; changed: accept that.
    """

    def __init__(self, folder: Path, *, changed: bool = False):
        self.folder = folder
        self.manifest = read_manifest(folder)
        if not changed and not is_intact(self.manifest):
            raise StoreError(
                "a value of the manifest was changed after it was written",
                where=str(folder / NAME),
                fix=_FIX,
                id="manifest",
            )
        with _usable(folder / NAME):
            self.schema = Schema.from_json(self.manifest["schema"])
            for field in self.schema.fields:
                self.require(LAYERS, field.kind)
            self.pipeline = Pipeline.from_stored(
                self.manifest["spec"], files_of(folder), where=str(folder / NAME), plug_ins=self.plug_ins
            )
            self.policies = Policies(**self.manifest["policies"])
            for split in self.splits:
                for shard in self.shards(split):
                    self._inside(shard["file"])
            text = self.lexicon_text()
        self.lexicon: Lexicon = self.pipeline.fit(saved=text, where=str(folder / LEXICON))

    @property
    def plug_ins(self) -> dict[str, str]:
        """The packages of the plug-ins that the set was made with: {"transform turn": "my-package"}."""
        return self.manifest.get("plug_ins") or {}

    def require(self, registry: Registry[Any], name: str) -> None:
        """Raise StoreError if the set was made with a plug-in that is not installed."""
        registry.require(name, self.plug_ins, str(self.folder / NAME))

    def lexicon_text(self) -> str | None:
        """Return the text of lexicon.tsv, or None if the set has none."""
        name = self.manifest["lexicon"]
        if not name:
            return None
        path = self._inside(name)
        with parse_errors(str(path), "lexicon", error=StoreError, id="lexicon", fix=_FIX):
            return path.read_bytes().decode("utf-8")  # read_text would turn \r\n into \n

    @property
    def is_utf8(self) -> bool:
        """Whether the source was read as UTF-8."""
        return is_utf8(self.manifest["encoding"])

    def _inside(self, name: str) -> Path:
        """Return the path of a file of the set. ValueError for a link that leaves the folder."""
        path = self.folder / name
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise ValueError(f"{name} is a link to a file outside the folder")
        return path

    def has_fingerprint(self) -> bool:
        """Return whether the manifest's fingerprint matches its spec and lexicon."""
        return self.pipeline.fingerprint(self.lexicon_text()) == str(self.manifest["fingerprint"])

    def check_fingerprint(self) -> None:
        """Raise StoreError if its transforms and lexicon would derive something else today than when it was made."""
        with _usable(self.folder / NAME):
            same = self.has_fingerprint()
        if not same:
            raise StoreError(
                f"the lexicon, a file that {self.pipeline} reads, or the code of a plug-in, is not this set's",
                where=str(self.folder),
                fix=_FIX,
                id="other-transforms",
            )

    @property
    def splits(self) -> list[str]:
        return list(self.manifest["splits"])

    def shards(self, split: str) -> list[dict[str, Any]]:
        """Return the shards of a split, in order. StoreError if there is no such split."""
        if split not in self.manifest["splits"]:
            raise StoreError(
                f"there is no split {split!r}; there are: {', '.join(self.splits)}",
                where=str(self.folder),
                id="unknown-split",
            )
        return list(self.manifest["splits"][split]["shards"])

    def own_files(self) -> dict[str, Path]:
        """Return the files of the set by their names in the folder, the manifest last. They need not be there."""
        shards = [shard["file"] for shard in shards_of(self.manifest)]
        kept = [f"{SPEC_FILES}/{file}" for file in sorted(self.pipeline.files_to_keep())]
        lexicon = [LEXICON] if self.manifest["lexicon"] else []
        return {name: self.folder / name for name in (CARD, *lexicon, *kept, *shards, NAME)}

    def choose_split(self, split: str | None, *, first: bool = False) -> str:
        """Return the split of this name (`dev` is validation). For None, the only one, or the first if `first`."""
        if split is not None:
            return split if split in self.splits else split_name(split)
        if first or len(self.splits) == 1:
            return self.splits[0]
        raise StoreError(
            f"the set has several splits: {', '.join(self.splits)}",
            where=str(self.folder),
            fix="name one: --split NAME; `undo -o FOLDER` writes all",
            id="which-split",
        )


COUNTS = ("articles", "documents", "sentences", "tokens")  # of a split


def document_of(manifest: dict[str, Any]) -> str:
    """Return what a document of a set is: a paragraph of running text or of a SQuAD file, else a row."""
    several = any(sum(s["rows"] for s in e["shards"]) > e["documents"] for e in manifest["splits"].values())
    return "paragraph" if manifest["schema"]["running"] or several else "row"


def shards_of(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of all shards, in the order of the splits: file, sha256, bytes, …"""
    return [shard for entry in manifest["splits"].values() for shard in entry["shards"]]


def data_folder(manifest: dict[str, Any]) -> str:
    """Return the folder of the shards: `data`, or another one at a URL where an older set was replaced."""
    shards = shards_of(manifest)
    return str(shards[0]["file"]).partition("/")[0] if shards else "data"


def counts_of_reading(manifest: dict[str, Any]) -> dict[str, int]:
    """Return how much was widened and repaired when the source was read, which no later reading of the set counts."""
    return {name: n for name, n in manifest["changed"].items() if name.endswith(("-widened", "-repaired"))}


def counts_of(entry: dict[str, Any], document: str) -> dict[str, int]:
    """Return the counts of a split by the nouns of messages, of one thing the singular: {"row": 1, "tokens": 5}.

    entry: the split. document: what a document is.
    """
    nouns = {name: document if name == "documents" else name.removesuffix("s") for name in COUNTS if name in entry}
    return {noun if entry[name] == 1 else f"{noun}s": entry[name] for name, noun in nouns.items()}


def sets_near(folder: Path) -> str:
    """Return advice for a folder that is not there: the sets of its name, such as demo.inv for demo, "" for none."""
    made = sorted(str(path.parent) for path in folder.parent.glob(f"{glob.escape(folder.name)}.*/{NAME}"))
    return f"did you mean {' or '.join(made)}?" if made else ""


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder. StoreError if there is none, or this version cannot read it."""
    path = folder / NAME
    if not folder.is_dir():
        raise StoreError(
            "this is a file, not the folder of a derived set" if folder.exists() else "there is no such folder",
            where=str(folder),
            fix=sets_near(folder) or f"to make a set of a source or file: derivlang make --t … {in_shell(folder)}",
            id="missing-folder",
        )
    if not path.exists():
        unfinished = (folder / ".derivlang").exists()
        raise StoreError(
            "this set is not finished" if unfinished else "this is not a derived set: it has no derivlang.json",
            where=str(folder),
            fix="run the same `make` command again: it goes on from where it stopped"
            if unfinished
            else "give a folder made by `derivlang make`, or restore the file",
            id="unfinished" if unfinished else "no-manifest",
        )
    return read_record(path, "manifest", _MANIFEST, _check, id="manifest", fix=_FIX)


def _check(manifest: dict[str, Any]) -> None:
    """Raise ValueError unless this version can use the manifest."""
    if not manifest["splits"]:
        raise ValueError("it has no splits")
    for shard in shards_of(manifest):
        if len(shard["file"].partition("/")[2].encode()) > _LONGEST:
            raise ValueError(f"{shard['file']!r} is not a file of data/")
    try:
        codecs.lookup(manifest["encoding"])
    except LookupError:
        raise ValueError(f"its encoding is {manifest['encoding']!r}, which Python does not know") from None
    if manifest["lexicon"] not in (None, LEXICON):
        raise ValueError(f"its lexicon is {manifest['lexicon']!r}, not {LEXICON}")


def _usable(path: Path) -> AbstractContextManager[None]:
    """Turn any error in a manifest, in its spec or its schema into a StoreError."""
    return parse_errors(str(path), "manifest", error=StoreError, id="manifest", fix=_FIX, within=DerivlangError)


def dump(manifest: dict[str, Any]) -> str:
    """Return the text of derivlang.json: the manifest, and as its last field the hash of all others."""
    return record_text(sealed(manifest))


@dataclass(frozen=True, slots=True)
class Loaded:
    """A row group of a shard: its columns, and the batches that they describe."""

    first_row: int
    table: pa.Table
    source: Batch
    derived: Batch
    order: Order


def load(derived: Derived, split: str) -> Iterator[Loaded]:
    """Yield the row groups of a split, in order.

    StoreError with the name of a damaged file, before the first of its rows: a shard must have the hash that the
    manifest lists.
    """
    for shard in derived.shards(split):
        row = 0
        for table in read_shard(derived.folder / shard["file"], codes=True, sha256=shard["sha256"]):
            yield _loaded(derived, shard["file"], row, table)
            row += table.num_rows


def _loaded(derived: Derived, file: str, row: int, table: pa.Table) -> Loaded:
    """Return a row group. file: of the shard. row: its first one."""
    try:
        with parse_errors(file, "row", error=LayerError, id="row"):
            return Loaded(row, table, *from_table(table, derived.schema, derived.lexicon))
    except LayerError as error:
        raise StoreError(
            f"rows {row} to {row + table.num_rows - 1} do not fit together: {error.what}",
            where=str(derived.folder / file),
            fix="`derivlang verify` names the first bad row; make the set again",
            id="damaged",
        ) from error
