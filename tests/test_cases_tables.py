"""Columns of many types, in one file or in several: a set keeps every value, or one message says why it does not."""

from __future__ import annotations

import datetime
import itertools
import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derivlang import map_dataset
from derivlang.core.errors import UsageError
from tests.commands import run, written

DATA = Path(__file__).parent / "cases" / "data"
FOLDERS = {
    "p16_shards": [{"y": 1, "m": None}, {"y": 2, "m": "x"}],
    "p16b_shards": [{"y": 1}, {"y": 2}],
    "p16c_shards": [{"l": []}, {"l": ["a"]}],
    "p19b_struct_other": [{"m": {"a": 1, "b": None}}, {"m": {"a": None, "b": "x"}}],
    "p19d_bool_int": ("int8", "bool"),
    "p19e_f64_int": ("int64", "double"),
    "p19f_f32_f64": [{"m": 0.5}, {"m": 0.1}],
    "p19g_ts_date": ("timestamp[ms]", "date32[day]"),
    "p19h_dec": ("double", "decimal128(5, 2)"),
    "p19i_tz": ("timestamp[ms, tz=America/New_York]", "timestamp[ms]"),
    "q1_jsnull": [{"m": None}, {"m": "x"}],
    "q2_jsempty": [{"m": []}, {"m": [{"a": 1}]}],
    "q4_jskeys": [{"m": {"a": 1, "b": None}}, {"m": {"a": None, "b": "x"}}],
    "q6_jsmiss": [{"m": 1}, {"m": None}],
    "q7_jsnew": [{"m": None}, {"m": 1}],
}
FILES = {
    "q13_key2.jsonl": [{"m": {"a": 1, "b": None}}, {"m": {"a": 1, "b": 2}}],
    "q14_key1.jsonl": [{"m": {"a": 1, "b": 2}}, {"m": {"a": 1, "b": None}}],
    "q15_nullobj.jsonl": [{"m": {"a": None}}, {"m": {"a": "x"}}],
    "d14c_latefield.jsonl": [{"late": None}] * 3 + [{"late": "x"}],
    "p4_pandas_cat.parquet": [{"cat": "u", "rid": "a", "y": 1}, {"cat": "v", "rid": "b", "y": 0}],
}
WORDS = ["p1_polars", "p5_dict_tokens", "p6_large", "p7_listview", "p7b_largelistview"]
# Types, each with two values; the pairs of them are the files of a set.
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "null": (pa.null(), [None, None]),
    "bool": (pa.bool_(), [True, None]),
    "int8": (pa.int8(), [-5, 127]),
    "uint64": (pa.uint64(), [2**63, 1]),
    "int64": (pa.int64(), [-(2**53) - 1, 7]),
    "float": (pa.float32(), [0.5, None]),
    "double": (pa.float64(), [0.1, 1e300]),
    "decimal": (pa.decimal128(5, 2), [Decimal("1.25"), None]),
    "decimal-3": (pa.decimal128(9, 3), [Decimal("1.125"), None]),
    "string": (pa.string(), ["x", ""]),
    "large-string": (pa.large_string(), ["y", None]),
    "category": (pa.dictionary(pa.int8(), pa.string()), ["u", "v"]),
    "binary": (pa.binary(), [b"\xff", b""]),
    "date": (pa.date32(), [datetime.date(2019, 4, 14), None]),
    "second": (pa.timestamp("s"), [datetime.datetime(2001, 9, 9, 1, 46, 40), None]),
    "microsecond": (pa.timestamp("us"), [datetime.datetime(2001, 9, 9, 1, 46, 40, 5), None]),
    "zone": (pa.timestamp("s", "America/New_York"), [datetime.datetime(2001, 9, 9, tzinfo=datetime.UTC), None]),
    "list": (pa.list_(pa.int8()), [[1], []]),
    "list-of-text": (pa.list_(pa.string()), [["a", None], None]),
    "pair": (pa.list_(pa.int64(), 2), [[1, 2], None]),
    "object": (pa.struct([("a", pa.int8()), ("b", pa.list_(pa.null()))]), [{"a": 1, "b": []}, None]),
    "object-b": (pa.struct([("b", pa.list_(pa.string())), ("c", pa.date32())]), [{"b": ["x"], "c": None}, None]),
    "object-a": (pa.struct([("a", pa.string())]), [{"a": "x"}, None]),
    "objects": (pa.list_(pa.struct([("a", pa.int64())])), [[{"a": 2**40}], []]),
    "map": (pa.map_(pa.string(), pa.int8()), [[("k", 1)], None]),
}
WIDENED = {
    *(frozenset({"null", name}) for name in TYPES),
    *(frozenset(pair) for pair in itertools.product(("int8",), ("float", "double", "int64"))),
    *map(frozenset, [("float", "double"), ("decimal", "decimal-3"), ("second", "microsecond"), ("list", "pair")]),
    *map(frozenset, itertools.combinations(("string", "large-string", "category"), 2)),
    *map(frozenset, [("object", "object-b"), ("object-a", "object-b")]),
}


