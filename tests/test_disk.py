"""Folders that several processes want to make at once, and files that the system does not let grow."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derivlang.core.errors import StoreError, UsageError
from derivlang.store.disk import disk, file_lock
from derivlang.store.folders import NOTE, is_free, replace_folder
from derivlang.store.storage import Store
from tests.commands import leftovers, make, run, wiki, written


def work(folder: Path, log: Path, times: int, pause: float) -> None:
    for _ in range(times):
        with file_lock(folder):
            with log.open("a") as file:
                file.write("in\n")
            time.sleep(pause)
            with log.open("a") as file:
                file.write("out\n")


@pytest.mark.parametrize(("times", "pause"), [(1, 0.05), (20, 0.0)], ids=["slow", "often"])
def test_one_process_at_a_time(tmp_path: Path, times: int, pause: float) -> None:
    """Each takes its lock, and the folder made for it, away again, under the feet of the others."""
    log, folder = tmp_path / "log", tmp_path / "deep" / "down" / "set"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(folder, log, times, pause)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert log.read_text().split() == ["in", "out"] * 3 * times
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path != log]


def test_a_folder_that_goes_while_it_is_made_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`Path.mkdir` raises FileExistsError if the folder is there, but no longer when it looks whether that is one."""
    folder, tries = tmp_path / "deep", []
    real = os.mkdir

    def mkdir(path: Any, mode: int = 0o777) -> None:
        if Path(path) == folder and len(tries) < 3:
            tries.append(path)
            raise FileExistsError(errno.EEXIST, "File exists", str(path))
        real(path, mode)

    monkeypatch.setattr(os, "mkdir", mkdir)
    with file_lock(folder / "set"):
        assert folder.is_dir()
    assert len(tries) == 3
    folder.write_text("a file")
    with (
        pytest.raises(StoreError, match=r"deep.*: cannot write here: (File exists|Not a directory)"),
        file_lock(folder / "set"),
    ):
        pass


def test_what_was_made_in_it_stays(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "set"
    with file_lock(folder):
        folder.mkdir()
    assert [path.name for path in folder.parent.iterdir()] == ["set"]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), file_lock(tmp_path / "deep" / "set"):
        _ = 1 // 0
    assert not list(tmp_path.iterdir())


def fill(folder: Path) -> None:
    written(folder / "record", "new")


@pytest.mark.parametrize("name", ["../thesis.txt", "{place}", "sub/../../thesis.txt", "link/thesis.txt"])
def test_a_note_that_somebody_else_wrote_reaches_no_file_outside(name: str, tmp_path: Path) -> None:
    """A folder from elsewhere may hold a note: nothing outside is removed or written over."""
    thesis, out = written(tmp_path / "thesis.txt", "mine"), tmp_path / "out"
    written(out / NOTE, json.dumps({"files": [name.format(place=thesis)], "record": "record"}))
    (out / "link").symlink_to(tmp_path)
    replace_folder(out, fill, ["record"], record="record", warn=lambda message: None)
    assert thesis.read_text() == "mine"
    assert (out / "record").read_text() == "new"


