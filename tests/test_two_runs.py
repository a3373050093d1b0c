"""Several runs at once in one folder: one makes the set, the others wait for it or are refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from derivlang.core.errors import StoreError
from derivlang.engine import engines
from derivlang.engine.job import Events, run_task
from derivlang.engine.make import make as make_set
from derivlang.engine.options import MakeOptions
from derivlang.engine.parse import parse as parse_set
from derivlang.lexical import train as tokenizers
from derivlang.lexical.settings import TokenizerOptions
from derivlang.lexical.train import train
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.disk import locked
from derivlang.store.folders import replace_folder
from tests import commands
from tests.commands import make, run, snapshot, spawn, wiki, written

TEXT = "".join(f" Line {i} of the text has some words , {i % 7} . And more ! \n" for i in range(60))
SHARD = ("--shard-tokens", 100)


@pytest.fixture
def during(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Call once, when the first shard of a run is there."""

    def during(call: Callable[[], None]) -> None:
        calls = [call]

        def task(*given: Any) -> tuple[str, int]:
            made = run_task(*given)
            if calls:
                calls.pop()()
            return made

        monkeypatch.setattr(engines, "run_task", task)

    return during


def begin(out: Path, source: Path, spec: str = "trans,inv") -> Any:
    return make_set(Pipeline.parse(spec), SourceRequest(str(source)), MakeOptions(out, shard_tokens=100))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return wiki(tmp_path, TEXT)


@pytest.mark.parametrize("ends", ["made", "failed"])
def test_a_run_that_ends_while_another_one_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Path, ends: str
) -> None:
    """What it takes away between the listing of the folder and the look at an entry is nothing foreign."""
    out, whole = tmp_path / "out", tmp_path / "whole"
    make("trans,inv", source, whole, *SHARD)
    written(out / ".derivlang" / "plan.json", "")
    written(out / ".derivlang.lock", "")
    listed = Path.iterdir

    def iterdir(folder: Path) -> Iterator[Path]:
        entries = list(listed(folder))
        if folder == out and (out / ".derivlang").exists():
            monkeypatch.undo()  # once
            if ends == "made":
                shutil.copytree(whole, out, dirs_exist_ok=True)
            shutil.rmtree(out / ".derivlang")
            (out / ".derivlang.lock").unlink()
        return iter(entries)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    make("trans,inv", source, out, *SHARD)
    assert snapshot(out) == snapshot(whole)


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_another_plan_is_refused_while_a_run_is_at_work(
    tmp_path: Path, source: Path, during: Callable[..., None], force: list[str]
) -> None:
    out = tmp_path / "out"
    make("trans,inv", source, tmp_path / "whole", *SHARD)

    def other() -> None:
        ran = spawn("make", "--t", "perm", source, "-o", out, *SHARD, *force, code=1)
        assert ran.err.startswith(f"derivlang: {out}: another run is making a set in this folder")
        assert "(trans,inv)" in ran.err
        assert "[other-run]" in ran.err

    during(other)
    begin(out, source)
    assert snapshot(out) == snapshot(tmp_path / "whole")


def test_the_same_plan_waits_and_finds_the_set_made(tmp_path: Path, source: Path, during: Callable[..., None]) -> None:
    out = tmp_path / "out"
    others = []

    def other() -> None:
        line = commands.command_line("make", "--t", "trans,inv", source, "-o", out, *SHARD, "--json")
        process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=commands.environment(), text=True
        )
        assert process.stderr is not None
        assert "waiting for it" in process.stderr.readline()
        others.append(process)

    during(other)
    begin(out, source)
    made = {file: file.stat().st_mtime_ns for file in out.rglob("*.parquet")}
    told, err = others[0].communicate(timeout=60)
    assert (others[0].returncode, err) == (0, f"derivlang: {out}/ is already complete: nothing to do\n")
    assert '"tokens": 840' in told
    assert {file: file.stat().st_mtime_ns for file in out.rglob("*.parquet")} == made
    make("trans,inv", source, tmp_path / "whole", *SHARD)
    assert snapshot(out) == snapshot(tmp_path / "whole")


