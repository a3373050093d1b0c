"""Folders that several processes want to make at once."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import pytest

from derivlang.store.disk import file_lock


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
