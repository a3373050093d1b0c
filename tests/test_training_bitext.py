"""Sentence pairs of files as rows: the same as those of the corpus, cut in proportion, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derivlang.align.bitext import encode_lines
from derivlang.core.errors import DerivlangError
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.streams.bitext import FilePairs, read_pairs
from derivlang.training.streams.pair_source import DerivedPairs, PairSource
from tests.commands import run as command
from tests.training import pair, trained

Tokens = list[tuple[int, int]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pairs of the demo, as text and as Parquet."""
    folder = tmp_path_factory.mktemp("bitext")
    command("make", "--t", "trans,inv", "demo", "-o", folder / "set")
    for form, name in (("text", "pairs"), ("parquet", "pairs.parquet")):
        command("pair", folder / "set", "--split", "train", "--rate", "100", "--format", form, "-o", folder / name)
    return folder


def sides(pairs: PairSource, number: int) -> tuple[list[Tokens], set[tuple[int, int]]]:
    """The ids and words of both sides of a pair, and its links."""
    one = np.array([number])
    found = [pairs.side(one, side) for side in (SOURCE, DERIVED)]
    links = {(int(i), int(j)) for i, j in pairs.links(one).T}
    return [list(zip(side.ids.tolist(), side.words.tolist(), strict=True)) for side in found], links


@pytest.mark.parametrize("name", ["pairs", "pairs.parquet"])
def test_pairs_of_a_file_are_those_of_the_corpus(files: Path, name: str) -> None:
    """Sub-words and words alike; word links join all sub-words of both words, and the order joins one with one."""
    prepared = pair(seq_len=512)
    read = FilePairs(read_pairs(files / name), prepared.languages, 510)
    derived = DerivedPairs(prepared.data, 100, seed=1)
    assert len(read.sizes) == len(derived.sizes) > 50
    assert read.facts["cut_sentences"] == read.facts["short_pairs"] == 0
    for number in range(len(read.sizes)):
        ours, links = sides(read, number)
        theirs, exact = sides(derived, number)
        assert [id for id, _ in ours[0]] == [id for id, _ in theirs[0]]
        assert [id for id, _ in ours[1]] == [id for id, _ in theirs[1]]
        assert [word for _, word in ours[0]] == [word for _, word in theirs[0]]
        assert exact <= links
        by_word = {(ours[0][i][1], ours[1][j][1]) for i, j in exact}
        assert by_word == {(ours[0][i][1], ours[1][j][1]) for i, j in links}
    every = np.arange(len(read.sizes))
    assert read.side(every, DERIVED).language.tolist() == [DERIVED] * int(read.sizes[:, 1].sum())


def test_several_pairs_are_one_after_the_other(files: Path) -> None:
    read = FilePairs(read_pairs(files / "pairs"), pair().languages, 30)
    some = np.array([3, 0, 7])
    found = read.side(some, SOURCE).ids.tolist()
    assert found == [id for n in some for id in read.side(np.array([n]), SOURCE).ids.tolist()]
    links = {(int(i), int(j)) for i, j in read.links(some).T}
    expected, before = set(), np.zeros(2, int)
    for n in some:
        expected |= {(int(i + before[0]), int(j + before[1])) for i, j in read.links(np.array([n])).T}
        before += read.sizes[n]
    assert links == expected


@pytest.mark.parametrize("room", [2, 5, 14])
def test_long_pairs_are_cut_in_proportion(files: Path, room: int) -> None:
    file, languages = read_pairs(files / "pairs"), pair().languages
    whole, cut = FilePairs(file, languages, 1000), FilePairs(file, languages, room)
    assert (cut.sizes <= room).all()
    assert (cut.sizes > 0).all()
    short = whole.sizes.max(axis=1) <= room
    assert (cut.sizes[short] == whole.sizes[short]).all()
    assert cut.facts["cut_sentences"] == int((~short).sum()) > 0
    for number in range(len(whole.sizes)):
        (ours, theirs), (every, _) = (sides(found, number) for found in (cut, whole))
        for side in (SOURCE, DERIVED):
            assert ours[side] == every[side][: len(ours[side])]
            before, after = ours[side][-1], every[side][len(ours[side]) : len(ours[side]) + 1]
            first_word = ours[side][0][1] == before[1]
            assert not after or after[0][1] != before[1] or first_word  # cut inside a word only if it is the first
        assert all(i < len(ours[0]) and j < len(ours[1]) for i, j in theirs)


