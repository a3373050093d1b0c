"""A job as JSON, so that processes that share nothing but a store can work on one set.

    give(job, …)        ──▶  .derivlang/plan.json                    versions, hashes of these texts, the job, its tasks
                             .derivlang/HASH16/lexicon.tsv           the lexicon
                             .derivlang/HASH16/source-lexicon.tsv    the lexicon of a derived source
                             .derivlang/HASH16/files/                the files that the spec names
                        ──▶  take(…)  in every rank

A plan may have been written by somebody else. So nothing in it is run, and a rank reads only files with the content
that the plan states (`with_stamps`): a plan reaches no file whose content its author does not know.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.errors import DataError, StoreError, UsageError, parse_errors
from derivlang.core.layers.base import LAYERS
from derivlang.core.lexicon import Lexicon
from derivlang.core.policies import Policies
from derivlang.core.schema import Schema
from derivlang.core.version import __version__
from derivlang.engine.job import Job, ShardTask
from derivlang.engine.plan import look_at
from derivlang.formats.base import GENERATED, NO_FILES, find_format
from derivlang.formats.inspection import FileStamp
from derivlang.formats.opening import Piece, check_encoding
from derivlang.formats.places import located
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.formats.spec_paths import files_of
from derivlang.formats.store_errors import changed_file
from derivlang.parsing.registry import find_parser
from derivlang.pipeline import Pipeline
from derivlang.sources.corpus import Corpus, CorpusFile, FileSpan
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.making import Making
from derivlang.store.manifest import DIGEST, LEXICON, SCHEMA
from derivlang.store.record import check_record, check_same
from derivlang.store.set_plan import PLAN, TASK, is_of_set, stage_of
from derivlang.store.storage import Store, store_at

# Fields of a corpus that are JSON values as they are.
_PLAIN = {
    **dict.fromkeys(("name", "format", "words", "language", "licence", "citation"), str),
    **dict.fromkeys(("layout", "aliases"), dict),
    **dict.fromkeys(("language_column", "rows_language", "spec", "origin", "revision"), str | None),
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
    "limit?": int,
    "fitted_on?": str,
    "corpus": {**_PLAIN, "schema": SCHEMA, "expected": [str], "options": dict, "types?": str},
    "request?": {"source": str, "data_dir?": str},
    "parts": [{**dict.fromkeys(("split", "path", "name"), str), "stamp?": (int, int, int, int), "sha256?": _HASH}],
    "tasks": {"*": [{"name": TASK, "spans": [_SPAN]}]},
}


def stored(job: Job) -> dict[str, Any]:
    """Return a job as JSON values, without the texts of its lexicons. UsageError for one that cannot be stored."""
    corpus, request = job.corpus, job.request
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
        "limit": job.limit,
        "fitted_on": job.fitted_on,
        "corpus": {
            **{name: getattr(corpus, name) for name in _PLAIN},
            "schema": corpus.schema.to_json(),
            "expected": list(corpus.expected),
            "options": options,
            "types": corpus.types and b64encode(corpus.types.serialize()).decode(),
        },
        "request": _request(request) if corpus.format == GENERATED else None,  # every rank opens the source again
        "parts": [_stored_part(job, part) for part in corpus.parts],
        "tasks": {
            split: [
                {
                    "name": task.name,
                    "spans": [
                        {
                            "part": number[span.part],
                            **asdict(span.piece),
                            "first_document": span.first_document,
                            "limit": span.limit,
                        }
                        for span in task.spans
                    ],
                }
                for task in tasks
            ]
            for split, tasks in job.plan.items()
        },
    }


def _request(request: SourceRequest) -> dict[str, Any]:
    return {"source": request.source, "data_dir": request.data_dir and str(Path(request.data_dir).absolute())}


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
    for part, stored_part in zip(corpus.parts, data["parts"], strict=True):
        if "stamp" in stored_part or part in read:
            seen[part.path] = FileStamp(tuple(stored_part["stamp"]), stored_part["sha256"])
    return seen


def _check_parts(job: Job) -> None:
    """Raise DataError if a source that has no files is not the one that was planned."""
    if job.corpus.format == GENERATED:
        for part in job.corpus.parts:
            if part.path in job.seen and look_at(job, part).sha256 != job.seen[part.path].sha256:
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


def _task(task: Mapping[str, Any], split: str, corpus: Corpus) -> ShardTask:
    spans = tuple(
        FileSpan(
            corpus.parts[span["part"]],
            Piece(span["begin"], span["end"], span["line"]),
            span["first_document"],
            span["limit"],
        )
        for span in task["spans"]
    )
    if task["name"].rsplit("-", 3)[0] != split:  # it becomes the name of a file
        raise ValueError(f"{task['name']!r} is not the name of a task of {split}")
    if not spans or any(span.part.split != split for span in spans):
        raise ValueError(f"{task['name']} reads nothing, or another split")
    return ShardTask(task["name"], spans)


def _with_tuples(value: Any) -> Any:
    """Return a JSON value with tuples in place of lists, as options of sources have them."""
    if isinstance(value, list):
        return tuple(map(_with_tuples, value))
    return {name: _with_tuples(one) for name, one in value.items()} if isinstance(value, dict) else value


FORMAT = 3  # of plans
_FILE = {"format": FORMAT, "facts": {"*": str | None}, "texts": {"*": DIGEST}, "job": dict}
# What the bytes of a shard depend on besides the job: a process with other facts would write other shards.
Facts = Mapping[str, str | None]
_SOURCE_LEXICON = "source-lexicon.tsv"
_KEPT = f"{SPEC_FILES}/"


def give(job: Job, kept: Mapping[str, bytes]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return what the file of a plan says of a job, JSON values, and the texts beside it, by name.

    kept: the content of the files that the spec names, by name.
    """
    texts = {LEXICON: job.lexicon_text, _SOURCE_LEXICON: job.corpus.lexicon_text}
    files = {name: text.encode() for name, text in texts.items() if text is not None}
    files |= {f"{_KEPT}{name}": content for name, content in kept.items()}
    given = {
        "format": FORMAT,
        "facts": facts_of(job),
        "texts": {name: sha256(content).hexdigest() for name, content in files.items()},
        "job": stored(job),
    }
    return given, files


