"""Sets that are made at URLs: every file equal to that of a local run, whatever was killed, lost or in the way."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from derivlang.core.errors import StoreError
from derivlang.store.storage import Store, store_at
from tests import commands
from tests.commands import Copy, forked, make, once, run, snapshot, spawn, wiki, written
from tests.object_store import Bucket, InMemory
from tests.test_ranks import SPEC, TEXT, jsonl, lexicon, planned, worked

pytest.importorskip("upath")
SHARD = ("--shard-tokens", 100)
_BUCKETS = {"s3": "bucket", "gs": "google_bucket"}  # the fixture of each


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return wiki(tmp_path, TEXT)


@once
def _whole(folder: Path) -> None:
    make(SPEC, wiki(folder, TEXT), folder / "whole", *SHARD)


@pytest.fixture
def whole(tmp_path: Path, text: Path) -> dict[str, bytes]:
    """The local set of the text."""
    _whole(tmp_path)
    return snapshot(tmp_path / "whole")


# The interface


@pytest.fixture(params=["folder", "memory", "s3", "gs"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store, empty."""
    from derivlang.formats.places import located

    if request.param in _BUCKETS:
        place = located(f"{request.getfixturevalue(_BUCKETS[request.param]).url}/a/b")
    else:
        place = tmp_path if request.param == "folder" else located(f"memory://derivlang-{tmp_path.name}/a/b")
    return store_at(place)


def test_a_store(store: Store) -> None:
    assert (store.get("x"), store.get("x/y"), store.sizes(), store.sizes("x")) == (None, None, {}, {})
    store.put("x/y.bin", b"one")
    store.put_new("x/z.bin", b"three")
    store.put_new("x/z.bin", b"another")
    store.put("x/y.bin", b"other")
    assert (store.get("x/y.bin"), store.get("x/z.bin")) == (b"other", b"three")
    with store.writing("data/é 1.parquet") as path:
        path.write_bytes(b"12345678")
    with store.writing("data/none.parquet"):
        pass
    with suppress(KeyError), store.writing("data/failed.parquet") as path:
        path.write_bytes(b"1")
        raise KeyError
    assert store.sizes() == {"x/y.bin": 5, "x/z.bin": 5, "data/é 1.parquet": 8}
    assert store.sizes("data") == {"data/é 1.parquet": 8}
    store.remove("x/y.bin")
    store.remove("x/y.bin")
    assert store.sizes("x") == {"x/z.bin": 5}
    for names in (["data/[a]*.bin", "data/é 1.parquet"], ["x/none", "x/z.bin"]):
        store.put(names[0] if "none" not in names[0] else "x/more", b"")
        store.remove(*names)
    assert store.sizes() == {"x/more": 0}
    assert list(store.get_all(["x/none", "x/more"])) == [None, b""]


# The same bytes


@pytest.mark.parametrize("options", [(), ("--workers", 2)], ids=str)
def test_make(bucket: Bucket, text: Path, whole: dict[str, bytes], options: tuple[object, ...]) -> None:
    told = make(SPEC, text, f"{bucket.url}/out", *SHARD, *options)  # type: ignore[arg-type]
    assert told["out"] == f"{bucket.url}/out"
    assert bucket.snapshot("out") == whole
    assert run("verify", f"{bucket.url}/out").code == 0
    assert "already complete" in run("make", "--t", SPEC, text, "-o", f"{bucket.url}/out", *SHARD).err
    assert bucket.snapshot("out") == whole