def test_lines_are_divided_as_align_divides_them(tmp_path: Path) -> None:
    """The links of `derivlang align train` number these words."""
    lines = ["a\tb c d", " x\u00a0y  z\x0b\x0cw ", ""]
    for part in ("source", "derived"):
        (tmp_path / f"p.{part}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (tmp_path / "p.pharaoh").write_text("3-3\n2-2\n\n")
    words = encode_lines(lines)
    side = read_pairs(tmp_path / "p").source
    assert side.codes.tolist() == words.codes.tolist()
    assert side.offsets.tolist() == words.offsets.tolist() == [0, 4, 7, 7]
    assert side.types.to_pylist() == words.types.to_pylist() == ["a", "b", "c", "d", "x\u00a0y", "z", "w"]


def test_empty_sides_are_left_out_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a.source").write_text("we walk\n\nyes .\n")
    (tmp_path / "a.derived").write_text("walk we\nno\n. yes\n")
    found = FilePairs(read_pairs(tmp_path / "a"), pair().languages, 30)
    assert (len(found.sizes), found.facts["sentences"], found.facts["short_pairs"]) == (2, 3, 1)
    assert found.links(np.arange(2)).shape == (2, 0)


def test_short_sides_are_left_out_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a.source").write_text("we walk\nyes , we walk home\nyes .\n")
    (tmp_path / "a.derived").write_text("walk we\nhome walk we , yes\n. yes\n")
    file, languages = read_pairs(tmp_path / "a"), pair().languages
    sizes = FilePairs(file, languages, 30).sizes.min(axis=1)
    found = FilePairs(file, languages, 30, shortest=int(sizes[1]))
    assert (found.sizes.min(axis=1).tolist(), found.facts["short_pairs"]) == ([sizes[1]], 2)
    with pytest.raises(DerivlangError, match=r"no sentence pair of 29 or more sub-words per side"):
        FilePairs(file, languages, 30, shortest=29)


def parquet(path: Path, **columns: Any) -> None:
    pq.write_table(pa.table(columns), path)


WORDS = pa.array([["a", "b"], ["c"]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"source": WORDS}, "has no column 'tokens' of lists of words"),
        ({"source": WORDS, "tokens": ["b a", "c"]}, "has no column 'tokens' of lists of words"),
        ({"source": WORDS, "tokens": pa.array([["b", None], ["c"]])}, "the column 'tokens' has empty values"),
        ({"source": WORDS, "tokens": pa.array([None, ["c"]])}, "the column 'tokens' has empty values"),
        ({"source": WORDS, "tokens": WORDS, "links": pa.array([[[0, 5]], []])}, "[link-range]"),
        ({"source": WORDS, "tokens": WORDS, "links": pa.array([[[0, 1, 1]], []])}, "column of links"),
        ({"source": WORDS, "tokens": WORDS, "links": ["0-0", ""]}, "column of links"),
        ({"source": pa.array([[]], WORDS.type), "tokens": pa.array([["a"]])}, "holds no sentence pair"),
    ],
)
def test_what_is_no_file_of_pairs(columns: dict[str, Any], message: str, tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", **columns)
    with pytest.raises(DerivlangError) as error:
        FilePairs(read_pairs(tmp_path / "a.parquet"), pair().languages, 30)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"source": "a\n"}, "there is no such file"),
        ({"source": "a\nb\n", "derived": "a\n"}, "has 2 source sentences, but 1 derived ones"),
        ({"source": "a\n", "derived": "a\n", "pharaoh": "0-1\n"}, "[link-range]"),
        ({"source": "a\n", "derived": "a\n", "pharaoh": "0:0\n"}, "'0:0' is not a link"),
        ({"source": "a\n", "derived": "a\n", "pharaoh": "0-0\n0-0\n"}, "[lengths]"),
    ],
)
def test_what_are_no_texts_of_pairs(texts: dict[str, str], message: str, tmp_path: Path) -> None:
    for part, text in texts.items():
        (tmp_path / f"a.{part}").write_text(text)
    with pytest.raises(DerivlangError) as error:
        read_pairs(tmp_path / "a")
    assert message in str(error.value)


def test_a_run_on_a_file(files: Path, tmp_path: Path) -> None:
    """Both forms give one model; a run with other pairs is another run."""
    one = trained(tmp_path / "one", "tlm", pairs=files / "pairs")
    two = trained(tmp_path / "two", "tlm", pairs=files / "pairs.parquet")
    assert one["loss"] == two["loss"]
    with pytest.raises(DerivlangError, match="its sentence pairs are others"):
        trained(tmp_path / "one", "tlm", pairs=files / "pairs.parquet", resume=True)