@pytest.mark.parametrize("name", [".derivlang", "sub"])
def test_a_link_in_a_folder_leads_no_file_outside(name: str, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    written(other / "mine.txt", "mine")
    out.mkdir()
    (out / name).symlink_to(other)
    with pytest.raises(StoreError, match=r"link|would be written"):
        replace_folder(out, lambda folder: fill(folder / "sub"), ["sub/record"], record="sub/record")
    assert [path.name for path in other.iterdir()] == ["mine.txt"]


LONG = json.dumps({"files": ["[" * 100_000], "record": ""})  # a pattern that takes the square of its length


@pytest.mark.parametrize("note", ["", "[]", '{"files": 1, "record": ""}', '{"files": []}', "\udcff", LONG])
def test_a_damaged_note_is_one_message(note: str, tmp_path: Path) -> None:
    written(tmp_path / "out" / NOTE, "").write_bytes(note.encode("utf-8", "surrogateescape"))
    with pytest.raises(StoreError, match="note"):
        is_free(tmp_path / "out")


@pytest.mark.parametrize("after", range(8))
def test_a_process_that_is_killed_leaves_no_result_of_two(after: int, tmp_path: Path) -> None:
    """At every step: the earlier result, the next one, or none that a reader takes for whole; foreign files stay."""
    out = tmp_path / "out"
    for name, text in {"record": "old", "a.txt": "old", "b.txt": "old", "mine.md": "mine"}.items():
        written(out / name, text)

    def write(folder: Path) -> None:
        for name in ("record", "a.txt", "c.txt"):
            written(folder / name, "new")

    def found() -> dict[str, str]:
        return {path.name: path.read_text() for path in out.iterdir() if path.is_file()}

    states = [found(), {**dict.fromkeys(("record", "a.txt", "c.txt"), "new"), "mine.md": "mine"}]
    names = ["record", "*.txt"]
    with pytest.MonkeyPatch.context() as patch, suppress(KeyboardInterrupt):
        steps = count()

        def stopping(method: Any) -> Any:
            def stopped(self: Store, *given: Any) -> None:
                if next(steps) >= after:
                    raise KeyboardInterrupt
                method(self, *given)

            return stopped

        for name in ("put", "remove", "take"):
            patch.setattr(Store, name, stopping(getattr(Store, name)))
        replace_folder(out, write, names, record="record", warn=lambda message: None)
    now = found()
    assert now["mine.md"] == "mine"
    assert "record" not in now or now in states
    assert is_free(out) == ("record" not in now)
    replace_folder(out, write, names if "record" in now else (), record="record", warn=lambda message: None)
    assert found() == states[1]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert not (out / ".derivlang").exists()


# Errors of the system in files that other libraries write

SMALL = 2_000  # bytes that a file may have
NUMBERS = np.random.default_rng(1).random(10_000)


@contextmanager
def small_files() -> Iterator[None]:
    """Let no file of this process grow beyond SMALL bytes; Python ignores the signal, and `write` fails."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # modules would stay, cut off
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = before


def by_tokenizers(path: Path) -> None:
    from tests.tiny_runs import tokenizer

    read = pytest.importorskip("tokenizers").Tokenizer.from_file(str(tokenizer() / "tokenizer.json"))
    read.save(str(path))


def by_safetensors(path: Path) -> None:
    pytest.importorskip("safetensors.numpy").save_file({"a": NUMBERS}, path)


def by_torch(path: Path) -> None:
    torch = pytest.importorskip("torch")
    with path.open("wb") as file:
        torch.save(torch.from_numpy(NUMBERS), file)


def by_numpy(path: Path) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, a=NUMBERS)


def by_parquet(path: Path) -> None:
    pq.write_table(pa.table({"a": NUMBERS}), path)


def by_arrow(path: Path) -> None:
    table = pa.table({"a": NUMBERS})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("write", [by_tokenizers, by_safetensors, by_torch, by_numpy, by_parquet, by_arrow])
def test_a_library_that_cannot_write_is_an_error_of_the_disk(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "whole")
    with small_files(), pytest.raises(StoreError, match="File too large") as caught, disk(tmp_path / "file"):
        write(tmp_path / "file")
    assert (caught.value.id, caught.value.where) == ("cannot-write", str(tmp_path / "file"))


@pytest.mark.parametrize("error", [ValueError("no number"), UsageError("an option", id="usage")])
def test_an_error_that_is_not_of_the_disk_is_passed_on(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(type(error)) as caught, disk(tmp_path):
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    "arguments",
    [
        ["make", "--t", "inv", "SOURCE", "-o", "OUT"],
        ["tokenizer", "train", "demo", "--vocab-size", 300, "--min-frequency", 1, "-o", "OUT"],
        ["pair", "SET", "--format", "parquet", "-o", "OUT.parquet"],
        ["export", "SET", "--format", "text", "-o", "OUT"],
        ["undo", "SET", "-o", "OUT.tokens"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_whose_file_may_not_grow_leaves_nothing(tmp_path: Path, arguments: list[Any]) -> None:
    text = "".join(f" {' '.join(str(i * n * 7919 % 99991) for n in range(40))} . \n" for i in range(1, 200))
    source = wiki(tmp_path, text)  # more than a buffer holds, in every format
    make("inv", source, tmp_path / "set")
    before = sorted(path.name for path in tmp_path.iterdir())
    places = {"SOURCE": source, "SET": tmp_path / "set", "OUT": tmp_path / "out"}
    words = [next((f"{places[p]}{w[len(p) :]}" for p in places if str(w).startswith(p)), w) for w in arguments]
    with small_files():
        ran = run(*words, code=1)
    assert "[cannot-write]" in ran.err
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "out") == before
    assert leftovers(tmp_path / "out") == []
