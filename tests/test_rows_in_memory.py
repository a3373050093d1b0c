"""`map_dataset` on data sets of `datasets`: its cache, and types of columns."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derivlang import map_dataset
from derivlang.core.errors import LayerError
from derivlang.formats import conllu
from derivlang.formats.rows import Rows, joined
from tests.commands import ROOT, make, rows, run, trees, written


def test_the_cache_knows_the_content_of_a_grammar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (rows,) = conllu.read(trees(tmp_path))
    table = rows.table.select(["tokens", "upos", "head", "deprel"])
    datasets.Dataset.from_list(table.to_pylist()).save_to_disk("set")
    files, recipes = [], []
    for name in ("fr", "hi"):
        shutil.copy(ROOT / "grammars" / f"{name}.grammar.tsv", "my.grammar.tsv")
        kept = map_dataset(datasets.load_from_disk("set"), "syn:my.grammar.tsv:mode=argmax")
        files.append(kept.cache_files)
        recipes.append(kept["tokens"][:])
        fresh = map_dataset(datasets.Dataset.from_list(table.to_pylist()), "syn:my.grammar.tsv:mode=argmax")
        assert fresh["tokens"][:] == recipes[-1]
    assert files[0] != files[1]
    assert recipes[0] != recipes[1]


def test_the_cache_knows_the_version_of_the_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets.Dataset.from_dict({"text": ["It rains ."]}).save_to_disk(tmp_path / "set")
    files = []
    for version in ("1", "1", "2"):
        monkeypatch.setattr("derivlang.formats.words.Splitter.__str__", lambda self, version=version: version)
        files.append(map_dataset(datasets.load_from_disk(tmp_path / "set"), "inv").cache_files)
    assert files[0] == files[1] != files[2]


def test_a_missing_tag_is_an_error_of_its_row() -> None:
    columns = {"tokens": [["a", "dog"], ["the", "cat"]], "ner_tags": [["O", "B-X"], ["B-X", None]]}
    with pytest.raises(LayerError, match="ner_tags") as caught:
        map_dataset(datasets.Dataset.from_dict(columns), "inv")
    assert caught.value.where == "row 1, word 1"


def test_large_lists_of_tags() -> None:
    kind = pa.large_list(pa.large_string())
    columns = {"tokens": [["a", "dog", "."]], "ner_tags": [["O", "B-X", "O"]]}
    table = pa.table({name: pa.array(values, kind) for name, values in columns.items()})
    (row,) = map_dataset(datasets.Dataset(table), "inv")
    assert row["tokens"] == ["dog", "a", "."]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.date32(), datetime.date(2020, 1, 2)),
        (pa.date64(), datetime.date(2020, 1, 2)),
        (pa.float16(), 1.5),
        (pa.large_list(pa.int64()), [1, 2]),
        (pa.list_(pa.float32(), 2), [1.0, 2.0]),
        (pa.list_(pa.struct([("a", pa.date32())])), [{"a": datetime.date(2020, 1, 2)}]),
    ],
    ids=str,
)
def test_datasets_reads_every_type(tmp_path: Path, kind: pa.DataType, value: object) -> None:
    table = pa.table({"text": ["a dog ."], "more": pa.array([value], kind)})
    pq.write_table(table, tmp_path / "a.parquet")
    make("inv", tmp_path / "a.parquet", tmp_path / "out")
    loaded = datasets.Dataset.from_parquet(str(tmp_path / "out/data/*.parquet"), cache_dir=str(tmp_path / "cache"))
    kept = loaded.with_format("arrow")[:]["more"]
    assert kept.cast(kind).to_pylist() == pa.array([value], kind).to_pylist()


def test_a_row_is_counted_in_its_file(tmp_path: Path) -> None:
    words = [["a", "b"]] * 4600
    words[4500] = ["a", None]  # type: ignore[list-item]
    pq.write_table(pa.table({"tokens": words}), tmp_path / "a.parquet")
    assert "row 4500" in run("make", "--t", "inv", tmp_path / "a.parquet", "-o", tmp_path / "out", code=1).err


def test_rows_know_their_place(tmp_path: Path) -> None:
    parts = [Rows.of_documents(tmp_path, pa.table({"c": ["x"] * 3}), np.zeros(3, np.int64), first) for first in (3, 6)]
    assert joined([parts[0].slice(2, 3), parts[1]]).where(1) == f"{tmp_path}: row 6"


def test_the_rows_of_xnli_are_of_the_language_of_the_source(tmp_path: Path) -> None:
    header = "language\tgold_label\tsentence1\tsentence2\n"
    lines = "sw\tneutral\tyeye anaenda .\tyeye anakuja .\nfr\tneutral\til dort .\til veille .\n"
    written(tmp_path / "xnli" / "xnli.dev.tsv", header + lines)
    make("inv", "xnli:sw", tmp_path / "out", "--data-dir", tmp_path, "--lang", "fr")
    (row,) = rows(tmp_path / "out", "validation")
    assert "anaenda" in row["premise"]
