"""What can be wrong with input, options and disk: one message that names it, the right exit code, no debris."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from derivlang.cli.main import main
from derivlang.store.record import record_text
from tests import commands
from tests.commands import ENTITIES, TREES, leftovers, make, rows, run, snapshot, spawn, wiki, written

HEADS = TREES.replace("\t2\tnsubj", "\t31\tnsubj", 1)
CYCLE = TREES.replace("\t5\tcase", "\t4\tcase", 1).replace("\t5\tdet", "\t3\tdet", 1)
JSON_ROWS = [{"tokens": ["a", "b", "."], "ner_tags": ["O", "B-X", "O"]}, {"tokens": ["c"], "ner_tags": ["O", "O"]}]


def jsonl(folder: Path, lines: list[Any]) -> Path:
    return written(folder / "x.test.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def parquet(folder: Path, cut: int) -> Path:
    path = folder / "x.test.parquet"
    pq.write_table(pa.table({"tokens": [["a", "b"]] * 1000, "n": list(range(1000))}), path)
    return written(path, path.read_bytes()[:cut])


def packed(folder: Path, cut: int | None, name: str = "x.test.txt.gz") -> Path:
    words = " ".join(str(n * n) for n in range(30_000))
    return written(folder / name, gzip.compress(f"{words} .\n".encode())[:cut])


# The source, further options, and what the message must hold ({} is the file).
BAD: dict[str, tuple[Callable[[Path], Path], list[str], list[str]]] = {
    "no file": (lambda f: f / "nothing.txt", [], ["{}", "no such file"]),
    "no folder": (lambda f: f / "no" / "where", [], ["{}", "no such file"]),
    "an empty folder": (lambda f: (f / "in").mkdir() or f / "in", [], ["{}", "no file of a known format"]),
    "an unfinished set": (
        lambda f: written(f / "in" / ".derivlang" / "plan.json", "{}").parent.parent, [], ["{}", "not finished"]
    ),
    "latin-1 text": (
        lambda f: written(f / "x.txt", b"Hi .\n\ncaf\xe9\n"), [], ["{}:3", "byte 0xe9 at offset 9", "--encoding"]
    ),
    "mixed text": (
        lambda f: written(f / "x.txt", b"Caf\xc3\xa9 .\nCaf\xe9 .\n"), [], ["{}:2", "convert the lines"]
    ),
    "Arabic text": (
        lambda f: written(f / "x.txt", "مرحبا بالعالم .\n".encode("cp1256")), ["--lang", "ar"], ["{}:1", "as cp1251"]
    ),
    "half a character": (
        lambda f: written(f / "x.txt", "Été .\nÀ Tôkyô 東京".encode()[:-1]), [], ["{}:2", "inside a character"]
    ),
    "half a character of shift_jis": (
        lambda f: written(f / "x.txt", "東京 .\n東京".encode("shift_jis")[:-1]), ["--encoding", "shift_jis"],
        ["{}:2", "ends inside a character"],
    ),
    "latin-1 tokens": (lambda f: written(f / "x.tokens", b"ca\xe9\n"), [], ["{}:1", "at offset 2", "--encoding"]),
    "latin-1 tags": (lambda f: written(f / "x.tsv", b"a\tO\n\nb\xe9\tO\n"), [], ["{}:3", "0xe9", "--encoding"]),
    "latin-1 trees": (lambda f: written(f / "x.conllu", TREES.encode("latin-1", "ignore")), [], ["{}:6", "--encoding"]),
    "bytes that are not even that": (
        lambda f: written(f / "x.txt", b"a\xff\n"), ["--encoding", "ascii"], ["{}:1", "byte 0xff", "ascii"]
    ),
    "NUL bytes": (lambda f: written(f / "x.txt", b"a b\nc\0d\n"), [], ["{}:2", "NUL"]),
    "UTF-16 unsaid": (lambda f: written(f / "x.txt", "ab\n".encode("utf-16")), [], ["{}:1", "utf-16"]),
    "NUL in tags": (lambda f: written(f / "x.tsv", b"a\tO\n\nc\0\tO\n"), [], ["{}:3", "NUL"]),
    "half a Parquet": (lambda f: parquet(f, 900), [], ["{}"]),
    "an empty Parquet": (lambda f: parquet(f, 0), [], ["{}"]),
    "half a gz": (lambda f: packed(f, 20_000), [], ["{}", "truncated or damaged"]),
    "a gz without its end": (lambda f: packed(f, -4), [], ["{}", "truncated or damaged"]),
    "a gz that is none": (lambda f: written(f / "x.txt.gz", "text"), [], ["{}", "truncated or damaged"]),
    "half a zst": (lambda f: written(f / "x.txt.zst", b"\x28\xb5\x2f\xfdxx"), [], ["{}", "truncated or damaged"]),
    "half a gz of trees": (
        lambda f: written(f / "x.conllu.gz", gzip.compress(TREES.encode())[:-9]), [], ["{}", "truncated or damaged"]
    ),
    "too few columns": (
        lambda f: written(f / "x.test.tsv", "premise\thypothesis\tlabel\na\tb\tneutral\nc\td\n"),
        [],
        ["{}:3", "2 columns, expected 3"],
    ),
    "a tag is missing": (lambda f: written(f / "x.tsv", "a\tO\n\nb\tO\nc\n"), [], ["{}:4", "1 column, expected 2"]),
    "tags and words": (lambda f: jsonl(f, JSON_ROWS), [], ["{}:2", "1 words but 2 values in ner_tags"]),
    "keys differ": (lambda f: jsonl(f, [{"tokens": ["a"]}, {"words": ["a"]}]), [], ["{}:1", "lacks", "words"]),
    "no JSON": (lambda f: written(f / "x.jsonl", '{"tokens": ["a"]}\n{"tokens": [\n'), [], ["{}:2", "JSON"]),
    "an empty word": (lambda f: jsonl(f, [{"tokens": ["a", ""]}]), [], ["{}:1", "word 2 of tokens is empty"]),
    "no words": (lambda f: jsonl(f, [{"tokens": ["a"]}, {"tokens": None}]), [], ["{}:2", "tokens"]),
    "half a SQuAD": (lambda f: written(f / "x.json", json.dumps(commands.QUESTIONS)[:90]), [], ["{}", "JSON"]),
    "an answer that is not there": (
        lambda f: written(f / "x.json", json.dumps(commands.QUESTIONS).replace("London", "Paris", 1)), [], ["{}", "q1"]
    ),
    "a head out of range": (lambda f: commands.trees(f, HEADS), [], ["{}:3", "a-1", "head 31", "9 words"]),
    "a cycle": (lambda f: commands.trees(f, CYCLE), [], ["{}:6", "a-1", "cycle"]),
    "nine columns": (lambda f: commands.trees(f, TREES.replace("\t_\t_\n", "\t_\n", 1)), [], ["{}:3", "9 columns"]),
    "an empty file": (lambda f: written(f / "x.txt", ""), [], ["x.txt", "no words"]),
    "an empty gz": (lambda f: written(f / "x.tokens.gz", gzip.compress(b"")), [], ["x.tokens.gz", "no words"]),
    "blank lines": (lambda f: written(f / "x.txt", "\n \n\t\n"), [], ["x.txt", "no words"]),
    "a byte-order mark alone": (lambda f: written(f / "x.txt", "\ufeff\n"), [], ["x.txt", "no words"]),
    "empty trees": (lambda f: commands.trees(f, ""), [], ["{}", "no sentence"]),
    "blank lines for trees": (lambda f: commands.trees(f, "\n\n\n"), [], ["{}", "no sentence"]),
    "an empty tsv": (lambda f: written(f / "x.tsv", ""), [], ["{}"]),
    "blank lines for tags": (lambda f: written(f / "x.tsv", "\n\n"), [], ["{}"]),
    "an empty jsonl": (lambda f: written(f / "x.jsonl", "\n"), [], ["{}", "no row"]),
    "one empty file of two": (
        lambda f: written(f / "in" / "x.test.txt", "") and wiki(f / "in", name="x.train.txt").parent,
        [],
        ["test", "no words"],
    ),
    "I- after O": (
        lambda f: commands.entities(f, ENTITIES.replace("B-PER", "O", 1)), [], ["{}:2", "I-PER", "--repair-tags"]
    ),
    "I- of another type": (
        lambda f: commands.entities(f, ENTITIES.replace("I-PER", "I-LOC", 1)), [], ["{}:2", "I-LOC", "--repair-tags"]
    ),
    "an unknown prefix": (lambda f: commands.entities(f, ENTITIES.replace("B-LOC", "X-LOC", 1)), [], ["{}:5", "X-LOC"]),
    "a tag without prefix": (lambda f: commands.entities(f, ENTITIES.replace("B-LOC", "LOC", 1)), [], ["{}:5", "LOC"]),
}  # fmt: skip


SOME = ["latin-1 text", "half a gz", "tags and words", "a cycle", "an empty file", "no file"]


def refused(*arguments: object, code: int) -> str:
    """The message of a command that fails as it should: one paragraph on stderr, no traceback."""
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, (result.exit_code, result.stdout, result.stderr)
    assert result.stdout == ""
    return message(result.stderr)


def message(err: str) -> str:
    """Is it one message, after warnings? `derivlang: …` with an indented next step, or click's usage and `Error: …`."""
    err = re.sub(r"^derivlang: warning: .*\n", "", err, flags=re.MULTILINE)
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    if err.startswith("Usage:"):
        assert len(re.findall(r"^Error: ", err, re.MULTILINE)) == 1
        return err
    first, *more = err.rstrip("\n").split("\n")
    assert re.fullmatch(r"derivlang: \S.*\S \[[a-z0-9-]+\]", first), err
    assert all(line.startswith("  ") for line in more), err
    return err


