"""The text that the folders of data are made of, by the hashes of its files: a part of their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from derivlang.engine.job import Job
from derivlang.engine.plan import source_files
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest


@dataclass(frozen=True, slots=True)
class Origin:
    """What tokenizers and dictionaries are made of.

    files, heldout: names and hashes of the files of the first split and of the held-out one, as of `source_files`.
    reading: how they are read.
    """

    files: list[dict[str, Any]]
    heldout: list[dict[str, Any]]
    reading: dict[str, Any]

    @classmethod
    def of(cls, request: SourceRequest) -> Origin:
        """Return the files of a source as they are now."""
        corpus = find(request)
        first, heldout = corpus.splits[0], corpus.heldout
        hashed = source_files(Job(corpus, encoding=request.encoding), [first, heldout])
        files, other = ([file for file in hashed if file["split"] == split] for split in (first, heldout))
        return cls(files, other, corpus.reading(request.encoding))

    @property
    def recipe(self) -> dict[str, Any]:
        """What a recipe says of the text."""
        return {"files": self.files, "reading": self.reading}
