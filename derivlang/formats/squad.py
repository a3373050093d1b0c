"""Questions with answers in a paragraph, in the JSON form of SQuAD 1.1 and 2.0 (XQuAD, MLQA, FQuAD …).

One row a question. `answer_start` counts Unicode code points of the context from 0, and the answer must be the text at
that offset, which its layer checks (`core/layers/answers.py`). A question without answers (SQuAD 2.0) has empty lists.
What the rows have no place for, such as plausible answers and contexts without questions, is left out and counted.

    context "Il dort à Paris.", answers {text: ["Paris"], answer_start: [10]}
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
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

Row: TypeAlias = dict[str, Any]
Form: TypeAlias = dict[str, Any]
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
# The keys of each object and what they hold: a list of such objects, or a plain value; None for a key that follows from
# what is read. All other keys are left out.
_FILE: Form = {"data": list, "version": None}
_ARTICLE: Form = {"title": str, "paragraphs": list}
_ANSWER: Form = {"text": str, "answer_start": int}
_QUESTION: Form = {"id": str, "question": str, "answers": [_ANSWER], "is_impossible": None}
_PARAGRAPH: Form = {"context": str, "qas": [_QUESTION]}
_KINDS = {list: "list", str: "string", int: "whole number"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_EMPTY = "contexts without questions"
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
    n_paragraphs = first = 0
    for n_paragraphs, of_paragraph in enumerate(islice(_paragraphs(path, encoding, Counter()), limit), 1):
        rows += of_paragraph
        documents += [n_paragraphs - 1] * len(of_paragraph)
        # Only between paragraphs, so that the questions of one context are in one table.
        if len(rows) >= ROWS_PER_TABLE:
            yield _rows(path, rows, documents, first)
            first += len(rows)
            rows, documents = [], []
    if rows:
        yield _rows(path, rows, documents, first)
    if not n_paragraphs and limit != 0:
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
    for title, article_rows in groupby(rows, key=lambda row: row.get("title") or ""):
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
    _check(path, "", data, _FILE, left_out)
    for a, article in enumerate(data["data"]):
        _check(path, f"data[{a}]", article, _ARTICLE, left_out)
        for p, paragraph in enumerate(article["paragraphs"]):
            _check(path, f"data[{a}].paragraphs[{p}]", paragraph, _PARAGRAPH, left_out)
            if not paragraph["qas"]:
                left_out[_EMPTY] += 1
            yield [
                {
                    "id": question["id"],
                    "title": article.get("title", ""),
                    "context": paragraph["context"],
                    "question": question["question"],
                    "answers": {key: [answer[key] for answer in question["answers"]] for key in _ANSWER},
                }
                for question in paragraph["qas"]
            ]


def _check(path: Path, at: str, record: Any, form: Form, left_out: Counter[str]) -> None:
    """Raise DataError squad-form if an object lacks a value of its form, json-surrogate for half of a pair in a string.

    at: the way to the object, "" for the file. Only the title of an article may be missing.
    """
    values = record if isinstance(record, dict) else {}
    for key, kind in form.items():
        value: Any = values.get(key, "" if key == "title" else None)
        plain = list if isinstance(kind, list) else kind
        if plain is not None and (not isinstance(value, plain) or isinstance(value, bool)):
            raise DataError(
                f"{at or 'the file'} has no {_KINDS[plain]} {key!r}",
                where=str(path),
                fix=_ROWS * (key == "data")
                + "give the file the form of SQuAD: data, paragraphs, context, qas, id, question, answers",
                id="squad-form",
            )
        if plain is str and (half := _SURROGATE.search(value)):
            raise DataError(
                f"{at}.{key} holds half of a surrogate pair, \\u{ord(half[0]):04x}",
                where=str(path),
                fix="replace it in the file, for instance by \\ufffd",
                id="json-surrogate",
            )
        for i, inner in enumerate(value if isinstance(kind, list) else ()):
            _check(path, f"{at}.{key}[{i}]", inner, kind[0], left_out)
    left_out.update(values.keys() - form.keys())


def _rows(path: Path, rows: list[Row], documents: list[int], first: int) -> Rows:
    names = tuple(f"question {row['id']}" for row in rows)
    numbers = np.array(documents, np.int64)
    return Rows(path, pa.Table.from_pylist(rows, SCHEMA), np.zeros_like(numbers), numbers, first_row=first, names=names)


def _question(row: Row) -> Row:
    texts, starts = row["answers"]["text"], row["answers"]["answer_start"]
    answers = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    question = {"id": str(row["id"]), "question": row["question"], "answers": answers}
    return question if any(map(str.strip, texts)) else {**question, "is_impossible": True}


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