def test_a_parse_holds_its_folder_too(tmp_path: Path, source: Path, during: Callable[..., None]) -> None:
    out = tmp_path / "out"

    def other() -> None:
        assert "[other-run]" in spawn("make", "--t", "perm", source, "-o", out, *SHARD, "--force", code=1).err

    during(other)
    parse_set(SourceRequest(str(source)), MakeOptions(out, limit=3), Events())
    assert run("verify", out).code == 0


@pytest.mark.parametrize("folder", ["empty", "finished"])
def test_the_lock_of_a_dead_run_does_not_block(tmp_path: Path, source: Path, folder: str) -> None:
    out = tmp_path / "out"
    if folder == "finished":
        make("perm", source, out)
    written(out / ".derivlang.lock", f"{'0123' * 16} another plan")
    make("trans,inv", source, out, *(["--force"] if folder == "finished" else []))
    assert not (out / ".derivlang.lock").exists()
    assert run("verify", out).code == 0


def test_a_failed_run_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "deep" / "out").mkdir(parents=True)
    for out in (tmp_path / "a" / "b" / "out", tmp_path / "deep" / "out"):
        bad = written(tmp_path / "bad.txt", b"caf\xe9\n")
        run("make", "--t", "inv", bad, "-o", out, code=1)
    assert not (tmp_path / "a").exists()
    assert list((tmp_path / "deep" / "out").iterdir()) == []


def test_two_writers_of_one_folder_do_not_mix(tmp_path: Path) -> None:
    def write(text: str) -> Callable[[Path], None]:
        def fill(folder: Path) -> None:
            written(folder / "one", text)
            if text == "first":
                other.start()
                other.join(0.5)  # it waits, or is done
            written(folder / "two", text)

        return fill

    other = threading.Thread(target=replace_folder, args=(tmp_path / "out", write("second"), ("one", "two")))
    replace_folder(tmp_path / "out", write("first"), ("one", "two"))
    other.join()
    assert {path.name: path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == dict.fromkeys(
        ["one", "two"], "second"
    )


@pytest.mark.parametrize("size", [60, 70])
def test_a_tokenizer_that_another_process_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Path, size: int
) -> None:
    """The same command waits, and finds the tokenizer done. Another command is refused."""
    out = tmp_path / "out"
    told: list[object] = []
    train_bpe = tokenizers.train_bpe

    def again() -> None:
        try:
            told.append(train(SourceRequest(str(source)), out, TokenizerOptions(vocab_size=size), found=told.append))
        except StoreError as error:
            told.append(error.what)

    thread = threading.Thread(target=again)

    def during(*arguments: Any) -> Any:
        monkeypatch.undo()
        thread.start()
        thread.join(0.5)  # it waits, or is done
        return train_bpe(*arguments)

    monkeypatch.setattr(tokenizers, "train_bpe", during)
    recipe = train(SourceRequest(str(source)), out, TokenizerOptions(vocab_size=60))
    thread.join()
    another = f"holds another tokenizer: vocab_size is 60, not {size}"
    assert told == ([out, json.loads(json.dumps(recipe))] if size == 60 else [another])


def test_a_wait_ends_when_the_other_process_names_another_text(tmp_path: Path) -> None:
    seen: list[str] = []

    def met(text: str) -> None:
        seen.append(text)
        raise StoreError("refused")

    with locked(tmp_path / "lock", "the first"):
        with pytest.raises(StoreError), locked(tmp_path / "lock", "the second", met=met):
            pass
        assert seen == ["the first"]
        assert (tmp_path / "lock").read_text() == "the first"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can make one")
def test_a_lock_that_cannot_be_made_is_one_error(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("derivlang.store.disk._PAUSE", 0.0)  # between tries, of which there are many
    ran = run("make", "--t", "inv", source, "-o", "/proc/x/y", code=1)
    assert ran.err.startswith("derivlang: /proc/x/y: ")
    ran = run("make", "--t", "syn:fr", source, "-o", tmp_path / "out", "--parses", "/proc/x", code=1)
    assert ran.err.startswith("derivlang: /proc/x/")
