"""Derived sets in a store: what reads a set prints and writes what it does for the same local set."""

from __future__ import annotations

from pathlib import Path

from tests.commands import (
    ROOT,
    TREES,
    make,
    run,
    shards,
    snapshot,
    trees,
    written,
)
from tests.object_store import Bucket


def test_a_set_in_a_store(bucket: Bucket, tmp_path: Path) -> None:
    """What reads a set prints and writes what it does for a local set."""
    out = tmp_path / "set"
    make("trans,inv", trees(tmp_path), out)
    url = bucket.put(out, "sets/set")

    def printed(place: object, line: str) -> tuple[int, str]:
        ran = run(*(place if word == "SET" else word for word in line.split()), code=None)
        return ran.code, ran.out.replace(str(place), "SET")

    for line in (
        "verify SET", "verify SET --json", "verify SET SET", "show SET", "show SET --json", "undo SET", "stats SET",
        "export SET --format conllu", "export SET --format jsonl", "export SET --format pharaoh",
        "dict SET --format tsv", "pair SET --format pharaoh", "pair SET --rate 50 --format parquet",
    ):  # fmt: skip
        local = printed(out, line)
        assert local[0] == 0, line
        assert printed(url, line) == local, line
    make("perm", out, tmp_path / "one")
    make("perm", url, tmp_path / "two")
    assert snapshot(tmp_path / "one") == snapshot(tmp_path / "two")
    run("undo", url, "-o", written(tmp_path / "back" / "x", "").parent)
    assert (tmp_path / "back" / "test.conllu").read_bytes().decode() == TREES


def test_a_set_that_keeps_the_files_of_its_spec(bucket: Bucket, tmp_path: Path) -> None:
    counts = ROOT / "tests" / "dictionaries" / "suffixes.tsv"
    out = tmp_path / "set"
    make(f"case:{counts}", trees(tmp_path), out)
    assert list((out / "files").iterdir()), "the set keeps no file: choose another transform"
    url = bucket.put(out, "set")
    assert run("verify", url).out.endswith("all 2 rows are right\n")
    make("inv", out, tmp_path / "one")
    make("inv", url, tmp_path / "two")
    assert snapshot(tmp_path / "one") == snapshot(tmp_path / "two")


def test_a_damaged_set(bucket: Bucket, tmp_path: Path) -> None:
    make("trans,inv", trees(tmp_path), tmp_path / "set")
    bucket.put(tmp_path / "set", "set")
    (shard,) = shards(tmp_path / "set")
    bucket.write(f"set/data/{shard.name}", shard.read_bytes()[:-50])
    assert "data/" in run("verify", f"{bucket.url}/set", code=1).out
    for command in (("undo",), ("export", "--format", "text")):
        assert run(command[0], f"{bucket.url}/set", *command[1:], code=1).err.startswith("derivlang: s3://")
    bucket.remove("set/derivlang.json")
    assert "[no-manifest]" in run("verify", f"{bucket.url}/set", code=1).err
    assert "[missing-folder]" in run("verify", f"{bucket.url}/nowhere", code=1).err
    bucket.write("unfinished/.derivlang/plan.json", b"")
    assert "[unfinished]" in run("undo", f"{bucket.url}/unfinished", code=1).err
