"""`--answers atomic`: a context is derived once, with the groups of the answers to all its questions.

The groups are stored, so that each row alone can be derived again; rows of one context are never read apart.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrow import differs
from derivlang.core.bare_batch import read_groups, write_groups
from derivlang.core.batch import groups, join_sentences
from derivlang.core.errors import DataError, LayerError, UsageError
from derivlang.core.from_table import from_table
from derivlang.core.policies import Policies
from derivlang.core.to_table import to_table
from derivlang.formats.rows import Rows, whole_runs
from derivlang.map import map_dataset
from derivlang.store.manifest import Derived
from derivlang.store.shards import read_shard
from tests.helpers import make, plain, right, rows
from tests.real import SHARED, needs_data
from tests.strategies import batch_of, laws

SPECS = ["inv", "perm", "trans,perm:window=2", "perm:seed=2,inv"]
CONTEXTS = [
    "The boat left Old Bay on Monday. It was grey! Ada Low steered it to New Port in the rain.",
    "Ada Low lives in New Port. She was born in Old Bay in 1903 ( so they say ).",
]
ANSWERS = [
    ["Old Bay", "Monday. It was grey", "Ada Low steered", "New Port in the", "the rain", "It"],
    ["in New Port. She", "Ada Low", "born in Old Bay", "in 1903 ( so", "New Port"],
]


def questions(answers: list[list[str]] = ANSWERS) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{number}-{place}",
            "title": "t",
            "context": context,
            "question": f"What is number {place}?",
            "answers": {"text": [text], "answer_start": [context.index(text)]},
        }
        for number, (context, texts) in enumerate(zip(CONTEXTS, answers, strict=True))
        for place, text in enumerate(texts)
    ]


def jsonl(path: Path, found: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in found), "utf-8")
    return path


def contexts(table: pa.Table) -> dict[tuple[str, ...], set[tuple[str, list[int]]]]:
    """What was made of each source context."""
    out = defaultdict(set)
    for row in table.to_pylist():
        out[tuple(row["context_source"])].add((row["context"], tuple(row["context_order"])))
    return out


def assert_derived_once(table: pa.Table, policy: str = "atomic") -> None:
    for source, made in contexts(table).items():
        assert len(made) == 1, " ".join(source)
    if policy == "atomic":
        for row in table.to_pylist():
            for text, start in zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True):
                assert row["context"][start : start + len(text)] == text


def assert_each_row_can_be_derived_alone(folder: Path) -> None:
    derived = Derived(folder)
    for split in derived.splits:
        for shard in derived.shards(split):
            for table in read_shard(derived.folder / shard["file"]):
                for place in range(table.num_rows):
                    row = table.slice(place, 1)
                    source, _, _ = from_table(row, derived.schema, derived.lexicon, stored_source=True)
                    again = derived.pipeline.derive(source, derived.lexicon, policies=derived.policies, split=False)
                    found = to_table(
                        again.source,
                        again.derived,
                        again.order,
                        derived.schema,
                        derived.lexicon,
                        has_order=True,
                        exact=True,
                        policies=derived.policies,
                    )
                    assert set(found) == set(row.column_names)
                    for name in found:
                        ours, theirs = (
                            plain(pa.table({name: c}))[name].combine_chunks() for c in (found[name], row[name])
                        )
                        assert not differs(ours, theirs).any(), name


@pytest.mark.parametrize("spec", SPECS)
def test_a_row_is_derived_again_from_what_is_stored(spec: str, tmp_path: Path) -> None:
    out = make(spec, "demo:qa", tmp_path / "demo", policies=Policies(answers="atomic"))
    right(out)
    out = make(spec, jsonl(tmp_path / "a.jsonl", questions()), tmp_path / "out", policies=Policies(answers="atomic"))
    right(out)
    assert_derived_once(rows(out))
    assert_each_row_can_be_derived_alone(out)


@pytest.mark.parametrize("first", ["atomic", "split"])
@pytest.mark.parametrize("spec", SPECS)
def test_a_derived_set_gives_one_context_for_its_questions(first: Any, spec: str, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", questions())
    one = make("inv", file, tmp_path / "one", policies=Policies(answers=first))
    two = make(spec, one, tmp_path / "two", policies=Policies(answers="atomic"))
    right(two)
    assert_derived_once(rows(two))
    assert_each_row_can_be_derived_alone(two)
    if first == "atomic":  # the same sentences, so the same as both at once
        both = make(f"inv,{spec}", file, tmp_path / "both", policies=Policies(answers="atomic"))
        assert contexts(rows(both)) == contexts(rows(two))


def test_rows_of_a_context_are_not_read_apart(tmp_path: Path) -> None:
    """More rows than a reader reads at once, the last context with an answer in its last row alone."""
    many = [["Old Bay"] * 3000, ["Ada Low"] * 2999 + ["in New Port. She"]]
    file = jsonl(tmp_path / "a.jsonl", questions(many))
    one = make("inv", file, tmp_path / "one", policies=Policies(answers="atomic"))
    assert_derived_once(rows(one))
    two = make("perm", one, tmp_path / "two", policies=Policies(answers="atomic"))
    assert_derived_once(rows(two))
    right(two)


@laws
@given(st.lists(st.lists(st.sampled_from("aab"), min_size=1, max_size=4), max_size=5))
def test_runs_are_read_whole(tables: list[list[str]]) -> None:
    documents = iter(range(100))
    given_rows = [
        Rows(
            Path("x"),
            pa.table({"c": table}),
            np.zeros(len(table), np.int64),
            np.array([next(documents) for _ in table]),
        )
        for table in tables
    ]
    found = list(whole_runs(given_rows, "c"))
    values = [part.table["c"].to_pylist() for part in found]
    assert [v for part in values for v in part] == [v for table in tables for v in table]
    assert all(one[-1] != two[0] for one, two in itertools.pairwise(values))
    assert [d for part in found for d in part.documents.tolist()] == list(range(sum(map(len, tables))))


def test_other_sets_store_no_groups(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", questions())
    for policy in ("split", "drop"):
        out = make("inv", file, tmp_path / policy, policies=Policies(answers=policy))  # type: ignore[arg-type]
        assert not [name for name in rows(out).column_names if name.endswith("groups")]
    atomic = make("inv", file, tmp_path / "x", policies=Policies(answers="atomic"))
    with pytest.raises(UsageError, match="--answers atomic"):  # the answers would be split after all
        make("inv", atomic, tmp_path / "y")


def test_a_dataset_in_memory_gives_the_rows_of_make(tmp_path: Path) -> None:
    many = [["Old Bay"] * 700, ["Ada Low"] * 699 + ["in New Port. She"]]
    dataset = datasets.Dataset.from_list(questions(many))
    atomic = Policies(answers="atomic")
    mapped = map_dataset(dataset, "perm", policies=atomic)
    assert_derived_once(mapped.with_format("arrow")[:])
    out = make("perm", jsonl(tmp_path / "a.jsonl", questions(many)), tmp_path / "out", policies=atomic)
    assert contexts(mapped.with_format("arrow")[:]) == contexts(rows(out))
    with pytest.raises(UsageError, match="stream"):
        map_dataset(dataset.to_iterable_dataset(), "perm", policies=atomic)


@laws
@given(st.lists(st.lists(st.booleans(), max_size=6), max_size=5))
def test_groups_are_read_as_they_were_written(units: list[list[bool]]) -> None:
    batch = batch_of([["w"] * len(unit) for unit in units])
    inside = np.array([place > 0 and goes_on for unit in units for place, goes_on in enumerate(unit)], bool)
    column = write_groups(inside, batch.unit_words)
    assert read_groups(column, batch.unit_words).tolist() == inside.tolist()


@pytest.mark.parametrize("groups", [[0], [0, 1], [-1, 2], [2, 2], [0, 4], [0, 2, 1], [1, 1 << 30]])
def test_groups_outside_their_row_are_refused(groups: list[int]) -> None:
    with pytest.raises(LayerError, match="outside its row"):
        read_groups(pa.array([groups], pa.list_(pa.int32())), np.array([0, 3]))


def test_sentences_that_end_inside_a_group_are_joined() -> None:
    batch = batch_of(["a b . c d . e f . g".split()])
    assert batch.sentences.tolist() == [0, 3, 6, 9, 10]
    joined = join_sentences(batch, np.array([0, 1, 4, 5, 6, 8, 9, 10]))  # [b . c] and [e f]
    assert joined.sentences.tolist() == [0, 6, 9, 10]
    assert joined.tails.tolist() == [1, 1, 0]
    assert join_sentences(batch, np.array([0, 1, 3, *range(4, 11)])).tails.tolist() == [0, 1, 1, 0]  # [b .]
    assert joined.keys[0] not in batch.keys
    assert groups(batch, Policies(answers="atomic")) is None


@pytest.mark.parametrize(
    "policies", [Policies(entities="atomic"), Policies(mwt="atomic"), Policies(entities="atomic", mwt="atomic")]
)
@pytest.mark.parametrize("spec", ["inv", "perm", "syn:fr"])
def test_other_groups_are_told_by_each_row(policies: Policies, spec: str, tmp_path: Path) -> None:
    demo: dict[str, Any] = {"source": "demo", "splits": ("test",)}
    one = make(spec, out=tmp_path / "one", policies=policies, **demo)
    right(one)
    right(make("perm", one, tmp_path / "two", policies=policies))
    right(make(spec, make("inv", out=tmp_path / "split", **demo), tmp_path / "three", policies=policies))


@needs_data
@pytest.mark.parametrize("language", ["de", "en"])
def test_a_real_set_is_derived_again_and_read_again(language: str, tmp_path: Path) -> None:
    atomic = Policies(answers="atomic")
    one = make("inv", SHARED / f"qa/xquad/xquad.{language}.json", tmp_path / "one", language=language, policies=atomic)
    right(one)
    assert_derived_once(rows(one))
    two = make("inv", one, tmp_path / "two", policies=atomic)
    right(two)
    table = rows(two)
    assert table["context_tokens"].to_pylist() == table["context_source"].to_pylist()


@pytest.mark.parametrize("number", [pa.int64(), pa.int16(), pa.uint32()])
def test_answers_have_one_type_whatever_the_source_s(number: pa.DataType, tmp_path: Path) -> None:
    table = pa.Table.from_pylist(questions())
    answers = pa.struct([("answer_start", pa.list_(number)), ("text", pa.large_list(pa.large_string()))])
    given_rows = [row["answers"] for row in questions()]
    table = table.set_column(table.column_names.index("answers"), "answers", pa.array(given_rows, answers))
    pq.write_table(table, tmp_path / "a.parquet")
    expected = rows(make("inv", jsonl(tmp_path / "a.jsonl", questions()), tmp_path / "jsonl"))
    out = make("inv", tmp_path / "a.parquet", tmp_path / "parquet")
    right(out)
    assert rows(out).schema.field("source_answers").type == expected.schema.field("source_answers").type
    assert rows(out)["answers"].to_pylist() == expected["answers"].to_pylist()


def test_an_answer_s_place_that_is_no_number_of_a_character_is_refused(tmp_path: Path) -> None:
    broken = [{**questions()[0], "answers": {"text": ["Old Bay"], "answer_start": [1 << 40]}}]
    with pytest.raises(DataError):
        make("inv", jsonl(tmp_path / "a.jsonl", broken), tmp_path / "out")
