"""`.orm` files: the published order models (gdtreebank, Wang and Eisner 2016), one head class a file.

A line is `KIND_TOKEN_TOKEN[_TOKEN…] WEIGHT`. The class is in the file's name: `fr@N.orm.gz`, `fr@V.orm.gz`.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from derivlang.core.errors import DataError, UsageError
from derivlang.grammar.weights import KINDS, LONGEST_SEQUENCE, PUBLISHED, Feature, Weights

SUFFIXES = (".orm", ".orm.gz")


def read_weights(path: Path) -> Weights:
    """The weights of one file. Raises DataError missing-file, grammar-line (file:line)."""
    return Weights.of(_features(path), PUBLISHED)


def head_class_of(path: Path) -> str:
    """N or V, from the name. Raises UsageError grammar-name."""
    stem = path.name.removesuffix(".gz").removesuffix(".orm")
    _, at, name = stem.rpartition("@")
    if not at or name not in ("N", "V"):
        raise UsageError(
            f"the name {path.name!r} does not end in @N or @V, so its head class is not known",
            where=str(path),
            fix="name it like fr@V.orm.gz",
            id="grammar-name",
        )
    return name


def language_of(path: Path) -> str:
    """`fr` of `fr@N.orm.gz`."""
    return path.name.partition("@")[0]


def _features(path: Path) -> Iterator[Feature]:
    seen: set[str] = set()
    for number, line in lines(path):
        name, _, value = line.partition(" ")
        kind, *tokens = name.split("_")
        length = (3, LONGEST_SEQUENCE) if kind == "HI" else (2, 2)
        try:
            weight = float(value)
        except ValueError:
            raise broken(path, number, f"{value!r} is not a number") from None
        if kind not in KINDS:
            raise broken(path, number, f"there is no kind of feature {kind!r}")
        if not length[0] <= len(tokens) <= length[1] or "" in tokens:
            raise broken(path, number, f"{name!r} has {len(tokens)} labels")
        if name in seen:
            raise broken(path, number, f"{name!r} comes twice")
        if weight - weight != 0:
            raise broken(path, number, f"{value!r} is not a finite number")
        seen.add(name)
        yield kind, tuple(tokens), weight


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """(1-based number, text) of each line of a plain or gzip file. Raises DataError."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        data = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        text = data.decode("utf-8")
    except FileNotFoundError:
        raise DataError("there is no such file", where=str(path), id="missing-file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"the file cannot be read: {error}", where=str(path), id="unreadable-file") from None
    except UnicodeDecodeError:
        raise DataError("the file is not UTF-8", where=str(path), id="encoding") from None
    yield from enumerate(text.splitlines(), 1)


def broken(path: Path, number: int, what: str) -> DataError:
    """The one error for a line that cannot be read."""
    return DataError(
        what, where=f"{path}:{number}", fix="get the file again, or mend the line (docs/formats.md)", id="grammar-line"
    )
