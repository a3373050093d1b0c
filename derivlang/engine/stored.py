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
from derivlang.core.layers.base import LAYERS
from derivlang.core.lexicon import Lexicon
from derivlang.core.parse_errors import parse_errors
from derivlang.core.policies import Policies
from derivlang.core.schema import Schema
from derivlang.engine.job import Job, Plan, ShardTask
from derivlang.engine.plan import stamp_of
from derivlang.engine.watch import FileStamp
from derivlang.formats.base import GENERATED, NO_FILES, find_format
from derivlang.formats.opening import Piece, check_encoding
from derivlang.formats.places import located
from derivlang.formats.spec_paths import files_of
from derivlang.formats.store_errors import changed_file
from derivlang.pipeline import Pipeline
from derivlang.sources.corpus import Corpus, CorpusFile, FileSpan
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.manifest import SCHEMA
from derivlang.store.record import check_record
from derivlang.store.task_record import TASK

# Fields of a corpus that are JSON values as they are.
_PLAIN = {
    **dict.fromkeys(("name", "format", "words", "language", "licence", "citation"), str),
    **dict.fromkeys(("layout", "aliases"), dict),
    **dict.fromkeys(("language_column?", "rows_language?", "spec?", "origin?", "revision?"), str),
}
_NOT_STORED = ("made", "policies", "recipe")  # options of a corpus that no task needs, or that are found again
_HUB = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?\|[^|]*\|[^|]*")  # a path in hub.py
_PARSER = re.compile(r"(spacy:)?[\w-]+")  # an installed one: folders may hold what a library runs when it loads them
_HASH = re.compile(r"([0-9a-f]{64})?")  # none while a file is not hashed: no file has it, so none is taken for it
_SPAN = {**dict.fromkeys(("part", "begin", "line", "first_document"), int), "end?": int, "limit?": int}
_FORM = {
    **dict.fromkeys(("spec", "rule", "encoding"), str),
    "policies": {"*": str},
    "repair_tags": bool,
    "drop_columns": [str],
    "options": [str],
    "parser?": _PARSER,
    "corpus": {**_PLAIN, "schema": SCHEMA, "expected": [str], "options": dict, "types?": str},
    "request?": dict,
    "parts": [{**dict.fromkeys(("split", "path", "name"), str), "stamp?": (int, int, int, int), "sha256?": _HASH}],
    "tasks": {"*": [{"name": TASK, "spans": [_SPAN]}]},
}


def stored(job: Job, plan: Plan, request: SourceRequest) -> dict[str, Any]:
    """Return a job, without the texts of its lexicons, and its tasks as JSON values.

    request: of a generated source, which every rank opens again. UsageError for a source that cannot be stored.
    """
    corpus = job.corpus
    if job.parser is not None and not _PARSER.fullmatch(job.parser):
        raise UsageError(
            f"ranks take no parser from {job.parser!r}: a plan may have been made by somebody else",
            where="--parser",
            fix="name one of derivlang, a plug-in, stanza or spacy:NAME; `parse` takes all",
            id="parser-name",
        )
    options = {name: value for name, value in corpus.options.items() if name not in _NOT_STORED}
    fix = "make it with `derivlang make`"
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
            **{name: getattr(corpus, name) for name in _names(_PLAIN)},
            "schema": corpus.schema.to_json(),
            "expected": list(corpus.expected),
            "options": options,
            "types": corpus.types and b64encode(corpus.types.serialize()).decode(),
        },
        "request": _request(request) if corpus.format == GENERATED else None,
        "parts": [_stored_part(job, part) for part in corpus.parts],
        "tasks": {
            split: [
                {"name": task.name, "spans": [_stored_span(span, number[span.part]) for span in task.spans]}
                for task in tasks
            ]
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
    """Raise ValueError for a value of another form than `stored` writes."""
    check_record(data, _FORM)
    check_encoding(data["encoding"])
    format, schema = data["corpus"]["format"], data["corpus"]["schema"]
    if not all(schema["running"] or side["words"] or side["text"] for side in schema["sides"]):
        raise ValueError("a side has neither words nor text")
    for field in schema["fields"]:
        LAYERS.find(field["kind"])
    if format not in (*NO_FILES, "derived") and schema["running"] != find_format(format).running:
        raise ValueError(f"files of the format {format} are not read so")


def _corpus(data: Mapping[str, Any], lexicon_text: str | None, folder: Path) -> Corpus:
    told, policy = data["corpus"], files_of(folder)
    corpus = Corpus(
        schema=Schema.from_json(told["schema"]),
        parts=tuple(CorpusFile(p["split"], _place(p["path"], told["format"]), p["name"]) for p in data["parts"]),
        options=_with_tuples(told["options"]),
        expected=tuple(told["expected"]),
        spec_files=policy,
        lexicon_text=lexicon_text,
        types=pa.ipc.read_schema(pa.py_buffer(b64decode(told["types"]))) if told["types"] else None,
        **{name: told[name] for name in _names(_PLAIN)},
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
    for part, stored_part in zip(corpus.parts, data["parts"], strict=True):
        if "stamp" in stored_part or part in read:
            seen[part.path] = FileStamp(tuple(stored_part["stamp"]), stored_part["sha256"])
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


def _stored_part(job: Job, part: CorpusFile) -> dict[str, Any]:
    path = part.path.absolute() if job.corpus.has_files else part.path
    seen = job.seen.get(part.path)
    stamp = {"stamp": list(seen.stamp), "sha256": seen.sha256} if seen else {}
    return {"split": part.split, "path": str(path), "name": part.name, **stamp}


def _stored_span(span: FileSpan, part: int) -> dict[str, Any]:
    return {"part": part, **asdict(span.piece), "first_document": span.first_document, "limit": span.limit}


def _task(task: Mapping[str, Any], split: str, corpus: Corpus) -> ShardTask:
    name, spans = task["name"], tuple(_span(span, corpus) for span in task["spans"])
    if name.rsplit("-", 3)[0] != split:  # it becomes the name of a file
        raise ValueError(f"{name!r} is not the name of a task of {split}")
    if not spans or any(span.part.split != split for span in spans):
        raise ValueError(f"{name} reads nothing, or another split")
    return ShardTask(name, spans)


def _span(span: Mapping[str, Any], corpus: Corpus) -> FileSpan:
    piece = Piece(span["begin"], span["end"], span["line"])
    return FileSpan(corpus.parts[span["part"]], piece, span["first_document"], span["limit"])


def _names(form: Mapping[str, Any]) -> list[str]:
    return [name.removesuffix("?") for name in form]


def _request(request: SourceRequest) -> dict[str, Any]:
    folder = request.data_dir
    return {"source": request.source, **({"data_dir": str(Path(folder).absolute())} if folder else {})}


def _with_tuples(value: Any) -> Any:
    """Return a JSON value with tuples in place of lists, as options of sources have them."""
    if isinstance(value, list):
        return tuple(map(_with_tuples, value))
    return {name: _with_tuples(one) for name, one in value.items()} if isinstance(value, dict) else value