def take(out: Path, begun: Mapping[str, Any]) -> tuple[Job, Making]:
    """Return the job of a plan, and what is made of it. Nothing is looked at in the place of the set.

    out: the place of the set. begun: what `plan.json` says. While the source is counted, no lexicon is fitted: its text
    is the saved one to start from, and the files of the source have no hashes. StoreError if the plan was damaged, or
    if other versions have stored it.
    """
    store, stage, where = store_at(out), stage_of(begun["plan"]), str(out / PLAN)
    # A UsageError is of its spec: nobody typed it here.
    fix = "plan the set again, in another place"
    with parse_errors(where, "plan", error=StoreError, id="plan", fix=fix, within=UsageError):
        check_record(begun, _FILE)
        _check_facts(begun, versions(), out)
        data, fitted = begun["job"], begun.get("stage") != "count"
        _check(data)
        files = {name: _content(store, stage, name, digest) for name, digest in begun["texts"].items()}
        kept = {name.removeprefix(_KEPT): content for name, content in files.items() if name.startswith(_KEPT)}
        lexicon, of_source = (files[name].decode() if name in files else None for name in (LEXICON, _SOURCE_LEXICON))
        corpus = _corpus(data, of_source, out / stage)
        plan = {split: [_task(task, split, corpus) for task in tasks] for split, tasks in data["tasks"].items()}
        pipeline = Pipeline.from_stored(data["spec"], files_of(out / stage), where=where)
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
            request=SourceRequest(**(data["request"] or {"source": data["corpus"]["name"]})),
            seen=_seen(data, corpus, {span.part for tasks in plan.values() for task in tasks for span in task.spans}),
            plan=plan,
            limit=data["limit"],
            fitted_on=data["fitted_on"],
        )
        if fitted:
            _check_parts(job)
        making = Making(out, begun["plan"], begun["asked"], kept, begun)
    _check_facts(begun, facts_of(job), out)
    return job, making


def _content(store: Store, stage: str, name: str, digest: str) -> bytes:
    """Return a file that was stored with the plan. ValueError if it is not the same."""
    if name not in (LEXICON, _SOURCE_LEXICON) and not is_of_set(name):
        raise ValueError(f"{name!r} is not a file of a plan")
    content = store.get(f"{stage}/{name}")
    if content is None or sha256(content).hexdigest() != digest:
        raise ValueError(f"{name} is missing or was changed")
    return content


def _check_facts(begun: Mapping[str, Any], here: Facts, out: Path) -> None:
    """Raise StoreError if this process would write other bytes than the one that made the plan."""
    what = "the set was planned with other versions, and this process would write other bytes"
    fix = "install the same versions, or plan the set again with those that are here: all its tasks run again"
    check_same(begun["facts"], here, what, where=str(out), fix=fix, id="other-workers")


def versions() -> dict[str, str]:
    """Return the versions of this process, by name."""
    return {
        "version": __version__,
        "pyarrow": pa.__version__,
        "numpy": np.__version__,
        "unicode": unicodedata.unidata_version,
        "spacy": version("spacy"),
    }


def facts_of(job: Job) -> dict[str, str | None]:
    """Return the versions, and the fingerprints of pipeline and parser, which cover the files that a spec names.

    DerivlangError if this process cannot read what the job names.
    """
    parser = None if job.parser is None else find_parser(job.parser, job.corpus.language).fingerprint
    return {**versions(), "pipeline": job.pipeline.fingerprint(job.lexicon_text), "parser": parser}
