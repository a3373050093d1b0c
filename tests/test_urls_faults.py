"""Stores that fail, files that change there, URLs that are refused, and how much is read."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import derivlang
from derivlang.core.errors import DataError, UsageError
from derivlang.core.names import check_no_secrets, is_url
from derivlang.formats import places
from derivlang.formats.inspection import FileStamp, unchanged
from derivlang.formats.places import is_remote, located
from tests.commands import (
    Ran,
    environment,
    run,
    shards,
    spawn,
)
from tests.object_store import Bucket, ObjectStore

TEXT = "".join(f" Line {i} of the text has some words , {i % 7} . And more ! \n" for i in range(60))


# Changes


def test_a_source_that_changes_is_seen(bucket: Bucket) -> None:
    path = located(bucket.write("a.txt", b"one line .\n"))
    seen = {path: FileStamp.of(path)}
    with unchanged(seen):
        bucket.write("a.txt", b"one line .\n")  # another upload of the same bytes
    with pytest.raises(DataError, match="changed while it was read") as error, unchanged(seen):
        bucket.write("a.txt", b"two line .\n")
    assert error.value.id == "source-changed"
    with pytest.raises(DataError) as error, unchanged(seen):
        pass
    assert error.value.id == "source-changed"
    bucket.remove("a.txt")
    with pytest.raises(DataError) as error, unchanged(seen):
        pass
    assert error.value.id == "missing-file"


def test_a_file_that_is_replaced_while_it_is_open(bucket: Bucket) -> None:
    """The store refuses to go on in another object: no text is read that is half of each."""
    path = located(bucket.write("a.txt", b"1" * 1_000_000))
    with path.open("rb") as file:
        assert file.read(10) == b"1" * 10
        bucket.write("a.txt", b"2" * 1_000_000)
        with pytest.raises(DataError) as error:
            file.read()
    assert error.value.id == "source-changed"


def test_a_changed_source_ends_a_run(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import derivlang.engine.build as build

    url = bucket.write("x.test.tokens", TEXT.encode())
    planned = build.make_plan

    def changes(*arguments: Any, **options: Any) -> Any:
        plan = planned(*arguments, **options)
        bucket.write("x.test.tokens", TEXT.replace("words", "birds").encode())
        return plan

    monkeypatch.setattr(build, "make_plan", changes)
    ran = run("make", "--t", "inv", url, "-o", tmp_path / "out", "--shard-tokens", 100, code=1)
    assert "[source-changed]" in ran.err
    assert not shards(tmp_path / "out")


# How much is read


class Counted:
    """An open file of a store that counts its requests."""

    def __init__(self, content: bytes):
        self.content, self.at, self.requests, self.bytes, self.size = content, 0, 0, 0, len(content)

    def seek(self, at: int) -> int:
        self.at = at
        return at

    def read(self, n: int) -> bytes:
        self.requests += 1
        self.bytes += n
        return self.content[self.at : self.at + n]

    def close(self) -> None:
        pass


def test_a_stream_reads_ahead_and_never_twice() -> None:
    from derivlang.formats.remote import RemoteFile

    content = bytes(range(256)) * (64 << 12)  # 64 MiB
    store = Counted(content)
    with RemoteFile("s3://b/x", store) as file:
        assert b"".join(iter(lambda: file.read(1 << 20), b"")) == content
    assert store.bytes == len(content)
    assert store.requests < 20
    store = Counted(content)
    with RemoteFile("s3://b/x", store) as file:  # a piece of 1 MiB
        file.seek(10 << 20)
        assert file.read(1 << 20) == content[10 << 20 : 11 << 20]
        assert file.seek(-5, 2) == len(content) - 5
        assert file.read() == content[-5:]
        assert file.read(10) == b""
        assert file.tell() == len(content)
    assert store.bytes < 2 << 20
    short = Counted(content[:1000])
    short.size = 2000
    with RemoteFile("s3://b/x", short) as file, pytest.raises(DataError, match="ends after 1,000 bytes of 2,000"):
        file.read()


# Faults


def fails(*arguments: object, id: str, code: int = 1, **options: Any) -> Ran:
    """A command in its own process that ends with this error alone."""
    ran = spawn(*arguments, code=code, **options)
    assert f"[{id}]" in ran.err, ran.err
    assert ran.err.count("derivlang:") == 1
    assert not any(word in ran.err for word in ("Traceback", "Exception", "test-secret", "test-key", "botocore"))
    return ran


def test_what_is_not_there(bucket: Bucket, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for url, id in (
        (f"{bucket.url}/a.txt", "missing-file"),
        (f"{bucket.url}/a/", "missing-file"),
        ("s3://no-such-bucket/a.txt", "missing-bucket"),
        ("s3://no-such-bucket", "missing-bucket"),
        ("memory://nothing/a.txt", "missing-file"),
        ("s3:///a.txt", "missing-file"),
    ):
        ran = run("make", "--t", "inv", url, "-o", out, code=1)
        assert f"[{id}]" in ran.err, ran.err
    bucket.write("empty/x.bin", b"")
    assert "[no-files]" in run("make", "--t", "inv", f"{bucket.url}/empty", "-o", out, code=1).err
    bucket.write("begun/.derivlang/plan.json", b"{}")
    assert "[unfinished]" in run("make", "--t", "inv", f"{bucket.url}/begun", "-o", out, code=1).err
    assert not out.exists()


def test_no_credentials(bucket: Bucket, tmp_path: Path) -> None:
    url = bucket.write("a.txt", b"one\n")
    bare = {name: value for name, value in environment(HOME=str(tmp_path)).items() if "KEY" not in name}
    fails("make", "--t", "inv", url, "-o", tmp_path / "out", id="no-credentials", env=bare)


def test_no_network(bucket: Bucket, tmp_path: Path) -> None:
    url = bucket.write("a.txt", b"one\n")
    nowhere = "http://127.0.0.1:1"
    env = environment(AWS_ENDPOINT_URL=nowhere, AWS_ENDPOINT_URL_S3=nowhere, AWS_MAX_ATTEMPTS="1")
    fails("verify", url, id="unreachable-store", env=env)


@contextmanager
def checked_keys(store: ObjectStore) -> Iterator[None]:
    """The server knows no key within the block, and denies every request."""

    def requests_before(number: str) -> None:
        request = urllib.request.Request(
            f"{store.endpoint}/moto-api/reset-auth", number.encode(), {"Content-Type": "text/plain"}
        )
        urllib.request.urlopen(request).close()

    requests_before("0")
    try:
        yield
    finally:
        requests_before("inf")


def test_access_denied(object_store: ObjectStore, bucket: Bucket, tmp_path: Path) -> None:
    url = bucket.write("a.txt", b"one\n")
    with checked_keys(object_store):
        fails("make", "--t", "inv", url, "-o", tmp_path / "out", id="access-denied")
        fails("verify", bucket.url, id="access-denied")


SECRET_URLS = [
    "s3://key:secret@bucket/a.txt",
    "s3://AKIA123:sec/ret+x@bucket/a.txt",
    "s3://secret@bucket/a.txt",
    "https://user:secret@host/a.csv",
    "https://secret@host/a.csv",
    "https://host/a.csv?X-Amz-Signature=secret",
    "https://host/a.csv?v=1&sig=secret",
    "sftp://user:secret@host/a.csv",
]


@pytest.mark.parametrize("url", SECRET_URLS)
def test_a_url_with_credentials_is_refused_and_not_shown(url: str, tmp_path: Path) -> None:
    for arguments in (
        ("make", "--t", "inv", url, "-o", tmp_path / "out"),
        ("make", "--t", "inv", url),
        ("make", "--t", "inv", "demo", "-o", url),
        ("make", "--t", "inv", "demo", f"--data-dir={url}"),
        ("verify", url),
        ("undo", url),
        ("pretrain", "--source", url),
    ):
        ran = run(*arguments, code=2)
        assert "[url-credentials]" in ran.err
        assert "secret" not in ran.err + ran.out
    for call in (lambda: derivlang.make(url, "inv", tmp_path / "out"), lambda: derivlang.DerivedSet(url)):
        with pytest.raises(UsageError) as error:
            call()
        assert "secret" not in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/a@b.txt", "s3://bucket/a:b@c.txt", "s3://arn:aws:s3:us-east-1:12:accesspoint/x/a@b.txt",
        "http://host:8080/a@b.txt", "http://host:8080", "abfs://container@account.dfs.core.windows.net/a.txt",
        "sftp://user@host/a.txt", "hf://datasets/a/b@main/c.txt", "https://host/a.csv?version=2", "ner:fr", "hub:a/b",
        "a@b:c.txt", "C:\\x", "What is http://a:b@c ?",
    ],
)  # fmt: skip
def test_other_urls_and_texts_hold_no_credentials(text: str) -> None:
    check_no_secrets(text)


def test_which_texts_are_urls(tmp_path: Path) -> None:
    assert all(map(is_url, ["s3://b", "S3://b/c", "memory://x", "file:///a", "abc+d://e"]))
    assert not any(map(is_url, ["", "a/b", "ner:fr", "hub:a/b", "://a", "C:\\a", "a b://c", "./s3://b"]))
    assert located("a/b") == Path("a/b")
    assert located(tmp_path) is tmp_path
    assert not is_remote(tmp_path)
    assert is_remote(located("memory://a/b"))


def test_protocols_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for url, id, told in (
        ("nonsense://a/b.txt", "unknown-protocol", "s3, gs"),
        ("file://other/a.txt", "unknown-protocol", "file:///other/a.txt"),
        ("zip::s3://a/b.txt", "unknown-protocol", "s3, gs"),
    ):
        ran = run("make", "--t", "inv", url, "-o", tmp_path / "out", code=2)
        assert f"[{id}]" in ran.err
        assert told in ran.err
    for missing, url, fix in (
        ("upath", "s3://b/a.txt", "derivlang[s3]"),
        ("s3fs", "s3://b/a.txt", "derivlang[s3]"),
        ("gcsfs", "gs://b/a.txt", "derivlang[gcs]"),
        ("upath", "memory://a.txt", "derivlang[urls]"),
    ):
        found = {missing: None}
        monkeypatch.setattr("derivlang.core.dependencies.find_spec", lambda name, found=found: found.get(name, name))
        for command in (("make", "--t", "inv", url, "-o", tmp_path / "out"), ("verify", url)):
            ran = run(*command, code=2)
            assert f"needs {missing}" in ran.err or missing == "gcsfs"
            assert f"pip install '{fix}' " not in ran.err
            assert f"pip install '{fix}'" in ran.err
    monkeypatch.undo()
    if find_spec("adlfs") is None:
        assert "pip install adlfs" in run("verify", "az://container/set", code=2).err
    assert places.is_remote(located("memory://a.txt"))


def test_what_must_be_local_says_so(tmp_path: Path) -> None:
    ran = run("grammar", "score", "fr", "s3://bucket/a.conllu", code=2)
    assert "'s3://bucket/a.conllu' is not a local path" in ran.err
