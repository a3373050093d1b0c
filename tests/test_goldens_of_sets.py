"""Golden hashes of whole sets: no change of the code may change a byte of a shard or of `lexicon.tsv` unnoticed.

Where a hash differs on purpose, raise the rule version (or `OUTPUT_VERSION`, store/manifest.py), say so first in
CHANGELOG.md, and only then write the new one. Parquet's bytes depend on pyarrow: the hashes are of one version of it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest

from tests.helpers import make
from tests.real import SHARED, needs_data

PYARROW = "26.0.1"
BUILT_IN = {
    ("demo", "identity"): "07f22d730b75f143",
    ("demo", "trans:overlap=20,perm"): "acc9c9cec1281351",
    ("demo", "syn:fr,trans:greek"): "c2c8d6d448846d78",
    ("demo", "syn:ja:freeze=none,inv"): "8143be3f586d57b5",
    ("demo", "lex:toy.tsv:rate=50,inv"): "82618a8d4215397d",
    ("demo", "dialect:phon=0.2:suffix=0.5:nonce=0.8:words=words.txt"): "d5bed22b76bd514b",
    ("demo:nli", "trans,inv"): "f3ba0c80f977ce8d",
    ("demo:qa", "trans:copy,perm:window=3"): "7df49ed7b6982f73",
}
NAMED = {
    ("wikitext2", "trans,inv"): "e3747913c84e382e",
    ("wikitext2", "dialect:phon=0.07:suffix=0.5:nonce=0.1"): "1a339fcf3ae657b4",
    ("pos:Hindi-PUD", "dialect:phon=0.07"): "02873f4104e451f7",
    ("pos", "trans:armenian,perm"): "522b406c7a646e66",
    ("pos:Hebrew-HTB", "inv,trans:overlap=50"): "483bf7cb600099fa",
    ("ner", "trans,inv"): "ca819eba1cf4fa9e",
    ("ner:fr", "perm"): "ad2f1f48c4032102",
    ("xnli", "trans:cyrillic:overlap=10:by=mass,perm"): "4648d84b4f256d56",
    ("pawsx", "trans,inv"): "73cd6eb751a3f7b3",
    ("squad:de", "trans,inv"): "da46ac478b2a8980",
}

pytestmark = pytest.mark.skipif(pa.__version__ != PYARROW, reason=f"the hashes are of pyarrow {PYARROW}")


def hash_of(folder: Path) -> str:
    """The shards and the lexicon, by name."""
    found = hashlib.sha256()
    for path in [*sorted((folder / "data").iterdir()), *folder.glob("lexicon.tsv")]:
        found.update(f"{path.name}\n".encode() + path.read_bytes())
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
