"""Questions with answers in a paragraph, in the JSON form of SQuAD 1.1 and 2.0 (XQuAD, MLQA, FQuAD …).

One row a question. `answer_start` counts Unicode code points of the context from 0, and the answer must be the text at
that offset, which its layer checks (`core/layers/answers.py`). A question without answers (SQuAD 2.0) has empty lists.
What the rows have no place for, such as plausible answers and contexts without questions, is left out and counted.

    context "Il dort à Paris.", answers {text: ["Paris"], answer_start: [10]}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import pyarrow as pa

from derivlang.core.errors import DataError
from derivlang.core.layers.answers import ANSWERS
from derivlang.core.messages import first_names, warn
from derivlang.core.schema import Field, Schema, Side
from derivlang.formats.base import Format, Look, ReadOptions
from derivlang.formats.jsonl import load_json
from derivlang.formats.opening import empty_file, read_text
from derivlang.formats.rows import ROWS_PER_TABLE, Rows

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("title", pa.string()),
        ("context", pa.string()),
        ("question", pa.string()),
        ("answers", ANSWERS),
    ]
)
MEANING = Schema(
    (Side("context", text="context"), Side("question", text="question")),
    (Field("id", "value"), Field("title", "value"), Field("answers", "answers")),
)
# The keys of each object that are read or, as is_impossible, follow from what is read; all others are left out.
_KEYS = {
    "file": {"data", "version"},
    "article": {"title", "paragraphs"},
    "paragraph": {"context", "qas"},
    "question": {"id", "question", "answers", "is_impossible"},
    "answer": {"text", "answer_start"},
}
_EMPTY = "contexts without questions"
Row: TypeAlias = dict[str, Any]
_ROWS = "if it holds rows, write JSON Lines: a file .jsonl with one object per line; if it holds questions, "
_FIX = "correct the file, or download it again; for JSON lines, pass --format jsonl"


def read(path: Path, *, encoding: str = "utf-8", limit: int | None = None) -> Iterator[Rows]:
    """Yield one row per question: id, title, context, question, answers; lines are 0. A document is a paragraph.

    limit: greatest number of paragraphs.
    Raises DataError: json, json-key (a key twice in one object), json-surrogate, squad-form (a key or a value is
    missing), empty-file, and as `open_lines`.
    """
    rows: list[Row] = []
    documents: list[int] = []
    has_paragraph, first = False, 0
    for document, paragraph_rows in enumerate(_paragraphs(path, encoding, Counter())):
        if document == limit:
            break
        has_paragraph = True
        rows += paragraph_rows
        documents += [document] * len(paragraph_rows)
        # Only between paragraphs, so that the questions of one context are in one table.
        if len(rows) >= ROWS_PER_TABLE:
            yield _rows(path, rows, documents, first)
            first += len(rows)
            rows, documents = [], []
    if rows:
        yield _rows(path, rows, documents, first)
    if not has_paragraph and limit != 0:
        raise empty_file(path, "paragraph")


def write(tables: Iterable[pa.Table], out: BinaryIO) -> None:
    """Write SQuAD JSON, an article at a time.

    Consecutive rows with the same title are an article, rows with the same context (and of the same `document`, if
    there is such a column) a paragraph. A question whose answers are blank, or that has none, is `is_impossible`, and
    makes the version v2.0.
    """
    rows = (row for table in tables for row in table.to_pylist())
    separator, version = "", "1.1"
    out.write(b'{"data":[')
    for title, article_rows in groupby(rows, key=lambda row: row["title"]):
        paragraphs = []
        for (context, _), questions in groupby(article_rows, key=lambda r: (r["context"], r.get("document"))):
            qas = [_question(row) for row in questions]
            paragraphs.append({"context": context, "qas": qas})
            if any("is_impossible" in question for question in qas):
                version = "v2.0"
        article = {"title": title, "paragraphs": paragraphs}
        out.write((separator + json.dumps(article, ensure_ascii=False, separators=(",", ":"))).encode())
        separator = ","
    out.write(f'],"version":"{version}"}}\n'.encode())


def count(path: Path, encoding: str = "utf-8") -> tuple[int, int]:
    """Return the number of paragraphs; lines are not counted."""
    return sum(1 for _ in _paragraphs(path, encoding, Counter())), 0


def _paragraphs(path: Path, encoding: str, left_out: Counter[str]) -> Iterator[list[Row]]:
    """Yield the rows of each paragraph. left_out: what they have no place for is counted here, by key."""
    text = read_text(path, encoding)
    if not text.strip():
        raise empty_file(path, "question")
    data = load_json(text, lambda line: f"{path}:{line}", fix=_FIX)
    articles = _get(path, "the file", data, "data", list)
    left_out.update(data.keys() - _KEYS["file"])
    for a, article in enumerate(articles):
        at = f"data[{a}]"
        paragraphs = _get(path, at, article, "paragraphs", list)
        title = _get(path, at, article, "title", str) if "title" in article else ""
        left_out.update(article.keys() - _KEYS["article"])
        for p, paragraph in enumerate(paragraphs):
            at = f"data[{a}].paragraphs[{p}]"
            context = _get(path, at, paragraph, "context", str)
            questions = _get(path, at, paragraph, "qas", list)
            left_out.update(paragraph.keys() - _KEYS["paragraph"])
            if not questions:
                left_out[_EMPTY] += 1
            yield [_row(path, f"{at}.qas[{q}]", title, context, qa, left_out) for q, qa in enumerate(questions)]


def _row(path: Path, at: str, title: str, context: str, qa: Any, left_out: Counter[str]) -> Row:
    id = _get(path, at, qa, "id", str)
    left_out.update(qa.keys() - _KEYS["question"])
    texts, starts = [], []
    for i, answer in enumerate(_get(path, at, qa, "answers", list)):
        text = _get(path, f"{at}.answers[{i}]", answer, "text", str)
        start = _get(path, f"{at}.answers[{i}]", answer, "answer_start", int)
        left_out.update(answer.keys() - _KEYS["answer"])
        texts.append(text)
        starts.append(start)
    answers = {"text": texts, "answer_start": starts}
    question = _get(path, at, qa, "question", str)
    return {"id": id, "title": title, "context": context, "question": question, "answers": answers}


def _get(path: Path, at: str, record: Any, key: str, kind: type) -> Any:
    """Return record[key]. Raises DataError squad-form if it is of another kind, json-surrogate for half of a pair."""
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        kinds = {list: "list", str: "string", int: "whole number"}
        raise DataError(
            f"{at} has no {kinds[kind]} {key!r}",
            where=str(path),
            fix=_ROWS * (key == "data")
            + "give the file the form of SQuAD: data, paragraphs, context, qas, id, question, answers",
            id="squad-form",
        )
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"{at}.{key} holds half of a surrogate pair, \\u{ord(value[error.start]):04x}",
                where=str(path),
                fix="replace it in the file, for instance by \\ufffd",
                id="json-surrogate",
            ) from None
    return value


def _rows(path: Path, rows: list[Row], documents: list[int], first: int) -> Rows:
    lines = np.zeros(len(rows), np.int64)
    names = tuple(f"question {row['id']}" for row in rows)
    table = pa.Table.from_pylist(rows, SCHEMA)
    return Rows(path, table, lines, np.array(documents, np.int64), first_row=first, names=names)


def _question(row: Row) -> Row:
    answers = row["answers"]
    pairs = zip(answers["text"], answers["answer_start"], strict=True)
    listed = [{"text": text, "answer_start": start} for text, start in pairs]
    question = {"id": row["id"], "question": row["question"], "answers": listed}
    return question if any(map(str.strip, answers["text"])) else {**question, "is_impossible": True}


def _look(paths: Sequence[Path], asked: ReadOptions) -> Look:
    """Return the meaning of the columns, and warn of what the files hold beyond it."""
    left_out = Counter[str]()
    for path in paths:
        for _ in _paragraphs(path, asked.encoding, left_out):
            pass
    if left_out:
        told = ", ".join(f"{name} ({n:,})" for name, n in sorted(left_out.items()))
        warn(f"{first_names(paths)}: left out, since the rows of a set have no place for it: {told}")
    return Look(MEANING)


FORMAT = Format(
    name="squad", suffixes=(".json",), what="JSON of SQuAD's form", read=read, write=write, count=count, look=_look
)
