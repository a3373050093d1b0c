"""Suffix tables: a suffix of the singular and one of the plural for relations.

    relation	singular	plural
    nsubj	kar	kon
    obj	kin	ker               nsubj covers nsubj:pass unless that has a row of its own
    obl	loc                       one suffix: both numbers have it
    vocative		en              an empty one: no suffix in that number

Lines that begin with `#` are comments; the header may be left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError
from derivlang.formats.paths import once_per_version
from derivlang.formats.whole import utf8_text
from derivlang.grammar.labels import V2_RELATIONS

_HEADER = "relation\tsingular\tplural"


@dataclass(frozen=True, slots=True)
class SuffixTable:
    """The suffixes of relations. rows: (singular, plural) by relation."""

    rows: Mapping[str, tuple[str, str]]

    @property
    def fingerprint(self) -> str:
        """The hash of the suffixes, whatever the order of the rows."""
        return sha256(repr(sorted(self.rows.items())).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def suffixes(self) -> pa.Array:
        """Arrow strings [2 R]: the singular and the plural of each row."""
        return string_array([suffix for row in self.rows.values() for suffix in row])

    def codes(self, relations: Sequence[str]) -> Int64:
        """Return int64[n]: the number of each relation's singular among `suffixes`, -1 for one without a suffix."""
        places = {name: 2 * number for number, name in enumerate(self.rows)}
        return np.array([places.get(name, places.get(name.partition(":")[0], -1)) for name in relations], np.int64)


@once_per_version
def read_suffixes(file: Path) -> SuffixTable:
    """Return the table of a file.

    Raises DataError missing-file, encoding, and suffix-table: no row, a line with other columns, a relation that is not
    one of UD v2, or that comes twice.
    """
    rows: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(utf8_text(file).removeprefix("\ufeff").splitlines(), 1):
        if not line.strip() or line.startswith("#") or (not rows and line == _HEADER):
            continue
        relation, *suffixes = line.split("\t")
        if len(suffixes) not in (1, 2) or any(one != "".join(one.split()) for one in suffixes):
            raise _broken(file, number, f"{line[:60]!r} is not a relation and its suffixes, separated by tabs")
        if relation.partition(":")[0] not in V2_RELATIONS:
            raise _broken(file, number, f"{relation[:60]!r} is not a relation of UD v2")
        if relation in rows:
            raise _broken(file, number, f"the relation {relation!r} comes twice")
        rows[relation] = (suffixes[0], suffixes[-1])
    if not any(map("".join, rows.values())):
        raise _broken(file, 1, "the file has no suffix")
    return SuffixTable(rows)


def _broken(file: Path, number: int, what: str) -> DataError:
    return DataError(what, where=f"{file}:{number}", fix="give lines as nsubj<TAB>kar<TAB>kon", id="suffix-table")
