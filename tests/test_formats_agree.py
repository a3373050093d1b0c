"""One language, whatever it is read from: files of any format, plain or packed, in any shards, or `datasets`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import derivlang
from derivlang import Columns, map_dataset
from derivlang.core.errors import UsageError
from tests.helpers import conllu, make, manifest, plain, right, rows, same_rows

LINES = [
    "The cat sat on the mat .",
    'He said " I left . " Then she left , too !',
    "= A heading =",
    "No mark at the end",
    "One . Two ? Three ! ) four",
    "the cat sat on the mat .",
    "Wait ... what ?! Yes ...",
    "<unk> met <unk> at 10 @-@ 15 .",
    "ქართული and 中文 words .",
    "one",
    ".",
] * 3
WORDS = [line.split() for line in LINES]
RAW = [
    "The cat (a tabby) sat on the mat, didn't it? Yes!",
    'He said: "I left." Then she left, too!',
    "No mark at the end",
    "U.S. prices rose 3.5% in Jan. 2020; <unk> fell.",
    "Ça va? L'été s'en va.",
    "one",
]
SPECS = ("inv", "trans,inv", "perm", "perm:window=2,trans:copy", "inv:final=move,perm:seed=3")


def text_file(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def conllu_file() -> bytes:
    sentences = []
    for number, words in enumerate(WORDS):
        columns = [
            f"{i} {word} _ X _ _ {i - 1} {'dep' if i > 1 else 'root'} _ _" for i, word in enumerate(words, start=1)
        ]
        sentences.append((f"s{number}", columns))
    return conllu(sentences).encode()


def jsonl_file(rows_: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows_).encode()


def parquet_file(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


FILES: dict[str, Callable[[], bytes]] = {
    "a.tokens": lambda: text_file(LINES),
    "a.txt": lambda: text_file(LINES),
    "a.tokens.gz": lambda: gzip.compress(text_file(LINES)),
    "a.tokens.zst": lambda: zstandard.compress(text_file(LINES)),
    "blank.tokens": lambda: text_file([part for line in LINES for part in ("", line, " ")]),
    "spaced.tokens": lambda: text_file([f"  {line.replace(' ', '   ')}\t\r" for line in LINES]),
    "a.conllu": conllu_file,
    "a.conllu.gz": lambda: gzip.compress(conllu_file()),
    "a.jsonl": lambda: jsonl_file([{"tokens": words} for words in WORDS]),
    "text.jsonl": lambda: jsonl_file([{"text": line} for line in LINES]),
    "a.parquet": lambda: parquet_file(pa.table({"tokens": WORDS})),
    "text.parquet": lambda: parquet_file(pa.table({"text": LINES})),
    "a.tsv": lambda: text_file(["premise\thypothesis\tlabel", *(f"{line}\t{line}\tneutral" for line in LINES)]),
}


def documents(table: pa.Table) -> list[tuple[list[str], list[str], list[int]]]:
    """Derived words, source words and order of each document, rows put together."""
    side = "" if "tokens" in table.column_names else "premise_"
    out: dict[int, tuple[list[str], list[str], list[int]]] = {}
    for row in table.select(["document", f"{side}tokens", f"{side}source", f"{side}order"]).to_pylist():
        document, tokens, source, order = row.values()
        words, own, index = out.setdefault(document, ([], [], []))
        index += [i + len(own) for i in order]
        words += tokens
        own += source
    assert list(out) == list(range(len(out)))
    return list(out.values())


@pytest.mark.parametrize("spec", SPECS)
def test_every_format_gives_the_same_derived_documents(spec: str, tmp_path: Path) -> None:
    expected = [(r.words, r.source, r.order) for r in (derivlang.derive(line, spec, words="space") for line in LINES)]
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content())
        out = make(spec, tmp_path / name, tmp_path / f"{name}.out", words="space")
        assert documents(rows(out)) == expected, name
        right(out)


@pytest.mark.parametrize("spec", ["trans,inv", "perm"])
@pytest.mark.parametrize("words", ["spacy", "unicode"])
def test_raw_text_gives_the_same_words_everywhere(spec: str, words: Any, tmp_path: Path) -> None:
    expected = [(r.words, r.source, r.order) for r in (derivlang.derive(line, spec, words=words) for line in RAW)]
    files = {
        "a.txt": text_file(RAW),
        "a.txt.gz": gzip.compress(text_file(RAW)),
        "a.jsonl": jsonl_file([{"text": line} for line in RAW]),
        "a.parquet": parquet_file(pa.table({"text": RAW})),
        "a.tsv": text_file(["premise\thypothesis\tlabel", *(f"{line}\t{line}\tneutral" for line in RAW)]),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        out = make(spec, tmp_path / name, tmp_path / f"{name}.out", words=words)
        assert documents(rows(out)) == expected, name
        right(out)
    mapped = map_dataset(datasets.Dataset.from_dict({"text": RAW}), spec, words=words)
    assert documents(mapped.with_format("arrow")[:]) == expected


@pytest.mark.parametrize("spec", ["perm", "trans:copy,perm:window=3,inv"])
@pytest.mark.parametrize("shard_tokens", [1, 10, 37])
def test_shards_change_nothing(spec: str, shard_tokens: int, tmp_path: Path) -> None:
    path = tmp_path / "a.tokens"
    path.write_bytes(FILES["a.tokens"]())
    whole = make(spec, path, tmp_path / "whole")
    cut = make(spec, path, tmp_path / "cut", shard_tokens=shard_tokens)
    assert len(manifest(cut)["splits"]["train"]["shards"]) > 2
    same_rows(rows(cut), rows(whole))


def test_several_files_of_a_split_are_one_split(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}-train.tokens").write_bytes(text_file(LINES[number * 11 : number * 11 + 11]))
    (tmp_path / "a.tokens").write_bytes(text_file(LINES))
    one, three = make("perm", tmp_path / "a.tokens", tmp_path / "one"), make("perm", folder, tmp_path / "three")
    same_rows(rows(three), rows(one))
    limited = make("perm", folder, tmp_path / "limited", limit=15)
    assert documents(rows(limited)) == documents(rows(one))[:15]


# map_dataset

TAGS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG"]
LABELLED: dict[str, dict[str, list[Any]]] = {
    "tags": {
        "tokens": WORDS,
        "ner_tags": [["B-PER", "I-PER", "O", "B-ORG"][: len(w)] + ["O"] * (len(w) - 4) for w in WORDS],
        "upos": [["NOUN", "VERB", "PUNCT"][: len(w)] + ["X"] * (len(w) - 3) for w in WORDS],
        "id": [f"n{i}" for i in range(len(WORDS))],
        "score": [i / 4 for i in range(len(WORDS))],
    },
    "plain words": {"tokens": WORDS},
    "one text": {"text": RAW, "stars": list(range(len(RAW)))},
    "pairs": {
        "premise": RAW,
        "hypothesis": RAW[::-1],
        "label": ["neutral", "entailment", "contradiction", "contradictory", "-", "neutral"],
    },
    "questions": {
        "id": ["a", "b", "c"],
        "title": ["T", "T", "U"],
        "context": ["Ann lives in Paris. Bo's 5 years old."] * 2 + ["Cy is in New York City now."],
        "question": ["Where does Ann live?", "How old is Bo?", "Where is Cy?"],
        "answers": [
            {"text": ["Paris"], "answer_start": [13]},
            {"text": ["5 years", "5"], "answer_start": [25, 25]},
            {"text": ["New York City"], "answer_start": [9]},
        ],
    },
}
many = pytest.mark.parametrize("kind", LABELLED)


@many
@pytest.mark.parametrize("spec", ["trans,inv", "perm"])
@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_map_gives_the_rows_of_make(kind: str, spec: str, suffix: str, tmp_path: Path) -> None:
    dataset = datasets.Dataset.from_dict(LABELLED[kind])
    path = tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        dataset.to_parquet(str(path))
    else:
        path.write_bytes(jsonl_file(dataset.to_list()))
    out = make(spec, path, tmp_path / "out")
    right(out)
    mapped = map_dataset(dataset, spec)
    same_rows(plain(mapped.with_format("arrow")[:]), rows(out))


@many
def test_a_dict_and_a_stream_give_the_rows_of_a_dataset(kind: str) -> None:
    spec = "trans,perm"
    dataset = datasets.Dataset.from_dict(LABELLED[kind])
    expected = map_dataset(dataset, spec)
    both = map_dataset(datasets.DatasetDict({"train": dataset, "test": dataset.select([0, 1])}), spec)
    assert both["train"].to_list() == expected.to_list()
    assert both["test"].to_list() == expected.to_list()[:2]
    columns = Columns(tags=tuple(TAGS) if "ner_tags" in dataset.column_names else ())
    streamed = map_dataset(dataset.to_iterable_dataset(num_shards=2), spec, columns)
    assert list(streamed) == expected.to_list()
    assert streamed.features == expected.features
    assert list(map_dataset(dataset.to_iterable_dataset(), spec, columns).take(2)) == expected.to_list()[:2]
    split = map_dataset(datasets.IterableDatasetDict({"train": dataset.to_iterable_dataset()}), spec, columns)
    assert list(split["train"]) == expected.to_list()


def test_a_stream_without_features(tmp_path: Path) -> None:
    def lines() -> Any:
        for words in WORDS:
            yield {"tokens": words}

    stream = datasets.IterableDataset.from_generator(lines)
    expected = map_dataset(datasets.Dataset.from_dict({"tokens": WORDS}), "perm")
    assert list(map_dataset(stream, "perm")) == expected.to_list()


def test_map_does_not_depend_on_the_size_of_its_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    import derivlang.map as mapping

    dataset = datasets.Dataset.from_dict(LABELLED["tags"])
    whole = map_dataset(dataset, "perm,trans").to_list()
    monkeypatch.setattr(mapping, "_BATCH", 4)
    assert map_dataset(dataset, "perm,trans").to_list() == whole


def test_map_with_several_processes() -> None:
    dataset = datasets.Dataset.from_dict(LABELLED["tags"])
    expected = map_dataset(dataset, "perm").to_list()
    assert map_dataset(dataset.select(range(10)), "perm").to_list() == expected[:10]


def test_class_labels_stay_class_labels() -> None:
    features = datasets.Features(
        {
            "tokens": datasets.List(datasets.Value("string")),
            "ner_tags": datasets.List(datasets.ClassLabel(names=TAGS)),
            "label": datasets.ClassLabel(names=["no", "yes"]),
        }
    )
    data = {"tokens": [["Ann", "Lee", "left", "."]], "ner_tags": [[1, 2, 0, 0]], "label": [1]}
    mapped = map_dataset(datasets.Dataset.from_dict(data, features=features), "inv")
    assert mapped.features["ner_tags"] == datasets.List(datasets.ClassLabel(names=TAGS))
    assert mapped.features["label"] == datasets.ClassLabel(names=["no", "yes"])
    assert mapped[0]["ner_tags"] == [0, 1, 2, 0]
    assert mapped[0]["label"] == 1


def test_columns_are_named_where_names_do_not_tell() -> None:
    dataset = datasets.Dataset.from_dict({"review": RAW, "bag": [line.split() for line in RAW]})
    with pytest.raises(UsageError, match=r"review, bag"):
        map_dataset(dataset, "inv")
    by_text = map_dataset(dataset.remove_columns("bag"), "inv", Columns(texts=("review",)), words="unicode")
    assert by_text[5]["tokens"] == ["one"]
    by_words = map_dataset(dataset.remove_columns("review"), "inv", Columns(words=("bag",)))
    assert by_words[2]["tokens"] == "end the at mark No".split()
    with pytest.raises(UsageError, match="there is no column 'nope'"):
        map_dataset(dataset, "inv", Columns(words=("nope",)))


def test_a_stream_with_unnamed_tags_is_an_error() -> None:
    stream = datasets.Dataset.from_dict(LABELLED["tags"]).to_iterable_dataset()
    with pytest.raises(UsageError, match=r"Columns\(tags="):
        map_dataset(stream, "inv")


def test_an_empty_dataset_maps_to_an_empty_one() -> None:
    features = datasets.Features({"tokens": datasets.List(datasets.Value("string"))})
    empty = datasets.Dataset.from_dict({"tokens": []}, features=features)
    mapped = map_dataset(empty, "trans,inv")
    assert mapped.num_rows == 0
    assert {"tokens", "order"} <= set(mapped.column_names)


# lexicons that are fitted

OVERLAP = "trans:overlap=25,inv"


@pytest.mark.parametrize("spec", ["trans:overlap=25", "trans:overlap=1:by=mass", "inv,trans:overlap=99:by=frequency"])
def test_a_missing_lexicon_is_an_error(spec: str) -> None:
    dataset = datasets.Dataset.from_dict({"tokens": WORDS})
    with pytest.raises(UsageError, match=r"\[needs-lexicon\]"):
        derivlang.derive("Welcome to ACL .", spec)
    for what in (dataset, dataset.to_iterable_dataset(), datasets.DatasetDict({"train": dataset})):
        with pytest.raises(UsageError, match=r"--lexicon FILE.*\[?needs-lexicon|\[needs-lexicon\]"):
            map_dataset(what, spec)


@pytest.mark.parametrize("spec", ["trans:overlap=0", "trans:overlap=100"])
def test_all_or_nothing_needs_no_lexicon(spec: str) -> None:
    assert len(derivlang.derive("Welcome to ACL .", spec).words) == 4


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "a.tokens").write_bytes(FILES["a.tokens"]())
    return make(OVERLAP, folder / "a.tokens", folder / "out")


def test_a_lexicon_is_used_again(fitted: Path, tmp_path: Path) -> None:
    lexicon = fitted / "lexicon.tsv"
    expected = documents(rows(fitted))
    results = [derivlang.derive(line, OVERLAP, words="space", lexicon=lexicon) for line in LINES]
    assert [(r.words, r.source, r.order) for r in results] == expected
    dataset = datasets.Dataset.from_dict({"tokens": WORDS})
    mapped = map_dataset(dataset, OVERLAP, lexicon=lexicon)
    assert documents(mapped.with_format("arrow")[:]) == expected
    stream = map_dataset(dataset.to_iterable_dataset(), OVERLAP, lexicon=lexicon)
    assert list(stream) == mapped.to_list()
    for name in ("a.conllu", "a.jsonl"):
        (tmp_path / name).write_bytes(FILES[name]())
        out = make(OVERLAP, tmp_path / name, tmp_path / f"{name}.out", lexicon=lexicon)
        assert documents(rows(out)) == expected
        assert (out / "lexicon.tsv").read_bytes() == lexicon.read_bytes()
        assert manifest(out)["fingerprint"] == manifest(fitted)["fingerprint"]


def test_a_lexicon_is_fitted_on_all_of_train_before_any_limit(fitted: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.tokens"
    path.write_bytes(FILES["a.tokens"]())
    limited = make(OVERLAP, path, tmp_path / "limited", limit=2)
    assert (limited / "lexicon.tsv").read_bytes() == (fitted / "lexicon.tsv").read_bytes()
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "train.tokens").write_bytes(FILES["a.tokens"]())
    (folder / "test.tokens").write_bytes(text_file(["Unseen words here ."]))
    test_only = make(OVERLAP, folder, tmp_path / "test", splits=("test",))
    assert (test_only / "lexicon.tsv").read_bytes() == (fitted / "lexicon.tsv").read_bytes()


def test_a_lexicon_of_another_language_is_refused(fitted: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.tokens"
    path.write_bytes(FILES["a.tokens"]())
    for spec in ("trans:overlap=50", "trans:overlap=25:seed=2", "inv"):
        with pytest.raises(UsageError, match=r"\[other-lexicon\]"):
            make(spec, path, tmp_path / "out", lexicon=fitted / "lexicon.tsv")
        with pytest.raises(UsageError, match=r"\[other-lexicon\]"):
            derivlang.derive("a b .", spec, lexicon=fitted / "lexicon.tsv")
    assert not (tmp_path / "out").exists()
