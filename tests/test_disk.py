"""Folders that several processes want to make at once."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

from derivlang.store.disk import alone


def work(folder: Path, log: Path) -> None:
    with alone(folder):
        with log.open("a") as file:
            file.write("in\n")
        time.sleep(0.05)
        with log.open("a") as file:
            file.write("out\n")


def test_one_process_at_a_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(tmp_path / "set", log)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert log.read_text().split() == ["in", "out"] * 3
