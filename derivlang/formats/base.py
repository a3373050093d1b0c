"""Format: the reader and writer of one file format. Each format is a file of this package or of another one.

    FORMAT = Format(name="jsonl", suffixes=(".jsonl",), read=read, write=write_rows, count=count)

`read` yields tables of rows; running text has one column, `text`. Only the name and `read` are required. Readers may
raise any exception: `Format.rows` turns it into one error with the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from derivlang.core.errors import DerivlangError, UsageError, parse_errors
from derivlang.core.plugins import Registry
from derivlang.core.schema import Schema
from derivlang.core.takes import Mode
from derivlang.formats.opening import WHOLE, Piece, empty_file, is_utf8, packing_of, suffix_of
from derivlang.formats.places import size_of
from derivlang.formats.rows import Rows

SAMPLE = 1000  # rows that the meaning of columns is inferred from


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user says about the files.

    header: whether the first row is a header. names: of the columns, in order. quoting: whether fields are quoted as in
    CSV. delimiter: of a CSV file. columns: those that the user names as words or text. format: the name of the format,
    which the suffix of the files does not say.
    """

    encoding: str = "utf-8"
    header: bool | None = None
    names: tuple[str, ...] = ()
    quoting: bool | None = None
    delimiter: str | None = None
    columns: tuple[str, ...] = ()
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What the files of a corpus hold.

    schema: the meaning of the columns, if the format fixes it; else it is inferred from `sample`, the first rows.
    options: keyword arguments for `read` and `count`. layout: what `write` needs to restore the form of the files.
    words: how text is split into words. format: another format that reads these files.
    """

    schema: Schema | None = None
    sample: pa.Table | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    layout: Mapping[str, Any] = field(default_factory=dict)
    words: Mode | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A file format.

    suffixes: of its files, in lower case, without the suffixes of compression. what: a noun for messages ("CSV file").
    `read(path, *, encoding, limit, **options)` yields rows of at most `limit` documents. `write(tables, out,
    **layout)` writes the columns of `read` as a file; None: `undo` writes JSON lines. `count(path, *, encoding,
    **options)` returns the number of documents and of lines; None: they are read. `look(paths, asked)` returns a
    `Look`. `recognises(path, asked)` distinguishes formats with the same suffix. running: the rows are running text.
    binary: `read` and `count` take no encoding. tabular: the options for a header and column names apply.

    `cut(path, size, target, **options)` declares that several tasks may read one large plain file: it returns the bytes
    at which pieces of about `target` bytes begin, the first of them 0. `read` and `count` then take a `piece`, and the
    rows of all pieces are the rows of the file. None: each file is one task. size: returns the bytes that are cut, if
    they are not the file's. content: returns a hash of what is read, for rows that come from no file.
    `types(path, *, encoding)` returns the columns of a file and their types, for a format in which the first row does
    not fix them. `read` then takes `types`, which hold for all files of the source, and `required`, the names of the
    columns that no row may lack.
    """

    name: str
    suffixes: tuple[str, ...] = ()
    what: str = ""
    read: Callable[..., Iterator[Rows]]
    write: Callable[..., None] | None = None
    count: Callable[..., tuple[int, int]] | None = None
    cut: Callable[..., list[int]] | None = None
    size: Callable[..., int] | None = None
    content: Callable[..., str] | None = None
    types: Callable[..., pa.Schema] | None = None
    look: Callable[[Sequence[Path], ReadOptions], Look] | None = None
    recognises: Callable[[Path, ReadOptions], bool] | None = None
    running: bool = False
    binary: bool = False
    tabular: bool = False

    def rows(
        self,
        path: Path,
        *,
        encoding: str = "utf-8",
        limit: int | None = None,
        piece: Piece = WHOLE,
        options: Mapping[str, Any] | None = None,
    ) -> Iterator[Rows]:
        """Yield the rows of a piece of a file, their documents numbered from 0.

        Any exception of the reader becomes a DerivlangError with file and line.
        """
        done = 0

        def place() -> str:
            return f"{path} (after line {done})" if done else str(path)

        with parse_errors(place, self.noun, id="format"):
            for rows in self.read(path, limit=limit, **self._given(encoding, piece, options)):
                rows.table.validate(full=True)  # invalid UTF-8 raises here, not when a string is first used
                yield rows
                done = int(rows.lines[-1]) if len(rows.lines) else done

    def is_cut(self, path: Path, encoding: str = "utf-8") -> bool:
        """Return whether a file is cut if it is large: only plain files are, and text only in UTF-8."""
        return self.cut is not None and not packing_of(path) and (self.binary or is_utf8(encoding))

    def pieces(
        self, path: Path, target: int, encoding: str = "utf-8", options: Mapping[str, Any] | None = None
    ) -> list[Piece]:
        """Return the pieces of a file, of about `target` bytes; one for a smaller file or one that is not cut."""
        with parse_errors(str(path), self.noun, id="missing-file"):
            if self.cut is None or not self.is_cut(path, encoding):
                return [WHOLE]
            size = size_of(path) if self.size is None else self.size(path, **(options or {}))
            if size <= target:
                return [WHOLE]
            begins = self.cut(path, size, target, **(options or {}))
        ends = [*begins[1:], size]
        return [Piece(begin, end) for begin, end in zip(begins, ends, strict=True)] if len(begins) > 1 else [WHOLE]

    def documents(
        self,
        path: Path,
        encoding: str = "utf-8",
        *,
        piece: Piece = WHOLE,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[int, int]:
        """Return the number of documents, as `--limit` counts them, and of lines in a piece of a file.

        Without a `count` function, the file is read, and no lines are counted: it has no pieces.
        """
        if self.count is not None:
            with parse_errors(str(path), self.noun, id="format"):
                return self.count(path, **self._given(encoding, piece, options))
        last = 0
        for rows in self.rows(path, encoding=encoding, options=options):
            last = int(rows.documents[-1]) + 1 if len(rows.documents) else last
        return last, 0

    def types_of(self, path: Path, encoding: str, options: Mapping[str, Any]) -> pa.Schema:
        """Return the columns of a file and their types; without a `types` function, as the first row has them."""
        if self.types is None:
            return next(self.rows(path, encoding=encoding, limit=1, options=options)).table.schema
        with parse_errors(str(path), self.noun, id="format"):
            return self.types(path, **({} if self.binary else {"encoding": encoding}), **options)

    def looked_at(self, paths: Sequence[Path], asked: ReadOptions) -> Look:
        """Return what the files hold; without a `look` function, the columns of the first rows."""
        if self.look is not None:
            with parse_errors(str(paths[0]), self.noun, id="format"):
                return self.look(paths, asked)
        for rows in self.rows(paths[0], encoding=asked.encoding, limit=SAMPLE):
            return Look(sample=rows.table)
        raise empty_file(paths[0], "row")

    @property
    def noun(self) -> str:
        """Return the name of such a file for messages."""
        return self.what or f"{self.name} file"

    def _given(self, encoding: str, piece: Piece, options: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the keyword arguments of `read` and `count`."""
        given: dict[str, Any] = {} if self.binary else {"encoding": encoding}
        return {**given, **({} if self.cut is None else {"piece": piece}), **(options or {})}


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
        "csv": "derivlang.formats.delimited:CSV",
        "parquet": "derivlang.formats.parquet:FORMAT",
        "squad": "derivlang.formats.squad:FORMAT",
        "bracketed": "derivlang.formats.bracketed:FORMAT",
    },
)
# The formats of sources whose rows come from no file, and the modules of them.
HUB, GENERATED = "hub", "generated"
NO_FILES = {HUB: "derivlang.sources.hub", GENERATED: "derivlang.sources.generated.base"}
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


def format_of(path: Path, asked: ReadOptions = ReadOptions()) -> Format:
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