@pytest.mark.parametrize("fault", BAD)
def test_bad_input(tmp_path: Path, fault: str) -> None:
    write, options, parts = BAD[fault]
    source, out = write(tmp_path), tmp_path / "out"
    spec = ["make", "--t", "trans,inv", source, "-o", out, "--words", "unicode", *options]
    told = refused(*spec, code=1)
    for part in parts:
        assert part.replace("{}", str(source)) in told
    assert leftovers(out) == []
    assert not (out / "derivlang.json").exists()
    again = refused(*spec, code=1)
    assert again == told  # not "another plan", not "damaged"


@pytest.mark.parametrize("fault", SOME)
def test_a_good_set_in_the_folder_is_untouched(tmp_path: Path, fault: str) -> None:
    write, options, _ = BAD[fault]
    out = tmp_path / "out"
    make("inv", wiki(tmp_path / "good"), out)
    before = snapshot(out)
    refused("make", "--t", "trans,inv", write(tmp_path), "-o", out, "--words", "unicode", *options, code=1)
    assert snapshot(out) == before


@pytest.mark.parametrize("fault", SOME)
def test_a_good_set_is_untouched_with_force_too(tmp_path: Path, fault: str) -> None:
    """--force replaces a set by another; it does not leave one with neither."""
    write, options, _ = BAD[fault]
    out = tmp_path / "out"
    make("inv", wiki(tmp_path / "good"), out)
    before = snapshot(out)
    refused("make", "--t", "trans", write(tmp_path), "-o", out, "--words", "unicode", "--force", *options, code=1)
    assert {name: data for name, data in snapshot(out).items() if not name.startswith(".derivlang/")} == before


