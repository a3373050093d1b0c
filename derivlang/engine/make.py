"""From a source to a derived folder: find, plan, fit, run, write the manifest and the card."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import derivlang
from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.batch import Policies
from derivlang.core.errors import DataError, UsageError
from derivlang.core.sentences import RULE_VERSION, Rule
from derivlang.engine.engines import Engine, choose
from derivlang.engine.job import OPTIONAL, Job, Result, Task, Vocabulary, count_vocabulary, shares
from derivlang.engine.plan import SHARD_TOKENS, check_shard_tokens, make_plan, source_files
from derivlang.formats.opening import check_encoding
from derivlang.parsing.base import find_parser
from derivlang.pipeline import Pipeline, read_lexicon
from derivlang.sources.corpus import Corpus
from derivlang.sources.find import Request, find
from derivlang.store.card import card
from derivlang.store.disk import disk
from derivlang.store.journal import STAGE, Journal
from derivlang.store.manifest import FORMAT, LEXICON, NAME, dump

_DROPS = ("-dropped", "-deleted")
_TOTAL = "-total"


@dataclass(frozen=True, slots=True)
class Options:
    """What `make` takes besides the pipeline and the source. limit: documents a split. parser: as `find_parser` names
    it; parses: the folder that keeps parses."""

    out: Path
    splits: tuple[str, ...] = ()
    seed: int | None = None
    workers: int = 1
    engine: str = "local"
    shard_tokens: int = SHARD_TOKENS
    limit: int | None = None
    lexicon: Path | None = None
    rule: Rule = "marks"
    policies: Policies = Policies()
    repair_tags: bool = False
    columns: tuple[str, ...] = ()
    force: bool = False
    parser: str | None = None
    parses: Path | None = None


@dataclass(frozen=True, slots=True)
class Events:
    """What a caller may want to know while it runs: warnings, the number of tasks, each one done."""

    warn: Callable[[str], None] = lambda message: None
    start: Callable[[int], None] = lambda tasks: None
    done: Callable[[Result], None] = lambda result: None


def make(
    spec: str,
    request: Request,
    options: Options,
    events: Events = Events(),
) -> dict[str, Any]:
    """Make a derived set; the same call goes on where an earlier one stopped. Text that `syn` needs trees of is
    parsed first.

    Returns {"out", "splits": {name: {"documents", "sentences", "tokens"}}, "changed", "dropped", "seconds",
    "tokens_per_second"}. Raises DerivlangError; finished shards are kept, nothing is half-written.
    """
    began = time.perf_counter()
    check_shard_tokens(options.shard_tokens)
    check_encoding(request.encoding)
    choose(options.engine, options.workers)
    pipeline = Pipeline.parse(spec, seed=options.seed)
    corpus = find(request)
    if request.source and corpus.format == "derived" and Path(request.source).resolve() == options.out.resolve():
        raise UsageError("a set cannot be made over its own source", where="-o", fix="another folder", id="output")
    if corpus.spec is not None:
        pipeline = Pipeline.parse(corpus.spec).then(pipeline)
    _warn_missing(corpus, options, events)
    if pipeline.needs_trees and not corpus.schema.has_trees:
        from derivlang.engine.parse import parsed

        corpus = parsed(corpus, request, options, events)
    saved = read_lexicon(options.lexicon) if options.lexicon else corpus.lexicon
    job = Job(
        str(pipeline),
        saved,
        corpus,
        options.rule,
        options.policies,
        request.encoding,
        options.repair_tags,
        _dropped_columns(options.columns, pipeline),
    )
    return summary(options.out, build(pipeline, job, options, events), began)


def build(pipeline: Pipeline, job: Job, options: Options, events: Events) -> dict[str, Any]:
    """Plan, fit and run a job; the manifest of what then lies in `options.out`."""
    engine = choose(options.engine, options.workers)
    plan = make_plan(
        job, options.out / STAGE, splits=list(options.splits), shard_tokens=options.shard_tokens, limit=options.limit
    )
    files = job.corpus.options.get("files") or source_files(job, list(plan))
    identity = identity_of(job, plan, files)
    journal = Journal(options.out, identity)
    finished = journal.open(force=options.force)
    if finished is not None:
        return finished
    try:
        job = _fit(pipeline, job, options, events)
        results = _run(job, plan, journal, engine, events)
        lexicon = pipeline.fit(saved=job.lexicon)
        vocabulary = shares(*results.vocabulary.result(), lexicon)
        manifest = _manifest(pipeline, job, plan, files, identity, results, vocabulary)
        texts = {"README.md": card(manifest), NAME: dump(manifest)}
        journal.close(texts if job.lexicon is None else {LEXICON: job.lexicon, **texts})
    except BaseException:
        journal.give_up()
        raise
    return manifest


@dataclass(slots=True)
class _Results:
    """The results of all tasks, those of an earlier run included."""

    entries: dict[str, dict[str, Any]]
    vocabulary: Vocabulary


def _run(job: Job, plan: dict[str, list[Task]], journal: Journal, engine: Engine, events: Events) -> _Results:
    tasks = [task for split in plan.values() for task in split]
    todo = [task for task in tasks if task.name not in journal.done]
    events.start(len(todo))
    if todo:
        for result in engine(job, todo):
            _save_vocabulary(journal.vocabulary(result.task.name), result.types, result.type_counts)
            journal.add(
                result.task.name,
                {
                    "shard": result.shard,
                    "documents": result.documents,
                    "sentences": result.sentences,
                    "tokens": result.tokens,
                    "counts": result.counts,
                },
            )
            events.done(result)
    vocabulary = Vocabulary()
    for task in tasks:  # in the order of the plan: the manifest does not depend on who was first
        vocabulary.add(*_read_vocabulary(journal.vocabulary(task.name)))
    return _Results({task.name: journal.done[task.name] for task in tasks}, vocabulary)


def _fit(pipeline: Pipeline, job: Job, options: Options, events: Events) -> Job:
    """The job with its lexicon: saved, or fitted on the whole train split (else the first), before any limit."""
    where = str(options.lexicon or "--lexicon")
    if options.lexicon or not pipeline.needs_counts(job.lexicon):
        lexicon = pipeline.fit(saved=job.lexicon, where=where)
    else:
        split = job.corpus.splits[0]
        if split != "train" and "train" in job.corpus.expected:
            events.warn(f"no train split here: the kept types are fitted on {split}")
        reference = make_plan(job, options.out, splits=[split], shard_tokens=1 << 40, limit=None)
        types, counts = count_vocabulary(job, reference[split])
        lexicon = pipeline.fit(types, counts, saved=job.lexicon, where=where)
    return replace(job, lexicon=pipeline.save(lexicon))


def identity_of(job: Job, plan: dict[str, list[Task]], files: list[dict[str, Any]]) -> str:
    """A hash of everything that the output depends on; the number of workers is not among it."""
    pipeline = Pipeline.parse(job.spec)
    tasks = [
        (t.name, t.part.name, t.piece.begin, t.piece.end, t.first_document, t.limit)
        for split in plan.values()
        for t in split
    ]
    corpus = job.corpus
    parts = (
        pipeline.fingerprint(job.lexicon),
        (job.rule, RULE_VERSION, asdict(job.policies), job.encoding, job.repair_tags, job.drop_columns),
        (corpus.name, corpus.schema.to_json(), str(corpus.splitter()), corpus.language),
        tasks,
        files,
        (FORMAT, derivlang.__version__, pa.__version__),
        *([_parser_of(job)] if _parser_of(job) else []),
    )
    return sha256(repr(parts).encode()).hexdigest()


def _parser_of(job: Job) -> dict[str, str] | None:
    """Name and fingerprint of the parser that found the trees: now, or when the source was parsed."""
    if job.parser is None:
        return job.corpus.options.get("parser")
    parser = find_parser(job.parser, job.corpus.language)
    return {"name": parser.name, "fingerprint": parser.fingerprint}


def _manifest(
    pipeline: Pipeline,
    job: Job,
    plan: dict[str, list[Task]],
    files: list[dict[str, Any]],
    identity: str,
    results: _Results,
    vocabulary: dict[str, Any],
) -> dict[str, Any]:
    corpus = job.corpus
    # What was widened or repaired when a derived source was read first still is.
    whole = set(plan) == set(corpus.splits) and all(t.limit is None for tasks in plan.values() for t in tasks)
    counts = Counter(corpus.options.get("read", {}) if whole else {})
    splits: dict[str, Any] = {}
    for split, tasks in plan.items():
        entries = [results.entries[task.name] for task in tasks]
        for entry in entries:
            counts.update(entry["counts"])
        splits[split] = {
            **{key: sum(entry[key] for entry in entries) for key in ("documents", "sentences", "tokens")},
            "shards": [entry["shard"] for entry in entries if entry["shard"]["rows"]],
        }
        if not splits[split]["tokens"]:
            files_of = ", ".join(str(part.path) for part in corpus.parts if part.split == split)
            raise DataError(f"the split {split} of {corpus.name} holds no words", where=files_of, id="empty-file")
    return {
        "format": FORMAT,
        "derivlang": derivlang.__version__,
        "spec": job.spec,
        "fingerprint": pipeline.fingerprint(job.lexicon),
        "source": {
            "name": corpus.name,
            "format": corpus.origin or corpus.format,
            "language": corpus.language,
            "licence": corpus.licence,
            "citation": corpus.citation,
            "files": files,
        },
        "words": str(corpus.splitter()) if corpus.is_raw else corpus.options.get("words", "as given"),
        "sentences": job.rule,
        "sentence_rule_version": RULE_VERSION,
        "policies": asdict(job.policies),
        "encoding": job.encoding,
        "schema": corpus.schema.to_json(),
        "splits": splits,
        "missing": corpus.missing,
        "changed": {k: v for k, v in sorted(counts.items()) if not k.endswith((*_DROPS, _TOTAL))},
        "dropped": {k: v for k, v in sorted(counts.items()) if k.endswith(_DROPS)},
        "entities": _entities(counts),
        "vocabulary": vocabulary,
        "lexicon": LEXICON if job.lexicon else None,
        "columns_left_out": list(job.drop_columns),
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "pyarrow": pa.__version__},
        "plan": identity,
        **({"parser": parser} if (parser := _parser_of(job)) else {}),
    }


def _entities(counts: Counter[str]) -> dict[str, dict[str, Any]]:
    """Of each column with entities: how many there are, and how many an order has taken apart."""
    out = {}
    for key in sorted(key for key in counts if key.endswith(_TOTAL)):
        name, total = key.removesuffix(_TOTAL), counts[key]
        broken = counts[f"{name}-split"] + counts[f"{name}-dropped"]
        out[name] = {"entities": total, "broken": broken, "broken_percent": round(100 * broken / max(total, 1), 2)}
    return out


def summary(out: Path, manifest: dict[str, Any], began: float) -> dict[str, Any]:
    splits = {
        name: {key: entry[key] for key in ("documents", "sentences", "tokens")}
        for name, entry in manifest["splits"].items()
    }
    seconds = time.perf_counter() - began
    tokens = sum(entry["tokens"] for entry in splits.values())
    return {
        "out": str(out),
        "splits": splits,
        "changed": manifest["changed"],
        "dropped": manifest["dropped"],
        "seconds": round(seconds, 3),
        "tokens_per_second": round(tokens / seconds),
    }


def _warn_missing(corpus: Corpus, options: Options, events: Events) -> None:
    if corpus.missing and not options.splits:
        events.warn(f"{corpus.name}: no {' and no '.join(corpus.missing)} split was found; the others are made")


def _dropped_columns(columns: tuple[str, ...], pipeline: Pipeline) -> tuple[str, ...]:
    if not columns:
        return ()
    for name in columns:
        if name not in OPTIONAL:
            raise UsageError(
                f"{name!r} is no column that can be left out or kept; there are: {', '.join(OPTIONAL)}",
                where="--columns",
                fix="name the optional columns to keep; order and labels are always there",
                id="columns",
            )
    exact = pipeline.is_permutation and pipeline.injective
    if not {"source", "tokens"} & set(columns) or not (exact or {"source", "tokens"} <= set(columns)):
        what = "tokens or source" if exact else f"tokens and source (neither follows from the other under {pipeline})"
        raise UsageError(f"{what} must be kept", where="--columns", fix="e.g. --columns source,tokens", id="columns")
    return tuple(name for name in OPTIONAL if name not in columns)


def _save_vocabulary(path: Path, types: pa.Array, counts: Int64) -> None:
    with disk(path), pa.OSFile(str(path), "wb") as sink:
        table = pa.table({"type": types, "count": to_arrow(counts)})
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)


def _read_vocabulary(path: Path) -> tuple[pa.Array, Int64]:
    with pa.OSFile(str(path), "rb") as file:
        table = pa.ipc.open_file(file).read_all().combine_chunks()
    types = table["type"].chunk(0) if table.num_rows else string_array([])
    return types, to_numpy(table["count"])
