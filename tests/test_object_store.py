"""The S3 server of the tests: what it stores is read by this process and by its children."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.object_store import Bucket

READ = "import sys, s3fs; sys.stdout.buffer.write(s3fs.S3FileSystem().cat_file(sys.argv[1]))"


def test_a_process_and_its_children_read_what_is_stored(bucket: Bucket, tmp_path: Path) -> None:
    s3fs = pytest.importorskip("s3fs")
    (tmp_path / "in" / "b").mkdir(parents=True)
    (tmp_path / "in" / "a.txt").write_bytes(b"one\n")
    (tmp_path / "in" / "b" / "c.txt").write_bytes(b"two\n")
    url = bucket.put(tmp_path / "in", "in")
    assert bucket.keys() == ["in/a.txt", "in/b/c.txt"]
    assert bucket.snapshot("in") == {"a.txt": b"one\n", "b/c.txt": b"two\n"}
    assert s3fs.S3FileSystem().cat_file(f"{url}/a.txt") == b"one\n"
    child = subprocess.run([sys.executable, "-c", READ, f"{url}/b/c.txt"], capture_output=True, timeout=60, check=True)
    assert child.stdout == b"two\n"


def test_a_bucket_is_new_for_each_test(bucket: Bucket) -> None:
    assert bucket.keys() == []
