"""Sources and sets in a store: what is made of them is, byte for byte, what is made of the same local files."""

from __future__ import annotations

import gzip
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest
import zstandard

import derivlang
from derivlang.formats.base import find_format
from derivlang.formats.places import located
from tests.commands import (
    ENTITIES,
    TREES,
    make,
    pairs,
    questions,
    run,
    shards,
    snapshot,
    spawn,
    trees,
    wiki,
    wikitext103,
    written,
)
from tests.object_store import Bucket
from tests.real import SHARED, needs_data
from tests.test_contract_formats import SAMPLES
from tests.test_cut_files import parquet

SPEC = "trans,perm"
TEXT = "".join(f" Line {i} of the text has some words , {i % 7} . And more ! \n" for i in range(60))


def same(source: Path, url: str, folder: Path, *options: object) -> Path:
    """Make a set of a local source and of its copy in a store, and compare all files. Returns the first."""
    made = make(SPEC, source, folder / "local", *options)
    remote = make(SPEC, url, folder / "remote", *options)
    drop = {"out", "seconds", "tokens_per_second"}
    assert {k: v for k, v in made.items() if k not in drop} == {k: v for k, v in remote.items() if k not in drop}
    assert snapshot(folder / "remote") == snapshot(folder / "local")
    return folder / "local"


def both(bucket: Bucket, path: Path, folder: Path, *options: object) -> Path:
    """As `same`, with the copy made here."""
    return same(path, bucket.put(path, f"in/{path.name}"), folder, *options)


# Sources


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_plain_and_compressed(name: str, packed: str, bucket: Bucket, tmp_path: Path) -> None:
    if packed and name == "parquet":
        pytest.skip("a compressed Parquet file is refused")
    pack = {"": bytes, ".gz": lambda data: gzip.compress(data, mtime=0), ".zst": zstandard.compress}[packed]
    file = tmp_path / f"x.test{find_format(name).suffixes[0]}{packed}"
    both(bucket, written(file, pack(SAMPLES[name])), tmp_path)