@pytest.mark.parametrize("fault", ["latin-1 text", "tags and words", "a cycle", "an empty file", "I- after O"])
def test_the_same_command_works_once_the_file_is_mended(tmp_path: Path, fault: str) -> None:
    """A run that made nothing leaves no plan behind that the next one would be refused for."""
    write, options, _ = BAD[fault]
    source, out = write(tmp_path), tmp_path / "out"
    command = ["make", "--t", "inv", source, "-o", out, "--words", "unicode", *options]
    refused(*command, code=1)
    good = {".tsv": ENTITIES.replace(" ", "\t"), ".conllu": TREES, ".jsonl": '{"tokens":["a"],"ner_tags":["O"]}\n'}
    written(source, good.get(source.suffix, "mended .\n"))
    run(*command)
    assert run("verify", out).code == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_input_in_workers(tmp_path: Path, workers: int) -> None:
    """The error comes back whole from another process, and the good shards are kept."""
    for number in range(3):
        wiki(tmp_path / "in", name=f"train-{number}.txt")
    bad = written(tmp_path / "in" / "train-3.txt", b"x\n\xff\n")
    out = tmp_path / "out"
    command = ["make", "--t", "inv", tmp_path / "in", "-o", out, "--words", "unicode", "--workers", workers]
    ran = spawn(*command, code=1)
    assert f"{bad}:2: byte 0xff at offset 2" in message(ran.err)
    assert not [name for name in snapshot(out) if name.endswith(".tmp")]


# What looks bad and is not


@pytest.mark.parametrize("name", ["x.txt", "x.tokens"])
def test_the_right_encoding_works(tmp_path: Path, name: str) -> None:
    source = written(tmp_path / name, "Le café est fermé .\n".encode("latin-1"))
    make("inv", source, tmp_path / "out", "--encoding", "latin-1", "--words", "space")
    assert rows(tmp_path / "out", "train")[0]["tokens"] == ["fermé", "est", "café", "Le", "."]
    assert run("verify", tmp_path / "out").code == 0


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp1252", "UTF8", "utf_8"])
def test_encodings_and_their_names(tmp_path: Path, encoding: str) -> None:
    source = written(tmp_path / "x.tokens", "Le café .\nFin .\n".encode(encoding))
    result = make("inv", source, tmp_path / "out", "--encoding", encoding)
    assert result["splits"]["train"]["documents"] == 2
    assert rows(tmp_path / "out", "train")[0]["tokens"] == ["café", "Le", "."]


def test_labelled_files_in_another_encoding(tmp_path: Path) -> None:
    source = written(tmp_path / "x.tsv", "café\tB-LOC\n.\tO\n\nà\tO\n".encode("latin-1"))
    make("inv", source, tmp_path / "out", "--encoding", "latin-1")
    assert rows(tmp_path / "out", "train")[0]["tokens"] == ["café", "."]


@pytest.mark.parametrize("name", ["x.tokens", "x.txt"])
def test_a_line_of_a_megabyte(tmp_path: Path, name: str) -> None:
    words = [f"w{n % 9973}" for n in range(250_000)]
    text = f"First line .\n{' '.join(words)} .\nLast line .\n"
    assert len(text) > 1 << 20
    source, out = written(tmp_path / name, text), tmp_path / "out"
    result = make("trans,inv", source, out, "--words", "space")
    assert result["splits"]["train"] == {"documents": 3, "sentences": 3, "tokens": 250_007}
    assert rows(out, "train")[1]["source"] == [*words, "."]
    assert run("verify", out).code == 0
    run("undo", out, "-o", tmp_path / "undone")
    assert (tmp_path / "undone").read_text("utf-8") == text


