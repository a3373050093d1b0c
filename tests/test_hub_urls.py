"""Sources and sets at hf://, by `huggingface_hub` and a stand-in of the hub: equal files, and one message for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import make, run, shards, snapshot, wiki, written
from tests.hub_server import TOKEN, Hub, Repo
from tests.test_ranks import SPEC, TEXT
from tests.test_urls import LARGE, same

pytest.importorskip("upath")
REPO = "me/corpus"


def sent(hub: Hub, path: Path, inside: str = "") -> str:
    """Put a file, or the files of a folder, into a repository of the hub, and return the URL."""
    repo = hub.repos.setdefault(("dataset", REPO), Repo(private=True))
    files = {inside: path.read_bytes()} if path.is_file() else snapshot(path)
    repo.add("main", "files", {name if path.is_file() else f"{inside}{name}": data for name, data in files.items()})
    return f"hf://datasets/{REPO}/{inside}".rstrip("/")


@pytest.mark.parametrize("name", ["text", "jsonl", "parquet"])
def test_a_source_in_pieces(name: str, hub: Hub, tmp_path: Path) -> None:
    file, content = LARGE[name]
    path = written(tmp_path / file, content)
    assert len(shards(same(path, sent(hub, path, f"in/{file}"), tmp_path, "--shard-tokens", 100))) > 2
    assert hub.tokens == {f"Bearer {TOKEN}"}


def test_a_set(hub: Hub, tmp_path: Path) -> None:
    out = tmp_path / "set"
    make(SPEC, wiki(tmp_path, TEXT), out, "--shard-tokens", 100)
    run("undo", out, "-o", tmp_path / "back")
    for inside in ("", "sets/one/"):
        url = sent(hub, out, inside)
        assert run("verify", url).code == 0
        assert run("show", url, "-n", 2).out == run("show", out, "-n", 2).out
        back = tmp_path / f"back-{len(inside)}"
        run("undo", url, "-o", back)
        assert back.read_bytes() == (tmp_path / "back").read_bytes()
    same(out, url, tmp_path / "again")


def test_a_file_that_a_commit_replaces(hub: Hub, tmp_path: Path) -> None:
    """Its stamp is the id of its content, so a file of the same size is another one."""
    from derivlang.formats.places import located

    url = sent(hub, written(tmp_path / "a.txt", "one two\n"), "a.txt")
    before = located(url).stat()
    sent(hub, written(tmp_path / "a.txt", "two one\n"), "a.txt")
    after = located(url).stat()
    assert before.st_size == after.st_size
    assert before.st_ino != after.st_ino


def test_what_is_not_there(hub: Hub, tmp_path: Path) -> None:
    sent(hub, written(tmp_path / "a.txt", "one two\n"), "a.txt")
    for url in ("datasets/me/none/a.txt", f"datasets/{REPO}/b.txt", f"datasets/{REPO}/b/", f"datasets/{REPO}@x/a.txt"):
        ran = run("make", "--t", "inv", f"hf://{url}", "-o", tmp_path / "out", code=1)
        assert "[missing-file]" in ran.err, ran.err
    assert "[store]" in run("make", "--t", "inv", tmp_path / "a.txt", "-o", f"hf://datasets/{REPO}", code=1).err
    hub.faults["info", hub.requests["info"] + 1] = 403
    ran = run("make", "--t", "inv", f"hf://datasets/{REPO}@main/a.txt", "-o", tmp_path / "out", code=1)
    assert "[access-denied]" in ran.err, ran.err
    assert "signature" not in ran.err