@pytest.mark.parametrize(
    ("source", "world"), [("tokens", 7), ("entities", 1), ("a dictionary", 2), ("a derived set", 1)]
)
def test_ranks(tmp_path: Path, bucket: Bucket, source: str, world: int) -> None:
    spec, options = "trans:overlap=30,perm", ("--shard-tokens", 400)
    place: Any = wiki(tmp_path / "in", TEXT)
    if source == "entities":
        place.unlink()
        place, options = jsonl(tmp_path / "in"), ("--shard-tokens", 2000)
    elif source == "a dictionary":
        spec = lexicon(tmp_path)
    elif source == "a derived set":
        make("trans:overlap=20:seed=2,inv", place, f"{bucket.url}/first")  # type: ignore[arg-type]
        spec, place = "perm", f"{bucket.url}/first"
    if source != "a derived set":
        place = bucket.put(tmp_path / "in", "corpus")
    make(spec, place, tmp_path / "whole", *options)
    out = f"{bucket.url}/out"
    tasks = planned(spec, place, out, *options)  # type: ignore[arg-type]
    assert worked(out, world) == tasks  # type: ignore[arg-type]
    run("finish", out)
    assert bucket.snapshot("out") == snapshot(tmp_path / "whole")


# What goes wrong


def test_a_stopped_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, text: Path, whole: dict[str, bytes]
) -> None:
    from tests.test_store import counted

    out = f"{bucket.url}/out"
    with monkeypatch.context() as patch:
        counted(patch, 3)
        run("make", "--t", SPEC, text, "-o", out, *SHARD, code=130)
    assert "[unfinished]" in run("verify", out, code=1).err
    assert "[other-plan]" in run("make", "--t", "inv", text, "-o", out, code=1).err
    first, second, *_ = bucket.keys("out/data/")
    bucket.write(first, b"short")
    bucket.client.delete_object(Bucket=bucket.name, Key=second)
    tasks = counted(monkeypatch)
    make(SPEC, text, out, *SHARD)  # type: ignore[arg-type]
    assert len(tasks.names) == 6 - 1
    assert bucket.snapshot("out") == whole


def test_a_failed_run_leaves_nothing(tmp_path: Path, bucket: Bucket) -> None:
    bad = written(tmp_path / "bad.txt", b"good line .\n" * 20 + b"caf\xe9\n")
    run("make", "--t", "inv", bad, "-o", f"{bucket.url}/out", code=1)
    assert bucket.keys() == []


def test_an_older_set_is_whole_until_the_new_one_is_finished(
    in_memory: InMemory, text: Path, whole: dict[str, bytes]
) -> None:
    out = f"{in_memory.url}/out"
    make("trans,inv", text, out)  # type: ignore[arg-type]
    older = in_memory.snapshot("out")
    planned(SPEC, text, out, *SHARD, "--force")  # type: ignore[arg-type]
    worked(out, 2)  # type: ignore[arg-type]
    assert in_memory.snapshot("out").items() >= older.items()
    assert run("verify", out).code == 0
    for again in (("make", "--t", "perm"), ("plan", "--t", "perm")):
        assert "[other-plan]" in run(*again, text, "-o", out, code=1).err
    run("finish", out)
    ran = run("verify", out, "--json").json
    assert (ran["ok"], ran["notes"]) == (True, [])
    found = in_memory.snapshot("out")
    shards = {name: content for name, content in found.items() if name.endswith(".parquet")}
    assert {name.partition("/")[2]: content for name, content in shards.items()} == {
        name.partition("/")[2]: content for name, content in whole.items() if name.endswith(".parquet")
    }
    (folder,) = {name.partition("/")[0] for name in shards}
    assert folder.startswith("data-")
    assert f"path: {folder}/test-*.parquet" in found["README.md"].decode()
    assert found["lexicon.tsv"] == whole["lexicon.tsv"]
    assert len(found) == len(whole)


