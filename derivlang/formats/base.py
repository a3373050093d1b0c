"""Format: the reader and writer of one file format. Each format is a file of this package or of another one.

    FORMAT = Format(name="jsonl", suffixes=(".jsonl",), read=read, write=write_rows, count=count)

`read` yields tables of labelled rows; a format of running text has `running` instead. One of the two is required, and
everything else has a default. Readers may raise any exception: `Format.rows` turns it into one error with the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa

from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.parse_errors import parse_errors
from derivlang.core.rules import Mode
from derivlang.core.schema import Schema
from derivlang.formats.rows import Rows
from derivlang.formats.words import Splitter

SAMPLE = 1000  # rows that the meaning of columns is inferred from


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes [begin, end) of a plain file of running text; end None: to the end. line: the number of lines before it."""

    begin: int = 0
    end: int | None = None
    line: int = 0


WHOLE = Piece()
# Of a file of running text, with the greatest number of documents to read.
FilePiece: TypeAlias = tuple[Path, Piece, int | None]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user says about the files.

    header: whether the first row is a header. names: of the columns, in order. quoting: whether fields are quoted as in
    CSV. delimiter: of a CSV file. columns: those that the user names as words or text.
    """

    encoding: str = "utf-8"
    header: bool | None = None
    names: tuple[str, ...] = ()
    quoting: bool = False
    delimiter: str | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """What the files of a corpus hold.

    schema: the meaning of the columns, if the format fixes it; else it is inferred from `columns` (names and types) and
    `sample` (the first rows). options: keyword arguments for `read` and `count`. layout: what `write` needs to restore
    the form of the files. words: how text is split into words. format: another format that reads these files.
    """

    schema: Schema | None = None
    columns: pa.Schema | None = None
    sample: pa.Table | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    layout: Mapping[str, Any] = field(default_factory=dict)
    words: Mode | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """The functions that read running text.

    batches: yields batches whose units are lines, of one file after the other; small files share a batch. cut: returns
    the pieces of a plain file, each to be read by itself. count: returns (documents, lines) of a piece.
    """

    batches: Callable[..., Iterator[Batch]]
    cut: Callable[[Path, Splitter, int, int], list[Piece]]
    count: Callable[[Path, Splitter, Piece, str], tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A file format.

    suffixes: of its files, in lower case, without the suffixes of compression. what: a noun for messages ("CSV file").
    `read(path, *, encoding, limit, **options)` yields rows of at most `limit` documents. `write(tables, out, schema,
    layout)` writes the columns of `read` as a file; None: `undo` writes JSON lines. `count(path, encoding, **options)`
    returns the number of documents; None: they are counted by reading. `look(paths, asked)` returns a `Look`.
    `recognises(path, asked)` distinguishes formats with the same suffix. binary: `read` and `count` take no encoding.
    tabular: the options for a header and column names apply.
    """

    name: str
    suffixes: tuple[str, ...] = ()
    what: str = ""
    read: Callable[..., Iterator[Rows]] | None = None
    write: Callable[[Iterable[pa.Table], BinaryIO, Schema, Mapping[str, Any]], None] | None = None
    count: Callable[..., int] | None = None
    look: Callable[[Sequence[Path], ReadOptions], Look] | None = None
    recognises: Callable[[Path, ReadOptions], bool] | None = None
    running: Running | None = None
    binary: bool = False
    tabular: bool = False

    def rows(
        self, path: Path, *, encoding: str = "utf-8", limit: int | None = None, options: Mapping[str, Any] | None = None
    ) -> Iterator[Rows]:
        """Yield the rows of a file. Any exception of the reader becomes a DerivlangError with file and line."""
        done = 0

        def place() -> str:
            return f"{path} (after line {done})" if done else str(path)

        if self.read is None:
            raise UsageError(f"{self.name} files hold running text, not rows", where=str(path), id="format")
        with parse_errors(place, self.noun, id="format"):
            for rows in self.read(path, limit=limit, **self._options(encoding, options)):
                rows.table.validate(full=True)  # invalid UTF-8 raises here, not when a string is first used
                yield rows
                done = int(rows.lines[-1]) if len(rows.lines) else done

    def batches(self, files: Sequence[FilePiece], splitter: Splitter, **options: Any) -> Iterator[Batch]:
        """Yield the batches of files of running text. Any exception of the reader becomes a DerivlangError."""
        assert self.running is not None
        at = files[0][0]

        def told() -> Iterator[FilePiece]:
            nonlocal at
            for file in files:
                at = file[0]
                yield file

        with parse_errors(lambda: str(at), self.noun, id="format"):
            yield from self.running.batches(told(), splitter, **options)

    def pieces(self, path: Path, splitter: Splitter, target: int) -> list[Piece]:
        """Cut a plain UTF-8 file of running text into pieces of about `target` bytes; a smaller file is one piece."""
        assert self.running is not None
        with parse_errors(str(path), self.noun, id="missing-file"):
            size = path.stat().st_size
            cuts = self.running.cut(path, splitter, size, target) if size > target else []
        return cuts if len(cuts) > 1 else [WHOLE]

    def documents(self, path: Path, encoding: str = "utf-8", options: Mapping[str, Any] | None = None) -> int:
        """Count the documents of a file of labelled rows, as `--limit` does."""
        if self.count is not None:
            with parse_errors(str(path), self.noun, id="format"):
                return self.count(path, **self._options(encoding, options))
        last = 0
        for rows in self.rows(path, encoding=encoding, options=options):
            last = int(rows.documents[-1]) + 1 if len(rows.documents) else last
        return last

    def looked_at(self, paths: Sequence[Path], asked: ReadOptions) -> Look:
        """Return what the files hold; without a `look` function, the columns of the first rows."""
        if self.look is not None:
            with parse_errors(str(paths[0]), self.noun, id="format"):
                return self.look(paths, asked)
        sample = next((rows.table for rows in self.rows(paths[0], encoding=asked.encoding, limit=SAMPLE)), None)
        return Look(columns=None if sample is None else sample.schema, sample=sample)

    @property
    def noun(self) -> str:
        """Return the name of such a file for messages."""
        return self.what or f"{self.name} file"

    def _options(self, encoding: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
        return {**({} if self.binary else {"encoding": encoding}), **(options or {})}
