"""WikiText's oddities, on lines written for the project in its style, and on the real valid split where it is."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from derivlang.core.errors import DataError
from tests.helpers import make, manifest, right, rows, same_rows, undone
from tests.real import SHARED, needs_data

STYLE = (
    " \n"
    " = The Quiet Mill = \n"
    " \n"
    " The Quiet Mill is a 1911 novel by <unk> Harrow , set in a north @-@ coast town of 4 @,@ 200 people . "
    "It sold 1 @.@ 5 million copies . \n"
    " \n"
    " = = Plot = = \n"
    " \n"
    ' " Who keeps the mill ? " asks Mary , and the old man says : " Nobody . " Then he leaves ... \n'
    " = 3 , so the rule holds \n"
    " No mark stands at the end of this line \n"
    " Really ?! Yes ! ! ! ( It was . ) [ So ] \n"
    " ' It is ' , he wrote . ' Or was . ' \n"
    " The word \ufeffmill\ufeff and \ufeff alone . \n"
    " <unk> <unk> . \n"
    " \n"
)
CASES = {
    "style": STYLE,
    "no final newline": STYLE.rstrip("\n"),
    "no final newline or space": STYLE.rstrip(),
    "two": STYLE * 2,
    "crlf": STYLE.replace("\n", "\r\n"),
    "lone cr": "a b\rc d . \r e\n\rf\n" + "g h .\n" * 40,
    "tabs": "a\tb\t\tc .\n\t\n \t d\v e\f .\t\n",
    "bom": "\ufeff" + STYLE,
    "bom and a word": "\ufeffa b .\nc\n",
    "bom and a blank line": "\ufeff\n \na b .\n",
    "bom inside": "a\n\ufeffb c .\n \ufeff \nd\n",
    "one word": "a",
    "one word and a newline": "a\n",
    "leading blank line": "\na b .\n",
    "leading blank lines": "\n \n\t\n a b .\nc\n",
    "trailing blank lines": "a b .\n\n \n\t\n",
    "trailing space without newline": "a b .\n\n   ",
    "blank lines between": "a .\n\n\n\n\nb .\n \n \nc\n",
    "doubled spaces": "a  b   c  .  d\n",
    "quotes across lines": 'a " b .\nc " d .\n"\n" "\n',
    "marks only": ". ! ?\n...\n.\n…\n",
    "separators": "a\u2028b c\u0085d \x1c e \x1f f\n\x1c\n",
    "spaces of Unicode": "a\u00a0b \u3000 c\u2009d\n\u00a0\n",
    "control characters": "a\x01 \x02 b\n\x01\n\x7f c\n",
    "astral": "😀 a 👩‍👩‍👧 .\n𝔸\n",
    "long line": "w " * 5000 + ".\n" + "v\n",
    "long word": "w" * 5000 + " .\nv\n",
}
each = pytest.mark.parametrize("case", CASES)


def written(case: str, folder: Path, suffix: str = "tokens") -> Path:
    path = folder / f"wiki.valid.{suffix}"
    path.write_bytes(CASES[case].encode())
    return path


@each
@pytest.mark.parametrize("words", ["spacy", "space"])
def test_undo_is_exact_for_raw_text(case: str, words: str, tmp_path: Path) -> None:
    out = make("trans,inv", written(case, tmp_path, "txt"), tmp_path / "out", words=words)
    right(out)
    assert undone(out) == CASES[case].encode()


@each
@pytest.mark.parametrize(
    ("suffix", "words", "sizes"), [("tokens", "space", (1, 20)), ("txt", "unicode", (4,))], ids=["tokens", "txt"]
)
def test_rows_do_not_depend_on_shards(
    case: str, suffix: str, words: str, sizes: tuple[int, ...], tmp_path: Path
) -> None:
    path = written(case, tmp_path, suffix)
    whole = make("perm", path, tmp_path / "whole", words=words)
    right(whole)
    assert undone(whole) == CASES[case].encode()
    for shard_tokens in sizes:
        cut = make("perm", path, tmp_path / f"cut-{shard_tokens}", words=words, shard_tokens=shard_tokens)
        assert undone(cut) == CASES[case].encode()
        same_rows(rows(cut), rows(whole))
        right(cut)
        ours, theirs = (manifest(folder)["splits"]["validation"] for folder in (cut, whole))
        assert [ours[k] for k in ("documents", "sentences", "tokens")] == [
            theirs[k] for k in ("documents", "sentences", "tokens")
        ]


@each
def test_undo_is_exact_and_packed_files_give_the_same_rows(case: str, tmp_path: Path) -> None:
    path = written(case, tmp_path)
    plain = make("trans,inv", path, tmp_path / "plain")
    right(plain)
    assert undone(plain) == CASES[case].encode()
    packed = tmp_path / "wiki.valid.tokens.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    same_rows(rows(make("trans,inv", packed, tmp_path / "gz")), rows(plain))


@each
def test_a_limit_takes_whole_lines(case: str, tmp_path: Path) -> None:
    path = written(case, tmp_path)
    every = rows(make("inv", path, tmp_path / "every"))
    for limit in (1, 2, 5):
        out = make("inv", path, tmp_path / f"{limit}", limit=limit)
        assert CASES[case].encode().startswith(undone(out))
        expected = [row for row in every.to_pylist() if row["document"] < limit]
        assert rows(out).to_pylist() == expected
        assert manifest(out)["splits"]["validation"]["documents"] == len({row["document"] for row in expected})


@pytest.mark.parametrize("content", ["", "\n", " \n\t\n \n", "   ", "\ufeff", "\ufeff\n", "\r\n\r\n"])
@pytest.mark.parametrize("name", ["a.tokens", "a.txt"])
def test_a_file_of_blank_lines_is_an_error(content: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode())
    with pytest.raises(DataError, match=r"holds no words|holds no .*word|empty"):
        make("inv", path, tmp_path / "out", words="space")


def test_headings_and_hyphens_are_words(tmp_path: Path) -> None:
    table = rows(make("trans,inv", written("style", tmp_path), tmp_path / "out"))
    source = table["source"].to_pylist()
    assert source[0] == "= The Quiet Mill =".split()
    assert "@-@" in source[1]
    assert "@,@" in source[1]
    assert source[2] == "It sold 1 @.@ 5 million copies .".split()
    assert source[3] == "= = Plot = =".split()
    assert "= 3 , so the rule holds".split() in source
    assert "The word \ufeffmill\ufeff and \ufeff alone .".split(" ") in source
    assert table["document"].to_pylist()[:4] == [0, 1, 1, 2]


def test_sentences_end_where_the_rule_says(tmp_path: Path) -> None:
    table = rows(make("identity", written("style", tmp_path), tmp_path / "out"))
    source = [" ".join(words) for words in table["source"].to_pylist()]
    for sentence in (
        '" Who keeps the mill ? "',
        'asks Mary , and the old man says : " Nobody . "',
        "Then he leaves ...",
        "Really ?!",
        "Yes ! ! !",
        "( It was . )",
        "[ So ]",
        "' It is ' , he wrote .",
        "' Or was . '",
        "No mark stands at the end of this line",
    ):
        assert sentence in source
    tails = dict(zip(source, table["sentences"].to_pylist(), strict=True))
    assert tails["Yes ! ! !"] == [4, 3]
    assert tails['" Who keeps the mill ? "'] == [7, 2]
    assert tails["No mark stands at the end of this line"] == [9, 0]
    assert tails["Then he leaves ..."] == []


def test_unk_stays(tmp_path: Path) -> None:
    table = rows(make("trans", written("style", tmp_path), tmp_path / "out"))
    for source, tokens in zip(table["source"].to_pylist(), table["tokens"].to_pylist(), strict=True):
        assert [word == "<unk>" for word in source] == [word == "<unk>" for word in tokens]
    raw = rows(make("trans", written("style", tmp_path, "txt"), tmp_path / "raw", words="unicode"))
    flat = [word for words in raw["tokens"].to_pylist() for word in words]
    assert flat.count("<unk>") == STYLE.count("<unk>")


def test_a_leading_bom_is_no_word(tmp_path: Path) -> None:
    table = rows(make("inv", written("bom and a word", tmp_path), tmp_path / "out"))
    assert table["source"].to_pylist() == [["a", "b", "."], ["c"]]


@needs_data
def test_the_whole_valid_split(tmp_path: Path) -> None:
    path = SHARED / "text/wikitext-2/wiki.valid.tokens"
    whole = make("trans,perm", path, tmp_path / "whole")
    right(whole)
    assert undone(whole) == path.read_bytes()
    entry = manifest(whole)["splits"]["validation"]
    assert entry["tokens"] == 213_886
    assert manifest(whole)["vocabulary"]["types"] == 13_776
    cut = make("trans,perm", path, tmp_path / "cut", shard_tokens=20_000)
    assert len(manifest(cut)["splits"]["validation"]["shards"]) > 5
    assert undone(cut) == path.read_bytes()
    ours, theirs = (rows(folder, "validation") for folder in (cut, whole))
    assert ours.equals(theirs)
