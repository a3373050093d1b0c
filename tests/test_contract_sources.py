"""Every named source keeps the same promises: it is found, made, verified, undone, and loaded by `datasets`.

On the real files, where they are; the hub is played by small sets in memory.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest

from derivlang.core.errors import DataError, DerivlangError, StoreError, UsageError
from derivlang.core.messages import DerivlangWarning
from derivlang.formats import delimited, squad
from derivlang.formats.opening import PACKED
from derivlang.lexical.train import read_words
from derivlang.sources.corpus import Corpus, CorpusFile
from derivlang.sources.find import find
from derivlang.sources.hub import _hash, offline_if_unreachable
from derivlang.sources.named import named_sources
from derivlang.sources.read import tables
from derivlang.sources.request import SourceRequest
from tests.commands import run, written
from tests.helpers import (
    file_bytes,
    first_blocks,
    first_lines,
    make,
    manifest,
    right,
    rows,
    same_rows,
    undone,
)
from tests.real import SHARED, needs_data

SPECS = ("trans,inv", "perm:window=3", "trans")
DEMO = ("demo", "demo:nli", "demo:qa")
GENERATED = ("source:dyck=3:length=20", "source:zipf=50", "source:resample=demo:seed=2")
ANYWHERE = (*DEMO, *GENERATED)
REPAIRED = ("ner:zh",)  # its tags hold an I- without its B-
ARGUMENTS = {
    "pos": ("French-GSD", "Japanese-GSD", "Hebrew-HTB"),
    "ner": ("fr", "zh"),
    "xnli": ("fr", "ar"),
    "pawsx": ("de",),
    "squad": ("de",),
}


def all_sources() -> Iterator[str]:
    for name in named_sources():
        if name == "demo":
            yield from DEMO
        elif name == "source":
            yield from GENERATED
        else:
            yield name
            yield from (f"{name}:{argument}" for argument in ARGUMENTS.get(name, ()))


def found(source: str) -> Corpus:
    """The corpus here, or a skip."""
    if source in ANYWHERE:
        return find(SourceRequest(source))
    if not (SHARED / "ud").is_dir():
        pytest.skip(f"no real data in {SHARED}")
    return find(SourceRequest(source, data_dir=SHARED))


def cut_source(corpus: Corpus, part: CorpusFile, limit: int) -> Any:
    """The first `limit` documents of a file, in the form that `comparable` gives to what `undo` wrote."""
    if corpus.format == "generated":
        return [row for read in tables(corpus, part, limit=limit) for row in read.table.to_pylist()]
    data = file_bytes(part.path)
    if corpus.format == "text":
        return first_lines(data, limit)
    if corpus.format == "conllu":
        return first_blocks(data, limit)
    if corpus.format == "tagged":
        return tagged(first_blocks(data, limit), corpus)
    if corpus.format == "squad":
        return questions(data)[:limit]
    return pairs(corpus, part.path, limit)


def comparable(corpus: Corpus, data: bytes, folder: Path) -> Any:
    if corpus.format == "squad":
        return questions(data)
    if corpus.format == "generated":
        return [json.loads(line) for line in data.splitlines()]
    if corpus.format == "delimited":
        path = folder / "undone.tsv"
        path.write_bytes(data)
        return pairs(corpus, path, None, undone=True)
    return tagged(data, corpus) if corpus.format == "tagged" else data


def tagged(data: bytes, corpus: Corpus) -> bytes:
    """The empty line after the last sentence is at will; of files whose tags are repaired, the words."""
    if corpus.name in REPAIRED:
        data = b"\n".join(line.partition(b"\t")[0] for line in data.split(b"\n"))
    return data.rstrip(b"\n")


def questions(data: bytes) -> list[Any]:
    """(title, context, [(id, question, [(text, start)])]) of each paragraph."""
    return [
        (
            article.get("title", ""),
            paragraph["context"],
            [
                (qa["id"], qa["question"], [(a["text"], a["answer_start"]) for a in qa["answers"]])
                for qa in paragraph["qas"]
            ],
        )
        for article in json.loads(data)["data"]
        for paragraph in article["paragraphs"]
    ]


def pairs(corpus: Corpus, path: Path, limit: int | None, *, undone: bool = False) -> list[tuple[str, ...]]:
    """The three columns of a file of pairs; quoting is taken off, equal labels are one."""
    options: dict[str, Any] = {"columns": corpus.options["columns"], "quoting": corpus.options.get("quoting", False)}
    if undone:
        options |= {"header": False, "quoting": False}
    out = []
    for table in delimited.read(path, limit=limit, **options):
        names = [n for n in corpus.options["columns"] if n in table.table.column_names]
        out += list(zip(*(table.table[name].to_pylist() for name in names), strict=True))
    return [(*row[:-1], row[-1].replace("contradictory", "contradiction")) for row in out]


def count(folder: Path, split: str) -> dict[str, int]:
    """Documents, sentences and tokens, from the rows."""
    table = rows(folder, split)
    names = table.column_names
    sentences = tokens = 0
    for name in names:
        if name == "tokens" or name.endswith("_tokens"):
            stored = table[name.removesuffix("tokens") + "sentences"].to_pylist()
            lists = table[name].to_pylist()
            tokens += sum(map(len, lists))
            sentences += sum(len(s) // 2 if s else bool(words) for s, words in zip(stored, lists, strict=True))
    documents = len(set(table["document"].to_pylist()))
    return {"documents": documents, "sentences": sentences, "tokens": tokens}


def loads(folder: Path, cache: Path) -> None:
    """`datasets.load_dataset(folder)` gives every split, whole."""
    loaded = datasets.load_dataset(str(folder), cache_dir=str(cache))
    made = manifest(folder)["splits"]
    assert list(loaded) == list(made)
    for split, data in loaded.items():
        assert len(data) == sum(shard["rows"] for shard in made[split]["shards"])
        assert [name for name in data.column_names if data[0][name] is None] == [
            name for name in data.column_names if name.startswith("source_") and data[0][name] is None
        ]


def class_labels(features: datasets.Features, corpus: Corpus) -> None:
    for field in corpus.schema.fields:
        if field.classes is not None:
            feature = features[field.column]
            label = feature if field.kind == "value" else feature.feature
            assert isinstance(label, datasets.ClassLabel), f"{field.column} is {label}"
            assert tuple(label.names) == field.classes


@pytest.mark.parametrize(("source", "spec"), list(zip(all_sources(), cycle(SPECS), strict=False)))
def test_made_verified_undone_and_loaded(source: str, spec: str, tmp_path: Path) -> None:
    corpus = found(source)
    limit = 20 if source.startswith("squad") else 100
    warnings: list[str] = []
    data_dir = None if source in ANYWHERE else SHARED
    out = make(
        spec,
        source,
        tmp_path / "out",
        data_dir=data_dir,
        limit=limit,
        warnings=warnings,
        repair_tags=source in REPAIRED,
    )
    right(out)
    made = manifest(out)
    assert made["missing"] == corpus.missing
    assert set(made["splits"]) | set(made["missing"]) == set(corpus.expected)
    assert bool(warnings) == bool(corpus.missing)
    for split in corpus.missing:
        assert split in warnings[0]
    for part in corpus.parts:
        assert comparable(corpus, undone(out, part.split), tmp_path) == cut_source(corpus, part, limit)
        counts = count(out, part.split)
        assert counts == {key: made["splits"][part.split][key] for key in counts}
        assert counts["documents"] <= limit
    assert made["source"]["name"] == source
    assert str(SHARED) not in json.dumps(made)
    loads(out, tmp_path / "cache")


@pytest.mark.parametrize("source", ["pos", "ner", "xnli", "pawsx", *DEMO[:2]])
def test_class_labels_are_features(source: str, tmp_path: Path) -> None:
    """`load_dataset(folder)` gives ClassLabel features for upos, ner_tags and label; so does a shard by itself."""
    corpus = found(source)
    out = make("trans,inv", source, tmp_path / "out", data_dir=None if source in DEMO else SHARED, limit=10)
    loaded = datasets.load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    for split in loaded:
        class_labels(loaded[split].features, corpus)
    shard = next(iter((out / "data").iterdir()))
    class_labels(datasets.Dataset.from_parquet(str(shard), cache_dir=str(tmp_path / "one")).features, corpus)


def test_links_in_a_folder_are_followed_or_told(tmp_path: Path) -> None:
    source, other = tmp_path / "in", tmp_path / "other"
    written(source / "train.txt", "a b .\n")
    written(other / "test.txt", "c d .\n")
    (source / "more").symlink_to(other)
    (other / "back").symlink_to(source)
    assert find(SourceRequest(str(source))).splits == ["train", "test"]
    (source / "validation.txt").symlink_to(tmp_path / "missing.txt")
    refused = run("make", source, "-t", "inv", "-o", tmp_path / "out", code=1)
    assert "validation.txt: this link leads to no file" in refused.err


def test_folders_name_splits_and_hidden_folders_hold_no_data(tmp_path: Path) -> None:
    files = ["train/a.txt", "dev/part/b.txt", "test/c.txt", "test/train.txt", "d.txt", ".ipynb_checkpoints/d.txt"]
    for name in files:
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text("A dog .\n")
    made = run("make", "--t", "inv", tmp_path / "data", "-o", tmp_path / "out")
    assert "their names contain no split: d.txt\n" in made.err
    found = manifest(tmp_path / "out")["source"]["files"]
    assert {file["name"]: file["split"] for file in found} == {
        "train/a.txt": "train",
        "dev/part/b.txt": "validation",
        "test/c.txt": "test",
        "test/train.txt": "train",
        "d.txt": "train",
    }


@needs_data
def test_tags_that_are_ill_formed_are_named_by_their_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"(?s)dev.tsv.gz:55: the tag 'I-ORG'.*--repair-tags"):
        make("inv", "ner:zh", tmp_path / "out", data_dir=SHARED, limit=20)


@needs_data
def test_raw_novels(tmp_path: Path) -> None:
    path = SHARED / "text/eltec-eng/eltec-eng.txt.gz"
    out = make("trans,inv", path, tmp_path / "out", limit=100)
    right(out)
    assert undone(out) == first_lines(file_bytes(path), 100)
    counts = count(out, "train")
    assert counts == {key: manifest(out)["splits"]["train"][key] for key in counts}


@needs_data
def test_the_same_language_for_a_named_source_and_its_file(tmp_path: Path) -> None:
    named = make("perm", "ner:fr", tmp_path / "named", data_dir=SHARED, limit=50, splits=("dev",))
    file = make("perm", SHARED / "ner/wikiann/fr/dev.tsv", tmp_path / "file", limit=50)
    same_rows(rows(named), rows(file))


# sources that are not there


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("wikitext103", "text/wikitext-103/wiki.train.tokens"),
        ("pos:French-Nowhere", "ud/UD_French-Nowhere/*-ud-train.conllu"),
        ("ner:xx", "ner/wikiann/xx/train.tsv"),
        ("xnli:sw", "xnli/dev.sw.tsv"),
        ("pawsx:ko", "pawsx/dev.ko.tsv"),
        ("squad:ru", "qa/xquad/xquad.ru.json"),
    ],
)
def test_a_missing_source_names_its_files(
    source: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*arguments: Any, **options: Any) -> Any:
        raise ConnectionError("Couldn't reach the Hugging Face Hub\nand more lines")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(DataError) as caught:
        find(SourceRequest(source, data_dir=tmp_path))
    message = str(caught.value)
    assert source in message
    assert wanted in message
    assert str(tmp_path) in message
    assert "--data-dir" in message
    assert "[source-missing]" in message
    with pytest.raises(DataError, match=r"no --data-dir|--data-dir and"):
        find(SourceRequest(source))


@pytest.mark.parametrize(
    ("source", "file", "text"),
    [
        ("wikitext2", "text/wikitext-2/wiki.test.tokens", "a b .\n"),
        ("pos:Mine-Small", "ud/UD_Mine-Small/x-ud-test.conllu", "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n"),
        ("ner:xx", "ner/wikiann/xx/test.tsv", "a\tO\n\n"),
        ("xnli:sw", "xnli/test.sw.tsv", "a b\tc\tneutral\n"),
        ("squad:ru", "qa/xquad/xquad.ru.json", '{"data": []}'),
    ],
)
def test_each_folder_of_a_source_may_be_the_data_dir(
    source: str, file: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That with the files, and each one above it, up to the one with the layout of the page."""
    path = written(tmp_path / file, text)
    expected = [(part.split, part.name) for part in find(SourceRequest(source, data_dir=tmp_path)).parts]
    for folder in list(path.parents)[: file.count("/")]:
        assert [(part.split, part.name) for part in find(SourceRequest(source, data_dir=folder)).parts] == expected
    monkeypatch.chdir(path.parent)
    monkeypatch.setenv("DERIVLANG_DATA", ".")
    assert [(part.split, part.name) for part in find(SourceRequest(source)).parts] == expected


