"""A job and its tasks as JSON, so that processes that share nothing but a store can work on one set.

    stored(job, plan, request)  ──▶  .derivlang/plan.json  ──▶  restored(…)  in every rank

A plan may have been written by somebody else. So nothing in it is run, and a rank reads only such files
as have the content that the plan states (`with_stamps`): a plan reaches no file whose content its author does not know.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from derivlang.core.errors import DataError, UsageError
from derivlang.core.layers.registry import LAYERS
from derivlang.core.lexicon import Lexicon
from derivlang.core.parse_errors import parse_errors
from derivlang.core.policies import Policies
from derivlang.core.schema import Schema
from derivlang.engine.job import Job, Plan, ShardTask
from derivlang.engine.plan import stamp_of
from derivlang.engine.watch import FileStamp
from derivlang.formats.file_piece import Piece
from derivlang.formats.opening import check_encoding
from derivlang.formats.places import located
from derivlang.formats.registry import GENERATED, NO_FILES, find_format
from derivlang.formats.spec_paths import files_of
from derivlang.formats.store_errors import changed_file
from derivlang.pipeline import Pipeline
from derivlang.sources.corpus import Corpus, CorpusFile, FileSpan
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.record import Kind, check_types
from derivlang.store.task_record import TASK

# Fields of a corpus that are JSON values as they are.
_PLAIN = (
    "name", "format", "words", "language", "layout", "aliases", "language_column", "rows_language", "licence",
    "citation", "spec", "origin", "revision",
)  # fmt: skip
_NOT_STORED = ("made", "policies", "recipe")  # options of a corpus that no task needs, or that are found again
_FIELDS: dict[str, Kind] = {
    **dict.fromkeys(("spec", "rule", "encoding"), str),
    **dict.fromkeys(("drop_columns", "options", "parts"), list),
    **dict.fromkeys(("policies", "corpus", "tasks"), dict),
    "repair_tags": bool,
}
_CORPUS: dict[str, Kind] = {
    **dict.fromkeys(("name", "format", "words", "language", "licence", "citation"), str),
    **dict.fromkeys(("layout", "aliases", "schema", "options"), dict),
    "expected": list,
}
_CORPUS_OPTIONAL: dict[str, Kind] = dict.fromkeys(
    ("language_column", "rows_language", "spec", "origin", "revision", "types"), str
)
_HUB = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?\|[^|]*\|[^|]*")  # a path in hub.py
_PARSER = re.compile(r"(spacy:)?[\w-]+")  # an installed one: folders may hold what a library runs when it loads them
_DIGEST = re.compile(r"([0-9a-f]{64})?")  # none while a file is not hashed: no file has it, so none is taken for it


def stored(job: Job, plan: Plan, request: SourceRequest) -> dict[str, Any]:
    """Return a job, without the texts of its lexicons, and its tasks as JSON values.

    request: of a generated source, which every rank opens again. UsageError for a source that cannot be stored.
    """
    corpus = job.corpus
    if job.parser is not None and not _PARSER.fullmatch(job.parser):
        raise UsageError(
            f"ranks take no parser from {job.parser!r}: a plan may have been made by somebody else",
            where="--parser",
            fix="name one of derivlang, a plug-in, stanza or spacy:NAME; `parse` without --engine takes all",
            id="parser-name",
        )
    options = {name: value for name, value in corpus.options.items() if name not in _NOT_STORED}
    fix = "make it with `derivlang make`, without --engine"
    with parse_errors(request.source, "value", error=UsageError, id="not-planned", fix=fix):
        json.dumps(options)  # of a plug-in's format, they may be anything
    number = {part: i for i, part in enumerate(corpus.parts)}
    return {
        "spec": job.pipeline.stored,
        "rule": job.rule,
        "policies": asdict(job.policies),
        "encoding": job.encoding,
        "repair_tags": job.repair_tags,
        "drop_columns": list(job.drop_columns),
        "parser": job.parser,
        "options": list(job.options),
        "corpus": {
            **{name: getattr(corpus, name) for name in _PLAIN},
            "schema": corpus.schema.to_json(),
            "expected": list(corpus.expected),
            "options": options,
            "types": corpus.types and b64encode(corpus.types.serialize()).decode(),
        },
        "request": _request(request) if corpus.format == GENERATED else None,
        "parts": [_stored_part(job, part) for part in corpus.parts],
        "tasks": {
            split: [[task.name, [_stored_span(span, number[span.part]) for span in task.spans]] for task in tasks]
            for split, tasks in plan.items()
        },
    }


def restored(
    data: Mapping[str, Any],
    lexicon: str | None,
    source_lexicon: str | None,
    folder: Path,
    where: str,
    *,
    fitted: bool,
) -> tuple[Job, Plan]:
    """Return the job and the tasks of `stored`.

    lexicon, source_lexicon: the texts of lexicon.tsv and of the derived source's. folder: its `files/` are those that
    the spec names. where: for messages. fitted: as of `take` (plan_file.py). Raise DerivlangError for a plan that
    cannot be used.
    """
    with parse_errors(where, "plan", id="plan", fix="plan the set again, in another place"):
        _check(data)
        corpus = _corpus(data, source_lexicon, folder)
        plan = {split: [_task(task, split, corpus) for task in tasks] for split, tasks in data["tasks"].items()}
        pipeline = Pipeline.from_stored(data["spec"], files_of(folder), where=where)
        job = Job(
            corpus,
            pipeline,
            lexicon=pipeline.fit(saved=lexicon, where=where) if fitted else Lexicon(),
            lexicon_text=lexicon,
            rule=data["rule"],
            policies=Policies(**data["policies"]),
            encoding=data["encoding"],
            repair_tags=data["repair_tags"],
            drop_columns=tuple(data["drop_columns"]),
            parser=data["parser"],
            options=tuple(data["options"]),
            seen=_seen(data, corpus, {span.part for tasks in plan.values() for task in tasks for span in task.spans}),
        )
    if fitted:
        _check_parts(job)
    return job, plan


def with_stamps(job: Job, tasks: list[ShardTask], *, trusted: bool) -> Job:
    """Return the job with the stamps that the files of some tasks have here. DataError for one with another content.

    trusted: whether a user who may read the files has taken the stamps of the plan. Other files are hashed,
    each once: whoever may list a folder or a bucket knows the stamps of its files, but not what they hold.
    """
    seen = dict(job.seen)
    for path in dict.fromkeys(span.part.path for task in tasks for span in task.spans) if job.corpus.has_files else ():
        if trusted and seen[path].is_at(path):
            continue
        here = FileStamp.of(path)
        if here.sha256 != seen[path].sha256:
            raise changed_file(str(path))
        seen[path] = here
    return replace(job, seen=seen)


def _check(data: Mapping[str, Any]) -> None:
    """Raise ValueError for a field of another type than `stored` writes."""
    check_types(data, _FIELDS, {"request": dict, "parser": str})
    if data["parser"] is not None and not _PARSER.fullmatch(data["parser"]):
        raise ValueError(f"its parser is {data['parser']!r}")
    check_types(data["corpus"], _CORPUS, _CORPUS_OPTIONAL, where="corpus.")
    check_encoding(data["encoding"])
    check_types(data["policies"], dict.fromkeys(data["policies"], str), where="policies.")
    texts = [*data["drop_columns"], *data["options"], *data["corpus"]["expected"]]
    texts += _checked_schema(data["corpus"]["schema"], data["corpus"]["format"])
    for split, path, name, stamp in data["parts"]:
        texts += [split, path, name]
        if stamp is not None:
            numbers, digest = stamp
            check_whole(numbers)
            if len(numbers) != 4 or not _DIGEST.fullmatch(digest):
                raise ValueError(f"the stamp of {name} is {stamp}")
    for tasks in data["tasks"].values():
        for _, spans in tasks:
            if not spans:
                raise ValueError("a task reads nothing")
            for part, begin, end, line, first, limit in spans:
                check_whole([part, begin, line, first, *(n for n in (end, limit) if n is not None)])
    if any(not isinstance(text, str) for text in texts):
        raise ValueError("a name in it is not a text")


def _checked_schema(schema: Mapping[str, Any], format: str) -> list[Any]:
    """Return the names of classes in a schema. ValueError for a field of another type, or of another format."""
    check_types(schema, {"sides": list, "fields": list, "running": bool, "parsed": bool})
    for side in schema["sides"]:
        check_types(side, {"name": str}, {"words": str, "text": str}, where="sides.")
        if not (schema["running"] or side["words"] or side["text"]):
            raise ValueError("a side has neither words nor text")
    classes = []
    for field in schema["fields"]:
        lists = {"classes": list, "given_classes": list}
        optional: dict[str, Kind] = {"given": str, "scheme": str, **lists}
        check_types(field, {"column": str, "kind": str, "lexical": bool}, optional, where="fields.")
        LAYERS.find(field["kind"])
        classes += [one for name in lists for one in field.get(name) or ()]
    if format not in (*NO_FILES, "derived") and schema["running"] != find_format(format).running:
        raise ValueError(f"files of the format {format} are not read so")
    return classes


def check_whole(numbers: list[Any]) -> None:
    """Raise ValueError unless all are whole numbers from 0 on."""
    if any(type(number) is not int or number < 0 for number in numbers):
        raise ValueError(f"{numbers} are not whole numbers")


def _corpus(data: Mapping[str, Any], lexicon_text: str | None, folder: Path) -> Corpus:
    told, policy = data["corpus"], files_of(folder)
    corpus = Corpus(
        schema=Schema.from_json(told["schema"]),
        parts=tuple(CorpusFile(split, _place(path, told["format"]), name) for split, path, name, _ in data["parts"]),
        options=_with_tuples(told["options"]),
        expected=tuple(told["expected"]),
        spec_files=policy,
        lexicon_text=lexicon_text,
        types=pa.ipc.read_schema(pa.py_buffer(b64decode(told["types"]))) if told["types"] else None,
        **{name: told[name] for name in _PLAIN},
    )
    if corpus.format == GENERATED:
        found = find(SourceRequest(**data["request"]))
        if found.name != corpus.name:
            raise ValueError(f"its source is {found.name}, not {corpus.name}")
        corpus = replace(corpus, options=found.options)
    if corpus.spec is not None:
        of_source = Pipeline.parse(corpus.spec, files=policy)
        corpus = replace(corpus, lexicon=of_source.fit(saved=lexicon_text))
    return corpus


def _place(path: str, format: str) -> Path:
    """Return the path of a part. ValueError for a set of the hub that would be a folder of this machine."""
    if format == "hub" and (not _HUB.fullmatch(path) or os.path.lexists(re.split("[@|]", path)[0])):
        raise ValueError(f"{path!r} is not a set of the hub")
    if "\0" in path:
        raise ValueError("a part of the source has a NUL character in its path")
    place = Path(path) if format in NO_FILES else located(path)
    if isinstance(place, Path) and place.exists() and not place.is_file():  # a pipe or a device may have no end
        raise ValueError(f"{path} is not a file")
    return place


def _seen(data: Mapping[str, Any], corpus: Corpus, read: set[CorpusFile]) -> dict[Path, FileStamp]:
    """Return the stamps of the files as they were planned. ValueError for one that is read and has none."""
    seen = {}
    for part, (*_, stamp) in zip(corpus.parts, data["parts"], strict=True):
        if stamp is None and part not in read:
            continue
        numbers, sha256 = stamp
        seen[part.path] = FileStamp(tuple(numbers), sha256)
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
    if not TASK.fullmatch(name) or name.rsplit("-", 3)[0] != split:  # it becomes the name of a file
        raise ValueError(f"{name!r} is not the name of a task")
    if any(corpus.parts[part].split != split for part, *_ in spans):
        raise ValueError(f"{name} reads another split")
    return ShardTask(
        name,
        tuple(
            FileSpan(corpus.parts[part], Piece(begin, end, line), first, limit)
            for part, begin, end, line, first, limit in spans
        ),
    )


def _request(request: SourceRequest) -> dict[str, Any]:
    folder = request.data_dir
    return {"source": request.source, **({"data_dir": str(Path(folder).absolute())} if folder else {})}


def _with_tuples(value: Any) -> Any:
    """Return a JSON value with tuples in place of lists, as options of sources have them."""
    if isinstance(value, list):
        return tuple(map(_with_tuples, value))
    return {name: _with_tuples(one) for name, one in value.items()} if isinstance(value, dict) else value
