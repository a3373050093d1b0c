"""A job and its tasks as JSON, so that processes that share nothing but a store can work on one set.

    stored(job, plan, request)  ──▶  .derivlang/plan.json  ──▶  restored(…)  in every rank

A plan may have been written by somebody else. So nothing in it is run, and a rank reads only such files of its machine
as have the content that the plan states (`engine/watch.py`): a plan reaches no file that its author does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, UsageError
from derivlang.core.parse_errors import parse_errors
from derivlang.core.policies import Policies
from derivlang.core.schema import Schema
from derivlang.engine.job import Job, Plan, ShardTask
from derivlang.engine.plan import stamp_of
from derivlang.engine.watch import FileStamp
from derivlang.formats.file_piece import Piece
from derivlang.formats.places import located
from derivlang.formats.registry import GENERATED, NO_FILES
from derivlang.formats.spec_paths import files_of
from derivlang.pipeline import Pipeline
from derivlang.sources.corpus import Corpus, CorpusFile, FileSpan
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest

# Fields of a corpus that are JSON values as they are.
_PLAIN = (
    "name", "format", "words", "language", "layout", "aliases", "language_column", "rows_language", "licence",
    "citation", "spec", "origin",
)  # fmt: skip
_NOT_STORED = ("made", "policies", "recipe")  # options of a corpus that no task needs, or that are found again
_TASK = re.compile(r"[^/\\\0]+-\d{5,}-of-\d{5,}")
_HASH = re.compile(r"[0-9a-f]{64}")


def stored(job: Job, plan: Plan, request: SourceRequest) -> dict[str, Any]:
    """Return a job, without the texts of its lexicons, and its tasks as JSON values.

    request: of a generated source, which every rank opens again. UsageError for a source that cannot be stored.
    """
    corpus = job.corpus
    options = {name: value for name, value in corpus.options.items() if name not in _NOT_STORED}
    with parse_errors(request.source, "value", error=UsageError, id="not-planned", fix="make it with `derivlang make`"):
        json.dumps(options)  # of a plug-in's format, they may be anything
    number = {part: i for i, part in enumerate(corpus.parts)}
    return {
        "spec": job.pipeline.stored,
        "rule": job.rule,
        "policies": asdict(job.policies),
        "encoding": job.encoding,
        "repair_tags": job.repair_tags,
        "drop_columns": list(job.drop_columns),
        "options": list(job.options),
        "corpus": {
            **{name: getattr(corpus, name) for name in _PLAIN},
            "schema": corpus.schema.to_json(),
            "expected": list(corpus.expected),
            "options": options,
        },
        "request": _request(request) if corpus.format == GENERATED else None,
        "parts": [_stored_part(job, part) for part in corpus.parts],
        "tasks": {
            split: [[task.name, [_stored_span(span, number[span.part]) for span in task.spans]] for task in tasks]
            for split, tasks in plan.items()
        },
    }


def restored(
    data: Mapping[str, Any], lexicon: str | None, source_lexicon: str | None, folder: Path, where: str
) -> tuple[Job, Plan]:
    """Return the job, with its fitted lexicon, and the tasks of `stored`.

    lexicon, source_lexicon: the texts of lexicon.tsv and of the derived source's. folder: its `files/` are those that
    the spec names. where: for messages. Raise DerivlangError for a plan that cannot be used.
    """
    with parse_errors(where, "plan", id="plan", fix="plan the set again, in another place"):
        corpus = _corpus(data, source_lexicon, folder)
        plan = {split: [_task(task, split, corpus) for task in tasks] for split, tasks in data["tasks"].items()}
        pipeline = Pipeline.from_stored(data["spec"], files_of(folder), where=where)
        job = Job(
            corpus,
            pipeline,
            lexicon=pipeline.fit(saved=lexicon, where=where),
            lexicon_text=lexicon,
            rule=data["rule"],
            policies=Policies(**data["policies"]),
            encoding=data["encoding"],
            repair_tags=data["repair_tags"],
            drop_columns=tuple(data["drop_columns"]),
            options=tuple(data["options"]),
            seen=_seen(data, corpus, {span.part for tasks in plan.values() for task in tasks for span in task.spans}),
        )
    _check_parts(job)
    return job, plan


def _corpus(data: Mapping[str, Any], lexicon_text: str | None, folder: Path) -> Corpus:
    told, policy = data["corpus"], files_of(folder)
    corpus = Corpus(
        schema=Schema.from_json(told["schema"]),
        parts=tuple(CorpusFile(split, _place(path, told["format"]), name) for split, path, name, _ in data["parts"]),
        options=_with_tuples(told["options"]),
        expected=tuple(told["expected"]),
        spec_files=policy,
        lexicon_text=lexicon_text,
        **{name: told[name] for name in _PLAIN},
    )
    if corpus.format == GENERATED:
        corpus = replace(corpus, options=find(SourceRequest(**data["request"])).options)
    if corpus.spec is not None:
        of_source = Pipeline.parse(corpus.spec, files=policy)
        corpus = replace(corpus, lexicon=of_source.fit(saved=lexicon_text))
    return corpus


def _place(path: str, format: str) -> Path:
    return Path(path) if format in NO_FILES else located(path)


def _seen(data: Mapping[str, Any], corpus: Corpus, read: set[CorpusFile]) -> dict[Path, FileStamp]:
    """Return the stamps of the files as they were planned. ValueError for one that is read and has none."""
    seen = {}
    for part, (*_, stamp) in zip(corpus.parts, data["parts"], strict=True):
        if stamp is None and part not in read:
            continue
        (size, time, inode, changed), sha256 = stamp
        if not _HASH.fullmatch(sha256):
            raise ValueError(f"{sha256!r} is not the hash of {part.name}")
        seen[part.path] = FileStamp((size, time, inode, changed), sha256)
    return seen


def _check_parts(job: Job) -> None:
    """Raise DataError if a source that has no files is not the one that was planned."""
    if job.corpus.format == GENERATED:
        for part in job.corpus.parts:
            if part.path in job.seen and stamp_of(job, part).sha256 != job.seen[part.path].sha256:
                raise DataError(
                    "the source is not the one that was planned",
                    where=job.corpus.name,
                    fix="plan the set again",
                    id="source-changed",
                )


def _stored_part(job: Job, part: CorpusFile) -> list[Any]:
    path = part.path.absolute() if job.corpus.has_files else part.path
    seen = job.seen.get(part.path)
    return [part.split, str(path), part.name, None if seen is None else [list(seen.stamp), seen.sha256]]


def _stored_span(span: FileSpan, part: int) -> list[Any]:
    return [part, span.piece.begin, span.piece.end, span.piece.line, span.first_document, span.limit]


def _task(task: list[Any], split: str, corpus: Corpus) -> ShardTask:
    name, spans = task
    if not _TASK.fullmatch(name) or name.rsplit("-", 3)[0] != split:  # it becomes the name of a file
        raise ValueError(f"{name!r} is not the name of a task")
    return ShardTask(
        name,
        tuple(
            FileSpan(corpus.parts[part], Piece(begin, end, line), first, limit)
            for part, begin, end, line, first, limit in spans
        ),
    )


def _request(request: SourceRequest) -> dict[str, Any]:
    folder = request.data_dir
    return {"source": request.source, **({"data_dir": str(folder.absolute())} if folder else {})}


def _with_tuples(value: Any) -> Any:
    """Return a JSON value with tuples in place of lists, as options of sources have them."""
    if isinstance(value, list):
        return tuple(map(_with_tuples, value))
    return {name: _with_tuples(one) for name, one in value.items()} if isinstance(value, dict) else value
