"""The Croissant metadata of a set: valid for `mlcroissant`, which reads the rows by it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from derivlang.store.croissant import croissant
from derivlang.store.manifest import Derived
from tests.commands import make, pairs, questions, rows, run, trees, wiki, written

SOURCES = {"text": wiki, "trees": trees, "pairs": pairs, "questions": questions}
URL = "https://huggingface.co/datasets/me/set"


def made(kind: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    out = folder / "set"
    make("trans,inv", SOURCES[kind](folder), out)
    content = croissant(Derived(out), URL)
    assert content == croissant(Derived(out), URL)
    (out / "croissant.json").write_bytes(content)
    return out, json.loads(content)


@pytest.mark.parametrize("kind", SOURCES)
def test_it_has_every_shard_and_every_column(kind: str, tmp_path: Path) -> None:
    out, metadata = made(kind, tmp_path)
    manifest = json.loads((out / "derivlang.json").read_text("utf-8"))
    files = {one["contentUrl"]: one["sha256"] for one in metadata["distribution"] if one["@type"] == "cr:FileObject"}
    assert files == {
        shard["file"]: shard["sha256"] for split in manifest["splits"].values() for shard in split["shards"]
    }
    for one in metadata["recordSet"]:
        (shard, *_) = manifest["splits"][one["name"]]["shards"]
        names = [field["@id"].partition("/")[2] for field in one["field"]]
        assert names == pq.read_schema(out / shard["file"]).names
    assert (metadata["license"], metadata["url"]) == (manifest["source"]["licence"], URL)
    assert run("verify", out).out.endswith("right\n")  # it is no foreign file


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of rdflib, which mlcroissant uses
@pytest.mark.parametrize("kind", SOURCES)
def test_mlcroissant_reads_the_rows(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mlcroissant = pytest.importorskip("mlcroissant", reason="the package mlcroissant is not installed")
    out, metadata = made(kind, tmp_path)
    with caplog.at_level(logging.ERROR):
        dataset = mlcroissant.Dataset(jsonld=out / "croissant.json")
        assert not dataset.metadata.ctx.issues.errors
        (split,) = (one["name"] for one in metadata["recordSet"])
        found = list(dataset.records(split))
    stored = rows(out, split)
    assert len(found) == len(stored)
    text = next(name for name in stored[0] if name.endswith("tokens"))
    assert [[word.decode() for word in row[f"{split}/{text}"]] for row in found] == [row[text] for row in stored]
    assert [row[f"{split}/key"] for row in found] == [row["key"] for row in stored]


def test_splits_whose_names_begin_alike_keep_their_files_apart(tmp_path: Path) -> None:
    for name in ("train", "train-extra"):
        written(tmp_path / "in" / f"{name}.jsonl", f'{{"text": "A cat of {name} ."}}\n')
    make("inv", tmp_path / "in", tmp_path / "set")
    metadata = json.loads(croissant(Derived(tmp_path / "set"), URL))
    sets = [one for one in metadata["distribution"] if one["@type"] == "cr:FileSet"]
    included = [name for one in sets for name in one["includes"]]
    assert len(included) == len(set(included)) == len(metadata["distribution"]) - len(sets)
