"""What commands write to a URL: the bytes and the messages of the local command, and nothing half-written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import derivlang
from derivlang.core.errors import StoreError, UsageError
from derivlang.formats.places import located
from derivlang.store.files import write_texts
from derivlang.store.folders import NOTE, is_free, replace_folder
from derivlang.store.storage import UrlStore
from tests import runs
from tests.commands import make, pairs, run, snapshot, trees, wiki, written
from tests.object_store import Bucket, Files, InMemory

pytest.importorskip("upath")


@dataclass(frozen=True)
class Output:
    """A command that writes.

    name: of its output, OUT in the line. again: words for the same command once more and for other results there, with
    their exit codes. record: the file that comes last of a folder, or first of several files; "" for a single file,
    None for a folder without one. first: options that only the first command has, as others take their place.
    """

    line: str
    name: str
    again: dict[str, int]
    record: str | None = ""
    first: str = ""

    def words(self, out: str, inputs: Path, more: str = "") -> list[str]:
        return [
            word.replace("IN/", f"{inputs}/").replace("OUT", out)
            for word in f"{self.line} {more or self.first}".split()
        ]


OUTPUTS = {
    "undo": Output("undo IN/two -o OUT", "back", {"": 1, "--split train": 1}, None),
    "undo-file": Output("undo IN/trees -o OUT", "back.conllu", {"": 0}),
    "export": Output("export IN/trees -o OUT", "e.conllu", {"": 0, "--source": 1, "--source --force": 0}),
    "pair-text": Output(
        "pair IN/pairs --format text -o OUT",
        "deep/er/p",
        {"": 0, "--rate 50": 1, "--rate 50 --force": 0},
        "deep/er/p.recipe.json",
    ),
    "pair-parquet": Output(
        "pair IN/pairs --format parquet -o OUT",
        "p.parquet",
        {"": 0, "--seed 3": 1, "--seed 3 --force": 0},
        "p.parquet.recipe.json",
        "--seed 2",
    ),
    "dict": Output(
        "dict IN/trees --coverage 60 -o OUT",
        "d.tsv",
        {"": 0, "--heldout 0": 1, "--heldout 0 --force": 0},
        "d.tsv.recipe.json",
        "--heldout 20",
    ),
    "dict-read": Output("dict check IN/words.tsv -o OUT", "clean.tsv", {"": 0, "--format json": 1}),
    "stats": Output("stats IN/trees -o OUT", "s.parquet", {"": 0}),
    "plot": Output("stats IN/trees --plot OUT", "s.svg", {"": 0}),
    "show": Output("show IN/trees --html OUT", "s.html", {"": 0, "--row 1": 1, "--row 1 --force": 0}),
    "align": Output("align train IN/a.txt IN/b.txt -o OUT", "ab.links", {"": 0}),
    "report": Output("report IN/runs -o OUT", "rep", {"": 0, "IN/more": 0}, "rep/report.json"),
    "parse": Output("parse IN/wiki.test.tokens -o OUT", "parses", {"": 0, "--limit 1": 1}),
}
# The protocol of `parse` is that of `make` (test_made_at_urls.py).
PUT_AT_ONCE = [name for name in OUTPUTS if name != "parse"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of what the commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    make("trans,inv", trees(folder), folder / "trees")
    make("trans,inv", pairs(folder), folder / "pairs")
    wiki(folder)
    wiki(folder / "two-splits", " another text .\n", "wiki.train.tokens")
    wiki(folder / "two-splits")
    make("trans,inv", folder / "two-splits", folder / "two")
    written(folder / "a.txt", "a b c\nb c\nc a\n")
    written(folder / "b.txt", "x y z\ny z\nz x\n")
    written(folder / "words.tsv", "a\tx\nb\ty\n")
    for number, objective in enumerate(("mlm", "clm")):
        runs.run(folder / "runs" / f"r{number}", objective=objective, evaluated=False)  # nothing to draw, which is slow
    runs.run(folder / "more", seed=2, evaluated=False)
    return folder


def told(words: list[str], out: str) -> tuple[int, str, str]:
    """What a command prints, without its place and its time."""
    ran = run(*words, code=None)
    printed, said = (re.sub(r"  in [\d.]+ s,.*", "", text.replace(out, "OUT")) for text in (ran.out, ran.err))
    return ran.code, printed, said


def files_of(bucket: Files) -> dict[str, bytes]:
    return {key: bucket.read(key) for key in bucket.keys()}  # noqa: SIM118


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_url_is_as_a_folder(name: str, bucket: Bucket, inputs: Path, tmp_path: Path) -> None:
    """After each of several commands, the messages and the bytes are those of the same local commands."""
    output = OUTPUTS[name]
    local, url = f"{tmp_path}/{output.name}", f"{bucket.url}/{output.name}"
    Path(local).parent.mkdir(parents=True, exist_ok=True)
    for more, code in [("", 0), *output.again.items()]:
        ran = told(output.words(url, inputs, more), url)
        assert ran == told(output.words(local, inputs, more), local), more
        assert ran[0] == code, ran
        assert files_of(bucket) == snapshot(tmp_path)
        assert not re.search(rb"test-key|test-secret|127\.0\.0\.1", b"".join(files_of(bucket).values()))


def reset(bucket: Files, files: dict[str, bytes]) -> None:
    """Let the bucket hold these files only."""
    bucket.remove()
    for key, content in files.items():
        bucket.write(key, content)


@contextmanager
def failing(after: int) -> Iterator[list[str]]:
    """Let a store fail for good, as after a kill, once it has been asked so often. Yields what it was asked for."""
    asked: list[str] = []
    method = UrlStore._asking

    def asking(self: UrlStore, name: str) -> AbstractContextManager[None]:
        asked.append(name)
        if len(asked) > after:
            raise StoreError("the store cannot be reached", where=self.where(name), id="unreachable-store")
        return method(self, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UrlStore, "_asking", asking)
        yield asked


def check_whole(output: Output, found: dict[str, bytes], results: list[dict[str, bytes]]) -> None:
    """Fail if a reader may take what is there for a whole result, and it is not one of these."""
    note = f"{output.name}/{NOTE}"
    if output.record is None:
        assert note in found or found in results
    elif output.record == "":
        assert found in results
    elif output.record.startswith(f"{output.name}/"):
        is_whole = output.record in found
        assert not is_whole or {name: one for name, one in found.items() if name != note} in results
    elif output.record in found:
        (result,) = (one for one in results if one.get(output.record) == found[output.record])
        if found.keys() >= result.keys():
            assert found.items() >= result.items()


@pytest.mark.parametrize("name", PUT_AT_ONCE)
def test_a_command_that_is_stopped(name: str, in_memory: InMemory, inputs: Path, tmp_path: Path) -> None:
    """Wherever a command ends, nothing passes for its result that is not whole, and the same command makes it."""
    output = OUTPUTS[name]
    local, url = f"{tmp_path}/{output.name}", f"{in_memory.url}/{output.name}"
    Path(local).parent.mkdir(parents=True, exist_ok=True)
    others = [more for more, code in output.again.items() if more and code == 0]
    results: list[dict[str, bytes]] = [{}]
    for more in ["", *others[-1:]]:
        run(*output.words(local, inputs, more))
        results.append(snapshot(tmp_path))
        with failing(1 << 30) as asked:
            run(*output.words(url, inputs, more))
        for after in sorted({*range(0, len(asked), -(-len(asked) // 5)), len(asked) - 1}):
            reset(in_memory, results[-2])
            with failing(after):
                ran = told(output.words(url, inputs, more), url)
            assert ran[0] == 1
            assert "[unreachable-store]" in ran[2]
            check_whole(output, files_of(in_memory), results[-2:])
            run(*output.words(url, inputs, more))
            assert files_of(in_memory) == results[-1], asked[:after]


def test_a_folder_that_is_stopped(in_memory: InMemory, tmp_path: Path) -> None:
    """At every request: a foreign file stays, and the earlier or the next result is there, or none."""
    out, foreign = located(f"{in_memory.url}/out"), {"out/tables/mine.txt": b"mine"}

    def replace(texts: dict[str, str]) -> None:
        def write(folder: Path) -> None:
            for name, text in texts.items():
                written(folder / name, text)

        replace_folder(out, write, ["tables/*.csv", "r.json"], record="r.json", warn=lambda message: None)

    states = [dict(foreign)]
    for texts in (
        {"tables/a.csv": "1", "tables/b.csv": "2", "r.json": "one"},
        {"tables/b.csv": "3", "tables/d.csv": "4", "r.json": "two"},
    ):
        reset(in_memory, states[-1])
        with failing(1 << 30) as asked:
            replace(texts)
        states.append(files_of(in_memory))
        assert states[-1] == foreign | {f"out/{name}": text.encode() for name, text in texts.items()}
        for after in range(len(asked)):
            reset(in_memory, states[-2])
            with failing(after), pytest.raises(StoreError, match="cannot be reached"):
                replace(texts)
            found = files_of(in_memory)
            assert found.items() >= foreign.items()
            assert "out/r.json" not in found or {k: v for k, v in found.items() if k != f"out/{NOTE}"} in states[-2:]
            assert is_free(out) == (f"out/{NOTE}" in found and "out/r.json" not in found)
            replace(texts)
            assert files_of(in_memory) == states[-1], asked[:after]


def test_two_processes_in_one_folder(bucket: Bucket) -> None:
    """The first ends with an error once another one has begun, so that no result has files of both."""
    out = located(f"{bucket.url}/out")

    def first(folder: Path) -> None:
        written(folder / "a.csv", "first")
        written(folder / "r.json", "first")

    def second(folder: Path) -> None:
        written(folder / "a.csv", "second")
        written(folder / "r.json", "second")

    put = UrlStore.put

    def interrupted(self: UrlStore, name: str, content: bytes) -> None:
        put(self, name, content)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(UrlStore, "put", put)
            replace_folder(out, second, ["*"], record="r.json")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UrlStore, "put", interrupted)
        with pytest.raises(StoreError, match="at the same time"):
            replace_folder(out, first, ["*"], record="r.json")
    assert bucket.snapshot("out") == {"a.csv": b"second", "r.json": b"second"}


def test_two_processes_with_one_file(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a file with its record: the one whose record came first ends with an error."""
    out, put = located(f"{bucket.url}/d.tsv"), UrlStore.take
    first, second = ({"d.tsv": text, "d.tsv.recipe.json": f"{{{text}}}"} for text in ("first", "second"))

    def interrupted(self: UrlStore, path: Path, name: str) -> None:
        put(self, path, name)
        monkeypatch.setattr(UrlStore, "take", put)
        write_texts(out, second)

    monkeypatch.setattr(UrlStore, "take", interrupted)
    with pytest.raises(StoreError, match="at the same time"):
        write_texts(out, first)
    assert files_of(bucket) == {name: text.encode() for name, text in second.items()}


