"""Generators by name: built in, and from other packages (entry points `derivlang.generators`)."""

from __future__ import annotations

from derivlang.core.errors import UsageError
from derivlang.core.plugins import Registry
from derivlang.core.spec import read_spec
from derivlang.sources.generated.base import PREFIX, Generator

GENERATORS: Registry[type[Generator]] = Registry(
    "generator",
    Generator,
    {
        "dyck": "derivlang.sources.generated.dyck:Dyck",
        "pcfg": "derivlang.sources.generated.pcfg:Pcfg",
        "resample": "derivlang.sources.generated.resample:Resample",
        "zipf": "derivlang.sources.generated.zipf:Zipf",
    },
    of_classes=True,
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