def test_a_very_long_word(tmp_path: Path) -> None:
    source, out = written(tmp_path / "x.tokens", f"a {'b' * (1 << 16)} c .\n"), tmp_path / "out"
    make("trans,inv", source, out)
    run("undo", out, "-o", tmp_path / "undone")
    assert (tmp_path / "undone").read_bytes() == source.read_bytes()


def test_a_file_without_a_last_line_end(tmp_path: Path) -> None:
    make("inv", written(tmp_path / "x.tokens", "a b .\nc d"), tmp_path / "out")
    assert [row["source"] for row in rows(tmp_path / "out", "train")] == [["a", "b", "."], ["c", "d"]]


@pytest.mark.parametrize("fault", ["I- after O", "I- of another type"])
def test_tags_are_repaired_and_counted(tmp_path: Path, fault: str) -> None:
    source, out = BAD[fault][0](tmp_path), tmp_path / "out"
    ran = run("make", "--t", "inv", source, "-o", out, "--repair-tags", "--json")
    assert sum(ran.json["changed"].values()) == 1
    assert all("ner_tags" in reason for reason in ran.json["changed"])
    assert json.loads((out / "derivlang.json").read_text("utf-8"))["changed"] == ran.json["changed"]
    assert run("verify", out).code == 0
    again = commands.run("export", out, "--format", "tsv", "--source", "-o", tmp_path / "source.tsv")
    assert again.code == 0
    before = "O"
    for line in (tmp_path / "source.tsv").read_text("utf-8").splitlines():
        tag = line.partition("\t")[2] or "O"
        assert tag == "O" or tag[:2] in ("B-", "I-")
        assert not tag.startswith("I-") or before[1:] == tag[1:]
        before = tag


# The disk


