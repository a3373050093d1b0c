"""Corpus: a source that was found: its files by split, their format, and what their columns mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from derivlang.core.errors import DataError
from derivlang.core.schema import Schema
from derivlang.core.splits import SPLITS
from derivlang.formats.words import Mode, Splitter

Format = Literal["text", "conllu", "tagged", "delimited", "squad", "jsonl", "parquet", "hub", "derived"]

# The suffixes of files that hold a corpus, and the format of each.
SUFFIXES: dict[str, Format] = {
    ".txt": "text",
    ".tokens": "text",
    ".conllu": "conllu",
    ".jsonl": "jsonl",
    ".tsv": "delimited",
    ".parquet": "parquet",
    ".json": "squad",
}
PACKED = (".gz", ".zst")


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a split. name: what the manifest calls it (never a path of this machine)."""

    split: str
    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """A source that was found.

    words: how raw sides are split (`space` for tokenised text). options: for the reader of its format.
    expected: splits that the source has by nature. spec, lexicon, origin: of a derived set that is read as
    a source (its pipeline goes first, its sentences are not split again; origin: the format of its own source).
    """

    name: str
    format: Format
    schema: Schema
    parts: tuple[Part, ...]
    words: Mode = "spacy"
    language: str = "en"
    options: dict[str, Any] = field(default_factory=dict)
    expected: tuple[str, ...] = ()
    licence: str = "unknown"
    citation: str = ""
    spec: str | None = None
    lexicon: str | None = None
    origin: str | None = None

    @property
    def splits(self) -> list[str]:
        """The splits that were found, train first."""
        found = {part.split for part in self.parts}
        return [s for s in SPLITS if s in found] + sorted(found - set(SPLITS))

    @property
    def is_raw(self) -> bool:
        """Is there text that a splitter must make into words?"""
        return self.format == "text" or (
            self.format != "derived" and any(side.words is None for side in self.schema.sides)
        )

    def splitter(self) -> Splitter:
        """What makes its text into words; nothing is imported where the words are given."""
        return Splitter(self.words, self.language) if self.is_raw else Splitter("space")

    @property
    def missing(self) -> list[str]:
        return [split for split in self.expected if split not in self.splits]


def suffix_of(path: Path) -> str:
    """The suffix that tells the format, compression left out."""
    name = path.name
    for packed in PACKED:
        name = name.removesuffix(packed)
    return Path(name).suffix.lower()


def first_existing(folders: Sequence[Path], patterns: Sequence[str]) -> Path | None:
    """The first file that exists of `folder / pattern`, plain, gz or zst; a pattern may hold `*`."""
    for folder in folders:
        for pattern in patterns:
            for suffix in ("", *PACKED):
                found = sorted(folder.glob(pattern + suffix))
                if found:
                    return found[0]
    return None


def not_found(name: str, folders: Sequence[Path], layout: Sequence[str], hub: str | None) -> DataError:
    """The error for a source that is nowhere: which files to put where."""
    looked = " in " + ", ".join(str(folder) for folder in folders) if folders else ", and no --data-dir was given"
    tried = f"; the hub ({hub}) could not be reached or lacks it" if hub else ""
    files = "\n    ".join(layout)
    return DataError(
        f"the source {name} was not found{looked}{tried}",
        fix=f"put these files into a folder and pass it as --data-dir:\n    {files}",
        id="source-missing",
    )
