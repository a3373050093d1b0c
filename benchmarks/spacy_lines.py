"""spaCy's tokenizer on every line of a text, for `raw_text.py`.

python spacy_lines.py time FILE             split every line and count the words; nothing else is done
python spacy_lines.py compare FOLDER FILE   are these words, line by line, the `source` column of shards
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pyarrow.parquet as pq


def lines(file: Path) -> Iterator[list[str]]:
    """The words of each line that has any; white space is not a word."""
    import spacy

    tokenizer = spacy.blank("en").tokenizer
    with file.open(encoding="utf-8", newline="\n") as text:
        for line in text:
            words = [token.text for token in tokenizer(line) if not token.is_space]
            if words:
                yield words


def documents(shards: Path) -> Iterator[list[str]]:
    """The words of each document of a derived set, its sentences joined."""

    def rows() -> Iterator[tuple[int, list[str]]]:
        for shard in sorted(shards.glob("*.parquet")):
            with pq.ParquetFile(shard) as file:
                for batch in file.iter_batches(1 << 12, columns=["document", "source"]):
                    yield from zip(batch["document"].to_pylist(), batch["source"].to_pylist(), strict=True)

    for _, group in groupby(rows(), lambda row: row[0]):
        yield [word for _, words in group for word in words]


def main() -> None:
    job, *paths = sys.argv[1], *map(Path, sys.argv[2:])
    if job == "time":
        print(sum(len(words) for words in lines(paths[0])))
        return
    compared = other = 0
    for theirs, ours in zip(lines(paths[1]), documents(paths[0]), strict=True):
        if ours != theirs:
            other += 1
            if other <= 10:
                at = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b)
                print(f"line {compared}: {ours[at : at + 3]}, spaCy {theirs[at : at + 3]}", file=sys.stderr)
        compared += 1
    print(compared, other)


if __name__ == "__main__":
    main()
