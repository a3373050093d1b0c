"""Generator: a kind of generated source. Each kind is a subclass, and a line in `GENERATORS`.

    source:zipf=500:a=1.2:seed=3     the kind with its value, then parameters

The draws of row i depend on the kind, the parameters that are declared with `draws`, the seed, the version of the rule,
the split, and i. So the first 100 rows are the same for n=100 and n=1000, and the splits are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64, Ints, UInt64
from derivlang.core.arrow import list_array, to_arrow
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.core.names import SPLITS
from derivlang.core.plugins import Registry
from derivlang.core.schema import Field, Schema, Side
from derivlang.core.spec import Parameterised, key_of, param, quote, read_spec, text_of
from derivlang.formats.base import GENERATED, Format
from derivlang.formats.opening import WHOLE, Piece
from derivlang.formats.rows import ROWS_PER_TABLE, Rows
from derivlang.sources.corpus import Corpus, CorpusFile
from derivlang.sources.folder import name_of_path
from derivlang.sources.named import NamedSource, files_of_splits

PREFIX = "source"
_NODES_PER_TABLE = 1 << 18  # 2 MB for each array of numbers
_BYTES_A_WORD = 5.3  # as in the plan, so that shards have about the number of words that was asked for
_HELDOUT = 100  # rows of train for each row of validation and of test


Columns = Callable[[Draws, str, Int64], dict[str, pa.Array]]


@dataclass(frozen=True, kw_only=True)
class Generator(Parameterised):
    """A kind of generated source, with its parameters.

    rule_version: raised if the rows of equal parameters change. fields: the labels of its rows. citation: of its rule.
    """

    rule_version: ClassVar[int] = 1
    fields: ClassVar[tuple[Field, ...]] = ()
    citation: ClassVar[str] = ""

    def __str__(self) -> str:
        """Return the name of the source, without the parameters that have their defaults, and folders of files."""
        value, parameters = "", ""
        for field in self.spec_fields():
            given = getattr(self, field.name)
            if given != field.default:
                text = quote(self.file_name(given) if field.metadata["file"] else text_of(given))
                if field.metadata["positional"]:
                    value = f"={text}"
                else:
                    parameters += f":{key_of(field)}={text}"
        return f"{PREFIX}:{self.name}{value}{parameters}"

    def file_name(self, path: str) -> str:
        """Return the name of a file for records, which is not a path of this machine."""
        return name_of_path(Path(path))

    def opened(self, folders: Sequence[Path]) -> Made:
        """Return what makes the rows. folders: of the corpora. DataError for a file that cannot be used."""
        raise NotImplementedError

    def made(
        self, columns: Columns, rows: Mapping[str, int], words: float, nodes: float | None = None, content: bytes = b""
    ) -> Made:
        """Return what makes the rows.

        columns, words, nodes: see `Made`; nodes: None for as many as words. content: what the rows depend on besides
        the parameters, such as a file's bytes.
        """
        fields = [field for field in self.spec_fields() if field.metadata["draws"]]
        given = {key_of(field): getattr(self, field.name) for field in fields}
        stream = f"{PREFIX} {self.name} {self.rule_version} {given}"
        return Made(columns, words, nodes or words, stream, rows, sha256(content).hexdigest())

    def corpus(self, folders: Sequence[Path]) -> Corpus:
        """Return the source as a corpus, with a part for each split but no files."""
        made, name = self.opened(folders), str(self)
        parts = tuple(CorpusFile(split, Path(f"{name}|{split}"), split) for split in made.rows)
        told = f"derivlang: {name}, version {self.rule_version} of its rule"
        return Corpus(
            name,
            GENERATED,
            Schema((Side("", words="tokens"),), self.fields),
            parts,
            words="space",
            language="xx",
            options={"made": made},
            expected=tuple(made.rows),
            licence="cc0-1.0",
            citation=f"{told}; {self.citation}",
        )


@dataclass(frozen=True, slots=True)
class Made:
    """The rows of a generated source.

    columns: returns the columns of some rows by number, `tokens` list<string> and labels; workers get it by pickle.
    words_a_row, nodes_a_row: the mean number of words, and of what is drawn for a row, such as words and constituents.
    stream: of the draws. rows: their number by split. content: a hash.
    """

    columns: Columns
    words_a_row: float
    nodes_a_row: float
    stream: str
    rows: Mapping[str, int]
    content: str

    @property
    def bytes_a_row(self) -> int:
        """The bytes that a row counts, as if it were text in a file."""
        return max(1, ceil(self.words_a_row * _BYTES_A_WORD))

    def draws(self, split: str) -> Draws:
        """Return the draws of a split."""
        return Draws(f"{self.stream} {split}")


def _content(path: Path, *, made: Made) -> str:
    """Return a hash of what decides the rows of a split: parameters, rule and seed, number of rows, content."""
    split = _split(path)
    return sha256(repr((made.stream, path.name, split, made.rows[split], made.content)).encode()).hexdigest()


def rows_of(n: int) -> dict[str, int]:
    """Return the number of rows of each split: n of train, a hundredth of the others."""
    return {split: n if split == SPLITS[0] else ceil(n / _HELDOUT) for split in SPLITS}


def word_lists(offsets: Ints, words: Ints, types: pa.Array) -> pa.Array:
    """Return list<string>[R]: the words of R rows, as numbers of types."""
    return list_array(offsets, types.take(to_arrow(words)))


def numbered(draws: Draws, rows: Int64, lengths: Ints, places: Ints) -> UInt64:
    """Return uint64[sum(lengths)]: the draws of each row at its places, which follow each other."""
    return draws.draw(np.repeat(rows.astype(np.uint64), lengths), places)


def rows_param() -> Any:
    """Declare the number of rows."""
    return param(10_000, "rows of train; validation and test have a hundredth of that each", low=1, draws=False)


def seed_param() -> Any:
    """Declare the seed."""
    return param(0, "seed of the draws", low=0)


def _split(path: Path) -> str:
    return str(path).rpartition("|")[2]


def _size(path: Path, *, made: Made) -> int:
    return made.rows[_split(path)] * made.bytes_a_row


def _cut(path: Path, size: int, target: int, *, made: Made) -> list[int]:
    """Return where pieces begin, in bytes: row i is at i * bytes_a_row."""
    return list(range(0, size, max(1, target // made.bytes_a_row) * made.bytes_a_row))


def _range(path: Path, piece: Piece, made: Made) -> range:
    """Return the numbers of the rows of a piece."""
    end = _size(path, made=made) if piece.end is None else piece.end
    return range(piece.begin // made.bytes_a_row, end // made.bytes_a_row)


def _count(path: Path, *, piece: Piece = WHOLE, made: Made) -> tuple[int, int]:
    return len(_range(path, piece, made)), 0


def _read(path: Path, *, limit: int | None = None, piece: Piece = WHOLE, made: Made) -> Iterator[Rows]:
    rows, split = _range(path, piece, made), _split(path)
    rows = rows if limit is None else rows[:limit]
    at_once = min(ROWS_PER_TABLE, max(1, int(_NODES_PER_TABLE / made.nodes_a_row)))
    for done in range(0, len(rows), at_once):
        some = np.arange(rows.start + done, min(rows.start + done + at_once, rows.stop), dtype=np.int64)
        table = pa.table(made.columns(made.draws(split), split, some))
        yield Rows(path, table, np.zeros(len(some), np.int64), some - rows.start, first_row=int(some[0]))


FORMAT = Format(
    name=GENERATED, what="generated source", read=_read, count=_count, cut=_cut, size=_size, content=_content,
    binary=True,
)  # fmt: skip


GENERATORS: Registry[type[Generator]] = Registry(
    "generator",
    Generator,
    {
        "dyck": "derivlang.sources.generated.words:Dyck",
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