def rows_of(folder: Path, split: str = "train") -> list[dict[str, Any]]:
    """The rows of a finished set, without what derivlang adds, as `datasets` loads them."""
    run("verify", folder)
    loaded = datasets.load_dataset(str(folder), cache_dir=str(folder.parent / "cache"))[split]
    own = {"document", "key", "source", "tokens", "order", "sentences", "gaps", "text"}
    return [{name: value for name, value in row.items() if name not in own} for row in loaded]


@pytest.mark.parametrize("name", FOLDERS)
def test_files_of_one_set(name: str, tmp_path: Path) -> None:
    expected = FOLDERS[name]
    ran = run("make", "--t", "inv", DATA / name, "-o", tmp_path / "x", code=None)
    if isinstance(expected, tuple):
        there, here = expected
        first, second = sorted(path.name for path in (DATA / name).iterdir())
        assert ran.code == 1
        assert f"{second}" in ran.err.splitlines()[0]
        assert f"'m' holds {there}, but {here} in {first}, and no type keeps the values of both" in ran.err
        assert "[types-differ]\n  give the column one type in all files" in ran.err
        assert not (tmp_path / "x").exists()
    else:
        assert ran.code == 0, ran.err
        assert rows_of(tmp_path / "x") == expected


@pytest.mark.parametrize("name", FILES)
def test_one_file(name: str, tmp_path: Path) -> None:
    run("make", "--t", "inv", DATA / name, "-o", tmp_path / "x")
    assert rows_of(tmp_path / "x") == FILES[name]


def test_splits_are_one_set(tmp_path: Path) -> None:
    run("make", "--t", "inv", DATA / "q5_jssplit", "-o", tmp_path / "x")
    assert [rows_of(tmp_path / "x", split) for split in ("train", "test")] == [[{"m": None}], [{"m": "x"}]]


@pytest.mark.parametrize("name", WORDS)
def test_words_of_any_spelling(name: str, tmp_path: Path) -> None:
    run("make", "--t", "inv", DATA / f"{name}.parquet", "-o", tmp_path / "x")
    run("verify", tmp_path / "x")
    run("undo", tmp_path / "x", "-o", tmp_path / "back.parquet")
    first, second = pq.read_table(tmp_path / "back.parquet").to_pylist()
    assert (first["tokens"], second["tokens"]) == (["Mara", "Kim", "met", "Bo", "."], ["Ida", "left", "."])
    assert first["ner_tags"] == ["B-PER", "I-PER", "O", "B-PER", "O"]


def test_words_in_lists_of_one_size(tmp_path: Path) -> None:
    table = pa.table({"tokens": pa.array([["a", "b"], ["c", "d"]], pa.list_(pa.string_view(), 2)), "n": [1, 2]})
    pq.write_table(table, tmp_path / "a.parquet")
    run("make", "--t", "inv", tmp_path / "a.parquet", "-o", tmp_path / "x")
    assert pq.read_table(next((tmp_path / "x").rglob("*.parquet")))["tokens"].to_pylist() == [["b", "a"], ["d", "c"]]


