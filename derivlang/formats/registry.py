"""File formats by name and suffix: built-in ones and formats from other packages (entry points `derivlang.formats`)."""

from __future__ import annotations

from pathlib import Path

from derivlang.core.errors import DerivlangError, UsageError
from derivlang.core.plugins import Registry
from derivlang.formats.base import Format, ReadOptions
from derivlang.formats.opening import suffix_of

# If several formats have the same suffix, the first that recognises a file reads it.
FORMATS: Registry[Format] = Registry(
    "format",
    Format,
    {
        "text": "derivlang.formats.text:FORMAT",
        "conllu": "derivlang.formats.conllu:FORMAT",
        "jsonl": "derivlang.formats.jsonl:FORMAT",
        "tagged": "derivlang.formats.tagged:FORMAT",
        "delimited": "derivlang.formats.delimited:FORMAT",
        "csv": "derivlang.formats.csv:FORMAT",
        "parquet": "derivlang.formats.parquet:FORMAT",
        "squad": "derivlang.formats.squad:FORMAT",
        "bracketed": "derivlang.formats.bracketed:FORMAT",
    },
)
# What the format of a source says whose rows come from no file.
GENERATED = "generated"
NO_FILES = ("hub", GENERATED)
format_names = FORMATS.names
find_format = FORMATS.find


def register(format: Format) -> Format:
    """Register a format for this process, for notebooks and tests."""
    return FORMATS.add(format.name, format)


def formats() -> list[Format]:
    """Return all formats without the plug-ins that cannot be loaded."""
    loaded = []
    for name in format_names():
        try:
            loaded.append(find_format(name))
        except DerivlangError:
            if name in FORMATS.built_in:
                raise
    return loaded


def suffixes() -> list[str]:
    """Return the suffixes of all formats, each once."""
    return list(dict.fromkeys(suffix for format in formats() for suffix in format.suffixes))


def candidates(path: Path) -> list[Format]:
    """Return the formats of a file's suffix. Plug-ins are loaded only if no other format has the suffix."""
    suffix = suffix_of(path)
    near = [find_format(name) for name in dict.fromkeys([*FORMATS.added, *FORMATS.built_in])]
    matching = [format for format in near if suffix in format.suffixes]
    return matching or [format for format in formats() if suffix in format.suffixes]


def format_of(path: Path, asked: ReadOptions = ReadOptions()) -> Format:  # noqa: B008 (frozen)
    """Return the format that reads a file: as asked, else by its suffix and options.

    Raises UsageError format if there is none.
    """
    if asked.format is not None:
        return find_format(asked.format)
    for format in candidates(path):
        if format.recognises is None or format.recognises(path, asked):
            return format
    raise unknown_suffix(path)


def unknown_suffix(path: Path) -> UsageError:
    """Return the error for a file whose suffix no format has."""
    return UsageError(
        f"no format has the suffix {suffix_of(path)!r}",
        where=str(path),
        fix=f"known suffixes: {', '.join(suffixes())}, also with .gz or .zst; or name the format: --format "
        f"{', '.join(format_names())}",
        id="format",
    )