def test_a_copy_of_a_replaced_set_is_a_local_set(
    in_memory: InMemory, text: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    """Its shards are in `data-HASH/`."""
    out, copy = f"{in_memory.url}/out", tmp_path / "copy"
    make("trans,inv", text, out)  # type: ignore[arg-type]
    make("perm", text, out, "--force")  # type: ignore[arg-type]
    for name, content in in_memory.snapshot("out").items():
        written(copy / name, content)
    assert "already complete" in run("make", "--t", "perm", text, "-o", copy).err
    make(SPEC, text, copy, *SHARD, "--force")
    assert snapshot(copy) == whole
    assert not [path for path in copy.iterdir() if path.name.startswith("data-")]


def test_a_plan_that_another_one_replaces(in_memory: InMemory, text: Path) -> None:
    """The ranks of the first plan neither mix with the second one nor finish it."""
    out = f"{in_memory.url}/out"
    planned("inv", text, out, *SHARD)  # type: ignore[arg-type]
    run("work", out, "--rank", 0, "--world", 2)
    first = in_memory.keys("out/data/")
    planned("perm", text, out, *SHARD, "--force")  # type: ignore[arg-type]
    assert worked(out) == 6  # type: ignore[arg-type]
    assert in_memory.keys("out/data/") == first
    run("finish", out)
    assert in_memory.keys("out/data/") == []
    assert run("verify", out).code == 0


@pytest.mark.parametrize("name", ["thesis.txt", "data/mine.parquet", "files/notes.tsv", ".derivlang.txt"])
@pytest.mark.parametrize("made", [False, True])
def test_objects_of_somebody_else_stay(in_memory: InMemory, text: Path, name: str, made: bool) -> None:
    out = f"{in_memory.url}/out"
    if made:
        make("perm", text, out)  # type: ignore[arg-type]
    in_memory.write(f"out/{name}", b"mine")
    before = in_memory.snapshot("out")
    for command in (("make", "--t", "inv"), ("plan", "--t", "inv")):
        ran = run(*command, text, "-o", out, "--force", code=1)
        assert f"the folder holds something else: {name}" in ran.err
        assert "[output]" in ran.err
    assert in_memory.snapshot("out") == before


def test_a_rank_that_ends_after_the_set_is_finished(
    monkeypatch: pytest.MonkeyPatch, in_memory: InMemory, text: Path, whole: dict[str, bytes]
) -> None:
    from derivlang.engine import ranks

    out, run_task = f"{in_memory.url}/out", ranks.run_task
    planned(SPEC, text, out, *SHARD)  # type: ignore[arg-type]

    def late(*given: Any) -> Any:
        monkeypatch.setattr(ranks, "run_task", run_task)
        worked(out)  # type: ignore[arg-type]
        run("finish", out)
        return run_task(*given)

    monkeypatch.setattr(ranks, "run_task", late)
    run("work", out, "--rank", 0, "--world", 3)
    assert in_memory.snapshot("out") == whole


def test_a_late_rank_of_a_plan_that_was_replaced(
    monkeypatch: pytest.MonkeyPatch, in_memory: InMemory, text: Path
) -> None:
    from derivlang.engine import ranks

    out, run_task = f"{in_memory.url}/out", ranks.run_task
    planned("inv", text, out, *SHARD)  # type: ignore[arg-type]

    def late(*given: Any) -> Any:
        monkeypatch.setattr(ranks, "run_task", run_task)
        planned("perm", text, out, *SHARD, "--force")  # type: ignore[arg-type]
        worked(out)  # type: ignore[arg-type]
        run("finish", out)
        return run_task(*given)

    monkeypatch.setattr(ranks, "run_task", late)
    run("work", out, "--rank", 0, "--world", 1)
    assert in_memory.keys("out/.derivlang") == in_memory.keys("out/data/") == []
    assert run("verify", out, "--json").json["problems"] == []


def test_a_kill_while_an_older_set_is_replaced(
    monkeypatch: pytest.MonkeyPatch, in_memory: InMemory, text: Path, whole: dict[str, bytes]
) -> None:
    """After any number of writes and removals of `finish`, the same command ends well."""
    from derivlang.store.storage import UrlStore

    out, left = f"{in_memory.url}/out", 0
    make("trans,inv", text, out)  # type: ignore[arg-type]
    planned(SPEC, text, out, *SHARD, "--force")  # type: ignore[arg-type]
    worked(out)  # type: ignore[arg-type]
    before = in_memory.snapshot("out")

    def killed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: UrlStore, *given: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return method(self, *given)

        return call

    for after in range(1, 12):
        left = after
        in_memory.remove("out")
        for name, content in before.items():
            in_memory.write(f"out/{name}", content)
        with monkeypatch.context() as patch:
            for name in ("put", "remove"):
                patch.setattr(UrlStore, name, killed(getattr(UrlStore, name)))
            run("finish", out, code=None)
        assert worked(out) == 0  # type: ignore[arg-type]
        run("finish", out)
        assert run("verify", out, "--json").json["problems"] == []
        assert len(in_memory.keys("out")) == len(whole)


def test_two_makes_of_different_plans(monkeypatch: pytest.MonkeyPatch, in_memory: InMemory, text: Path) -> None:
    """The first one ends with a message when another one has replaced it, and spoils nothing."""
    from tests.test_store import Counted, engines

    out, tasks = f"{in_memory.url}/out", Counted()

    def first(*given: Any) -> Any:
        monkeypatch.setattr(engines, "run_task", tasks)
        make("perm", text, out, *SHARD, "--force")  # type: ignore[arg-type]
        return tasks(*given)

    monkeypatch.setattr(engines, "run_task", first)
    assert "[other-run]" in run("make", "--t", "inv", text, "-o", out, *SHARD, code=1).err
    assert run("verify", out, "--json").json["problems"] == []
    assert len(in_memory.keys("out/data")) == 6
    make("trans", text, out, "--force")  # type: ignore[arg-type]
    assert run("verify", out, "--json").json["problems"] == []


def test_two_makes_of_one_plan(
    monkeypatch: pytest.MonkeyPatch, in_memory: InMemory, text: Path, whole: dict[str, bytes]
) -> None:
    from tests.test_store import Counted, engines

    out, tasks = f"{in_memory.url}/out", Counted()

    def first(*given: Any) -> Any:
        monkeypatch.setattr(engines, "run_task", tasks)
        make(SPEC, text, out, *SHARD)  # type: ignore[arg-type]
        return tasks(*given)

    monkeypatch.setattr(engines, "run_task", first)
    assert "already complete" in run("make", "--t", SPEC, text, "-o", out, *SHARD).err
    assert in_memory.snapshot("out") == whole


def test_a_forced_command_that_is_stopped_at_once(
    monkeypatch: pytest.MonkeyPatch, in_memory: InMemory, text: Path, whole: dict[str, bytes]
) -> None:
    from tests.test_store import counted

    out = f"{in_memory.url}/out"
    for spec, after in (("inv", 3), (SPEC, 0)):
        with monkeypatch.context() as patch:
            counted(patch, after)
            run("make", "--t", spec, text, "-o", out, *SHARD, "--force", code=130)
    make(SPEC, text, out, *SHARD)  # type: ignore[arg-type]
    assert in_memory.snapshot("out") == whole


def test_a_source_in_the_store_is_hashed_by_ranks_of_a_strange_plan(bucket: Bucket, text: Path) -> None:
    """Whoever may list a bucket knows sizes and ETags, but not what the objects hold."""
    from tests.test_ranks import sealed

    secret = bucket.write("secret/a.tokens", b" pass word . \n")
    source = bucket.write("corpus/a.tokens", b" open text . \n")
    out = f"{bucket.url}/out"
    planned("inv", source, out)  # type: ignore[arg-type]
    worked(out)  # type: ignore[arg-type]
    plan = json.loads(bucket.read("out/.derivlang/plan.json"))
    other = f"{bucket.url}/other"
    planned("inv", secret, other)  # type: ignore[arg-type]
    (part,) = json.loads(bucket.read("other/.derivlang/plan.json"))["job"]["parts"]
    plan["job"]["parts"][0] |= {"path": part["path"], "stamp": part["stamp"], "sha256": "0" * 64}
    for key in bucket.keys("out/"):
        if not key.endswith("plan.json"):
            bucket.client.delete_object(Bucket=bucket.name, Key=key)
    bucket.write("out/.derivlang/plan.json", json.dumps(sealed(plan)).encode())
    assert "[source-changed]" in run("work", out, "--rank", 0, "--world", 1, code=1).err
    assert bucket.keys("out/data") == []


def test_killed_ranks(tmp_path: Path, bucket: Bucket) -> None:
    """Kills of ranks and of what finishes the set: the same commands end with the same set."""
    rng = random.Random(5)
    words = [f"w{n}" for n in range(3000)]
    source = wiki(tmp_path, "".join(f" {' '.join(rng.choices(words, k=3000))} . \n" for _ in range(20)))
    make(SPEC, source, tmp_path / "whole", "--shard-tokens", 6000)
    out = f"{bucket.url}/out"
    planned(SPEC, source, out, "--shard-tokens", 6000)  # type: ignore[arg-type]
    for kill in range(6):
        arguments = ("work", out, "--rank", kill % 2, "--world", 2) if kill < 4 else ("finish", out)
        if kill == 4:
            worked(out)  # type: ignore[arg-type]
        process = Copy(*arguments)
        time.sleep(rng.uniform(0.1, 1.0))
        os.kill(process.pid, signal.SIGKILL)
        assert "Traceback" not in process.wait().err
    if not bucket.keys("out/derivlang.json"):
        worked(out, 2)  # type: ignore[arg-type]
    run("finish", out)
    assert bucket.snapshot("out") == snapshot(tmp_path / "whole")


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("sftp://host/out", r"nothing is written to sftp://.*\[store\]|missing-package"),
        ("hf://datasets/a/b", r"nothing is written to hf://.*\[store\]|missing-package"),
        ("s3://no-such-bucket-here/out", r"there is no such bucket.*\[missing-bucket\]"),
        ("s3://key:secret@bucket/out", r"this URL holds credentials.*\[url-credentials\]"),
        ("nowhere://x/out", r"\[unknown-protocol\]"),
    ],
)
def test_one_message(object_store: object, text: Path, out: str, told: str) -> None:
    for command in ("make", "plan"):
        ran = forked(command, "--t", "inv", text, "-o", out, code=None)
        assert ran.code in (1, 2)
        assert commands_match(told, ran.err), ran.err