@pytest.mark.parametrize("pair", list(itertools.combinations(TYPES, 2)), ids="-".join)
def test_each_pair_of_types_is_widened_or_refused(pair: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    written_rows = []
    for number, name in enumerate(pair):
        kind, values = TYPES[name]
        values = [5, 6] if name == "int64" and {"float", "double"} & set(pair) else values
        column = pa.array(values, kind.value_type).dictionary_encode() if name == "category" else pa.array(values, kind)
        pq.write_table(
            pa.table({"text": ["Rain fell .", "Bo sat ."], "m": column}), tmp_path / "in" / f"{number}.parquet"
        )
        written_rows += column.to_pylist()
    ran = run("make", "--t", "inv", tmp_path / "in", "-o", tmp_path / "x", code=None)
    exact = set(pair) in ({"int64", "float"}, {"int64", "double"})
    if frozenset(pair) in WIDENED or exact:
        assert ran.code == 0, ran.err
        run("verify", tmp_path / "x")
        found = pq.read_table(next((tmp_path / "x").rglob("*.parquet")))["m"].to_pylist()
        assert all(map(same, found, written_rows)), (found, written_rows)
    else:
        assert ran.code == 1, ran.err
        assert ran.err.splitlines()[0].endswith(", and no type keeps the values of both [types-differ]")
        assert all(f"/{number}.parquet: " in ran.err or f" in {number}.parquet, " in ran.err for number in range(2))


def same(found: Any, given: Any) -> bool:
    """Whether a value is the one that was given; an object may have more keys, without values."""
    if isinstance(given, dict):
        return all(same(found[key], given.get(key)) for key in found) and given.keys() <= found.keys()
    return bool(found == given) and (given is None or isinstance(found, bool) == isinstance(given, bool))


LATE: dict[str, tuple[Any, Any]] = {
    "null": (None, "x"),
    "list": ([], ["x"]),
    "object": ({}, {"a": 1}),
    "nested": ({"a": 1}, {"a": 1, "b": 2}),
    "nested-null": ({"a": [{"b": None}]}, {"a": [{"b": "x"}]}),
    "list-of-objects": ([{"a": 1}], [{"a": 1, "b": [2.5]}]),
    "missing": (..., {"a": 1}),
}


def late(folder: Path, name: str, n: int = 5000) -> Path:
    rows = [
        {"text": f"row {i} .", **({} if value is ... else {"m": value})} for i, value in enumerate([LATE[name][0]] * n)
    ]
    rows += [{"text": "the last .", "m": LATE[name][1]}]
    return written(folder / "a.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.mark.parametrize("name", LATE)
def test_a_key_whose_type_shows_late(name: str, tmp_path: Path) -> None:
    run("make", "--t", "inv", late(tmp_path, name), "-o", tmp_path / "x")
    rows = rows_of(tmp_path / "x")
    first, last = LATE[name]
    assert rows[-1] == {"m": last}
    assert all(row == rows[0] for row in rows[:-1])
    assert rows[0]["m"] is None if first in (None, ...) else same_or_bare(rows[0]["m"], first)


def same_or_bare(found: Any, given: Any) -> bool:
    """Whether a value is the one that was given, with null for keys that it does not have."""
    if isinstance(found, dict):
        return all(same_or_bare(value, given.get(key)) for key, value in found.items())
    if isinstance(found, list):
        return len(found) == len(given) and all(map(same_or_bare, found, given))
    return bool(found == given)


def test_an_object_without_keys_in_any_row_is_null(tmp_path: Path) -> None:
    source = written(tmp_path / "a.jsonl", '{"text":"a b","m":{},"l":[{}]}\n{"text":"a c","m":null,"l":[]}\n')
    run("make", "--t", "inv", source, "-o", tmp_path / "x")
    assert rows_of(tmp_path / "x") == [{"m": None, "l": [None]}, {"m": None, "l": []}]


@pytest.mark.parametrize("name", ["null", "nested", "missing"])
def test_pieces_workers_and_plans_give_the_same_set(name: str, tmp_path: Path) -> None:
    source = late(tmp_path, name)
    size = ("--shard-tokens", 4000, "--words", "space")
    run("make", "--t", "inv", source, "-o", tmp_path / "one", *size)
    run("make", "--t", "inv", source, "-o", tmp_path / "two", *size, "--workers", 2)
    run("plan", "--t", "inv", source, "-o", tmp_path / "three", *size)
    run("work", tmp_path / "three", "--rank", 0, "--world", 1)
    run("finish", tmp_path / "three")
    sets = [
        {path.name: path.read_bytes() for path in sorted((tmp_path / folder).rglob("*.parquet"))}
        for folder in ("one", "two", "three")
    ]
    assert len(sets[0]) > 3
    assert sets[0] == sets[1] == sets[2]
    run("verify", tmp_path / "one")


def test_numbers_among_the_first_rows_may_become_fractions(tmp_path: Path) -> None:
    rows = [{"text": f"row {i} .", "m": i} for i in range(4000)] + [{"text": "the last .", "m": 2.5}]
    source = written(tmp_path / "a.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    run("make", "--t", "inv", source, "-o", tmp_path / "x")
    assert [row["m"] for row in rows_of(tmp_path / "x")] == [*range(4000), 2.5]


def test_a_row_that_fits_no_type_is_named(tmp_path: Path) -> None:
    rows = [{"text": f"row {i} .", "m": i} for i in range(5000)]
    for value, code, told in (("x", 1, 'a.jsonl:5001: the value "x" does not fit the type of column'), (2.5, 0, "")):
        lines = [*rows, {"text": "the last .", "m": value}]
        source = written(tmp_path / "a.jsonl", "".join(f"{json.dumps(row)}\n" for row in lines))
        assert told in run("make", "--t", "inv", source, "-o", tmp_path / "x", code=code).err
    assert [row["m"] for row in rows_of(tmp_path / "x")] == [*map(float, range(5000)), 2.5]


def test_classes_with_other_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, names in enumerate((["neg", "pos"], ["pos", "neg"])):
        features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=names)})
        rows = datasets.Dataset.from_dict({"text": ["a b"], "label": [0]}, features=features)
        rows.to_parquet(tmp_path / "in" / f"{number}.parquet")
    said = run("make", "--t", "inv", tmp_path / "in", "-o", tmp_path / "x", code=1).err
    assert "1.parquet: the classes of 'label' are pos, neg, but neg, pos in 0.parquet [types-differ]" in said