def full(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Writes:
    """Counts all that is written; the write numbered `fail` meets a full disk."""

    def __init__(self, patch: pytest.MonkeyPatch, fail: int | None = None):
        self.names: list[str] = []
        self._fail = fail
        for owner, name in [
            (Path, "mkdir"), (Path, "write_text"), (Path, "replace"), (Path, "open"), (os, "fsync"), (pa, "OSFile"),
            (pq.ParquetWriter, "__init__"), (pq.ParquetWriter, "write_table"), (pq.ParquetWriter, "close"),
        ]:  # fmt: skip
            patch.setattr(owner, name, self._counting(name, getattr(owner, name)))

    def _counting(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            mode = options.get("mode", arguments[1] if len(arguments) > 1 else "r")
            if name not in ("open", "OSFile") or any(c in str(mode) for c in "wa+"):
                self.names.append(name)
                if len(self.names) - 1 == self._fail:
                    full()
            return call(*arguments, **options)

        return counted


def test_a_disk_that_is_full_at_any_write(tmp_path: Path) -> None:
    """Each write of a run fails in turn: one message, no debris, and the same command then ends well."""
    source = wiki(tmp_path, "".join(f" line {i} . \n" for i in range(40)))
    command = ["make", "--t", "trans:overlap=50,inv", source, "--shard-tokens", 60, "-o"]
    with pytest.MonkeyPatch.context() as patch:
        writes = Writes(patch)
        run(*command, tmp_path / "whole")
    assert len(writes.names) > 10
    faults = []
    for number, name in enumerate(writes.names):
        out = tmp_path / str(number)
        with pytest.MonkeyPatch.context() as patch:
            Writes(patch, number)
            result = CliRunner().invoke(main, [str(a) for a in (*command, out)])
        error = None if isinstance(result.exception, SystemExit) else result.exception
        if error is not None or result.exit_code != 1 or "No space left" not in result.stderr.replace("no s", "No s"):
            faults.append(f"write {number} ({name}): {error!r} {result.exit_code} {result.stderr!r}")
        elif leftovers(out):
            faults.append(f"write {number} ({name}) left {leftovers(out)}")
        again = run(*command, out, code=None)
        if again.code or snapshot(out) != snapshot(tmp_path / "whole"):
            faults.append(f"after write {number} ({name}): {again.err!r}")
    assert not faults, "\n".join(faults)


def test_a_disk_that_is_full_while_exporting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make("inv", wiki(tmp_path), tmp_path / "out")
    for command in (["export", "--format", "text"], ["undo"]):
        old = written(tmp_path / "file", "older")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "replace", full)
            told = refused(command[0], tmp_path / "out", *command[1:], "-o", old, code=1)
        assert str(old) in told
        assert old.read_text() == "older"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["cwd", "file", "out", "wiki.test.tokens"]


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """A real error of the system while a shard is written, and what the process prints as it ends."""
    text = "".join(f" {' '.join(str(i * n * 7919 % 99991) for n in range(40))} . \n" for i in range(1, 1500))
    source, out = wiki(tmp_path, text), tmp_path / "out"
    ran = spawn("make", "--t", "perm", source, "-o", out, code=1, preexec_fn=limited)
    assert str(out) in message(ran.err)
    assert "[cannot-write]" in ran.err or "[disk-full]" in ran.err
    assert leftovers(out) == []
    assert not (out / "derivlang.json").exists()
    run("make", "--t", "perm", source, "-o", out)
    exported = tmp_path / "exported"
    ran = spawn("export", out, "--format", "jsonl", "-o", exported, code=1, preexec_fn=limited)
    assert str(exported) in message(ran.err)
    assert not [f.name for f in tmp_path.iterdir() if f.name.endswith(".tmp") or f.name == "exported"]


def test_export_to_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    make("inv", wiki(tmp_path), tmp_path / "out")
    (tmp_path / "folder").mkdir()
    for target in (tmp_path / "no" / "x", tmp_path / "folder", tmp_path / "wiki.test.tokens" / "x"):
        for command in (["export", "--format", "text"], ["undo"]):
            if command == ["undo"] and target.is_dir():
                continue  # a folder is for all splits
            code = 2 if target.is_dir() else 1
            assert str(target) in refused(command[0], tmp_path / "out", *command[1:], "-o", target, code=code)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cwd", "folder", "out", "wiki.test.tokens"]
    assert list((tmp_path / "folder").iterdir()) == []


# The output folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return wiki(tmp_path)


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize(
    "there", ["notes.txt", "data/train.csv", ".git/config", "README.md", ".hidden", "derivlang.json/x", "lexicon.tsv"]
)
def test_a_folder_that_holds_something_else(tmp_path: Path, source: Path, there: str, force: list[str]) -> None:
    out = tmp_path / "out"
    written(out / there, "precious")
    before = snapshot(out)
    assert str(out) in refused("make", "--t", "inv", source, "-o", out, *force, code=1)
    assert snapshot(out) == before


@pytest.mark.parametrize("there", ["notes.txt", "data/notes.txt", "data/sub/x.parquet"])
def test_something_else_beside_a_set(tmp_path: Path, source: Path, there: str) -> None:
    out = tmp_path / "out"
    make("inv", source, out)
    written(out / there, "precious")
    before = snapshot(out)
    refused("make", "--t", "trans", source, "-o", out, code=1)
    assert snapshot(out) == before
    run("make", "--t", "trans", source, "-o", out, "--force", code=None)
    assert (out / there).read_text() == "precious"


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("below", ["", "x", "x/y"])
def test_a_file_where_the_folder_should_be(tmp_path: Path, source: Path, below: str, force: list[str]) -> None:
    file = written(tmp_path / "file", "precious")
    out = file / below if below else file
    assert str(out) in refused("make", "--t", "inv", source, "-o", out, *force, code=1 if below else 2)
    assert file.read_text() == "precious"


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_set_is_not_made_over_its_own_source(tmp_path: Path, source: Path, force: list[str]) -> None:
    out = tmp_path / "out"
    make("trans", source, out)
    before = snapshot(out)
    ran = run("make", "--t", "inv", out, "-o", out, *force, code=None)
    assert ran.code in (1, 2)
    message(ran.err)
    assert snapshot(out) == before


@pytest.mark.parametrize("command", ["make", "verify", "show", "export", "undo", "make from it"])
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b'"x"', b"null", b"\xff\xfe", b'{"format": 99}', b'{"format": 1}'],
    ids=["empty", "half", "list", "object", "string", "null", "no UTF-8", "newer", "bare"],
)
def test_a_corrupt_manifest(tmp_path: Path, source: Path, command: str, content: bytes) -> None:
    out = tmp_path / "out"
    make("inv", source, out)
    written(out / "derivlang.json", content)
    before = snapshot(out)
    arguments = {
        "make": ["make", "--t", "inv", source, "-o", out],
        "make from it": ["make", "--t", "inv", out, "-o", tmp_path / "other"],
        "export": ["export", out, "--format", "text", "-o", tmp_path / "x"],
        "undo": ["undo", out, "-o", tmp_path / "x"],
    }.get(command, [command, out])
    told = refused(*arguments, code=1)
    assert str(out / "derivlang.json") in told
    assert "[manifest]" in told
    assert snapshot(out) == before


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["spec"], "nonsense"), (["spec"], 3), (["schema"], {}), (["schema", "fields"], [1]), (["splits"], []),
        (["splits", "test"], {}), (["splits", "test", "shards"], None), (["splits", "test", "shards", 0], {}),
        (["policies"], {"x": 1}), (["lexicon"], "nothing.tsv"), (["lexicon"], 3),
    ],
)  # fmt: skip
def test_a_manifest_with_one_wrong_value(tmp_path: Path, source: Path, path: list[str | int], value: Any) -> None:
    out = tmp_path / "out"
    make("inv", source, out)
    commands.edit_manifest(out, path, value)
    for command in (["verify"], ["export", "--format", "text", "-o", tmp_path / "x"], ["undo", "-o", tmp_path / "x"]):
        if path[0] == "policies" and command[0] != "verify":
            continue
        ran = run(command[0], out, *command[1:], code=1)
        assert ran.err == "" or str(out) in message(ran.err)


