"""What macOS needs: workers that are spawned."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from tests.commands import run, wiki


def test_workers_that_are_spawned_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS by default."""
    source = wiki(tmp_path, "The cat sleeps .\n" * 40)
    assert run("make", "--t", "inv", source, "-o", tmp_path / "a", "--shard-tokens", 60).code == 0
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    done = run("make", "--t", "inv", source, "-o", tmp_path / "b", "--shard-tokens", 60, "--workers", 2)
    assert done.code == 0, done.err
    first, second = (
        {path.name: path.read_bytes() for path in sorted((tmp_path / out / "data").iterdir())} for out in "ab"
    )
    assert len(first) > 1
    assert first == second
