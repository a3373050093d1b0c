"""`.orm` files: the published order models (gdtreebank, Wang and Eisner 2016), one head class per file.

A line is `KIND_LABEL_LABEL[_LABEL…] WEIGHT`. The file's name has the class: `fr@N.orm.gz`, `fr@V.orm.gz`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from derivlang.core.errors import DataError, UsageError
from derivlang.formats.opening import utf8_text
from derivlang.grammar.weights import KINDS, LARGEST, LONGEST_SEQUENCE, PUBLISHED, Features, Weights

SUFFIXES = (".orm", ".orm.gz")


def read_weights(path: Path) -> Weights:
    """Return the weights of one file. Raises DataError missing-file, grammar-line (file:line)."""
    return Weights.of(_features(path), PUBLISHED)


def head_class_of(path: Path) -> str:
    """Return N or V, from the file's name. Raises UsageError grammar-name."""
    stem = path.name.removesuffix(".gz").removesuffix(".orm")
    _, at, name = stem.rpartition("@")
    if not at or name not in ("N", "V"):
        raise UsageError(
            f"the name {path.name!r} does not end in @N or @V, so its head class is unknown",
            where=str(path),
            fix="name it like fr@V.orm.gz",
            id="grammar-name",
        )
    return name


def language_of(path: Path) -> str:
    """Return the language of a file name, `fr` of `fr@N.orm.gz`."""
    return path.name.partition("@")[0]


def _features(path: Path) -> Features:
    out: Features = {}
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
        row = out.setdefault((kind, tuple(tokens[:-1])), {})
        if tokens[-1] in row:
            raise broken(path, number, f"{name!r} comes twice")
        if not abs(weight) <= LARGEST:
            raise broken(path, number, f"the weight {value!r} must be from -{LARGEST:,} to {LARGEST:,}")
        row[tokens[-1]] = weight
    return out


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, text) of each line of a plain or compressed file. Raises DataError encoding."""
    yield from enumerate(utf8_text(path).splitlines(), 1)


def broken(path: Path, number: int, what: str) -> DataError:
    """Return the error for a line that cannot be read."""
    return DataError(
        what,
        where=f"{path}:{number}",
        fix="copy the file again, or correct the line (docs/reference/files.md)",
        id="grammar-line",
    )
