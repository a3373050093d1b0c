"""What several tests share: making a set, reading it back, the first documents of a file, the command line."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.core.batch import Batch
from derivlang.core.policies import Policies
from derivlang.engine.job import Events
from derivlang.engine.make import make as run_make
from derivlang.engine.options import MakeOptions
from derivlang.formats.base import find_format
from derivlang.formats.opening import WHOLE, Piece
from derivlang.formats.words import Splitter
from derivlang.pipeline import Pipeline
from derivlang.sources.read import text_batches
from derivlang.sources.request import SourceRequest
from derivlang.store.export import undo as run_undo
from derivlang.store.verify import verify

ROOT = Path(__file__).resolve().parents[1]


def read_text(path: Path, splitter: Splitter, piece: Piece = WHOLE, **options: Any) -> Iterator[Batch]:
    """The batches of a file of running text."""
    rows = find_format("text").rows(path, piece=piece, options={"raw": splitter.mode != "space"})
    return text_batches(rows, splitter, **options)


_REORDERS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
CONTROLS = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]))


def obeyed(text: str) -> set[str]:
    """The characters of a text, besides line ends and tabs, that a terminal obeys and does not show."""
    found = {c for c in text if unicodedata.category(c) == "Cc" or unicodedata.bidirectional(c) in _REORDERS}
    return found - {"\n", "\t"}


class Touching:
    """An object whose unpickling makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def make(
    spec: str,
    source: Path | str,
    out: Path,
    *,
    data_dir: Path | None = None,
    words: Any = None,
    language: str | None = None,
    text_columns: tuple[str, ...] = (),
    word_columns: tuple[str, ...] = (),
    warnings: list[str] | None = None,
    policies: Policies | None = None,
    **options: Any,
) -> Path:
    """`derivlang make`, in this process; gives `out`."""
    request = SourceRequest(
        str(source), data_dir=data_dir, words=words, lang=language, word_column=word_columns, text_column=text_columns
    )
    warn = (lambda message: None) if warnings is None else warnings.append
    pipeline = Pipeline.parse(spec, seed=options.pop("seed", None))
    run_make(pipeline, request, MakeOptions(out, **asdict(policies or Policies()), **options), Events(warn=warn))
    return out


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "derivlang.json").read_text("utf-8"))
    return found


def rows(folder: Path, split: str | None = None) -> pa.Table:
    """All rows of a split, dictionaries decoded."""
    splits = manifest(folder)["splits"]
    shards = splits[split or next(iter(splits))]["shards"]
    assert split or len(splits) == 1
    table = pa.concat_tables(pq.read_table(folder / shard["file"]) for shard in shards)
    return plain(table)


def plain(table: pa.Table) -> pa.Table:
    """Without dictionaries and without the notes in the schema, so that equal rows are equal tables."""
    columns = {name: pa.chunked_array(_decoded(table[name])) for name in table.column_names}
    return pa.table(columns).combine_chunks()


def _decoded(column: pa.ChunkedArray) -> list[pa.Array]:
    return [pa.array(column.to_pylist(), _bare(column.type))]


def _bare(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(_bare(kind.value_type))
    return kind


def same_rows(ours: pa.Table, theirs: pa.Table) -> None:
    """Assert that two tables have the same columns and values, naming the first row that differs."""
    assert sorted(ours.column_names) == sorted(theirs.column_names)
    assert ours.num_rows == theirs.num_rows
    for name in ours.column_names:
        left, right = ours[name].to_pylist(), theirs[name].to_pylist()
        wrong = [i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b]
        assert not wrong, f"row {wrong[0]}, {name}: {left[wrong[0]]} is not {right[wrong[0]]}"


def undone(folder: Path, split: str | None = None, suffix: str = ".undone") -> bytes:
    """What `derivlang undo` writes to a file of this suffix."""
    out = folder.parent / f"{folder.name}-{split}{suffix}"
    run_undo(folder, split, out)
    return out.read_bytes()


def right(folder: Path) -> None:
    """Assert that `derivlang verify` finds nothing."""
    result = verify(folder)
    assert result["ok"], result["problems"]


def file_bytes(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def first_lines(data: bytes, limit: int) -> bytes:
    """The first `limit` non-empty lines of a text, and the blank ones around them."""
    out, filled = [], 0
    for line in data.splitlines(keepends=True) if b"\r" not in data else data.split(b"\n"):
        full = bool(line.strip())
        if full and filled == limit:
            break
        filled += full
        out.append(line)
    return b"".join(out)


def first_blocks(data: bytes, limit: int) -> bytes:
    """The first `limit` sentences of a file that divides them by an empty line."""
    blocks = data.split(b"\n\n")
    return b"\n\n".join(blocks[:limit]) + (b"\n\n" if limit < len(blocks) else b"")


def install_plugin(folder: Path) -> Path:
    """`tests/plugin` in a folder, as after `pip install`: a `*.dist-info` beside it is what pip would write."""
    plugin = ROOT / "tests" / "plugin"
    shutil.copytree(plugin / "derivlang_sample", folder / "derivlang_sample")
    project = tomllib.loads((plugin / "pyproject.toml").read_text("utf-8"))["project"]
    info = folder / "derivlang_sample-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: derivlang-sample\nVersion: 0.1\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def cli(*arguments: object, path: Sequence[Path] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    """`derivlang …` in a process of its own."""
    return python("-m", "derivlang", *arguments, path=path, **environment)


def python(
    *arguments: object, path: Sequence[Path] = (), before: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """The interpreter in a process of its own.

    path: folders before the rest on sys.path. before: the command that runs it, as strace does.
    """
    found = os.pathsep.join(str(p) for p in [*path, ROOT])
    return subprocess.run(
        [*before, sys.executable, *(str(a) for a in arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": found, **environment},
    )


def conllu(sentences: Iterable[tuple[str, Sequence[str]]]) -> str:
    """CoNLL-U of (id, lines of ten columns, separated by spaces)."""
    out = []
    for name, lines in sentences:
        out.append(f"# sent_id = {name}")
        out += ["\t".join(line.split()) for line in lines]
        out.append("")
    return "\n".join(out) + "\n"