def commands_match(told: str, err: str) -> bool:
    import re

    return re.search(told, err, re.DOTALL) is not None and "Traceback" not in err and "secret" not in err


def test_no_credentials(monkeypatch: pytest.MonkeyPatch, bucket: Bucket, text: Path) -> None:
    environment = {k: v for k, v in commands.environment().items() if "ACCESS_KEY" not in k}
    ran = spawn("make", "--t", "inv", text, "-o", f"{bucket.url}/out", code=1, env=environment)
    assert "[no-credentials]" in ran.err


def test_a_store_that_fails_now_and_then(
    monkeypatch: pytest.MonkeyPatch, in_memory: InMemory, text: Path, whole: dict[str, bytes]
) -> None:
    """A request that fails ends the command with one message, and the same command goes on."""
    from derivlang.store.storage import UrlStore

    rng, out = random.Random(1), f"{in_memory.url}/out"

    def flaky(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: UrlStore, *given: Any) -> Any:
            if rng.random() < 0.1:
                raise StoreError("the store cannot be reached", where=str(self.folder), id="unreachable-store")
            return method(self, *given)

        return call

    for name in ("get", "put", "put_new", "sizes", "remove"):
        monkeypatch.setattr(UrlStore, name, flaky(getattr(UrlStore, name)))
    for _ in range(60):
        ran = run("make", "--t", SPEC, text, "-o", out, *SHARD, code=None)
        if ran.code == 0:
            break
        assert "[unreachable-store]" in ran.err
        assert json.dumps(in_memory.keys("out")).count("derivlang.json") <= 1
    monkeypatch.undo()
    make(SPEC, text, out, *SHARD)  # type: ignore[arg-type]
    assert in_memory.snapshot("out") == whole
