"""A source that was found: its files by split, their format, and what their columns mean."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from derivlang.core.lexicon import Lexicon
from derivlang.core.names import SPLITS, split_of
from derivlang.core.schema import Schema
from derivlang.core.spec import FilePolicy, no_file
from derivlang.core.takes import Mode
from derivlang.formats.base import NO_FILES
from derivlang.formats.opening import WHOLE, Piece
from derivlang.formats.words import Splitter


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A file of a split. name: its name in the manifest, never a path of this machine."""

    split: str
    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class FileSpan:
    """What is read of a file: all of it, its first `limit` documents, or a piece of a large one.

    first_document: the number of the first document, counted through the split.
    """

    part: CorpusFile
    piece: Piece = WHOLE
    first_document: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """A source that was found.

    format: of its files (`formats/base.py`), or `hub`, `generated` or `derived`. words: how raw sides are split
    (`space` for tokenised text). options: for the reader of its format. layout: for the writer, so that `undo` writes
    the same form. aliases: names of columns in other releases, with the names that the schema uses. language_column:
    holds the language of each row; only rows of rows_language are read, whatever language the user says the text is in.
    expected: the splits that the source should have. types: the columns of all files, each with one type that keeps the
    values of all; None where the format fixes them. watched: columns of lists that hold no entities by their first
    values, so that later tags of entities are an error.

    A derived set that is read as a source has a spec (its pipeline is applied first, and its sentences are not split
    again) with the policy for the files that it names, its fitted lexicon with the text of lexicon.tsv, and an origin,
    the format of its own source. A set of the hub has the revision that it was read at, if that is known.
    """

    name: str
    format: str
    schema: Schema
    parts: tuple[CorpusFile, ...]
    words: Mode = "spacy"
    language: str = "en"
    options: dict[str, Any] = field(default_factory=dict)
    layout: dict[str, Any] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    language_column: str | None = None
    rows_language: str | None = None
    expected: tuple[str, ...] = ()
    licence: str = "unknown"
    citation: str = ""
    spec: str | None = None
    spec_files: FilePolicy = no_file
    lexicon: Lexicon = field(default_factory=Lexicon)
    lexicon_text: str | None = None
    origin: str | None = None
    revision: str | None = None
    types: pa.Schema | None = None
    watched: tuple[str, ...] = ()

    @property
    def splits(self) -> list[str]:
        """The splits that were found, train first."""
        present = {part.split for part in self.parts}
        return [s for s in SPLITS if s in present] + sorted(present - set(SPLITS))

    @property
    def has_files(self) -> bool:
        """Whether its parts are files of this machine: not for a set on the hub, nor for a generated source."""
        return self.format not in NO_FILES

    @property
    def heldout(self) -> str:
        """The split of held-out text: validation, else test, unless it is the first, which is trained on; else that."""
        return next((split for split in ("validation", "test") if split in self.splits[1:]), self.splits[0])

    @property
    def is_raw(self) -> bool:
        """Whether the source has text that must be split into words."""
        return self.format != "derived" and any(side.words is None for side in self.schema.sides)

    def splitter(self) -> Splitter:
        """Return the splitter of its text. Imports nothing if the words are given."""
        return Splitter(self.words, self.language) if self.is_raw else Splitter("space")

    @property
    def word_rule(self) -> str:
        """How its text was split into words, for records: `spacy 3.8.7 en`, `space`, or `as given`."""
        return str(self.splitter()) if self.is_raw else str(self.options.get("told", {}).get("words", "as given"))

    def reading(self, encoding: str) -> dict[str, Any]:
        """Return how its files are read: what is made of the same files depends on it. JSON values only."""
        split = [self.words, *([self.language] if self.words == "spacy" else [])] if self.is_raw else None
        sides = [side.text or side.words for side in self.schema.sides]
        return json.loads(  # type: ignore[no-any-return]
            json.dumps({"encoding": encoding, "words": split, "columns": sides, "layout": self.layout})
        )

    @property
    def columns(self) -> list[str]:
        """The input columns that the schema names."""
        sides = [side.words or side.text for side in self.schema.sides]
        return [name for name in (*sides, *(field.input for field in self.schema.fields)) if name is not None]

    @property
    def missing(self) -> list[str]:
        """The expected splits that were not found."""
        return [split for split in self.expected if split not in self.splits]

    @property
    def unnamed(self) -> list[str]:
        """The files in `train` whose names contain no split, although names of other files do.

        A named source knows all.
        """
        if self.expected:
            return []
        told = {part.name for part in self.parts if split_of(part.name)}
        return [part.name for part in self.parts if told and part.split == "train" and part.name not in told]
