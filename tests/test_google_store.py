"""Sources and sets at gs://, by `gcsfs` and a stand-in of the store: the same files, and one message for each fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from derivlang.formats.places import located
from derivlang.formats.store_errors import fault
from derivlang.store.storage import store_at
from tests.commands import environment, make, run, shards, snapshot, wiki, written
from tests.google_store import TOKEN, GoogleBucket, GoogleStore
from tests.test_made_at_urls import SHARD
from tests.test_ranks import SPEC, TEXT, planned, worked
from tests.test_urls import LARGE, same
from tests.test_urls_faults import fails

pytest.importorskip("upath")
pytest.importorskip("gcsfs")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return wiki(tmp_path, TEXT)


@pytest.fixture
def whole(tmp_path: Path, text: Path) -> dict[str, bytes]:
    """The local set of the text."""
    make(SPEC, text, tmp_path / "whole", *SHARD)
    return snapshot(tmp_path / "whole")


@pytest.mark.parametrize("options", [(), ("--workers", 2)], ids=str)
def test_make(google_bucket: GoogleBucket, text: Path, whole: dict[str, bytes], options: tuple[object, ...]) -> None:
    source, out = google_bucket.put(text, f"in/{text.name}"), f"{google_bucket.url}/out"
    make(SPEC, source, out, *SHARD, *options)  # type: ignore[arg-type]
    assert google_bucket.snapshot("out") == whole
    assert not any(TOKEN.encode() in content for content in google_bucket.snapshot("out").values())
    assert run("verify", out).code == 0
    assert "already complete" in run("make", "--t", SPEC, source, "-o", out, *SHARD).err
    assert google_bucket.snapshot("out") == whole


def test_ranks_replace_an_older_set(google_bucket: GoogleBucket, text: Path, whole: dict[str, bytes]) -> None:
    source, out = google_bucket.put(text, f"in/{text.name}"), f"{google_bucket.url}/out"
    make("trans,inv", source, out)  # type: ignore[arg-type]
    older = google_bucket.snapshot("out")
    assert "[other-plan]" in run("make", "--t", SPEC, source, "-o", out, *SHARD, code=1).err
    tasks = planned(SPEC, source, out, *SHARD, "--force")  # type: ignore[arg-type]
    assert worked(out, 2) == tasks  # type: ignore[arg-type]
    assert google_bucket.snapshot("out").items() >= older.items()
    run("finish", out)
    assert run("verify", out, "--json").json["problems"] == []
    found = google_bucket.snapshot("out")
    assert len(found) == len(whole)
    assert found["lexicon.tsv"] == whole["lexicon.tsv"]


@pytest.mark.parametrize("name", ["text", "parquet"])
def test_a_source_in_pieces(name: str, google_bucket: GoogleBucket, tmp_path: Path) -> None:
    file, content = LARGE[name]
    path = written(tmp_path / file, content)
    assert len(shards(same(path, google_bucket.put(path, f"in/{file}"), tmp_path, "--shard-tokens", 100))) > 2


@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")  # of aiohttp about gcsfs
def test_many_files_and_a_large_one(google_store: GoogleStore, google_bucket: GoogleBucket) -> None:
    """Files are removed with few requests, and those that are not there are no fault; a large one appears whole."""
    store = store_at(located(f"{google_bucket.url}/out"))
    names = [f"data/{number} é.bin" for number in range(40)]
    for name in names[::2]:
        google_bucket.write(f"out/{name}", b"1")
    assert list(store.sizes()) == sorted(names[::2])
    google_store.requests.clear()
    store.remove(*names)
    assert google_bucket.keys() == []
    assert google_store.requests["delete"] == 0
    assert 0 < google_store.requests["batch"] <= 2
    store.remove(*names)
    content = bytes(range(256)) * 4 * 6000  # above what `gcsfs` uploads in one request
    with store.writing("large.bin") as path:
        path.write_bytes(content)
    assert google_store.requests["chunk"] > 0
    assert google_bucket.read("out/large.bin") == content


def test_what_is_not_there(google_bucket: GoogleBucket, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for url, id in (
        (f"{google_bucket.url}/a.txt", "missing-file"),
        (f"{google_bucket.url}/a/", "missing-file"),
        ("gs://no-such-bucket/a.txt", "missing-bucket"),
        ("gs://no-such-bucket", "missing-bucket"),
    ):
        ran = run("make", "--t", "inv", url, "-o", out, code=1)
        assert f"[{id}]" in ran.err, ran.err
    for command in ("make", "plan"):
        assert "[missing-bucket]" in run(command, "--t", "inv", text, "-o", "gs://no-such-bucket/out", code=1).err
    assert "[missing-bucket]" in run("verify", "gs://no-such-bucket/out", code=1).err


def test_no_credentials_and_no_access(
    google_store: GoogleStore, google_bucket: GoogleBucket, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = google_bucket.write("a.txt", b"one two\n"), f"{google_bucket.url}/out"
    reads, writes = ("make", "--t", "inv", source, "-o", text.parent / "out"), ("make", "--t", "inv", text, "-o", out)
    bare = {name: value for name, value in environment().items() if name != "GOOGLE_APPLICATION_CREDENTIALS"}
    fails(*reads, id="no-credentials", env=bare)  # in a process of its own: without handlers of logs
    monkeypatch.setattr(google_store, "denied", True)
    assert TOKEN not in fails(*writes, id="access-denied").err
    assert "[access-denied]" in run(*reads, code=1).err


def test_a_key_that_is_refused() -> None:
    from gcsfs.retry import HttpError
    from google.auth.exceptions import RefreshError

    caught = HttpError({"code": 401, "message": "Invalid Credentials"})
    caught.__cause__ = RefreshError("invalid_grant")
    assert fault(caught, "gs://bucket/a").id == "access-denied"
    assert fault(OSError("cannot read b/x/o/1401.txt"), "gs://x/1401.txt").id == "unreadable-file"
