"""Plain text in pieces: wherever a file is cut, the same lines come out under the same numbers."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from derivlang.core.errors import DataError
from derivlang.formats import opening, text
from derivlang.formats.opening import Piece
from derivlang.formats.text import count
from derivlang.formats.words import Splitter
from tests.helpers import read_text
from tests.real import SHARED, needs_data

WHITE = [" ", "\t", "\r", "\v", "\x1c", "\x85", "\xa0", "\u3000", "\u2028", "\ufeff", " " * 40]
BITS = st.sampled_from([*WHITE, "a", "é", "。", "\x01", "word "])
LINES = st.lists(st.lists(BITS, max_size=4).map("".join), max_size=12)
MODES = pytest.mark.parametrize("mode", ["space", "unicode"])


def documents(path: Path, splitter: Splitter, piece: Piece) -> list[int]:
    """The numbers of the non-empty lines, as reading finds them."""
    try:
        return [number for batch in read_text(path, splitter, piece) for number in batch.documents.tolist()]
    except DataError as error:
        return [] if error.id == "empty-file" else [-1]


@MODES
@example(lines=["", "\ufeff"], end="", bom=False)
@example(lines=["\ufeff"], end="", bom=True)
@given(lines=LINES, end=st.sampled_from(["", "\n", "\n\n \n"]), bom=st.booleans())
def test_counting_is_reading(tmp_path_factory: pytest.TempPathFactory, mode, lines, end, bom) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("text") / "a.txt"
    content = ("\ufeff" if bom else "") + "\n".join(lines) + end
    path.write_bytes(content.encode())
    read = content.removeprefix("\ufeff")  # anywhere else it is a character of the text
    n_lines = read.count("\n") + (read.rpartition("\n")[2] != "")
    assert count(path, raw=mode != "space") == (len(documents(path, Splitter(mode), Piece())), n_lines)


@MODES
@given(lines=LINES, target=st.integers(1, 40))
def test_pieces_are_the_file(tmp_path_factory: pytest.TempPathFactory, mode, lines, target) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("text") / "a.txt"
    content = "\n".join(lines).encode()
    path.write_bytes(content)
    raw = mode != "space"
    pieces = text.FORMAT.pieces(path, target, options={"raw": raw})
    assert [piece.begin for piece in pieces] == [0, *(piece.end for piece in pieces[:-1])]
    counts = [count(path, piece=piece, raw=raw) for piece in pieces]
    assert [found for found, _ in counts] == [len(documents(path, Splitter(mode), piece)) for piece in pieces]
    assert tuple(map(sum, zip(*counts, strict=True))) == count(path, raw=raw)


def test_blocks_of_any_size_count_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\ufeff\n one\n\n\u3000two\n \u00a0\nthree three three\n  ", "utf-8")
    for size in range(1, 40):
        monkeypatch.setattr(opening, "BLOCK", size)
        assert count(path, raw=True) == (3, 7)


@needs_data
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_counting_wikitext(encoding: str) -> None:
    path = SHARED / "text/wikitext-2/wiki.valid.tokens"
    found = count(path, encoding)
    assert found == (2461, 3760)
    halves = text.FORMAT.pieces(path, path.stat().st_size // 2)
    parts = [count(path, piece=half) for half in halves]
    assert found == tuple(map(sum, itertools.zip_longest(*parts)))