def test_rows_in_memory(tmp_path: Path) -> None:
    train = datasets.Dataset.from_dict({"text": ["a b"], "m": [None], "o": [{"a": 1}]})
    test = datasets.Dataset.from_dict({"text": ["c d"], "m": ["x"], "o": [{"b": "y"}]})
    made = map_dataset(datasets.DatasetDict(train=train, test=test), "inv")
    assert made["train"].features == made["test"].features
    assert [made[split]["m"][0] for split in made] == [None, "x"]
    assert [made[split]["o"][0] for split in made] == [{"a": 1, "b": None}, {"a": None, "b": "y"}]
    other = datasets.Dataset.from_dict({"text": ["c d"], "m": [True], "o": [{"b": "y"}]})
    with pytest.raises(UsageError, match="the split other: 'm' holds bool, but string in test, and no type keeps"):
        map_dataset(datasets.DatasetDict(train=train, test=test, other=other), "inv")


def test_rows_in_memory_of_views_and_categories() -> None:
    table = pa.table(
        {
            "text": pa.array(["a b", "c d"], pa.string_view()),
            "m": pa.array(["u", "v"]).dictionary_encode(),
        }
    )
    assert map_dataset(datasets.Dataset(table), "inv")["text"][:] == ["b a", "d c"]


def test_a_derived_set_of_several_files_is_a_source(tmp_path: Path) -> None:
    shutil.copytree(DATA / "p19b_struct_other", tmp_path / "in")
    run("make", "--t", "inv", tmp_path / "in", "-o", tmp_path / "x", "--shard-tokens", 1)
    run("make", "--t", "trans", tmp_path / "x", "-o", tmp_path / "y")
    assert rows_of(tmp_path / "y") == FOLDERS["p19b_struct_other"]


@pytest.mark.parametrize("numbers", [[-1, 0, 2], [0, 1, 2]])
def test_numbers_of_nli_labels_keep_their_names(numbers: list[int], tmp_path: Path) -> None:
    names = ["entailment", "neutral", "contradiction"]
    features = {"premise": datasets.Value("string"), "hypothesis": datasets.Value("string")}
    several = datasets.Sequence(datasets.ClassLabel(names=["joy", "fear"]))
    rows = datasets.Dataset.from_dict(
        {"premise": ["a b"] * 3, "hypothesis": ["c"] * 3, "label": numbers, "several": [[0, 1]] * 3},
        features=datasets.Features({**features, "label": datasets.ClassLabel(names=names), "several": several}),
    )
    rows.to_parquet(tmp_path / "a.parquet")
    run("make", "--t", "inv", tmp_path / "a.parquet", "-o", tmp_path / "x")
    run("verify", tmp_path / "x")
    loaded = datasets.load_dataset(str(tmp_path / "x"), cache_dir=str(tmp_path / "cache"))["train"]
    assert (loaded.features["label"].names, loaded["label"][:]) == (names, numbers)
    assert map_dataset(rows, "inv").features["label"].names == names
    run("undo", tmp_path / "x", "-o", tmp_path / "back.parquet")
    assert pq.read_table(tmp_path / "back.parquet").to_pylist() == rows.with_format("arrow")[:].to_pylist()


def test_a_field_with_a_carriage_return_is_quoted(tmp_path: Path) -> None:
    content = b'text,label\nA b.,"x\ry"\n'
    (tmp_path / "x.csv").write_bytes(content)
    run("make", "--t", "inv", tmp_path / "x.csv", "-o", tmp_path / "set")
    run("undo", tmp_path / "set", "-o", tmp_path / "undone.csv")
    assert (tmp_path / "undone.csv").read_bytes() == content


def test_questions_without_titles_or_ids_as_squad(tmp_path: Path) -> None:
    row = {"context": "Ann sat .", "question": "Who ?", "answers": {"text": ["Ann"], "answer_start": [0]}}
    for name, more in (("ids", {"id": 7}), ("none", {})):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({**row, **more}) + "\n", "utf-8")
        run("make", "--t", "inv", tmp_path / f"{name}.jsonl", "-o", tmp_path / name)
    run("export", tmp_path / "ids", "--format", "squad", "-o", tmp_path / "ids.json")
    (article,) = json.loads((tmp_path / "ids.json").read_text("utf-8"))["data"]
    assert (article["title"], article["paragraphs"][0]["qas"][0]["id"]) == ("", "7")
    said = run("export", tmp_path / "none", "--format", "squad", "-o", tmp_path / "none.json", code=2).err
    assert "does not fit the format squad" in said
