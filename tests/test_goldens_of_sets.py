"""Golden hashes of whole sets: no change of the code may change a row of a shard or `lexicon.tsv` unnoticed.

Where a hash differs on purpose, raise the rule version (or `OUTPUT_VERSION`, store/manifest.py), say so first in
CHANGELOG.md, and only then write the new one. The hashes are of the values: Parquet's bytes depend on pyarrow.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from pyarrow.parquet import ParquetFile

from tests.helpers import make
from tests.real import SHARED, needs_data

BUILT_IN = {
    ("demo", "identity"): "cb8fd8a8bc4f0597",
    ("demo", "trans:overlap=20,perm"): "ea8523095c1ca6a9",
    ("demo", "syn:fr,trans:greek"): "d36d2ab920a69507",
    ("demo", "syn:ja:freeze=none,inv"): "c515be669b4f576e",
    ("demo", "lex:toy.tsv:rate=50,inv"): "b0f0cf8e4af84a1c",
    ("demo", "dialect:phon=0.2:suffix=0.5:nonce=0.8:words=words.txt"): "1e164cd14e8fa1ee",
    ("demo:nli", "trans,inv"): "e003a4e2b96fd663",
    ("demo:qa", "trans:copy,perm:window=3"): "c9e7ca95e1fca325",
}
NAMED = {
    ("wikitext2", "trans,inv"): "02b30f6e97ec4dc6",
    ("wikitext2", "dialect:phon=0.07:suffix=0.5:nonce=0.1"): "b3f948a10c5a3fe1",
    ("pos:Hindi-PUD", "dialect:phon=0.07"): "9a5392db608f2468",
    ("pos", "trans:armenian,perm"): "fca00d1bc34d8227",
    ("pos:Hebrew-HTB", "inv,trans:overlap=50"): "a0add867f32857ab",
    ("ner", "trans,inv"): "865c77d844ec1036",
    ("ner:fr", "perm"): "142a1eeab8144a1e",
    ("xnli", "trans:cyrillic:overlap=10:by=mass,perm"): "2e4d5d7dcfe0b4f0",
    ("pawsx", "trans,inv"): "bf4819bbf75d36a8",
    ("squad:de", "trans,inv"): "fd8a32e54d0f15cf",
}


def hash_of(folder: Path) -> str:
    """The columns of the shards with their types, and the lexicon, by name."""
    found = hashlib.sha256()
    for path in sorted((folder / "data").iterdir()):
        with ParquetFile(path) as file:
            table = file.read()
        found.update(f"{path.name}\n{table.schema.to_string()}\n".encode())
        for column in table.columns:
            found.update(json.dumps(column.to_pylist()).encode())
    for path in folder.glob("lexicon.tsv"):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


@pytest.mark.parametrize(("source", "spec"), BUILT_IN)
def test_built_in_sources(source: str, spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent / "dictionaries")
    assert hash_of(make(spec, source, tmp_path / "set")) == BUILT_IN[source, spec]


@needs_data
@pytest.mark.parametrize(("source", "spec"), NAMED)
def test_named_sources(source: str, spec: str, tmp_path: Path) -> None:
    out = make(spec, source, tmp_path / "set", data_dir=SHARED, limit=150)
    assert hash_of(out) == NAMED[source, spec]