# Options


USAGE: list[tuple[list[str], list[str]]] = [
    (["--t", "tran", "{}"], ["'tran'", "did you mean trans?"]),
    (["--t", "inv,prem", "{}"], ["'prem'", "perm"]),
    (["--t", "trans:georgia", "{}"], ["'georgia'", "did you mean georgian?"]),
    (["--t", "trans:scrip=georgian", "{}"], ["'scrip'", "did you mean script?"]),
    (["--t", "perm:window=x", "{}"], ["window", "'x'", "whole number"]),
    (["--t", "perm:window=-1", "{}"], ["perm:window", "-1"]),
    (["--t", "trans:overlap=101", "{}"], ["trans:overlap", "101", "100"]),
    (["--t", "trans:by=typ", "{}"], ["'typ'", "frequency"]),
    (["--t", "", "{}"], ["--t"]),
    (["--t", "inv,", "{}"], ["--t", "'inv,'"]),
    (["--t", "inv", "wikitext13"], ["'wikitext13'", "wikitext103"]),
    (["--t", "inv", "zzz"], ["'zzz'", "wikitext103", "path"]),
    (["--t", "inv", "demo:nly"], ["'nly'", "nli"]),
    (["--t", "inv", "{}", "--sentences", "mark"], ["--sentences", "'marks'"]),
    (["--t", "inv", "{}", "--entities", "splt"], ["--entities", "'split'"]),
    (["--t", "inv", "{}", "--words", "spcy"], ["--words", "'spacy'"]),
    (["--t", "inv", "{}", "--workers", "0"], ["--workers", "0"]),
    (["--t", "inv", "{}", "--limit", "0"], ["--limit", "0"]),
    (["--t", "inv", "{}", "--limit", "x"], ["--limit", "'x'"]),
    (["--t", "inv", "{}", "--seed", "-1"], ["--seed", "-1"]),
    (["--t", "inv", "{}", "--shard-tokens", "0"], ["--shard-tokens", "0"]),
    (["--t", "inv", "{}", "--columns", "token"], ["--columns", "'token'", "tokens"]),
    (["--t", "inv", "{}", "--columns", "key"], ["--columns", "tokens or source"]),
    (["--t", "inv", "{}", "--encoding", "utf9"], ["encoding", "'utf9'", "utf-8"]),
    (["--t", "inv", "{}", "--nonsense"], ["--nonsense"]),
    (["--t", "inv"], ["SOURCE"]),
    (["{}"], ["--t"]),
]


@pytest.mark.parametrize(("arguments", "parts"), USAGE, ids=[" ".join(case[0]) for case in USAGE])
def test_wrong_use_is_refused_before_anything_is_written(
    tmp_path: Path, source: Path, arguments: list[str], parts: list[str]
) -> None:
    """Exit code 2, with near names or what there is."""
    told = refused("make", *(word.replace("{}", str(source)) for word in arguments), "-o", tmp_path / "out", code=2)
    for part in parts:
        assert part in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [["--encoding", "utf9"], ["--lexicon", "nothing.tsv"]])
def test_a_wrong_option_with_force_touches_nothing(tmp_path: Path, source: Path, options: list[str]) -> None:
    out = tmp_path / "out"
    make("inv", source, out)
    before = snapshot(out)
    run("make", "--t", "trans:overlap=20", source, "-o", out, "--force", *options, code=None)
    assert snapshot(out) == before


def test_a_folder_with_the_name_of_a_source_has_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = run("make", "--t", "inv", "demo", "-o", "demo")
    assert "warning" not in written.err
    again = run("make", "--t", "inv", "demo", "-o", "other")
    assert "demo is read as the source of this name; the file or folder is ./demo" in again.err
    assert "./demo" not in run("make", "--t", "inv", "./demo", "-o", "third").err


def test_a_folder_with_the_name_of_a_set_of_the_hub_has_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The warning is there before the hub is asked, whose answer may take a minute."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DERIVLANG_DATA", raising=False)
    monkeypatch.setattr("derivlang.sources.hub._load", lambda *of: (_ for _ in ()).throw(ConnectionError("no net")))
    (tmp_path / "mine").mkdir()
    told = run("make", "--t", "inv", "pos:mine", "-o", "out", code=None).err
    assert "pos:mine is looked for at the hub; the file or folder mine here is ./mine, or as a task pos:./mine" in told
    assert told.index("./mine") < told.index("no net")
    assert "./other" not in run("make", "--t", "inv", "pos:other", "-o", "out", code=None).err


