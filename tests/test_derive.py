"""`derive` and `show --t`: a string is raw text, as in a .txt file; a list of strings is words."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import derivlang
from derivlang.api import derive_chunks
from derivlang.cli.derive import _lines_as_they_come
from derivlang.core.errors import DataError, DerivlangError, UsageError
from derivlang.core.messages import DerivlangWarning
from tests.commands import command_line, environment, forked, on_terminal, run
from tests.helpers import make, obeyed, rows
from tests.real import SHARED, needs_data

RAW = "Hello, world! It's me."
WORDS = ["Hello", ",", "world", "!", "It", "'s", "me", "."]
LINES = [
    RAW,
    "\ufeffA mark at the head of a line, and it isn't text (so they say)...",
    'He said: "Don\'t!" — and left\u00a0 at 5:30\tp.m.  ',
    "<unk> and x<unk>y, [MASK].",
    "Über 3.000 Häuser\r",
]


def made(line: str, spec: str, folder: Path, **options: Any) -> tuple[list[str], list[str], list[int]]:
    """Derived words, source words and order of a .txt file with one line."""
    file = folder / "a.txt"
    file.write_bytes(line.encode("utf-8-sig") + b"\n")  # a mark at the head of a file is no part of the text
    words: list[str] = []
    source: list[str] = []
    order: list[int] = []
    for row in rows(make(spec, file, folder / "out", **options)).to_pylist():
        order += [i + len(source) for i in row["order"]]
        words += row["tokens"]
        source += row["source"]
    return words, source, order


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("words", [None, "unicode", "space"])
def test_a_string_is_what_a_text_file_with_it_is(line: str, words: Any, tmp_path: Path) -> None:
    found = derivlang.derive(line, "trans,inv", words=words)
    assert (found.words, found.source, found.order) == made(line, "trans,inv", tmp_path, words=words)


def test_a_language_that_nothing_reads_is_told() -> None:
    cases: list[tuple[Any, Any]] = [(["Hello"], None), ("Hello", "unicode"), ("Hello", "space")]
    for text, words in cases:
        with pytest.warns(DerivlangWarning, match="the language 'de' has no effect"):
            derivlang.derive(text, "inv", words=words, lang="de")
    with pytest.warns(DerivlangWarning, match="the language 'de' has no effect"):
        list(derive_chunks([["Hello"]], "inv", words="space", lang="de"))
    with pytest.raises(DerivlangError, match="pass lang='xx'"):
        list(derivlang.derive_lines(["Hello"], "inv", lang="qq"))
    derivlang.derive("Hello", "inv", lang="de")


def test_the_lines_of_a_string_are_those_of_a_file(tmp_path: Path) -> None:
    text = 'He said "go.\n\n  and went" . Then\nwhat ?'
    found = derivlang.derive(text, "inv")
    assert (found.words, found.source, found.order) == made(text, "inv", tmp_path)


@needs_data
@pytest.mark.parametrize("spec", ["inv", "trans:cyrillic,perm", "perm:window=3", "syn:fr", "syn:ja,inv"])
@pytest.mark.parametrize("language", ["en", "de"])
def test_real_text_is_derived_as_make_derives_it(spec: str, language: str, tmp_path: Path) -> None:
    if "syn" in spec and language != "en":
        pytest.skip("the parser in the package is for English")
    articles = json.loads((SHARED / f"qa/xquad/xquad.{language}.json").read_text("utf-8"))["data"]
    lines = [paragraph["context"] for article in articles[:6] for paragraph in article["paragraphs"]]
    lines = [" ".join(line.split("\n")) for line in lines]
    file = tmp_path / "a.txt"
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    out = make(spec, file, tmp_path / "out", language=language, parses=tmp_path / "parses")
    documents: list[list[str]] = [[] for _ in lines]
    for row in rows(out).to_pylist():
        documents[row["document"]] += row["tokens"]
    assert len(lines) > 25
    for line, words in zip(lines, documents, strict=True):
        assert derivlang.derive(line, spec, lang=language).words == words


def test_a_list_of_strings_is_words() -> None:
    assert derivlang.derive(RAW, "identity").words == WORDS
    assert derivlang.derive(RAW.split(), "inv").words == ["me.", "It's", "world!", "Hello,"]
    assert derivlang.derive(WORDS, "inv") == derivlang.derive(RAW, "inv")
    assert derivlang.derive(("New\u00a0York", "is"), "inv").words == ["is", "New\u00a0York"]
    assert derivlang.derive([], "inv").words == []


@pytest.mark.parametrize("text", ["", " ", "\n", " \u3000\n\n"])
def test_no_words(text: str) -> None:
    found = derivlang.derive(text, "trans,inv")
    assert (found.words, found.order, found.text, found.source) == ([], [], "", [])


@pytest.mark.parametrize(
    ("text", "options", "error", "message"),
    [
        (None, {}, UsageError, "not None"),
        (5, {}, UsageError, "of type int"),
        (b"abc", {}, UsageError, "of type bytes"),
        ({"a": 1}, {}, UsageError, "of type dict"),
        (["a", 5], {}, UsageError, "word 2 is of type int"),
        (["a", None], {}, UsageError, "word 2 is None"),
        (["a", ""], {}, DataError, "word 2 is empty"),
        (["a"], {"words": "space"}, UsageError, "list of words"),
        ("a \ud800", {}, DataError, "surrogates not allowed"),
        (["a\ud800"], {}, DataError, "surrogates not allowed"),
        ("a\0b", {}, DataError, "NUL"),
        ("a", {"words": "word"}, UsageError, "there is no word splitter 'word'"),
        ("a", {"words": ""}, UsageError, "there is no word splitter ''"),
        ("a", {"sentences": "lines"}, UsageError, "there is no sentence rule 'lines'"),
        ("a", {"lang": "tlh"}, UsageError, "tlh"),
        ("a", {"lexicon": "/no/such/lexicon.tsv"}, DataError, "lexicon"),
        ("a", {"spec": None}, UsageError, "not None"),
        ("a", {"spec": "\ud800"}, UsageError, "is not text"),
    ],
)
def test_what_is_no_text_is_refused(text: Any, options: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(DerivlangError, match=message) as raised:
        derivlang.derive(text, **{"spec": "inv", **options})
    assert type(raised.value) is error


def test_show_takes_raw_text() -> None:
    shown = run("show", "--t", "inv", RAW, "--json").json
    assert shown["source"] == WORDS
    assert shown["tokens"] == derivlang.derive(RAW, "inv").words
    assert run("show", "--t", "inv", "--words", "space", RAW, "--json").json["source"] == RAW.split()
    german = "Wie geht's? z.B. so."
    assert (
        run("show", "--t", "inv", "--lang", "de", german, "--json").json["source"]
        == derivlang.derive(german, "inv", lang="de").source
        != derivlang.derive(german, "inv").source
    )


def test_show_of_a_set_takes_no_words(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a b\n")
    out = make("inv", tmp_path / "a.txt", tmp_path / "out")
    assert "leave --words out" in run("show", out, "--words", "space", code=2).err
    assert "leave --lang out" in run("show", out, "--lang", "de", code=2).err


# derivlang derive


def test_derive_a_text() -> None:
    assert run("derive", "--t", "trans,inv", "Welcome to ACL .").out == "ᲐᲪᲚ ტო Წელცომე ．\n"
    assert run("derive", "--t", "inv", "Go home !\n\nNow .").out == "home Go !\n\nNow .\n"
    assert run("derive", "--t", "inv", "").out == "\n"


@pytest.mark.parametrize("words", [None, "unicode", "space"])
def test_a_line_in_gives_a_line_out(words: Any) -> None:
    lines = [*LINES, "", "  ", "last line"]
    options = [] if words is None else ["--words", words]
    text = "\ufeff" + "\n".join(lines)  # a mark at the head of a file, and no newline at its end
    ran = forked("derive", "--t", "trans,perm", *options, "-", input=text)
    assert ran.out == "".join(f"{derivlang.derive(line, 'trans,perm', words=words).text}\n" for line in lines)
    assert ran.err == ""


def test_derived_lines_as_json() -> None:
    lines = forked("derive", "--t", "trans,inv", "--json", "-", input="Hello, world!\n\nYes.\n").out.splitlines()
    assert [json.loads(line)["source"] for line in lines] == [["Hello", ",", "world", "!"], [], ["Yes", "."]]
    assert json.loads(lines[0]) == {
        "text": "წორლდ ， Ჰელლო ！",
        "words": ["წორლდ", "，", "Ჰელლო", "！"],
        "source": ["Hello", ",", "world", "!"],
        "order": [2, 1, 0, 3],
        "links": "0-2 1-1 2-0 3-3",
    }


def test_lines_are_written_as_they_come() -> None:
    line = command_line("derive", "--t", "inv", "-")
    with subprocess.Popen(line, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for given, image in ((b"a b\n", b"b a\n"), (b"c d e", b""), (b" f\n\n", b"f e d c\n"), (b"last", b"")):
            process.stdin.write(given)
            process.stdin.flush()
            if image:
                assert process.stdout.readline() == image
        process.stdin.close()
        assert process.stdout.read() == b"\nlast\n"
    assert process.returncode == 0


def test_chunks_make_no_difference() -> None:
    lines = [f"{LINES[i % len(LINES)]} {i}" for i in range(3000)]  # more than one block
    out = forked("derive", "--t", "trans,perm", "-", input="\n".join(lines)).out
    assert out == "".join(f"{text.text}\n" for text in next(iter(derive_chunks([lines], "trans,perm"))))
    as_of_a_file = (f"{line}\n" for line in lines)
    assert out == "".join(f"{text.text}\n" for text in derivlang.derive_lines(as_of_a_file, "trans,perm"))


@pytest.mark.parametrize(("text", "id"), [(b"a\nb \xff\n", "encoding"), (b"a\nb\0\n", "nul-byte")])
def test_input_that_is_no_text_is_refused_with_its_line(text: bytes, id: str) -> None:
    told = forked("derive", "--t", "inv", "-", input=text, code=1).err
    assert told.startswith("derivlang: standard input:2: ")
    assert f"[{id}]" in told


def test_derive_needs_a_lexicon_where_make_does(tmp_path: Path) -> None:
    assert "[needs-lexicon]" in run("derive", "--t", "trans:overlap=50", "a b", code=2).err
    (tmp_path / "a.tokens").write_text("a b c d .\n", "utf-8")
    out = make("trans:overlap=50", tmp_path / "a.tokens", tmp_path / "out")
    made = " ".join(rows(out).to_pylist()[0]["tokens"])
    line = ("derive", "--t", "trans:overlap=50", "--lexicon", out / "lexicon.tsv", "a b c d .")
    assert run(*line).out == f"{made}\n"


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_lines_are_the_same_whatever_the_blocks(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("derivlang.cli.derive._BLOCK", size)
    data = "\ufeffa b\n\nlong line of words\nlast".encode()
    found = [line for lines in _lines_as_they_come(io.BytesIO(data)) for line in lines]
    assert found == ["a b", "", "long line of words", "last"]


OBEYED = ["a\x1b[8mb", "c\u202ed", "\x9b8me"]
SHOWN = ["a\\u001b[8mb", "c\\u202ed", "\\u009b8me"]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_only_a_terminal_gets_escapes(options: tuple[str, ...]) -> None:
    """A pipe gets the words as they are; in both, JSON means the same."""
    command = ("derive", "--t", "inv", "--words", "space", *options, " ".join(OBEYED))
    piped, shown = forked(*command).out, on_terminal(*command)
    assert not obeyed(shown)
    if options:
        assert json.loads(shown) == json.loads(piped)
        assert json.loads(piped)["words"] == OBEYED[::-1]
    else:
        assert piped == f"{' '.join(OBEYED[::-1])}\n"
        assert shown == f"{' '.join(SHOWN[::-1])}\n"


def test_a_file_is_shown_by_a_terminal_with_escapes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" ".join(OBEYED), "utf-8")
    make("inv", tmp_path / "a.txt", tmp_path / "set", words="space")
    command = ("export", tmp_path / "set", "--format", "text")
    assert forked(*command).out == f"{' '.join(OBEYED[::-1])}\n"
    assert on_terminal(*command) == f"{' '.join(SHOWN[::-1])}\n"