LARGE: dict[str, tuple[str, bytes]] = {
    "text": ("x.test.tokens", TEXT.encode()),
    "jsonl": ("x.jsonl", "".join(f'{{"text":"line {i} has words .","n":{i}}}\n' for i in range(200)).encode()),
    "delimited": (
        "x.tsv",
        ("text\tlabel\n" + "".join(f"line {i} has words .\tl{i % 3}\n" for i in range(200))).encode(),
    ),
    "parquet": ("x.parquet", parquet(list(range(400)), 50)),
    "conllu": ("x.conllu", (TREES * 20).encode()),
    "tagged": ("ner.train.tsv", ENTITIES.replace(" ", "\t").encode() * 40),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_file_that_is_cut_into_pieces(name: str, bucket: Bucket, tmp_path: Path) -> None:
    file, content = LARGE[name]
    out = both(bucket, written(tmp_path / file, content), tmp_path, "--shard-tokens", 200)
    assert len(shards(out)) > 2


def test_a_folder_with_splits(bucket: Bucket, tmp_path: Path) -> None:
    """Order of names, hidden files and a set inside are as in a local folder; an empty object stands for the folder."""
    folder = tmp_path / "corpus"
    for name in ("train/b/x.txt", "train/b-a.txt", "train/b.txt", "dev.txt", "test.txt"):
        written(folder / name, f"{name} is here .\nAnd more .\n")
    written(folder / ".hidden" / "x.txt", "not this .\n")
    make("inv", written(tmp_path / "other.txt", "nor this .\n"), folder / "made")
    bucket.write("in/corpus/", b"")
    out = both(bucket, folder, tmp_path)
    manifest = json.loads((out / "derivlang.json").read_text("utf-8"))
    names = [file["name"] for file in manifest["source"]["files"]]
    assert names == ["dev.txt", "test.txt", "train/b/x.txt", "train/b-a.txt", "train/b.txt"]
    assert set(manifest["splits"]) == {"train", "validation", "test"}
    whole = snapshot(out)
    shutil.rmtree(out)
    shutil.rmtree(tmp_path / "remote")
    make(SPEC, f"{bucket.url}/in/corpus/", tmp_path / "remote")  # with a slash
    assert snapshot(tmp_path / "remote") == whole


def test_a_bucket_as_the_folder(bucket: Bucket, tmp_path: Path) -> None:
    folder = tmp_path / bucket.name
    bucket.write("a.txt", written(folder / "a.txt", "one line .\n").read_bytes())
    same(folder, bucket.url, tmp_path)
    assert json.loads((tmp_path / "local" / "derivlang.json").read_text("utf-8"))["source"]["name"] == bucket.name


def test_other_options(bucket: Bucket, tmp_path: Path) -> None:
    """A limit, another encoding, the tokenizer of raw text, and files that share a shard."""
    latin = written(tmp_path / "latin.txt", "Un café .\nDéjà vu .\n".encode("latin-1"))
    both(bucket, latin, tmp_path / "a", "--encoding", "latin-1", "--limit", 1)
    both(bucket, written(tmp_path / "raw.txt", "Didn't it? Yes. No!\n"), tmp_path / "b", "--lang", "en")
    both(bucket, pairs(tmp_path / "p"), tmp_path / "c")
    both(bucket, questions(tmp_path / "q"), tmp_path / "d", "--answers", "atomic")


NAMES = ("--column-names", "sentence1,sentence2,label")
REAL = {
    "ud/UD_French-FQB/fr_fqb-ud-test.conllu.gz": (),
    "ud/UD_Arabic-PUD/ar_pud-ud-test.conllu.gz": (),
    "ner/wikiann/de": (),
    "pawsx/dev.en.tsv": NAMES,
    "nli/multinli_pairs.tsv.gz": NAMES,
    "text/wikitext-2": (),
    "qa/xquad/xquad.de.json": (),
}


@needs_data
@pytest.mark.parametrize("path", REAL)
def test_real_files(path: str, bucket: Bucket, tmp_path: Path) -> None:
    source = SHARED / path
    if not source.exists():
        pytest.skip(f"there is no {source}")
    both(bucket, source, tmp_path, "--words", "space", "--limit", 300, *REAL[path])


@contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """A server of a folder's files, without range requests, within the block."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_files_of_a_web_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *told: None)
    plain = wiki(tmp_path / "www", TEXT)
    packed = written(tmp_path / "www" / "a.csv.gz", gzip.compress(SAMPLES["csv"]))
    with web_server(tmp_path / "www") as url:
        same(plain, f"{url}/{plain.name}", tmp_path / "plain")
        same(packed, f"{url}/{packed.name}", tmp_path / "packed")
        cut = ("--shard-tokens", 100)
        ran = run("make", "--t", "inv", f"{url}/{plain.name}", "-o", tmp_path / "out", *cut, code=1)
        assert "copy the file to this machine first" in ran.err
        assert "[missing-file]" in run("make", "--t", "inv", f"{url}/no.txt", "-o", tmp_path / "out", code=1).err
    ran = run("make", "--t", "inv", f"{url}/{plain.name}", "-o", tmp_path / "out", code=1)
    assert "[unreachable-store]" in ran.err


def test_two_processes(bucket: Bucket, tmp_path: Path) -> None:
    """Workers come from the fork server, and open the store themselves."""
    source = wiki(tmp_path, TEXT * 5)
    url = bucket.put(source, source.name)
    make(SPEC, source, tmp_path / "local", "--shard-tokens", 500)
    spawn("make", "--t", SPEC, url, "-o", tmp_path / "child", "--shard-tokens", 500, "--workers", 2)
    make(SPEC, url, tmp_path / "here", "--shard-tokens", 500, "--workers", 2)  # with a connection open in the parent
    assert snapshot(tmp_path / "child") == snapshot(tmp_path / "here") == snapshot(tmp_path / "local")


def test_the_other_commands_that_read_a_source(bucket: Bucket, tmp_path: Path) -> None:
    source = trees(tmp_path)
    url = bucket.put(source, source.name)
    for line in (
        "dict --t trans SOURCE --format tsv",
        "stats --t perm SOURCE",
        "show --t trans SOURCE",
        "match --t stride:2 SOURCE --limit 2",
    ):
        words = line.split()
        ran = [run(*(place if word == "SOURCE" else word for word in words), code=None) for place in (source, url)]
        assert (ran[1].code, ran[1].out) == (ran[0].code, ran[0].out), line
    parses = [tmp_path / "one", tmp_path / "two"]
    text = written(tmp_path / "a.txt", "The cat sleeps .\n")
    for place, out in zip((text, bucket.put(text, "a.txt")), parses, strict=True):
        run("parse", place, "--words", "space", "-o", out)
    assert snapshot(parses[0]) == snapshot(parses[1])


def test_in_python(bucket: Bucket, tmp_path: Path) -> None:
    url = bucket.put(wikitext103(tmp_path) / "wikitext-103", "corpus")
    made = derivlang.make(url, "trans,inv", tmp_path / "out")
    stored = derivlang.DerivedSet(bucket.put(made.path, "set"))
    assert stored.manifest == made.manifest
    assert stored.verify()["ok"]
    stored.undo(tmp_path / "back.txt", "test")
    made.undo(tmp_path / "local.txt", "test")
    assert (tmp_path / "back.txt").read_bytes() == (tmp_path / "local.txt").read_bytes()


def test_other_protocols(tmp_path: Path) -> None:
    """A file URL is a local path; `memory://` is a store of this process."""
    source = written(tmp_path / "a b.txt", TEXT)
    make(SPEC, source, tmp_path / "local", "--words", "space")
    assert located(source.as_uri()) == source
    make(SPEC, source.as_uri(), tmp_path / "uri", "--words", "space")
    fsspec.filesystem("memory").pipe("/in/a b.txt", source.read_bytes())
    make(SPEC, "memory://in/a b.txt", tmp_path / "memory", "--words", "space", "--shard-tokens", 100)
    make(SPEC, source, tmp_path / "pieces", "--words", "space", "--shard-tokens", 100)
    assert snapshot(tmp_path / "uri") == snapshot(tmp_path / "local")
    assert snapshot(tmp_path / "memory") == snapshot(tmp_path / "pieces")