def test_an_unknown_split(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out"
    told = run("make", "--t", "inv", source, "-o", out, "--splits", "tset", code=None)
    assert told.code in (1, 2)
    assert "'tset'" in message(told.err)
    assert "found: test" in told.err
    assert not out.exists()
    make("inv", source, out)
    for command in (["show"], ["export", "--format", "text", "-o", tmp_path / "x"], ["undo", "-o", tmp_path / "x"]):
        ran = run(command[0], out, "--split", "tset", *command[1:], code=None)
        assert ran.code in (1, 2)
        assert "'tset'; there are: test" in message(ran.err)


def test_unknown_commands_and_formats(tmp_path: Path, source: Path) -> None:
    assert "'mak'" in refused("mak", code=2)
    make("inv", source, tmp_path / "out")
    told = refused("export", tmp_path / "out", "--format", "txt", "-o", tmp_path / "x", code=2)
    assert "'text'" in told
    assert "--format NAME" in refused("export", tmp_path / "out", "-o", tmp_path / "x", code=2)


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    source = jsonl(tmp_path, [{"body": "a b", "n": 1}])
    told = refused("make", "--t", "inv", source, "-o", tmp_path / "out", code=2)
    for part in (str(source), "body, n", "--text-column body"):
        assert part in told
    told = refused("make", "--t", "inv", source, "-o", tmp_path / "out", "--text-column", "bdy", code=2)
    assert "'bdy'" in told
    assert "body" in told
    make("inv", source, tmp_path / "out", "--text-column", "body", "--words", "space")
    assert rows(tmp_path / "out", "test")[0]["body"] == "b a"


def test_a_column_of_the_wrong_kind(tmp_path: Path) -> None:
    source = jsonl(tmp_path, [{"text": "a b", "n": 1, "tokens": ["a"]}])
    told = run("make", "--t", "inv", source, "-o", tmp_path / "out", "--word-column", "n", code=None)
    assert told.code in (1, 2)
    assert "'n'" in message(told.err) or " n " in told.err


def test_files_of_several_formats_and_of_none(tmp_path: Path) -> None:
    wiki(tmp_path / "in")
    commands.trees(tmp_path / "in")
    told = refused("make", "--t", "inv", tmp_path / "in", "-o", tmp_path / "out", code=2)
    assert str(tmp_path / "in") in told
    image = written(tmp_path / "x.png", b"\x89PNG")
    told = refused("make", "--t", "inv", image, "-o", tmp_path / "out", code=2)
    assert "'.png'" in told
    assert ".conllu" in told


def test_a_data_folder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = tmp_path / "nowhere"
    command = ["make", "--t", "inv", "wikitext103", "-o", tmp_path / "out"]
    assert str(nowhere) in refused(*command, "--data-dir", nowhere, code=1)
    assert str(nowhere) in refused("make", "--t", "inv", "demo", "-o", tmp_path / "x", "--data-dir", nowhere, code=1)
    monkeypatch.setenv("DERIVLANG_DATA", str(nowhere))
    assert str(nowhere) in refused(*command, code=1)


def test_a_source_that_is_nowhere(tmp_path: Path) -> None:
    """No files, no hub: which files to put where. In its own process, which has `datasets` offline."""
    (tmp_path / "data").mkdir()
    ran = spawn(
        "make", "--t", "inv", "wikitext103", "--data-dir", tmp_path / "data", "-o", tmp_path / "out", code=1,
        env=commands.environment(HF_HOME=str(tmp_path / "hf"), PYTHONWARNINGS="ignore"),
    )  # fmt: skip
    message(ran.err)
    for part in (str(tmp_path / "data"), "wiki.test.tokens", "--data-dir"):
        assert part in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("language", "names"), [("ja", ["sudachipy"]), ("qq", ["qq", "--words unicode"]), ("", ["--lang"])]
)
def test_a_language_that_spacy_cannot_do_here(tmp_path: Path, language: str, names: list[str]) -> None:
    source = written(tmp_path / "x.txt", "Hello.\n")
    told = refused("make", "--t", "inv", source, "-o", tmp_path / "out", "--lang", language, code=2)
    assert "--lang" in told
    for name in names:
        assert name.lower() in told.lower()
    assert leftovers(tmp_path / "out") == []


# Lexicons


@pytest.fixture
def lexicon(tmp_path: Path) -> Path:
    out = tmp_path / "fitted"
    make("trans:overlap=50", wiki(tmp_path / "fit"), out)
    return out / "lexicon.tsv"


@pytest.mark.parametrize(
    "spec", ["inv", "trans", "trans:overlap=40", "trans:greek:overlap=50", "trans:overlap=50:seed=2"]
)
def test_the_lexicon_of_another_pipeline(tmp_path: Path, source: Path, lexicon: Path, spec: str) -> None:
    told = refused("make", "--t", spec, source, "-o", tmp_path / "out", "--lexicon", lexicon, code=2)
    assert str(lexicon) in told
    assert "trans:overlap=50" in told
    assert leftovers(tmp_path / "out") == []