@pytest.mark.parametrize(
    ("source", "folder"),
    [("wikitext103", "text/wikitext-2"), ("wikitext103", ""), ("ner:fr", "ner/wikiann/xx"), ("pos:Big", "ud/UD_Small")],
)
def test_the_folder_of_another_set_is_not_taken_for_a_source(
    source: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of both sizes of WikiText have the same names; the error says which size is there, or a near name."""
    for name in ("text/wikitext-2/wiki.test.tokens", "ner/wikiann/xx/test.tsv", "ud/UD_Small/x-ud-test.conllu"):
        written(tmp_path / name, "a\tO\n\n")
    monkeypatch.setattr(datasets, "load_dataset", lambda *given, **options: 1 / 0)
    with pytest.raises(DataError) as caught:
        find(SourceRequest(source, data_dir=tmp_path / folder))
    assert caught.value.id == "source-missing"
    assert ("wikitext2 is there" in str(caught.value)) == source.startswith("wikitext")
    with pytest.raises(DataError, match="pos:Small is there"):
        find(SourceRequest("pos:Smal", data_dir=tmp_path))


def test_the_files_of_wikitext_may_lie_in_any_other_folder(tmp_path: Path) -> None:
    written(tmp_path / "mine" / "wiki.valid.tokens", "a b .\n")
    for size in ("2", "103"):
        assert find(SourceRequest(f"wikitext{size}", data_dir=tmp_path / "mine")).splits == ["validation"]


def test_a_data_dir_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none: the data folder does not exist"):
        find(SourceRequest("wikitext2", data_dir=tmp_path / "none"))


def test_an_unknown_source_gives_near_names() -> None:
    with pytest.raises(UsageError, match=r"did you mean wikitext2"):
        find(SourceRequest("wikitxt2"))
    with pytest.raises(UsageError, match=r"there are: nli, pairs, qa"):
        find(SourceRequest("demo:no"))


def test_a_language_where_a_source_takes_a_treebank_names_those_that_are_there(tmp_path: Path) -> None:
    for name in ("French-GSD", "German-GSD", "French-FQB"):
        written(tmp_path / "ud" / f"UD_{name}" / "x-ud-test.conllu", "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n")
    there = r"pos takes a treebank, and '{}' is a language; pos:French-FQB, pos:French-GSD is there"
    for language in ("fr", "French"):
        with pytest.raises(DataError, match=there.format(language)):
            find(SourceRequest(f"pos:{language}", data_dir=tmp_path))
    with pytest.raises(DataError, match=r"'sv' is a language[^;]*name the treebank, such as pos:French-GSD"):
        find(SourceRequest("pos:sv", data_dir=tmp_path))


def test_a_treebank_has_the_name_of_its_folder_or_of_its_language(tmp_path: Path) -> None:
    folder = tmp_path / "ud" / "UD_Mine-Small"
    folder.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        (folder / f"mine-ud-{split}.conllu").write_text("1\tYes\tyes\tINTJ\t_\t_\t0\troot\t_\t_\n\n", "utf-8")
    corpora = [find(SourceRequest(f"pos:{name}", data_dir=tmp_path)) for name in ("Mine-Small", "UD_Mine-Small")]
    assert corpora[0] == corpora[1]


@pytest.mark.parametrize("splits", [("train", "train"), ("train", "dev")])
@pytest.mark.parametrize("first", ["ud", "v2.10"])
def test_two_releases_of_a_treebank_are_not_mixed(tmp_path: Path, first: str, splits: tuple[str, str]) -> None:
    for release, split in zip((first, "v2.9"), splits, strict=True):
        text = "1\tYes\tyes\tINTJ\t_\t_\t0\troot\t_\t_\n\n"
        written(tmp_path / release / "UD_Mine-Small" / f"mine-ud-{split}.conllu", text)
    if (first, splits) == ("ud", ("train", "train")):  # the folder that sources look into first has all
        assert find(SourceRequest("pos:Mine-Small", data_dir=tmp_path)).splits == ["train"]
        return
    with pytest.raises(DataError, match=f"{first}/UD_Mine-Small.*v2.9/UD_Mine-Small.*several-folders"):
        find(SourceRequest("pos:Mine-Small", data_dir=tmp_path))
    assert find(SourceRequest("pos:Mine-Small", data_dir=tmp_path / "v2.9")).splits
    shutil.rmtree(tmp_path / first)
    (tmp_path / "latest").symlink_to(tmp_path / "v2.9")
    assert find(SourceRequest("pos:Mine-Small", data_dir=tmp_path)).splits


def test_the_environment_names_a_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "ner/wikiann/en/dev.tsv", "Ann\tB-PER\nsang\tO\n\n")
    monkeypatch.setenv("DERIVLANG_DATA", str(tmp_path))
    corpus = find(SourceRequest("ner"))
    assert corpus.splits == ["validation"]
    assert corpus.missing == ["train", "test"]


@pytest.mark.parametrize("packed", PACKED)
def test_packed_files_are_found(packed: str, tmp_path: Path) -> None:
    written(tmp_path / f"panx/fr/test.tsv{packed}", "")
    assert [part.name for part in find(SourceRequest("ner:fr", data_dir=tmp_path)).parts] == [f"test.tsv{packed}"]


# the original files of XNLI 1.0 and of the machine-translated MultiNLI

XNLI_COLUMNS = (
    "language gold_label sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse sentence1 "
    "sentence2 promptID pairID genre label1 label2 label3 label4 label5 sentence1_tokenized sentence2_tokenized match"
).split()


def xnli_row(language: str, label: str, premise: str, hypothesis: str, number: int) -> str:
    values = dict.fromkeys(XNLI_COLUMNS, "") | {
        "language": language,
        "gold_label": label,
        "sentence1": premise,
        "sentence2": hypothesis,
        "promptID": str(number),
        "pairID": str(number),
        "genre": "face-to-face",
        "sentence1_tokenized": f"{premise} tok",
        "sentence2_tokenized": f"{hypothesis} tok",
        "match": "True",
        **{f"label{n}": label for n in range(1, 6)},
    }
    return "\t".join(values.values())


def original_xnli(folder: Path) -> None:
    header = "\t".join(XNLI_COLUMNS)
    dev = [
        xnli_row("ar", "neutral", "ذهب الولد.", "نام الولد؟", 1),
        xnli_row("ar", "contradiction", "ذهب الولد.", "بقي.", 2),
        xnli_row("en", "neutral", "The boy left.", "The boy slept?", 1),
        xnli_row("en", "contradictory", 'He said "no".', "He stayed.", 2),
        xnli_row("fr", "entailment", "Le garçon est parti.", "Il est parti !", 1),
        xnli_row("en", "entailment", "They ran off.", "They ran.", 3),
    ]
    written(folder / "xnli.dev.tsv", "\n".join([header, *dev]) + "\n")
    written(folder / "xnli.test.tsv", "\n".join([header, *dev[:4]]) + "\n")
    train = ["premise\thypo\tlabel", "You know, it rained .\tIt rained .\tentailment", "A .\tNot A .\tcontradictory"]
    written(folder / "multinli.train.en.tsv", "\n".join(train) + "\n")


@pytest.mark.parametrize("place", [".", "xnli"])
def test_the_original_files_of_xnli(place: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    original_xnli(data / place)
    out = make("trans,inv", "xnli", tmp_path / "out", data_dir=data)
    right(out)
    assert manifest(out)["missing"] == []
    dev = rows(out, "validation")
    assert dev["label"].to_pylist() == [1, 2, 0]
    assert dev["premise_source"].to_pylist() == [
        ["The", "boy", "left", "."],
        ["He", "said", '"', "no", '"', "."],
        ["They", "ran", "off", "."],
    ]
    assert dev["document"].to_pylist() == [0, 1, 2]
    assert rows(out, "train")["label"].to_pylist() == [0, 2]
    assert rows(out, "train")["hypothesis_source"].to_pylist()[0] == ["It", "rained", "."]
    assert undone(out, "train").decode() == (
        "You know, it rained .\tIt rained .\tentailment\nA .\tNot A .\tcontradiction\n"
    )
    assert undone(out, "validation").decode().splitlines()[1] == 'He said "no".\tHe stayed.\tcontradiction'


@pytest.mark.parametrize(("language", "n_rows"), [("fr", 1), ("ar", 2)])
def test_another_language_of_the_original_xnli(language: str, n_rows: int, tmp_path: Path) -> None:
    original_xnli(tmp_path / "data")
    out = make("inv", f"xnli:{language}", tmp_path / "out", data_dir=tmp_path / "data", splits=("dev",))
    right(out)
    assert rows(out).num_rows == n_rows
    assert manifest(out)["splits"]["validation"]["documents"] == n_rows


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_limit_counts_the_rows_of_the_language(limit: int, tmp_path: Path) -> None:
    original_xnli(tmp_path / "data")
    out = make("inv", "xnli", tmp_path / "out", data_dir=tmp_path / "data", splits=("dev",), limit=limit)
    assert rows(out)["label"].to_pylist() == [1, 2, 0][:limit]


def test_a_language_that_the_original_file_lacks(tmp_path: Path) -> None:
    original_xnli(tmp_path / "data")
    with pytest.raises(DataError):
        make("inv", "xnli:de", tmp_path / "out", data_dir=tmp_path / "data", splits=("test",))


def test_an_error_in_a_mixed_file_names_its_line(tmp_path: Path) -> None:
    original_xnli(tmp_path / "data")
    path = tmp_path / "data/xnli.dev.tsv"
    path.write_text(path.read_text("utf-8").replace("They ran off.", "They ran off.").replace(
        xnli_row("en", "entailment", "They ran off.", "They ran.", 3),
        xnli_row("en", "maybe", "They ran off.", "They ran.", 3),
    ), "utf-8")  # fmt: skip
    with pytest.raises(DerivlangError, match=r"xnli.dev.tsv:7: label is 'maybe'"):
        make("inv", "xnli", tmp_path / "out", data_dir=tmp_path / "data", splits=("dev",))


# the hub

Splits = dict[str, datasets.Dataset]
LINES = ["", " = A Title = \n", "", " It was <unk> . He said it . \n", "", "", " No mark here \n"]


def wikitext_like() -> Splits:
    return {
        "test": datasets.Dataset.from_dict({"text": LINES}),
        "train": datasets.Dataset.from_dict({"text": [*LINES, "", " Another one . \n", ""]}),
        "validation": datasets.Dataset.from_dict({"text": [" One line . \n"]}),
    }


def wikiann_like() -> Splits:
    tags = datasets.ClassLabel(names=["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"])
    features = datasets.Features(
        {
            "tokens": datasets.List(datasets.Value("string")),
            "ner_tags": datasets.List(tags),
            "langs": datasets.List(datasets.Value("string")),
            "spans": datasets.List(datasets.Value("string")),
        }
    )
    data = {
        "tokens": [["Ann", "Lee", "met", "Bo", "."], ["Paris", "!"]],
        "ner_tags": [[1, 2, 0, 1, 0], [5, 0]],
        "langs": [["fr"] * 5, ["fr"] * 2],
        "spans": [["PER: Ann Lee", "PER: Bo"], ["LOC: Paris"]],
    }
    return {split: datasets.Dataset.from_dict(data, features=features) for split in ("validation", "test", "train")}


def xnli_like() -> Splits:
    label = datasets.ClassLabel(names=["entailment", "neutral", "contradiction"])
    text = datasets.Value("string")
    features = datasets.Features({"premise": text, "hypothesis": text, "label": label})
    data = {"premise": ["He left.", "She came."], "hypothesis": ["He left!", "No."], "label": [0, 2]}
    return {split: datasets.Dataset.from_dict(data, features=features) for split in ("train", "test", "validation")}


def squad_like() -> Splits:
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "context": datasets.Value("string"),
            "question": datasets.Value("string"),
            "answers": {
                "text": datasets.List(datasets.Value("string")),
                "answer_start": datasets.List(datasets.Value("int32")),
            },
        }
    )
    data = {
        "id": ["a", "b"],
        "context": ["Ann lives in Paris. Bo is 5."] * 2,
        "question": ["Where does Ann live?", "How old is Bo?"],
        "answers": [
            {"text": ["Paris"], "answer_start": [13]},
            {"text": ["5"], "answer_start": [26]},
        ],
    }
    return {"validation": datasets.Dataset.from_dict(data, features=features)}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[Any]]:
    """`hub(sets)`: the hub has these sets, by (name, config); gives the list of calls."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))

    def install(sets: dict[tuple[str, str | None], Splits]) -> list[Any]:
        calls: list[Any] = []

        def load(name: str, config: str | None = None, **options: Any) -> datasets.DatasetDict:
            calls.append((name, config))
            if (name, config) not in sets:
                raise datasets.exceptions.DatasetNotFoundError(f"Dataset '{name}' doesn't exist on the Hub")
            return datasets.DatasetDict(sets[name, config])

        monkeypatch.setattr(datasets, "load_dataset", load)
        return calls

    return install


def test_wikitext_of_the_hub(hub: Callable[..., list[Any]], tmp_path: Path) -> None:
    hub({("Salesforce/wikitext", "wikitext-2-v1"): wikitext_like()})
    out = make("trans,inv", "wikitext2", tmp_path / "out")
    right(out)
    expected = "".join(line if line.endswith("\n") else f"{line}\n" for line in LINES)
    assert undone(out, "test").decode() == expected
    assert (tmp_path / "hf/derivlang").is_dir()
    file = tmp_path / "wiki.test.tokens"
    file.write_text(expected, "utf-8")
    same_rows(rows(out, "test"), rows(make("trans,inv", file, tmp_path / "file")))
    again = make("trans,inv", "wikitext2", tmp_path / "again")
    assert manifest(again)["plan"] == manifest(out)["plan"]
    assert str(tmp_path) not in json.dumps(manifest(out))


def test_wikiann_of_the_hub(hub: Callable[..., list[Any]], tmp_path: Path) -> None:
    hub({("unimelb-nlp/wikiann", "fr"): wikiann_like()})
    out = make("inv", "ner:fr", tmp_path / "out")
    right(out)
    file = written(tmp_path / "dev.tsv", "Ann\tB-PER\nLee\tI-PER\nmet\tO\nBo\tB-PER\n.\tO\n\nParis\tB-LOC\n!\tO\n\n")
    table, local = rows(out, "train"), rows(make("inv", file, tmp_path / "file"))
    for column in ("tokens", "order", "source", "key"):
        assert table[column].to_pylist() == local[column].to_pylist()
    assert table["ner_tags"].to_pylist() == [[1, 0, 1, 2, 0], [5, 0]]
    loaded = datasets.Dataset.from_parquet(str(out / "data/train-00000-of-00001.parquet"), cache_dir=str(tmp_path))
    assert loaded.features["ner_tags"].feature.names[1] == "B-PER"


def test_wikiann_of_the_hub_is_undone(hub: Callable[..., list[Any]], tmp_path: Path) -> None:
    hub({("unimelb-nlp/wikiann", "fr"): wikiann_like()})
    out = make("inv", "ner:fr", tmp_path / "out")
    back = [json.loads(line) for line in undone(out, "test").decode().splitlines()]
    assert [row["tokens"] for row in back] == [["Ann", "Lee", "met", "Bo", "."], ["Paris", "!"]]
    assert [row["spans"] for row in back] == [["PER: Ann Lee", "PER: Bo"], ["LOC: Paris"]]


def test_xnli_and_squad_of_the_hub(hub: Callable[..., list[Any]], tmp_path: Path) -> None:
    hub({("facebook/xnli", "sw"): xnli_like(), ("google/xquad", "xquad.ru"): squad_like()})
    nli = make("trans,inv", "xnli:sw", tmp_path / "nli", words="unicode")
    right(nli)
    assert rows(nli, "train")["label"].to_pylist() == [0, 2]
    qa = make("inv", "squad:ru", tmp_path / "qa", words="unicode")
    right(qa)
    table = rows(qa, "validation")
    answers, contexts = table["answers"].to_pylist(), table["context"].to_pylist()
    assert [a["text"] for a in answers] == [["Paris"], ["5"]]
    for answer, context in zip(answers, contexts, strict=True):
        begin = answer["answer_start"][0]
        assert context[begin : begin + len(answer["text"][0])] == answer["text"][0]


@pytest.mark.parametrize(
    ("source", "key"),
    [
        ("hub:owner/name/config", ("owner/name", "config")),
        ("hub:owner/name", ("owner/name", None)),
        ("hub:name/config", ("name", "config")),
        ("hub:name", ("name", None)),
        ("hub:owner/name/a/b", ("owner/name", "a/b")),
    ],
)
def test_any_set_of_the_hub(
    source: str, key: tuple[str, str | None], hub: Callable[..., list[Any]], tmp_path: Path
) -> None:
    hub({key: {split: rows_.remove_columns("spans") for split, rows_ in wikiann_like().items()}})
    out = make("trans,inv", source, tmp_path / "out", limit=1)
    right(out)
    assert list(manifest(out)["splits"]) == ["train", "validation", "test"]
    assert rows(out, "test").num_rows == 1
    assert rows(out, "test")["ner_tags"].to_pylist() == [[1, 0, 1, 2, 0]]


def test_text_columns_of_a_set_of_the_hub(hub: Callable[..., list[Any]], tmp_path: Path) -> None:
    texts = datasets.Dataset.from_dict({"review": ["Good film. Very!", "Bad"], "stars": [5, 1]})
    hub({("owner/reviews", None): {"train": texts}})
    with pytest.raises(UsageError, match=r"review, stars"):
        make("inv", "hub:owner/reviews", tmp_path / "no")
    out = make("inv", "hub:owner/reviews", tmp_path / "out", text_columns=("review",))
    right(out)
    assert rows(out)["tokens"].to_pylist() == [["film", "Good", ".", "Very", "!"], ["Bad"]]
    assert rows(out)["stars"].to_pylist() == [5, 1]


def test_local_files_come_before_the_hub(hub: Callable[..., list[Any]], tmp_path: Path) -> None:
    calls = hub({})
    written(tmp_path / "ner/wikiann/fr/test.tsv", "Ann\tB-PER\n\n")
    find(SourceRequest("ner:fr", data_dir=tmp_path))
    assert calls == []


@pytest.mark.parametrize("source", ["hub:owner/name", "wikitext2"])
def test_a_set_that_changed_on_the_hub_is_another_source(
    source: str, hub: Callable[..., list[Any]], tmp_path: Path
) -> None:
    key = ("owner/name", None) if source.startswith("hub:") else ("Salesforce/wikitext", "wikitext-2-v1")
    splits = wikitext_like()
    hub({key: splits})
    options = {} if source == "wikitext2" else {"text_columns": ("text",)}
    out = make("inv", source, tmp_path / "out", **options)
    before = manifest(out)
    assert manifest(make("inv", source, tmp_path / "out", **options)) == before
    changed = {name: rows_.map(lambda row: {"text": row["text"] + " More ."}) for name, rows_ in splits.items()}
    hub({key: changed})
    with pytest.raises(StoreError, match="holds another set"):
        make("inv", source, tmp_path / "out", **options)
    assert rows(make("inv", source, tmp_path / "new", **options), "test") != rows(out, "test")


@pytest.mark.parametrize("command", [["make", "--t", "inv"], ["tokenizer", "train", "--vocab-size", 24]])
@pytest.mark.parametrize("how", ["changes", "fails"])
def test_a_set_of_the_hub_that_changes_or_fails_at_any_load(
    how: str, command: list[object], hub: Callable[..., list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reader loads it anew. What is written has the hash of the rows that were read, or nothing is."""
    one, other = (
        {"train": datasets.Dataset.from_dict({"text": [text] * 20})} for text in ("One ten net .", "Two ten net .")
    )
    calls = hub({("owner/name", None): one})
    load, n = datasets.load_dataset, 0

    def disturbed(*arguments: Any, **options: Any) -> Any:
        found = load(*arguments, **options)
        if len(calls) <= n:
            return found
        if how == "fails":
            raise datasets.exceptions.DatasetGenerationError("it failed")
        return datasets.DatasetDict(other)

    monkeypatch.setattr(datasets, "load_dataset", disturbed)
    hashes = {_hash(one["train"]): "One", _hash(other["train"]): "Two"}
    while True:
        calls.clear()
        out = tmp_path / f"out{n}"
        ran = run(*command, "hub:owner/name", "--text-column", "text", "-o", out, "--json", code=None)
        if ran.code:
            assert not out.exists()
            assert "hub" in ran.err
            assert ("[hub]" if how == "fails" else "[source-changed]") in ran.err
        else:
            made = manifest(out) if command[0] == "make" else ran.json
            words = rows(out, "train")["tokens"][0].as_py() if command[0] == "make" else read_words(out)[0].to_pylist()
            assert hashes[made["source"]["files"][0]["sha256"]] in words
        if len(calls) <= n:
            break
        n += 1
    assert ran.code == 0
    assert n >= 3


def test_a_hub_at_another_port(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], timeout: float) -> Any:
        tried.append(address)
        raise OSError

    monkeypatch.setattr("derivlang.sources.hub.socket.create_connection", connect)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for endpoint in ("http://mirror:8080", "http://mirror", "https://mirror", "https://mirror:x"):
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        offline_if_unreachable()
        assert os.environ.pop("HF_HUB_OFFLINE") == "1"
    assert tried == [("mirror", 8080), ("mirror", 80), ("mirror", 443)]


def test_a_named_source_is_read_from_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, splits in (("one", ("train",)), ("two", ("train", "test"))):
        for split in splits:
            written(tmp_path / folder / f"wikitext-2/wiki.{split}.tokens", f" {folder} {split} \n")
    monkeypatch.setenv("DERIVLANG_DATA", str(tmp_path / "two"))
    corpus = find(SourceRequest("wikitext2", data_dir=tmp_path / "one"))
    assert [part.path.parts[-3] for part in corpus.parts] == ["one"]
    assert corpus.missing == ["validation", "test"]
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match=r"was not found in .*none"):
        find(SourceRequest("wikitext2", data_dir=tmp_path / "none"))
    assert find(SourceRequest("wikitext2")).splits == ["train", "test"]


@pytest.mark.parametrize("source", ["wikitext2:test", "wikitext103:x"])
def test_an_argument_of_a_source_that_is_one_set(source: str) -> None:
    with pytest.raises(UsageError, match="is one set, so it takes no"):
        find(SourceRequest(source))


def test_the_name_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "mine" / "a.train.txt", "It rains .\n")
    (tmp_path / "mine" / "below").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert find(SourceRequest(".")).name == "mine"
    monkeypatch.chdir(tmp_path / "mine" / "below")
    assert find(SourceRequest("..")).name == "mine"
    with pytest.raises(UsageError, match="name of the source is empty"):
        find(SourceRequest(""))


def test_a_set_made_of_a_set_says_how_the_source_was_read(tmp_path: Path) -> None:
    written(tmp_path / "a.test.txt", "Caf\xe9 ouvre. Il dort.\n".encode("latin-1"))
    first = tmp_path / "first"
    run("make", "--t", "inv", tmp_path / "a.test.txt", "-o", first, "--encoding", "latin-1", "--lang", "fr")
    second = manifest(make("trans", first, tmp_path / "second"))
    assert [second[name] for name in ("encoding", "words")] == [manifest(first)[name] for name in ("encoding", "words")]
    with pytest.warns(DerivlangWarning, match="the source is in latin-1"):
        undone(tmp_path / "second", "test")


def test_a_name_that_the_hub_lacks(hub: Callable[..., list[Any]]) -> None:
    hub({})
    with pytest.raises(DataError, match=r"the hub does not give owner/none.*\[hub\]"):
        find(SourceRequest("hub:owner/none"))


def test_a_hub_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unreachable(*arguments: Any, **options: Any) -> Any:
        raise ConnectionError("Couldn't reach 'owner/name' on the Hub\nmore lines")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(DataError) as caught:
        make("inv", "hub:owner/name", tmp_path / "out")
    assert "Couldn't reach 'owner/name'" in str(caught.value)
    assert "more lines" not in str(caught.value)
    assert "network" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_squad_rows_of_one_paragraph_share_their_context(tmp_path: Path) -> None:
    """The context is derived once, and stands in every row of its questions."""
    paragraph = {
        "context": "Ann lives in Paris. Bo is 5.",
        "qas": [
            {"id": "a", "question": "Where?", "answers": [{"text": "Paris", "answer_start": 13}]},
            {"id": "b", "question": "How old?", "answers": [{"text": "5", "answer_start": 26}]},
        ],
    }
    data = {"version": "1.1", "data": [{"title": "T", "paragraphs": [paragraph]}]}
    out = make("perm", written(tmp_path / "test.json", json.dumps(data)), tmp_path / "out")
    right(out)
    table = rows(out)
    assert len(set(map(tuple, table["context_tokens"].to_pylist()))) == 1
    assert questions(undone(out)) == questions(json.dumps(data).encode())
    assert next(squad.read(tmp_path / "test.json")).table.num_rows == 2
    assert np.array_equal(table["document"].to_numpy(), [0, 0])


@pytest.mark.parametrize(("name", "message"), [("files", "patterns by split"), ("language", "text")])
def test_a_source_with_a_function_in_place_of_a_value(name: str, message: str) -> None:
    """Said once, where a plug-in makes it."""
    changed: dict[str, Any] = {name: lambda argument: argument}
    with pytest.raises(UsageError, match=f"the source 'pos': `{name}` is not {message}"):
        replace(named_sources()["pos"], **changed)
