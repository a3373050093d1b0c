"""Generators by name: built in, and from other packages (entry points `derivlang.generators`); and their named source.

source:dyck=64:n=5000     the named source `source`, whose argument a generator reads
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from derivlang.core.errors import UsageError
from derivlang.core.plugins import Registry
from derivlang.core.schema import Schema, Side
from derivlang.core.spec import read_spec
from derivlang.formats.registry import GENERATED
from derivlang.sources.corpus import Corpus
from derivlang.sources.generated.base import PREFIX, Generator
from derivlang.sources.named import NamedSource, files_of_splits

GENERATORS: Registry[type[Generator]] = Registry(
    "generator",
    Generator,
    {
        "dyck": "derivlang.sources.generated.dyck:Dyck",
        "pcfg": "derivlang.sources.generated.pcfg:Pcfg",
        "resample": "derivlang.sources.generated.words:Resample",
        "zipf": "derivlang.sources.generated.words:Zipf",
    },
    of_classes=True,
    overrides=("opened",),
    fix="`derivlang ls` lists the generated sources",
)


def find_generator(argument: str) -> Generator:
    """Return the generator of `dyck=64:p=0.49`, which follows `source:`. UsageError if it is not well-formed."""
    where = f"{PREFIX}:{argument}"
    name = argument.partition(":")[0].partition("=")[0]
    if not name:
        raise GENERATORS.unknown(name)
    rest = argument[len(name) :]
    # The value follows `=` here, and `:` in a spec.
    parts = read_spec(name + (f":{rest[1:]}" if rest else ""), where, "source:dyck=64:p=0.49")
    if len(parts) != 1:
        raise UsageError(
            "several sources, but only one is possible", where=where, fix='write a value that holds a comma in "…"',
            id="bad-spec",
        )  # fmt: skip
    _, values, keyed = parts[0]
    return GENERATORS.find(name).from_values(values, keyed)


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
