"""Plans: which piece of which file each task reads, and the numbers of its first document and line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from derivlang.core.errors import DataError
from derivlang.core.schema import Schema, Side
from derivlang.engine.job import Job, Plan, read_task
from derivlang.engine.plan import make_plan
from derivlang.sources.corpus import Corpus, CorpusFile
from derivlang.sources.read import Reading

# 9 lines, the third of them empty, and 4 lines; 10 bytes a line and 1 for the empty one.
A = "a a a a a\n" * 2 + "\n" + "a a a a a\n" * 6
B = "b b b b b\n" * 4
FILES = {"a": ("train", A), "b": ("train", B), "c": ("test", "c c\n")}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    for name, (_, text) in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    parts = tuple(CorpusFile(split, tmp_path / name, name) for name, (split, _) in FILES.items())
    return Job(Corpus("some", "text", Schema((Side(),), (), running=True), parts, "space"))


def told(plan: Plan) -> list[tuple[object, ...]]:
    """(number in its split, file, first byte, end, lines before, first document, limit) of each span of a task."""
    return [
        (
            task.name.removeprefix(f"{split}-").replace("0000", ""),
            span.part.name,
            span.piece.begin,
            span.piece.end,
            span.piece.line,
            span.first_document,
            span.limit,
        )
        for split, tasks in plan.items()
        for task in tasks
        for span in task.spans
    ]


A_PLAN: dict[str, tuple[dict[str, Any], list[object]]] = {
    "one task": (
        {"splits": ["train"]},
        [("0-of-1", "a", 0, None, 0, 0, None), ("0-of-1", "b", 0, None, 0, 8, None)],
    ),
    "small files share a task": (  # 19 words are planned as 100 bytes
        {"splits": ["train"], "shard_tokens": 19},
        [("0-of-2", "a", 0, None, 0, 0, None), ("1-of-2", "b", 0, None, 0, 8, None)],
    ),
    "as many as fit": (
        {"splits": ["train"], "shard_tokens": 24},
        [("0-of-1", "a", 0, None, 0, 0, None), ("0-of-1", "b", 0, None, 0, 8, None)],
    ),
    "every split, train first": (
        {"splits": None},
        [
            ("0-of-1", "a", 0, None, 0, 0, None),
            ("0-of-1", "b", 0, None, 0, 8, None),
            ("0-of-1", "c", 0, None, 0, 0, None),
        ],
    ),
    "large files are cut": (  # 8 words are planned as 42 bytes, which end in the sixth line of a
        {"splits": ["train"], "shard_tokens": 8},
        [("0-of-3", "a", 0, 51, 0, 0, None), ("1-of-3", "a", 51, 81, 6, 5, None), ("2-of-3", "b", 0, None, 0, 8, None)],
    ),
    "a limit is not shared out to pieces": (
        {"splits": ["train"], "shard_tokens": 8, "limit": 10},
        [("0-of-2", "a", 0, None, 0, 0, 10), ("1-of-2", "b", 0, None, 0, 8, 2)],
    ),
    "no task for what a limit leaves out": (
        {"splits": ["train"], "limit": 8},
        [("0-of-1", "a", 0, None, 0, 0, 8)],
    ),
    "a limit is that of each split": (
        {"splits": ["test", "train", "test"], "limit": 1},
        [("0-of-1", "c", 0, None, 0, 0, 1), ("0-of-1", "a", 0, None, 0, 0, 1)],
    ),
}


@pytest.mark.parametrize("case", A_PLAN)
def test_a_plan(job: Job, case: str) -> None:
    options, tasks = A_PLAN[case]
    assert told(make_plan(job, **options)) == tasks


@pytest.mark.parametrize("shard_tokens", [1, 2, 8, 100, None])
def test_tasks_hold_each_document_once_and_in_turn(job: Job, shard_tokens: int | None) -> None:
    plan = make_plan(job, splits=["train"], shard_tokens=shard_tokens)
    read = [
        (number, word)
        for task in plan["train"]
        for batch in read_task(job, task, Reading(job.corpus.splitter()))
        for number, word in zip(
            batch.documents.tolist(), batch.types.take(batch.words[batch.unit_words[:-1]]), strict=True
        )
    ]
    assert [(number, word.as_py()) for number, word in read] == [*enumerate("a" * 8), *enumerate("b" * 4, start=8)]


@pytest.mark.parametrize("encoding", ["utf8", "UTF-8", "U8"])
def test_other_names_of_utf8_are_cut_alike(job: Job, encoding: str) -> None:
    def cut(job: Job) -> list[Any]:
        return told(make_plan(job, splits=["train"], shard_tokens=8))

    assert cut(replace(job, encoding=encoding)) == cut(job)


def test_a_task_writes_a_shard_of_its_own(job: Job) -> None:
    plan = make_plan(job, splits=None, shard_tokens=2)
    names = [task.name for tasks in plan.values() for task in tasks]
    assert names[0] == f"train-00000-of-{len(plan['train']):05d}"
    assert len(set(names)) == len(names) > 4


def test_a_split_that_the_source_lacks(job: Job) -> None:
    with pytest.raises(DataError, match=r"some has no split 'validation' here; found: train, test \[missing-split\]"):
        make_plan(job, splits=["dev"])
