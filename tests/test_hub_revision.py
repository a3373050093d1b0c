"""Sets of the hub are read at one revision, which the plan and the manifest name."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import datasets.config
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import derivlang
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from tests.commands import make, run, snapshot
from tests.hub_server import Hub, Repo

CARD = b"""---
configs:
- {config_name: default, data_files: data.parquet}
- {config_name: fr, data_files: data.parquet}
---
"""


def files(letter: str) -> dict[str, bytes]:
    rows = io.BytesIO()
    pq.write_table(pa.table({"text": [f"Row {i} of {letter} ." for i in range(30)]}), rows)
    return {"README.md": CARD, "data.parquet": rows.getvalue()}


@pytest.fixture
def repo(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Repo:
    """The set owner/name, with one commit."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for name, value in {
        "HF_ENDPOINT": hub.url,
        "HF_HUB_OFFLINE": False,
        "HF_DATASETS_CACHE": tmp_path / "datasets",
        "HF_MODULES_CACHE": tmp_path / "modules",
    }.items():
        monkeypatch.setattr(datasets.config, name, value)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    repo = hub.repos["dataset", "owner/name"] = Repo(private=False)
    repo.add("main", "first", files("a"))
    return repo


def source_of(out: Path) -> dict[str, Any]:
    source: dict[str, Any] = json.loads((out / "derivlang.json").read_text("utf-8"))["source"]
    return source


@pytest.mark.parametrize("named", ["owner/name", "owner/name@draft", "owner/name/fr@draft", "a commit"])
def test_the_manifest_and_the_card_name_the_commit(repo: Repo, tmp_path: Path, named: str) -> None:
    first = repo.head().oid
    other = repo.add("draft", "another", files("b")).oid
    repo.add("main", "second", files("c"))
    letter, commit = {"owner/name": ("c", repo.head().oid), "a commit": ("a", first)}.get(named, ("b", other))
    out, source = tmp_path / "out", f"hub:{f'owner/name@{first}' if named == 'a commit' else named}"
    make("inv", source, out, "--words", "space")  # type: ignore[arg-type]
    found = source_of(out)
    assert (found["name"], found["revision"]) == (source.partition("@")[0], commit)
    (shard,) = (out / "data").iterdir()
    assert pq.read_table(shard)["tokens"][0].as_py() == [letter, "of", "0", "Row", "."]
    card = (out / "README.md").read_text("utf-8")
    assert f"derivlang make --t inv --words=space {found['name']}@{commit}\n" in card
    assert f"revision {commit}; licence" in card
    make("inv", f"{found['name']}@{commit}", tmp_path / "again", "--words", "space")  # type: ignore[arg-type]
    assert snapshot(tmp_path / "again") == snapshot(out)


@pytest.mark.parametrize("defer", [(), ("--defer",)])
def test_ranks_read_the_planned_revision(repo: Repo, tmp_path: Path, defer: tuple[str, ...]) -> None:
    out, source = tmp_path / "out", "hub:owner/name"
    make("trans:overlap=30,inv", source, tmp_path / "whole")  # type: ignore[arg-type]
    run("plan", "--t", "trans:overlap=30,inv", source, "-o", out, *defer)
    first = repo.head().oid
    repo.add("main", "second", files("b"))
    run("work", out, "--rank", 0, "--world", 1)
    run("finish", out)
    assert snapshot(out) == snapshot(tmp_path / "whole")
    assert source_of(out)["revision"] == first


def test_equal_rows_of_a_later_commit_are_the_same_set(repo: Repo, tmp_path: Path) -> None:
    out = tmp_path / "out"
    make("inv", "hub:owner/name", out)  # type: ignore[arg-type]
    before = snapshot(out)
    repo.add("main", "a note", {**files("a"), "NOTE.md": b"More."})
    assert "already complete" in run("make", "--t", "inv", "hub:owner/name", "-o", out).err
    repo.add("main", "other rows", files("b"))
    assert "[other-plan]" in run("make", "--t", "inv", "hub:owner/name", "-o", out, code=1).err
    assert snapshot(out) == before


def test_a_revision_that_is_not_there(repo: Repo) -> None:
    with pytest.raises(derivlang.DerivlangError, match="the hub does not give owner/name@v9: it has no revision 'v9'"):
        find(SourceRequest("hub:owner/name@v9"))


def test_without_a_network_another_commit_is_refused(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repo.head().oid
    find(SourceRequest("hub:owner/name"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("hub:owner/name", f"hub:owner/name@{first}"):
        assert find(SourceRequest(name)).revision == first
    for name in ("hub:owner/name@main", "hub:owner/name@draft"):
        with pytest.raises(derivlang.DerivlangError, match="offline mode"):
            find(SourceRequest(name))
    with pytest.raises(derivlang.DerivlangError, match=f"the cache has the commit {first}, and not {'b' * 40}"):
        find(SourceRequest(f"hub:owner/name@{'b' * 40}"))
