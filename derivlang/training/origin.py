"""The text that the files of a data folder are made of, by the hashes of its files: is it still the same?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.core.parse_errors import parse_errors
from derivlang.engine.job import Job
from derivlang.engine.plan import source_files
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.record import check_same, check_types


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
        """What the recipe of a file says of the text that it is made of."""
        return {"source": {"files": self.files}, "reading": self.reading}

    def check(self, path: Path, recipe: Mapping[str, Any]) -> None:
        """Raise StoreError if the recipe of a file in the data folder names another source."""
        with parse_errors(str(path), "recipe", error=StoreError, id="data"):
            check_types(recipe, {"source": dict}, {"reading": dict})
            reading = recipe.get("reading", self.reading)  # encoded data are compared by `Artifact`
            check_same(
                {"files": recipe["source"].get("files"), "reading": reading},
                {"files": self.files, "reading": self.reading},
                "was made of another text",
                where=str(path),
                fix="give another --data folder, or the same source",
                id="other-data",
            )
