"""An S3 server of the tests: moto's, in a thread of the test process, on a free port of this machine.

The fixture `object_store` (conftest.py) starts it once and sets the AWS_* variables, so that `s3fs` finds it, here and
in child processes. The fixture `bucket` is a new, empty bucket for each test.

    url = bucket.put(tmp_path / "corpus", "in")            # s3://derivlang-3/in, a file or a folder
    spawn("make", "--t", "inv", url, "-o", out)
    bucket.keys("in")                                      # ["in/a.txt", "in/b/c.txt"]
"""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

_numbers = count(1)


class Files(ABC):
    """The files of a bucket, past derivlang."""

    __slots__ = ()

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def write(self, key: str, content: bytes) -> str:
        """Store an object, and return its URL."""

    @abstractmethod
    def read(self, key: str) -> bytes: ...

    @abstractmethod
    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin so, sorted."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove an object."""

    def put(self, path: Path, key: str) -> str:
        """Upload a file as `key`, or the files of a folder below it, and return its URL."""
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in files:
            inside = file.relative_to(path).as_posix() if path.is_dir() else ""
            self.write(f"{key}/{inside}" if inside else key, file.read_bytes())
        return f"{self.url}/{key}"

    def snapshot(self, prefix: str) -> dict[str, bytes]:
        """All objects below a prefix, by their names in it: as `commands.snapshot` of a folder."""
        return {key.removeprefix(f"{prefix}/"): self.read(key) for key in self.keys(f"{prefix}/")}

    def remove(self, prefix: str = "") -> None:
        """Remove the objects whose keys begin so."""
        for key in self.keys(prefix):
            self.delete(key)


@dataclass(frozen=True, slots=True)
class Bucket(Files):
    """A bucket of the server. client: boto3's, for what a test does without derivlang."""

    name: str
    client: Any = field(repr=False)

    @property
    def url(self) -> str:
        return f"s3://{self.name}"

    def write(self, key: str, content: bytes) -> str:
        self.client.put_object(Bucket=self.name, Key=key, Body=content)
        return f"{self.url}/{key}"

    def read(self, key: str) -> bytes:
        content: bytes = self.client.get_object(Bucket=self.name, Key=key)["Body"].read()
        return content

    def keys(self, prefix: str = "") -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=self.name, Key=key)


@dataclass(frozen=True, slots=True)
class InMemory(Files):
    """A place in the memory of this process, which answers a hundred times as fast as a server.

    It is for tests of every request that a command makes: which files it writes, in which order. What the answers of
    real stores are is for tests with buckets.
    """

    name: str

    @property
    def url(self) -> str:
        return f"memory://{self.name}"

    def write(self, key: str, content: bytes) -> str:
        self._fs.pipe_file(f"/{self.name}/{key}", content)
        return f"{self.url}/{key}"

    def read(self, key: str) -> bytes:
        content: bytes = self._fs.cat_file(f"/{self.name}/{key}")
        return content

    def keys(self, prefix: str = "") -> list[str]:
        names = (path.removeprefix(f"/{self.name}/") for path in self._fs.find(f"/{self.name}"))
        return sorted(name for name in names if name.startswith(prefix))

    def delete(self, key: str) -> None:
        self._fs.rm_file(f"/{self.name}/{key}")

    @property
    def _fs(self) -> Any:
        from fsspec import filesystem

        return filesystem("memory")


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """The server. endpoint: its address, `http://127.0.0.1:PORT`."""

    endpoint: str
    client: Any = field(repr=False)

    def new_bucket(self) -> Bucket:
        name = f"derivlang-{next(_numbers)}"
        self.client.create_bucket(Bucket=name)
        return Bucket(name, self.client)


@contextmanager
def opened() -> Iterator[ObjectStore]:
    """Run the server within the block, with the environment that leads to it."""
    pytest.importorskip("s3fs")
    server_module = pytest.importorskip("moto.server")
    import boto3

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it would log each request
    server = server_module.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("AWS_")]:
                patch.delenv(name)  # a test never reaches a real account
            patch.setenv("AWS_ENDPOINT_URL", endpoint)
            patch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
            patch.setenv("AWS_ACCESS_KEY_ID", "test-key")
            patch.setenv("AWS_SECRET_ACCESS_KEY", "test-secret")
            patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
            patch.setenv("AWS_CONFIG_FILE", os.devnull)
            patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
            patch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # or a test without keys waits for a server
            forget()
            client = boto3.client("s3")
            try:
                yield ObjectStore(endpoint, client)
            finally:
                client.close()
        forget()
    finally:
        server.stop()


def forget() -> None:
    """End what keeps an earlier environment: the server that forks worker processes, and the stores of `s3fs`."""
    from s3fs import S3FileSystem

    S3FileSystem.clear_instance_cache()
    forget_workers()


def forget_workers() -> None:
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # starts again with the next worker
