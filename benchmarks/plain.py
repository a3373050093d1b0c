"""The job of `make --t trans,inv` as a user would write it, a sentence at a time, for `make_loops.py`.

    python plain.py map FILE OUT         batched `datasets.map`, lists in and out
    python plain.py loop FILE OUT        a loop over lines, Parquet through pyarrow in batches
    python plain.py tuned-map FILE OUT   the same with what depends only on a word kept in dicts, Arrow tables out
    python plain.py tuned-loop FILE OUT
    python plain.py first FILE OUT       the ten lines that one writes first: each line reversed and transliterated
    python plain.py polars FILE OUT      the same as expressions of polars
    python plain.py compare FOLDER FILE  are `source`, `tokens`, `order` and `document` of shards and a file equal

The sentence rule is `derivlang`'s in plain Python (docs: a sentence ends after a maximal run of end marks and
closers that begins with an end mark, and at the end of its line). The plain ones look at every word where it stands;
the tuned ones are as quick as this way goes: what depends only on a word is kept in a dict, `datasets` gets Arrow
tables, and a sentence costs a few list operations.

Both write the columns document, key, source, tokens and order. `key` is a 64-bit hash of the sentence too, but not
derivlang's, so it is not compared. The loop writes zstd level 1, as `make` does; `Dataset.to_parquet` lets nobody
choose and writes snappy.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.transforms.scripts import load_script

_END_MARKS = frozenset(".!?…。！？।॥؟۔")
_CLOSERS = frozenset([")", "]", "}", "”", "’", "»", "''"])
_END, _ELLIPSIS, _CLOSER, _DOUBLE, _SINGLE = range(1, 6)
_NOT_WORDS = re.compile("[\t-\r\x1c- ]+")  # ASCII white space; `str.split()` divides at U+00A0 and its like too
_LINES = 4000  # in a batch; 1,000 (the default of `datasets.map`) and 20,000 cost the same or more
_SCHEMA = pa.schema(
    {
        "document": pa.int64(),
        "key": pa.int64(),
        "source": pa.list_(pa.string()),
        "tokens": pa.list_(pa.string()),
        "order": pa.list_(pa.int32()),
    }
)


class Script(dict[int, str]):
    """The table of `str.translate`: code point -> its partner, looked up once each."""

    def __init__(self) -> None:
        self._script = load_script("georgian")

    def __missing__(self, point: int) -> str:
        self[point] = chr(int(self._script.map_codepoints(np.array([point], np.uint32))[0]))
        return self[point]


class Images(dict[str, str]):
    """A word -> its transliteration, made once each; `<unk>` stays."""

    def __init__(self) -> None:
        self._script = Script()
        self["<unk>"] = "<unk>"

    def __missing__(self, word: str) -> str:
        self[word] = word.translate(self._script)
        return self[word]


class Kinds(dict[str, int]):
    """A word -> what it is to the sentence rule, kept."""

    def __missing__(self, word: str) -> int:
        self[word] = kind_of(word)
        return self[word]


def kind_of(word: str) -> int:
    """What a word is to the sentence rule, 0 for an ordinary word."""
    if word in _CLOSERS:
        return _CLOSER
    if word in ('"', "'"):
        return _DOUBLE if word == '"' else _SINGLE
    if not _END_MARKS.issuperset(word):
        return 0
    return _ELLIPSIS if word != "." and set(word) <= {".", "…"} else _END


def sentences(words: list[str], kind_of: Callable[[str], int]) -> Iterator[tuple[int, int, int]]:
    """(start, start of the tail, end) of each sentence of a line."""
    start, tail = 0, -1
    seen = [0] * 6  # quotes so far, by kind
    last = len(words) - 1
    for i, word in enumerate(words):
        kind = kind_of(word)
        if not kind:
            if tail >= 0:
                yield start, tail, i
                start, tail = i, -1
            continue
        ends = kind == _END or (kind == _ELLIPSIS and i == last)
        closes = kind == _CLOSER or (kind >= _DOUBLE and seen[kind] % 2 == 1)
        seen[kind] += 1
        if tail >= 0:
            if not (ends or closes):
                yield start, tail, i
                start, tail = i, -1
        elif ends:
            tail = i
    yield start, tail if tail >= 0 else last + 1, last + 1


class Deriver:
    """Lines to columns of plain lists; documents are counted on from call to call."""

    def __init__(self, *, tuned: bool) -> None:
        script = Script()
        self.kind: Callable[[str], int] = Kinds().__getitem__ if tuned else kind_of
        self.image: Callable[[str], str] = (
            Images().__getitem__ if tuned else lambda word: word if word == "<unk>" else word.translate(script)
        )
        self.document = -1

    def columns(self, lines: Iterable[str]) -> dict[str, list[Any]]:
        out: dict[str, list[Any]] = {name: [] for name in _SCHEMA.names}
        for line in lines:
            words = line.split() if line.isascii() else [word for word in _NOT_WORDS.split(line) if word]
            if not words:
                continue
            self.document += 1
            for start, tail, end in sentences(words, self.kind):
                source = words[start:end]
                body, length = tail - start, end - start
                order = [*range(body - 1, -1, -1), *range(body, length)]
                derived = source[:body][::-1] + source[body:]
                out["document"].append(self.document)
                out["key"].append(_key(source))
                out["source"].append(source)
                out["tokens"].append([self.image(word) for word in derived])
                out["order"].append(order)
        return out


def _key(words: list[str]) -> int:
    return int.from_bytes(blake2b(" ".join(words).encode(), digest_size=8).digest(), "little", signed=True)


def by_map(file: Path, out: Path, *, tuned: bool) -> None:
    """With `datasets`: the text loader, one batched map, `to_parquet`."""
    import datasets

    datasets.disable_progress_bars()
    text = datasets.load_dataset("text", data_files=str(file), split="train", cache_dir=str(out.parent / "cache"))
    deriver = Deriver(tuned=tuned)

    def lists(batch: dict[str, list[str]]) -> dict[str, list[Any]]:
        return deriver.columns(batch["text"])

    def tables(batch: pa.Table) -> pa.Table:
        return pa.table(deriver.columns(batch["text"].to_pylist()), schema=_SCHEMA)

    derived = (text.with_format("arrow") if tuned else text).map(
        tables if tuned else lists,
        batched=True,
        batch_size=_LINES if tuned else 1000,
        remove_columns=["text"],
        features=datasets.Features.from_arrow_schema(_SCHEMA),
        new_fingerprint="plain",
    )
    derived.to_parquet(str(out))


def by_loop(file: Path, out: Path, *, tuned: bool) -> None:
    """With pyarrow: a row group for each few thousand lines."""
    deriver = Deriver(tuned=tuned)
    with (
        file.open(encoding="utf-8", newline="\n") as lines,
        pq.ParquetWriter(str(out), _SCHEMA, compression="zstd", compression_level=1) as writer,
    ):
        batch: list[str] = []
        for line in lines:
            batch.append(line)
            if len(batch) == _LINES:
                writer.write_table(pa.table(deriver.columns(batch), schema=_SCHEMA))
                batch = []
        writer.write_table(pa.table(deriver.columns(batch), schema=_SCHEMA))


def first(file: Path, out: Path) -> None:
    """Reverse and transliterate each line with `datasets`: no sentences, keys or orders, final marks move, too."""
    import datasets

    datasets.disable_progress_bars()
    script = Script()
    text = datasets.load_dataset("text", data_files=str(file), split="train", cache_dir=str(out.parent / "cache"))

    def derive(batch: dict[str, list[str]]) -> dict[str, list[Any]]:
        source = [line.split() for line in batch["text"]]
        return {"source": source, "tokens": [[word.translate(script) for word in line[::-1]] for line in source]}

    text.map(derive, batched=True, remove_columns=["text"]).to_parquet(str(out))


def by_polars(file: Path, out: Path) -> None:
    """Do what `first` does, with expressions of polars."""
    import polars as pl

    script = Script()
    letters = {chr(point): script[point] for point in range(0x250) if script[point] != chr(point)}
    lines = pl.Series("text", file.read_text("utf-8").split("\n"))
    source = pl.col("text").str.strip_chars().str.split(" ")
    derived = pl.col("text").str.strip_chars().str.replace_many(letters).str.split(" ").list.reverse()
    lines.to_frame().select(source=source, tokens=derived).write_parquet(out)


def compare(shards: Path, file: Path) -> None:
    """All rows of the columns that both hold; SystemExit names the first column that differs."""
    rows = 0
    for name in ("document", "source", "tokens", "order"):
        kind = _SCHEMA.field(name).type
        ours = [pq.read_table(shard, columns=[name])[name].cast(kind) for shard in sorted(shards.glob("*.parquet"))]
        theirs = pq.read_table(file, columns=[name])[name].cast(kind)
        mine = pa.chunked_array([chunk for column in ours for chunk in column.chunks], kind)
        rows = len(theirs)
        if not mine.equals(theirs):
            raise SystemExit(f"{name} differs: {len(mine)} and {len(theirs)} rows")
    print(rows)


def main() -> None:
    job, file, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if job == "compare":
        compare(file, out)
    elif job in ("first", "polars"):
        {"first": first, "polars": by_polars}[job](file, out)
    else:
        {"map": by_map, "loop": by_loop}[job.removeprefix("tuned-")](file, out, tuned=job.startswith("tuned-"))


if __name__ == "__main__":
    main()