@pytest.mark.parametrize("name", ["a.csv", "r.json"])
def test_another_process_while_a_file_is_sent(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What the first one has replaced goes again: no result passes for whole, and the command of the other mends it."""
    out, take = located(f"{bucket.url}/out"), UrlStore.take

    def fill(text: str) -> Any:
        def write(folder: Path) -> None:
            written(folder / "a.csv", text)
            written(folder / "r.json", text)

        return lambda: replace_folder(out, write, ["*"], record="r.json")

    def slow(self: UrlStore, path: Path, sent: str) -> None:
        if sent == name:
            monkeypatch.setattr(UrlStore, "take", take)
            fill("second")()
        take(self, path, sent)

    monkeypatch.setattr(UrlStore, "take", slow)
    with pytest.raises(StoreError, match="at the same time"):
        fill("first")()
    left = bucket.snapshot("out")
    assert set(left.values()) <= {b"second"}
    assert name not in left
    fill("second")()
    assert bucket.snapshot("out") == {"a.csv": b"second", "r.json": b"second"}


@pytest.mark.parametrize("name", OUTPUTS)
def test_refused_places(name: str, object_store: object, inputs: Path) -> None:
    output = OUTPUTS[name]
    for place, id in (
        ("s3://key:secret@bucket", "url-credentials"),
        ("hf://datasets/a", "store"),
        ("s3://no-such-bucket-here", "missing-bucket"),
    ):
        ran = run(*output.words(f"{place}/{output.name}", inputs), code=None)
        assert ran.code in (1, 2)
        assert f"[{id}]" in ran.err
        assert "secret" not in ran.err


def test_runs_in_a_store(bucket: Bucket, tmp_path: Path) -> None:
    """`report` and `verify` read runs and tables of scores where they lie."""
    runs.run(tmp_path / "runs" / "r0")
    url = bucket.put(tmp_path / "runs", "runs")
    run("report", tmp_path / "runs", "-o", tmp_path / "local")
    run("report", url, "-o", tmp_path / "stored")
    local, stored = (snapshot(tmp_path / name) for name in ("local", "stored"))
    assert stored.keys() == local.keys()
    assert stored["scores.tsv"].decode().replace(url, str(tmp_path / "runs")) == local["scores.tsv"].decode()
    table = bucket.put(tmp_path / "local" / "scores.parquet", "scores.parquet")
    run("report", table, "-o", tmp_path / "again")
    assert snapshot(tmp_path / "again") == local
    one, other = (run("verify", f"{place}/r0", "--json").json for place in (url, tmp_path / "runs"))
    assert {**one, "out": ""} == {**other, "out": ""}
    bucket.write("runs/r0/model/config.json", b"{ }")
    assert "model/config.json: was changed" in run("verify", f"{url}/r0", code=1).out
    assert "[damaged]" in run("report", url, "-o", tmp_path / "new", code=1).err


def test_a_model_is_written_to_a_store(bucket: Bucket, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tests.tiny_runs import write_run

    made = write_run(tmp_path / "run", kind="gpt2")
    line = ("export", made, "--format", "transformers", "-o")
    run(*line, tmp_path / "model")
    run(*line, f"{bucket.url}/model")
    assert bucket.snapshot("model") == snapshot(tmp_path / "model")
    assert "is not empty" in run(*line, f"{bucket.url}/model", code=1).err
    with failing(8):
        run(*line, f"{bucket.url}/model", "--force", code=1)
    assert "model/config.json" not in files_of(bucket)
    run(*line, f"{bucket.url}/model")
    assert bucket.snapshot("model") == snapshot(tmp_path / "model")
    url = bucket.put(made, "run")
    assert "[not-local]" in run("export", url, "--format", "transformers", "-o", tmp_path / "other", code=2).err


@pytest.mark.parametrize("line", ["pretrain --source demo --t inv -o OUT", "tokenizer train demo -o OUT"])
def test_what_is_local(line: str) -> None:
    told = run(*(word.replace("OUT", "s3://bucket/out") for word in line.split()), code=2).err
    assert "'s3://bucket/out' is not a local path, which this must be; copy it" in told
    with pytest.raises(UsageError, match=r"out: .* is not a local path"):
        derivlang.tokenizer("demo", "s3://bucket/out")
