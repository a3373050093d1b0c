"""The named source `source`: text that a generator makes, `source:dyck=64:n=5000`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from derivlang.core.schema import Schema, Side
from derivlang.formats.registry import GENERATED
from derivlang.sources.corpus import Corpus
from derivlang.sources.generated.registry import find_generator
from derivlang.sources.named import NamedSource, files_of_splits


@dataclass(frozen=True, slots=True)
class Generated(NamedSource):
    """The generated sources, whose argument says what is made."""

    def find(self, argument: str, folders: Sequence[Path]) -> Corpus:
        """Return the source that is made. UsageError, DataError for a wrong argument, or a file that it names."""
        return find_generator(argument).corpus(folders)

    def full_name(self, argument: str) -> str:
        """Return the canonical name of the source, without folders of files."""
        return str(find_generator(argument))


def generated() -> NamedSource:
    """Return the source `source`."""
    summary = "generated text, such as source:dyck=64:n=5000; the kinds are listed apart"
    schema = Schema((Side("", words="tokens"),))
    return Generated("source", summary, GENERATED, schema, files_of_splits(""), licence="cc0-1.0")
