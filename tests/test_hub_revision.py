"""Sets of the hub are read at one revision, which the plan and the manifest name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest

import derivlang
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from tests.commands import make, run, snapshot

COMMITS = {letter: letter * 40 for letter in "abc"}


class Hub:
    """A set whose rows change from commit to commit. loads: the revisions that were asked for."""

    def __init__(self) -> None:
        self.head, self.loads = "a", list[str | None]()

    def load(self, name: str, config: str | None = None, revision: str | None = None) -> datasets.DatasetDict:
        self.loads.append(revision)
        if (name, config) not in (("owner/name", None), ("owner/name", "fr"), ("Salesforce/wikitext", "wikitext-2-v1")):
            raise datasets.exceptions.DatasetNotFoundError(f"Dataset '{name}' doesn't exist on the Hub")
        named = {None: self.head, "main": self.head, "v1": "a", "refs/pr/1": "b", **{c: n for n, c in COMMITS.items()}}
        if revision not in named:
            raise ValueError(f"revision {revision} is not there")
        letter = named[revision]
        rows = datasets.Dataset.from_dict({"text": [f"Row {i} of {letter} ." for i in range(30)]})
        rows.info.download_checksums = {f"hf://datasets/{name}@{COMMITS[letter]}/data/train.parquet": {"num_bytes": 9}}
        return datasets.DatasetDict({"train": rows})


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hub:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    hub = Hub()
    monkeypatch.setattr(datasets, "load_dataset", hub.load)
    return hub


def source_of(out: Path) -> dict[str, Any]:
    source: dict[str, Any] = json.loads((out / "derivlang.json").read_text("utf-8"))["source"]
    return source


@pytest.mark.parametrize(
    ("name", "commit"),
    [("owner/name", "c"), ("owner/name@v1", "a"), ("owner/name/fr@refs/pr/1", "b"), (f"owner/name@{'b' * 40}", "b")],
)
def test_the_manifest_and_the_card_name_the_commit(hub: Hub, tmp_path: Path, name: str, commit: str) -> None:
    hub.head = "c"
    out = tmp_path / "out"
    make("inv", f"hub:{name}", out, "--words", "space")  # type: ignore[arg-type]
    source, revision = source_of(out), COMMITS[commit]
    assert (source["name"], source["revision"]) == (f"hub:{name.partition('@')[0]}", revision)
    (shard,) = (out / "data").iterdir()
    assert pq.read_table(shard)["tokens"][0].as_py() == [commit, "of", "0", "Row", "."]
    card = (out / "README.md").read_text("utf-8")
    assert f"derivlang make --t inv --words=space {source['name']}@{revision}\n" in card
    assert f"revision {revision}; licence" in card
    # nothing but the first look asks for what a name stands for
    assert set(hub.loads[1:]) <= {revision, *([None] if "@" not in name else [])}
    again = tmp_path / "again"
    make("inv", f"{source['name']}@{revision}", again, "--words", "space")  # type: ignore[arg-type]
    assert snapshot(again) == snapshot(out)


@pytest.mark.parametrize("defer", [(), ("--defer",)])
def test_ranks_read_the_planned_revision(hub: Hub, tmp_path: Path, defer: tuple[str, ...]) -> None:
    out, source = tmp_path / "out", "hub:owner/name"
    make("trans:overlap=30,inv", source, tmp_path / "whole")  # type: ignore[arg-type]
    run("plan", "--t", "trans:overlap=30,inv", source, "-o", out, *defer)
    hub.head = "b"
    run("work", out, "--rank", 0, "--world", 1)
    run("finish", out)
    assert snapshot(out) == snapshot(tmp_path / "whole")
    assert source_of(out)["revision"] == COMMITS["a"]


def test_equal_rows_of_a_later_commit_are_the_same_set(hub: Hub, tmp_path: Path) -> None:
    out = tmp_path / "out"
    make("inv", "hub:owner/name@v1", out)  # type: ignore[arg-type]
    before = snapshot(out)
    assert "already complete" in run("make", "--t", "inv", "hub:owner/name", "-o", out).err
    hub.head = "b"
    assert "[other-plan]" in run("make", "--t", "inv", "hub:owner/name", "-o", out, code=1).err
    assert snapshot(out) == before


def test_a_named_source(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DERIVLANG_DATA", raising=False)
    make("inv", "wikitext2", tmp_path / "out")  # type: ignore[arg-type]
    assert source_of(tmp_path / "out")["revision"] == COMMITS["a"]
    assert "wikitext2\n" in (tmp_path / "out/README.md").read_text("utf-8")


def test_a_revision_that_is_not_there(hub: Hub) -> None:
    with pytest.raises(derivlang.DerivlangError, match="hub does not give owner/name@v9: revision v9 is not there"):
        find(SourceRequest("hub:owner/name@v9"))
