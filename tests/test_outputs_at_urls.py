"""Results at a URL: sets and parses only. Every other command refuses one, and reads what lies there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import derivlang
from derivlang.core.errors import UsageError
from derivlang.formats.places import located
from tests import runs
from tests.commands import run, snapshot, wiki
from tests.object_store import Bucket

upath = pytest.importorskip("upath")


def told(words: list[str], out: str) -> tuple[int, str, str]:
    """What a command prints, without its place and its time."""
    ran = run(*words, code=None)
    printed, said = (re.sub(r"  in [\d.]+ s,.*", "", text.replace(out, "OUT")) for text in (ran.out, ran.err))
    return ran.code, printed, said


def files_of(bucket: Bucket) -> dict[str, bytes]:
    return {key: bucket.read(key) for key in bucket.keys()}  # noqa: SIM118


def test_parses_at_a_url_are_as_in_a_folder(bucket: Bucket, tmp_path: Path) -> None:
    """After each of several commands, the messages and the bytes are those of the same local commands."""
    text, local, url = wiki(tmp_path / "in"), f"{tmp_path}/out/parses", f"{bucket.url}/parses"
    for more, code in ([], 0), ([], 0), (["--limit", "1"], 1):
        ran = told(["parse", str(text), "-o", url, *more], url)
        assert ran == told(["parse", str(text), "-o", local, *more], local), more
        assert ran[0] == code, ran
        assert files_of(bucket) == snapshot(tmp_path / "out")
        assert not re.search(rb"test-key|test-secret|127\.0\.0\.1", b"".join(files_of(bucket).values()))


@pytest.mark.parametrize("line", ["make --t inv", "parse"])
def test_refused_places(line: str, object_store: object, tmp_path: Path) -> None:
    text = wiki(tmp_path)
    for place, id in (
        ("s3://key:secret@bucket", "url-credentials"),
        ("hf://datasets/a", "store"),
        ("s3://no-such-bucket-here", "missing-bucket"),
    ):
        ran = run(*line.split(), text, "-o", f"{place}/out", code=None)
        assert ran.code in (1, 2)
        assert f"[{id}]" in ran.err
        assert "secret" not in ran.err


def test_runs_in_a_store(bucket: Bucket, tmp_path: Path) -> None:
    """`report` and `verify` read runs and tables of scores where they lie."""
    runs.run(tmp_path / "runs" / "r0")
    url = bucket.put(tmp_path / "runs", "runs")
    run("report", tmp_path / "runs", "-o", tmp_path / "local")
    run("report", url, "-o", tmp_path / "stored")
    local, stored = (snapshot(tmp_path / name) for name in ("local", "stored"))
    assert stored.keys() == local.keys()
    assert stored["scores.tsv"].decode().replace(url, str(tmp_path / "runs")) == local["scores.tsv"].decode()
    table = bucket.put(tmp_path / "local" / "scores.parquet", "scores.parquet")
    run("report", table, "-o", tmp_path / "again")
    assert snapshot(tmp_path / "again") == local
    one, other = (run("verify", f"{place}/r0", "--json").json for place in (url, tmp_path / "runs"))
    assert {**one, "out": ""} == {**other, "out": ""}
    bucket.write("runs/r0/model/config.json", b"{ }")
    assert "model/config.json: was changed" in run("verify", f"{url}/r0", code=1).out
    assert "[damaged]" in run("report", url, "-o", tmp_path / "new", code=1).err


LOCAL = [
    "pretrain --source demo --t inv -o", "tokenizer train demo -o", "undo set -o", "export set -o", "pair set -o",
    "dict set -o", "dict check words.tsv -o", "stats set -o", "stats set --plot", "show set --html",
    "align train a.txt b.txt -o", "report runs -o", "export run --format transformers -o",
]  # fmt: skip


@pytest.mark.parametrize("line", LOCAL)
def test_what_is_local(line: str) -> None:
    told = run(*line.split(), "s3://bucket/out", code=2).err
    assert "'s3://bucket/out' is not a local path, which this must be; copy it" in told


@pytest.mark.parametrize("out", ["s3://bucket/out", upath.UPath("memory://bucket/out"), located("memory://bucket/out")])
def test_what_is_local_in_python(out: object, tmp_path: Path) -> None:
    for write in (
        lambda: derivlang.tokenizer("demo", out),  # type: ignore[arg-type]
        lambda: derivlang.report(tmp_path, out),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError, match=r"out: .* is not a local path"):
            write()
