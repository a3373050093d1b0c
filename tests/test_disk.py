"""Folders that several processes want to make at once."""

from __future__ import annotations

import json
import multiprocessing
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from derivlang.core.errors import StoreError
from derivlang.store.disk import file_lock
from derivlang.store.folders import settle


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


def test_what_was_made_in_it_stays(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "set"
    with file_lock(folder):
        folder.mkdir()
    assert [path.name for path in folder.parent.iterdir()] == ["set"]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), file_lock(tmp_path / "deep" / "set"):
        _ = 1 // 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["../thesis.txt", "{place}", "sub/../../thesis.txt", "link/thesis.txt"])
@pytest.mark.parametrize("how", ["gone", "new"])
def test_a_stage_that_somebody_else_wrote_reaches_no_file_outside(name: str, how: str, tmp_path: Path) -> None:
    """A folder from elsewhere may hold a stage that looks complete: nothing outside is removed or written over."""
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("mine")
    out, stage = tmp_path / "out", tmp_path / ".out.derivlang"
    for folder in (out, stage):
        folder.mkdir()
    (out / "link").symlink_to(tmp_path)
    gone = [name.format(place=thesis)] if how == "gone" else []
    if how == "new":
        (stage / "link").mkdir()
        (stage / "link" / "thesis.txt").write_text("theirs")
    (stage / ".complete.json").write_text(json.dumps({"gone": gone, "record": ""}))
    with pytest.raises(StoreError, match="outside") if how == "new" else nullcontext():
        settle(out)
    assert thesis.read_text() == "mine"


@pytest.mark.parametrize("note", ["", "[]", '{"gone": 1, "record": ""}', '{"gone": []}', "\udcff"])
def test_a_damaged_note_of_a_stage_is_one_message(note: str, tmp_path: Path) -> None:
    stage = tmp_path / ".out.derivlang"
    stage.mkdir()
    (stage / ".complete.json").write_bytes(note.encode("utf-8", "surrogateescape"))
    with pytest.raises(StoreError, match="note"):
        settle(tmp_path / "out")