DAMAGE: dict[str, Callable[[str], str | bytes]] = {
    "a column is missing": lambda text: "".join(text.rsplit("\tkept", 1)),
    "an unknown word for kept": lambda text: "\tstays".join(text.rsplit("\tkept", 1)),
    "a count is no number": lambda text: re.sub(r"\t\d+\t", "\tx\t", text, count=1),
    "no lexicon at all": lambda text: "nothing\n",
    "empty": lambda text: "",
    "cut in the middle of a row": lambda text: text[: text.rindex("\t")],
    "no UTF-8": lambda text: b"\xff" + text.encode(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_lexicon(tmp_path: Path, source: Path, lexicon: Path, damage: str) -> None:
    content = DAMAGE[damage](lexicon.read_text("utf-8"))
    written(lexicon, content)
    ran = run("make", "--t", "trans:overlap=50", source, "-o", tmp_path / "out", "--lexicon", lexicon, code=None)
    assert ran.code in (1, 2)
    assert str(lexicon) in message(ran.err)
    assert leftovers(tmp_path / "out") == []
    assert not (tmp_path / "out" / "derivlang.json").exists()


def test_a_lexicon_that_is_not_there(tmp_path: Path, source: Path) -> None:
    told = refused(
        "make", "--t", "trans:overlap=50", source, "-o", tmp_path / "out", "--lexicon", tmp_path / "no.tsv", code=1
    )
    assert str(tmp_path / "no.tsv") in told
    assert not (tmp_path / "out").exists()


def test_show_needs_a_lexicon_and_says_so() -> None:
    assert "[needs-lexicon]" in refused("show", "--t", "trans:overlap=50", "a b", code=2)


@pytest.fixture(autouse=True)
def _nothing_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands run in an empty folder, so that relative paths and names find nothing."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    yield
    assert list((tmp_path / "cwd").iterdir()) == []
    (tmp_path / "cwd").rmdir()


# Paths of other stores, and folders inside each other


@pytest.mark.parametrize(
    "arguments",
    [
        ["make", "--t", "inv", "{}", "-o", "out", "--parses", "gs://bucket"],
        ["make", "--t", "inv", "{}", "-o", "out", "--data-dir", "https://x/y"],
        ["grammar", "score", "fr", "s3://bucket/x.conllu"],
        ["parse", "{}", "-o", "hdfs://x"],
        ["export", "out", "--format", "text", "-o", "abfs://x/y"],
        ["tokenizer", "train", "{}", "-o", "s3://bucket/out"],
    ],
)
def test_a_path_of_another_store_is_refused(
    tmp_path: Path, source: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    ran = run(*(argument.replace("{}", str(source)) for argument in arguments), code=None)
    assert ran.code in (1, 2)
    assert "://" in ran.err
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("kind", ["wiki", "trees", "questions"])
def test_an_output_folder_inside_the_source_is_none_of_it(tmp_path: Path, kind: str) -> None:
    """Neither a set that is finished, nor one that is being made, nor another one beside it."""
    getattr(commands, kind)(tmp_path / "in")
    getattr(commands, kind)(tmp_path / "alone" / "in")
    make("inv", tmp_path / "in", tmp_path / "in" / "out")
    make("perm", tmp_path / "in", tmp_path / "in" / "deep" / "er")
    before = snapshot(tmp_path / "in")
    make("inv", tmp_path / "in", tmp_path / "in" / "out")
    assert snapshot(tmp_path / "in") == before
    (tmp_path / "in" / "out" / "data").rename(tmp_path / "in" / "out" / ".derivlang")
    (tmp_path / "in" / "out" / "derivlang.json").unlink()
    make("perm", tmp_path / "alone" / "in", tmp_path / "plain")
    make("perm", tmp_path / "in", tmp_path / "again")
    assert snapshot(tmp_path / "again") == snapshot(tmp_path / "plain")


def test_what_other_commands_write_inside_the_source_is_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tokenizer holds .json and .parquet, a dictionary is TSV, and a report holds a table of scores."""
    written(tmp_path / "a.train.txt", "the cat sat on the mat .\na dog ran home .\nthe bird sang in the tree .\n" * 3)
    monkeypatch.chdir(tmp_path)
    train = ("tokenizer", "train", ".", "--vocab-size", 40, "-o", "tokenizer")
    run(*train)
    assert "already" in run(*train).err
    run("dict", "--t", "trans", ".", "-o", "d.tsv")
    written(tmp_path / "b" / "train.txt", "a fox ran .\n")
    written(tmp_path / "b" / "scores.json", record_text({"format": 1, "derivlang": "0.1.0"}))
    written(tmp_path / "report" / "scores.tsv", "run\tscore\n")
    written(tmp_path / "report" / "report.json", record_text({"format": 1, "derivlang": "0.1.0"}))
    make("perm", tmp_path, tmp_path / "set")
    files = json.loads((tmp_path / "set" / "derivlang.json").read_text("utf-8"))["source"]["files"]
    assert [file["name"] for file in files] == ["a.train.txt", "b/train.txt"]
