"""Many tasks: what is held for those that wait, and what a store is asked for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from derivlang.engine.engines import in_processes
from tests import flaky_store
from tests.commands import make, run, snapshot, wiki
from tests.test_ranks import SPEC, TEXT

TASKS = 6  # of TEXT


class Taken(Sequence[int]):
    """Numbers, of which the last that was asked for is known."""

    def __init__(self, n: int):
        self.n, self.last = n, -1

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> int:  # type: ignore[override]
        raise NotImplementedError

    def __iter__(self) -> Iterator[int]:
        for number in range(self.n):
            self.last = number
            yield number


def test_few_tasks_wait_in_a_pool() -> None:
    tasks = Taken(60)
    results = in_processes(abs, tasks, 2)
    first = next(results)
    assert tasks.last < 20
    assert sorted([first, *results]) == list(range(60))


@pytest.fixture(scope="module")
def store() -> Iterator[flaky_store.FlakyStore]:
    pytest.importorskip("s3fs")
    pytest.importorskip("moto.server")
    with flaky_store.opened() as server:
        yield server


def test_requests_of_each_command(store: flaky_store.FlakyStore, tmp_path: Path) -> None:
    """A rank asks four times a task (is it done, its shard, its record, is the plan still this one), `finish` once."""
    out = f"{store.new_bucket().url}/out"
    source = wiki(tmp_path, TEXT)
    asked = []
    for line in (
        ("plan", "--t", SPEC, source, "-o", out, "--shard-tokens", 100),
        ("work", out, "--rank", 0, "--world", 1),
        ("work", out, "--rank", 0, "--world", 1),
        ("finish", out),
    ):
        run(*line)
        asked.append(store.asked()[0])
    plan, work, again, finish = (sum(one.values()) for one in asked)
    assert plan <= 29
    assert work <= 4 * TASKS + 9
    assert again <= TASKS + 8
    assert finish <= TASKS + 25
    assert asked[3].get("DELETE object", 0) <= 1
    assert store.asked()[1] == {}


def test_requests_of_ranks_that_count(store: flaky_store.FlakyStore, tmp_path: Path) -> None:
    """Three a task: its record is written, read by whoever plans, and it is asked whether it is still waited for."""
    bucket = store.new_bucket()
    out, source = f"{bucket.url}/out", wiki(tmp_path, TEXT)
    asked = []
    for line in (
        ("plan", "--t", SPEC, source, "-o", out, "--shard-tokens", 100, "--defer"),
        ("work", out, "--rank", 0, "--world", 1, "--trust", "--stage", "count"),
    ):
        run(*line)
        asked.append(sum(store.asked()[0].values()))
    assert asked[0] <= 24  # whatever the number of tasks
    assert asked[1] <= 3 * TASKS + 42
    run("work", out, "--rank", 0, "--world", 1, "--trust")
    run("finish", out)
    make(SPEC, source, tmp_path / "whole", "--shard-tokens", 100)
    assert bucket.snapshot("out") == snapshot(tmp_path / "whole")


def test_names_that_look_like_patterns(store: flaky_store.FlakyStore, tmp_path: Path) -> None:
    """Places and files with [ ] * ? are those files alone, also where many are removed at once."""
    bucket = store.new_bucket()
    bucket.write("a1/keep.txt", b"kept")
    source = wiki(tmp_path, TEXT)
    make(SPEC, source, tmp_path / "whole", "--shard-tokens", 100)
    make(SPEC, source, f"{bucket.url}/a[1]", "--shard-tokens", 100)  # type: ignore[arg-type]
    assert bucket.snapshot("a[1]") == snapshot(tmp_path / "whole")
    assert bucket.keys("a1/") == ["a1/keep.txt"]
