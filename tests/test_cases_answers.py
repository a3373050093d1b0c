"""Answers to questions as people write them: blank ones, starts out of range, and what rows have no place for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.commands import ROOT, rows, run, written

DATA = ROOT / "tests" / "cases" / "data"
CONTEXT = "Nizar was born in the old city of Saltmere ."
NONE: dict[str, list[Any]] = {"text": [], "answer_start": []}


def row(texts: list[str], starts: list[Any], **more: Any) -> dict[str, Any]:
    answers = {"text": texts, "answer_start": starts}
    return {"id": "1", "context": CONTEXT, "question": "Where ?", "answers": answers, **more}


def json_lines(path: Path, *objects: dict[str, Any]) -> Path:
    return written(path, "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in objects))


def objects(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def squad(path: Path, *answers: list[dict[str, Any]], **more: Any) -> Path:
    """A file with a question for each list of answers. more: keys of every question."""
    qas = [{"id": str(i), "question": "Who ?", "answers": one, **more} for i, one in enumerate(answers)]
    return written(path, json.dumps({"data": [{"title": "T", "paragraphs": [{"context": CONTEXT, "qas": qas}]}]}))


def made(source: Path, out: Path, spec: str = "inv", *options: object) -> list[dict[str, Any]]:
    run("make", "--t", spec, source, "-o", out, *options)
    run("verify", out)
    return rows(out, "train")


@pytest.mark.parametrize("spec", ["inv", "identity"])
@pytest.mark.parametrize("name", [*sorted(path.name for path in DATA.glob("e12_*empty*")), "e12_space.jsonl"])
def test_a_blank_answer_is_none_and_comes_back_as_given(name: str, spec: str, tmp_path: Path) -> None:
    (found,) = made(DATA / name, tmp_path / "set", spec)
    assert found["answers"] == NONE
    run("undo", tmp_path / "set", "-o", tmp_path / "back.jsonl")
    assert objects(tmp_path / "back.jsonl") == objects(DATA / name)


BLANK = [(text, start) for text in ("", " ", "\t\n", "\u00a0", "\u3000 ") for start in (-1, 0, 5, 44, 4000)]


@pytest.mark.parametrize("form", ["jsonl", "parquet", "json"])
def test_blank_texts_in_every_form(form: str, tmp_path: Path) -> None:
    source = tmp_path / f"a.{form}"
    if form == "json":
        squad(source, *([{"text": text, "answer_start": start}] for text, start in BLANK))
    elif form == "parquet":
        pq.write_table(pa.Table.from_pylist([row([text], [start]) for text, start in BLANK]), source)
    else:
        json_lines(source, *(row([text], [start]) for text, start in BLANK))
    found = made(source, tmp_path / "set", "inv", "--answers", "atomic")
    assert [one["answers"] for one in found] == [NONE] * len(BLANK)
    assert [one["source_answers"] for one in found] == [{"text": [t], "answer_start": [s]} for t, s in BLANK]


def test_a_blank_answer_beside_others_is_left_out(tmp_path: Path) -> None:
    source = json_lines(tmp_path / "a.jsonl", row(["", "Nizar", " "], [-1, 0, 99]), row(["Saltmere", ""], [34, 0]))
    found = made(source, tmp_path / "set", "inv", "--answers", "atomic")
    assert [one["answers"]["text"] for one in found] == [["Nizar"], ["Saltmere"]]
    run("undo", tmp_path / "set", "-o", tmp_path / "back.jsonl")
    assert objects(tmp_path / "back.jsonl") == objects(source)


def test_squad_json_keeps_the_form_of_a_blank_answer(tmp_path: Path) -> None:
    made(DATA / "e6b_empty.json", tmp_path / "set")
    run("undo", tmp_path / "set", "-o", tmp_path / "back.json")
    (question,) = json.loads((tmp_path / "back.json").read_text("utf-8"))["data"][0]["paragraphs"][0]["qas"]
    assert question["answers"] == [{"text": "", "answer_start": 0}]
    assert question["is_impossible"] is True


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("e12_past.jsonl", ":1: "),
        ("e12_neg_slice.jsonl", ":1: "),
        ("e12_huge.jsonl", ":1: "),
        ("e9c_strstart.jsonl", ":1: "),
        ("e2_utf16.json", " (question 1): "),
        ("e3_bytes.json", " (question 1): "),
        ("e4_start0.json", " (question 1): "),
        ("e6d_case.json", " (question 1): "),
        ("e6e_off1.json", " (question 1): "),
        ("e7_nfd.json", " (question 1): "),
    ],
)
def test_a_text_that_is_not_at_its_start_is_refused(name: str, place: str, tmp_path: Path) -> None:
    ran = run("make", "--t", "identity", DATA / name, "-o", tmp_path / "set", code=1)
    assert f"{DATA / name}{place}" in ran.err


@pytest.mark.parametrize(
    ("form", "start"), [("jsonl", -45), ("jsonl", 44), ("parquet", 45), ("parquet", -1), ("json", 2**31 - 1)]
)
def test_a_start_out_of_range_is_refused(form: str, start: int, tmp_path: Path) -> None:
    source = tmp_path / f"a.{form}"
    good = row(["Nizar"], [0])
    if form == "json":
        squad(source, [{"text": "Nizar", "answer_start": 0}], [{"text": "Nizar", "answer_start": start}])
    elif form == "parquet":
        pq.write_table(pa.Table.from_pylist([good, row(["Nizar"], [start])]), source)
    else:
        json_lines(source, good, row(["Nizar"], [start]))
    ran = run("make", "--t", "inv", source, "-o", tmp_path / "set", code=1)
    place = {"jsonl": ":2", "parquet": ": row 1", "json": " (question 1)"}[form]
    assert f"{source}{place}: the answer 'Nizar' is not at offset {start}" in ran.err


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("e5_v2.json", "plausible_answers (1)"),
        ("e8_dup.json", "contexts without questions (1)"),
        ("e9e_extra.jsonl", "1 row of answers has fields beside text and answer_start"),
    ],
)
def test_what_rows_have_no_place_for_is_counted(name: str, told: str, tmp_path: Path) -> None:
    ran = run("make", "--t", "inv", DATA / name, "-o", tmp_path / "set")
    assert told in ran.err + ran.out


def test_all_that_is_left_out_of_squad_json_is_in_one_line(tmp_path: Path) -> None:
    answer = {"text": "Nizar", "answer_start": 0, "answer_end": 5}
    source = squad(tmp_path / "a.json", [answer, answer], [], is_impossible=False, kind="who")
    ran = run("make", "--t", "inv", source, "-o", tmp_path / "set")
    (line,) = [line for line in ran.err.splitlines() if "left out" in line]
    assert line.endswith("answer_end (2), kind (2)")
    quiet = squad(tmp_path / "b.json", [{"text": "Nizar", "answer_start": 0}], [], is_impossible=False)
    assert "left out" not in run("make", "--t", "inv", quiet, "-o", tmp_path / "quiet").err


def test_blank_answers_are_unscored(tmp_path: Path) -> None:
    """A question whose answer is blank is left out of an evaluation, as one without an answer."""
    pytest.importorskip("torch")
    from derivlang.evaluation.tasks.qa import Questions
    from tests.tiny_runs import batch, languages

    source = squad(tmp_path / "qa.test.json", [{"text": "", "answer_start": 3}], [{"text": "Nizar", "answer_start": 0}])
    rows = Questions("qa").rows(batch(str(source), "test", "trans"), languages("trans"))
    found = Questions("qa").examples(rows, ())
    assert found.source.n_rows == found.derived.n_rows == 1
