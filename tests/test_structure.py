"""Columns of any structure: one Arrow type for each meaning, the same error in every format, and linear work."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derivlang.core.batch import Batch
from derivlang.core.columns import conform
from derivlang.core.errors import DataError, DerivlangError, LayerError
from derivlang.core.layers.answers import ANSWERS
from derivlang.core.schema import Field, Schema, Side
from derivlang.sources import read as reading
from derivlang.sources.corpus import FileSpan
from derivlang.sources.find import find
from derivlang.sources.read import Reading, batches
from derivlang.sources.request import SourceRequest
from tests.commands import make, run, written

Rows = list[dict[str, Any]]
WORDS = pa.list_(pa.string())
NODE = dict.fromkeys(("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"), "_")


def read(source: Path, **options: Any) -> list[Batch]:
    """All batches of a source, whose words are separated by spaces."""
    found = find(SourceRequest(str(source), **options))
    splitter = found.splitter() if not found.is_raw else type(found.splitter())("space")
    return [batch for part in found.parts for batch in batches(found, [FileSpan(part)], Reading(splitter))]


def json_lines(path: Path, rows: Rows) -> Path:
    return written(path.with_suffix(".jsonl"), "".join(json.dumps(row) + "\n" for row in rows))


def parquet(path: Path, rows: Rows) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


FORMATS = pytest.mark.parametrize("write", [json_lines, parquet])


# one type


def spellings(kind: pa.DataType) -> list[pa.DataType]:
    """Types of the same values."""
    if pa.types.is_list(kind):
        inner = spellings(kind.value_type)
        made = (pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda value: pa.list_(value, 2))
        return [make(value) for make in made for value in inner]
    if pa.types.is_struct(kind):
        first, *rest = ([(field.name, other) for other in spellings(field.type)] for field in kind)
        return [pa.struct([*[some[0] for some in rest], one]) for one in first]  # in another order, too
    if pa.types.is_integer(kind):
        return [pa.int8(), pa.uint16(), pa.int64(), pa.uint64(), pa.dictionary(pa.int8(), pa.int64())]
    return [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]


VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["a", None, "b"]),
    (WORDS, [["a", "b"], None, ["c", None]]),
    (pa.list_(pa.int32()), [[2, 0], None, [None, 1]]),
    (ANSWERS, [{"text": ["a", "b"], "answer_start": [0, 2]}, None, {"text": None, "answer_start": None}]),
]
SPELT = [(kind, other, values) for kind, values in VALUES for other in spellings(kind)]


@pytest.mark.parametrize(("kind", "other", "values"), SPELT, ids=[str(other) for _, other, _ in SPELT])
@pytest.mark.parametrize("slice", [slice(0, 3), slice(1, 3), slice(0, 0)])
def test_every_spelling_of_a_type_becomes_the_declared_one(
    kind: pa.DataType, other: pa.DataType, values: list[Any], slice: slice
) -> None:
    found = conform(pa.array(values, other)[slice], kind, "x", None)
    found.validate(full=True)
    assert found.equals(pa.array(values, kind)[slice])


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_nulls_without_a_type_are_nulls_of_the_declared_type(kind: pa.DataType, values: list[Any]) -> None:
    assert conform(pa.nulls(2), kind, "x", None).equals(pa.nulls(2, kind))


@pytest.mark.parametrize(
    ("values", "kind", "row"),
    [
        ([None, "a"], WORDS, 1),
        ([[], None, [1]], WORDS, 0),  # the type of the column does not fit, whatever the row
        ([[1], [2**40]], pa.list_(pa.int32()), 1),
        ([None, {"text": ["a"]}], ANSWERS, 1),
        ([1.0], pa.int32(), 0),
        (["1"], pa.int32(), 0),
        ([1], pa.string(), 0),
        ([b"a"], pa.string(), 0),
    ],
)
def test_another_structure_is_an_error_with_its_row(values: list[Any], kind: pa.DataType, row: int) -> None:
    with pytest.raises(LayerError) as caught:
        conform(pa.array(values), kind, "x", lambda at: f"row {at}")
    assert (caught.value.where, caught.value.id) == (f"row {row}", "column-type")


# answers

BAD_ANSWERS: list[tuple[Any, str]] = [
    ("b", "answer-types"),
    (5, "answer-types"),
    (["b"], "answer-types"),
    ({"text": ["b"]}, "answer-types"),
    ({"answer_start": [2], "": ["b"]}, "answer-types"),
    ({"text": "b", "answer_start": 2}, "answer-types"),
    ({"text": 2147483647, "answer_start": [2]}, "answer-types"),
    ({"text": [["b"]], "answer_start": [[2]]}, "answer-types"),
    ({"text": {"text": ["b"]}, "answer_start": [2]}, "answer-types"),
    ({"text": ["b"], "answer_start": [2.5]}, "answer-types"),
    ({"text": ["b"], "answer_start": ["2"]}, "answer-types"),
    ({"text": ["b"], "answer_start": [None]}, "answer-types"),
    ({"text": [None], "answer_start": [2]}, "answer-types"),
    ({"text": ["b"], "answer_start": None}, "answer-types"),
    ({"text": None, "answer_start": [2]}, "answer-types"),
    ({"text": ["b", "c"], "answer_start": [2]}, "answer-types"),
    ({"text": ["b"], "answer_start": [2**40]}, "answer-types"),
    ({"text": ["b"], "answer_start": [1]}, "answer-offset"),
    ({"text": ["b"], "answer_start": [-1]}, "answer-offset"),
    ({"text": ["b"], "answer_start": [300]}, "answer-offset"),
]


def asked(*answers: Any) -> Rows:
    return [{"context": "a b c", "question": "q ?", "answers": found, "id": "x"} for found in answers]


@FORMATS
@pytest.mark.parametrize(("answers", "id"), BAD_ANSWERS, ids=[json.dumps(found) for found, _ in BAD_ANSWERS])
def test_answers_of_another_structure_are_one_error_in_every_format(
    tmp_path: Path, write: Callable[[Path, Rows], Path], answers: Any, id: str
) -> None:
    source = write(tmp_path / "a", asked(None, answers))
    with pytest.raises(LayerError) as caught:
        read(source)
    place = f"{source}:2" if source.suffix == ".jsonl" else f"{source}: row 1"
    assert (caught.value.id, caught.value.where) == (id, place)
    assert caught.value.fix


@FORMATS
def test_a_row_may_have_no_answers(tmp_path: Path, write: Callable[[Path, Rows], Path]) -> None:
    """As a null, as two nulls, and as two empty lists; the set has the rows as they were."""
    none: list[Any] = [None, {"text": None, "answer_start": None}, {"text": [], "answer_start": []}]
    rows = asked({"text": ["b"], "answer_start": [2]}, *none)
    (batch,) = read(write(tmp_path / "a", rows))
    assert batch.layers["answers"].offsets.tolist() == [0, 1, 1, 1, 1]  # type: ignore[attr-defined]
    assert batch.layers["answers"].columns(batch)["answers"].to_pylist() == [row["answers"] for row in rows]


def test_a_row_of_json_lines_that_lacks_its_answers_is_an_error(tmp_path: Path) -> None:
    rows = asked({"text": ["b"], "answer_start": [2]}, None)
    del rows[1]["answers"]
    with pytest.raises(DerivlangError, match=r"a.jsonl:2: the row lacks the key 'answers' \[jsonl-keys\]"):
        read(json_lines(tmp_path / "a", rows))


def test_lists_of_answers_that_are_equal_only_in_sum_are_refused(tmp_path: Path) -> None:
    """Two texts with one start, then one text with two: as many texts as starts, and all at wrong places."""
    rows = asked({"text": ["a", "b"], "answer_start": [0]}, {"text": ["c"], "answer_start": [2, 4]})
    with pytest.raises(LayerError, match="2 texts but 1 starts in answers"):
        read(parquet(tmp_path / "a", rows))


@pytest.mark.parametrize(("context", "start"), [("a b c", 2), ("a b c", -1), ("a b c", 300), ("🐈🐈 c", 4)])
def test_squad_checks_answers_as_every_format_does(tmp_path: Path, context: str, start: int) -> None:
    """Offsets count code points: a cat is one."""
    qa = {"id": "q1", "question": "q ?", "answers": [{"text": "c", "answer_start": start}]}
    data = {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": [qa]}]}]}
    source = written(tmp_path / "a.json", json.dumps(data))
    with pytest.raises(LayerError, match=f"the answer 'c' is not at offset {start} of its context") as caught:
        read(source)
    assert (caught.value.id, caught.value.where) == ("answer-offset", f"{source} (question q1)")


def test_answers_need_a_context() -> None:
    sides = (Side("premise", text="premise"), Side("hypothesis", text="hypothesis"))
    with pytest.raises(LayerError, match="answers lie in a column 'context'"):
        Schema(sides, (Field("answers", "answers"),))


# trees

TREE: dict[str, Any] = {"tokens": ["a", "b"], "head": [0, 1], "deprel": ["root", "x"]}
BAD_TREES: list[tuple[dict[str, Any], str]] = [
    ({"head": None}, "label-length"),
    ({"head": 1}, "column-type"),
    ({"head": ["0", "1"]}, "column-type"),
    ({"head": [0.0, 1.0]}, "column-type"),
    ({"head": [[0], [1]]}, "column-type"),
    ({"head": [0, None]}, "head-range"),
    ({"head": [0, 2**32 + 1]}, "column-type"),  # which is 1 in 32 bits
    ({"head": [0, 3]}, "head-range"),
    ({"deprel": None}, "label-length"),
    ({"deprel": "root"}, "column-type"),
    ({"deprel": [1, 2]}, "column-type"),
    ({"deprel": ["root", None]}, "null-value"),
    ({"deps": ["0:root", None]}, "null-value"),
    ({"deps": ["0:root", "9:x"]}, "head-range"),
    ({"deps": ["0:root", "1:x|3:y"]}, "head-range"),
    ({"deps": ["0:root", "9" * 5000 + ":x"]}, "head-range"),
    ({"mwt": 1}, "column-type"),
    ({"mwt": [{"id": "1-2"}]}, "column-type"),
    ({"mwt": [NODE | {"id": "1-2", "form": None}]}, "node-id"),
    ({"mwt": [NODE | {"id": "2-1"}]}, "node-id"),
    ({"mwt": [NODE | {"id": "1.1"}]}, "node-id"),
    ({"mwt": [NODE | {"id": "1-" + "9" * 5000}]}, "node-id"),
    ({"empty_nodes": [None, NODE | {"id": "1.1"}]}, "node-id"),
    ({"empty_nodes": [NODE | {"id": "1-2"}]}, "node-id"),
    ({"empty_nodes": [NODE | {"id": "1.1", "deps": "5:x"}]}, "head-range"),
]


@FORMATS
@pytest.mark.parametrize(("change", "id"), BAD_TREES, ids=[json.dumps(found)[:60] for found, _ in BAD_TREES])
def test_trees_of_another_structure_are_one_error_in_every_format(
    tmp_path: Path, write: Callable[[Path, Rows], Path], change: dict[str, Any], id: str
) -> None:
    source = write(tmp_path / "a", [TREE | change])
    with pytest.raises(LayerError) as caught:
        read(source)
    assert caught.value.id == id
    assert caught.value.where == (f"{source}:1" if source.suffix == ".jsonl" else f"{source}: row 0")


@pytest.mark.parametrize("deps", ["9:x", "1:x|9:y", "99999999999:x"])
def test_conllu_checks_references_as_every_format_does(tmp_path: Path, deps: str) -> None:
    lines = f"1\ta\t_\t_\t_\t_\t0\troot\t0:root\t_\n2\tb\t_\t_\t_\t_\t1\tx\t{deps}\t_\n\n"
    source = written(tmp_path / "a.conllu", lines)
    with pytest.raises(LayerError, match="name a word that the sentence of 2 words lacks") as caught:
        read(source)
    assert (caught.value.id, caught.value.where) == ("head-range", f"{source}:2")


# other columns, and other files of a source


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"tokens": ["a"]}, {"tokens": "a"}),
        ({"tokens": ["a"]}, {"tokens": [1]}),
        ({"text": "a"}, {"text": ["a"]}),
        ({"tokens": ["a"], "ner_tags": ["O"]}, {"tokens": ["a"], "ner_tags": "O"}),
        ({"tokens": ["a"], "ner_tags": ["O"]}, {"tokens": ["a"], "ner_tags": [0]}),
        ({"tokens": ["a"], "upos": ["X"]}, {"tokens": ["a"], "upos": 1}),
        ({"tokens": ["a"], "lemmas": ["a"]}, {"tokens": ["a"], "lemmas": [1]}),
        ({"tokens": ["a"], "misc": ["_"]}, {"tokens": ["a"], "misc": [1]}),
        ({"tokens": ["a"], "x": ["_"]}, {"tokens": ["a"], "x": [{"y": 1}]}),
        (asked(None)[0] | {"answers": {"text": [], "answer_start": []}}, asked("b")[0]),
    ],
    ids=str,
)
@FORMATS
def test_a_later_file_of_another_structure_is_an_error(
    tmp_path: Path, write: Callable[[Path, Rows], Path], first: dict[str, Any], later: dict[str, Any]
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    write(folder / "a.train.x", [first])
    other = write(folder / "b.test.x", [later])
    with pytest.raises(DataError, match=r"in a\.train.* \[types-differ\]") as caught:
        read(folder)
    assert str(other) == caught.value.where


@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint64(), pa.float16(), pa.date32(), pa.bool_()])
def test_values_of_words_move_whatever_their_type(tmp_path: Path, kind: pa.DataType) -> None:
    values = pa.array([1, 0, None, 1]).cast(pa.float32() if kind == pa.float16() else pa.int32()).cast(kind)
    table = pa.table({"tokens": [["a", "b"]] * 2, "misc": pa.ListArray.from_arrays([0, 2, 4], values)})
    pq.write_table(table, tmp_path / "a.train.parquet")
    run("make", "--t", "inv", tmp_path / "a.train.parquet", "-o", tmp_path / "out")
    made = pq.read_table(next((tmp_path / "out" / "data").iterdir()))["misc"].to_pylist()
    assert made == [row[::-1] for row in table["misc"].to_pylist()]
    run("verify", tmp_path / "out")


@pytest.mark.parametrize("number", [2**32, -1, 18])
def test_a_number_that_is_no_class_is_refused_also_where_32_bits_would_hold_one(tmp_path: Path, number: int) -> None:
    source = json_lines(tmp_path / "a", [{"tokens": ["a"], "upos": [number]}])
    with pytest.raises(LayerError, match=f"upos is {number}, which is not one of"):
        read(source)


# wide tables


def steps(work: Callable[[], object]) -> int:
    """The number of lines of the package that are run; each round of a loop counts, also of one on a single line."""
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace if "derivlang" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def wide(n: int) -> dict[str, Any]:
    return {"tokens": ["a", "b"], **{f"c{i}": i for i in range(n)}, **{f"l{i}": ["x", "y"] for i in range(n)}}


@pytest.mark.parametrize("write", [json_lines, parquet])
def test_work_grows_with_the_number_of_columns_and_no_faster(
    tmp_path: Path, write: Callable[[Path, Rows], Path]
) -> None:
    """Four times the columns may take five times the steps; a look at all of them for each takes up to sixteen."""
    counts = []
    for n in (100, 400):
        source = write(tmp_path / f"w{n}.train", [wide(n)])
        make("inv", source, tmp_path / f"first{n}")  # imports and caches
        counts.append(steps(partial(make, "inv", source, tmp_path / f"second{n}")))
    assert counts[1] < 5 * counts[0], counts


def test_the_names_of_columns_are_asked_for_once_a_table(tmp_path: Path) -> None:
    """Asking makes a list of all names."""
    source = json_lines(tmp_path / "w", [wide(50)])
    found = find(SourceRequest(str(source)))
    asked_for = 0

    class Counting:
        def __init__(self, table: pa.Table):
            self._table = table

        def __getattr__(self, name: str) -> Any:
            nonlocal asked_for
            asked_for += name == "column_names"
            return getattr(self._table, name)

        def __getitem__(self, name: str) -> Any:
            return self._table[name]

    whole = reading._rows

    def counted(*arguments: Any) -> Any:
        for rows in whole(*arguments):
            yield replace(rows, table=Counting(rows.table))

    with patch.object(reading, "_rows", counted):
        assert list(batches(found, [FileSpan(found.parts[0])], Reading(found.splitter())))
    assert 1 <= asked_for <= 5
