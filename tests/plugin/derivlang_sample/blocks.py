"""blocks: sentences as lines of `key: value`, an empty line between them; suffix `.blocks`.

words: Ann met Bo
mood: glad
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from derivlang.formats.base import Format
from derivlang.formats.opening import empty_file, open_lines
from derivlang.formats.rows import Rows


def read(path: Path, *, encoding: str = "utf-8", limit: int | None = None) -> Iterator[Rows]:
    words: list[list[str]] = []
    moods: list[str] = []
    lines: list[int] = []
    for number, line in open_lines(path, encoding):
        if limit is not None and len(moods) == limit:
            break
        key, value = line.split(": ", 1) if line else ("", "")  # no such mark: a ValueError, as careless readers raise
        if key == "words":
            words.append(value.split())
            lines.append(number)
        elif key:
            moods.append({"glad": "glad", "sad": "sad"}[value])  # another mood: a KeyError
    if not words:
        raise empty_file(path, "block")
    table = pa.table({"tokens": words, "mood": moods})
    yield Rows(path, table, np.array(lines), np.arange(len(words)))


def write(tables: Iterable[pa.Table], out: BinaryIO) -> None:
    separator = ""
    for table in tables:
        for row in table.to_pylist():
            out.write(f"{separator}words: {' '.join(row['tokens'])}\nmood: {row['mood']}\n".encode())
            separator = "\n"


FORMAT = Format(name="blocks", suffixes=(".blocks",), what="file of blocks", read=read, write=write)
