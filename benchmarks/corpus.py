"""A text of a chosen size, laid out so that derivlang finds it as `wikitext103`.

Both kinds are made of the train text of WikiText-2 (10.8 MB, 2.05 M words, 33 k types), repeated:

    repeated   the file as it is, whole files: 100 MB are 9 of them; the vocabulary stays at 33 k types
    grown      the same, but from the second copy on one word in 55 gets a number appended (`the` -> `the7`): of the
               words of three or more English letters, every 1st to 69th, as an integer hash of copy and place says,
               and one of 12 numbers. Types grow with the text as they do in a real one: 54,931 at 22 MB, 127,538 at
               97 MB, 267,457 at 542 MB (50 copies, 103 M words); WikiText-103 has 267,735.

A size is rounded to whole copies of the file, at least one; the same size gives the same bytes. A grown text is
a prefix of any longer one, as a real text is.

    python benchmarks/corpus.py 540 --kind grown --cache DIR
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

Kind = Literal["repeated", "grown"]

# Calibrated on 50 copies of WikiText-2, for WikiText-103's number of types.
_STEP = 69  # every 1st to 69th word gets a number, every 35th on average
_NUMBERS = 12  # different numbers that a word may get
_LETTERS = re.compile(rb"(?<= )[A-Za-z]{3,}(?= )")
_MASK = (1 << 64) - 1
_FOLDER = Path("text", "wikitext-103")


def data_folder(given: Path | None) -> Path:
    """Where WikiText-2 lies: the option, $DERIVLANG_DATA, or ../shared/data; SystemExit says what is missing."""
    shared = Path(__file__).resolve().parents[2] / "shared" / "data"
    for folder in (given, os.environ.get("DERIVLANG_DATA"), shared):
        if folder is not None and Path(folder, "text", "wikitext-2", "wiki.train.tokens").exists():
            return Path(folder)
    raise SystemExit("WikiText-2 is missing: pass --data-dir DIR with DIR/text/wikitext-2/wiki.train.tokens")


def corpus(size: float, kind: Kind, cache: Path, data: Path) -> Path:
    """The data folder of a text of some `size` MB; made once, then found in `cache`."""
    source = (data / "text" / "wikitext-2" / "wiki.train.tokens").read_bytes()
    copies = max(1, round(size * 1_000_000 / len(source)))
    folder = cache / f"{kind}-{copies}"
    file = folder / _FOLDER / "wiki.train.tokens"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(".tmp")
        with temporary.open("wb") as out:
            for copy in _copies(source, copies, kind):
                out.write(copy)
        temporary.replace(file)
    return folder


def text_file(folder: Path) -> Path:
    """The text in a folder that `corpus` made."""
    return folder / _FOLDER / "wiki.train.tokens"


def warm(folder: Path) -> None:
    """Read the text once, so that no run pays for the disk."""
    with text_file(folder).open("rb") as file:
        while file.read(1 << 22):
            pass


def _copies(source: bytes, copies: int, kind: Kind) -> Iterator[bytes]:
    yield source
    ends = [match.end() for match in _LETTERS.finditer(source)] if kind == "grown" else []
    for copy in range(1, copies):
        yield _suffixed(source, ends, copy) if ends else source


def _suffixed(source: bytes, ends: list[int], copy: int) -> bytes:
    """The text with a number after some of the words that end at `ends`."""
    out: list[bytes] = []
    done, word = 0, -1
    while True:
        spun = _mix(copy << 32 | word + 1)
        word += 1 + (spun >> 32) % _STEP
        if word >= len(ends):
            return b"".join([*out, source[done:]])
        out += [source[done : ends[word]], b"%d" % (spun % _NUMBERS)]
        done = ends[word]


def _mix(x: int) -> int:
    """The finaliser of splitmix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the benchmarks' text.")
    parser.add_argument("size", type=float, help="MB, rounded to whole copies of WikiText-2's train text")
    parser.add_argument("--kind", choices=["repeated", "grown"], default="repeated")
    parser.add_argument("--cache", type=Path, required=True, help="where to put it")
    parser.add_argument("--data-dir", type=Path, help="holds text/wikitext-2; default $DERIVLANG_DATA, ../shared/data")
    parser.add_argument("--count", action="store_true", help="count words and types too")
    options = parser.parse_args()
    folder = corpus(options.size, options.kind, options.cache, data_folder(options.data_dir))
    size = text_file(folder).stat().st_size
    print(f"{size / 1e6:.1f} MB; make finds it with --data-dir {folder}")
    if options.count:
        types: set[bytes] = set()
        words = 0
        with text_file(folder).open("rb") as file:
            for line in file:
                found = line.split()
                words += len(found)
                types.update(found)
        print(f"{words:,} words, {len(types):,} types")


if __name__ == "__main__":
    main()
