"""What a finished set says of itself: the plan's hash, the manifest, and the options of the command that makes it."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.errors import DataError, UsageError
from derivlang.core.layers.base import LAYERS
from derivlang.core.policies import Policies
from derivlang.core.sentences import RULE_VERSION
from derivlang.core.settings import declared, typed
from derivlang.core.version import __version__
from derivlang.engine.job import Job
from derivlang.engine.options import MakeOptions
from derivlang.formats.base import FORMATS
from derivlang.parsing.registry import find_parser
from derivlang.sources.corpus import Corpus
from derivlang.sources.request import SourceRequest
from derivlang.store.manifest import FORMAT, LEXICON, OUTPUT_VERSION
from derivlang.transforms.registry import TRANSFORMS

_DROPS = ("-dropped", "-deleted")
_TOTAL = "-total"

Files = list[dict[str, Any]]  # name, bytes and SHA-256 of each source file
_SHARD = ("file", "sha256", "bytes", "rows", "words")


def plan_hash(job: Job, files: Files, fitted_on: Files | None = None) -> str:
    """Return a hash of everything that the output depends on. The number of workers is not part of it.

    fitted_on: the files that only the lexicon is fitted on.
    """
    tasks = [
        (task.name, span.part.name, span.piece.begin, span.piece.end, span.first_document, span.limit)
        for task in job.tasks
        for span in task.spans
    ]
    corpus = job.corpus
    parser = _parser_of(job)
    parts = (
        job.pipeline.fingerprint(job.lexicon_text),
        (job.rule, RULE_VERSION, asdict(job.policies), job.encoding, job.repair_tags, job.drop_columns),
        (corpus.name, corpus.format, corpus.layout, corpus.schema.to_json(), str(corpus.splitter()), corpus.language),
        tasks,
        files,
        (FORMAT, OUTPUT_VERSION, pa.__version__),
        parser,
        fitted_on,
    )
    return sha256(repr(parts).encode()).hexdigest()


def asked_of(job: Job, files: Files) -> dict[str, Any]:
    """Return what the manifest records of the command. With other values here, a set is of another command."""
    corpus = job.corpus
    told = corpus.options.get("told", {})  # of a derived source: how its own source was read
    return {
        "spec": job.pipeline.stored,
        **({} if job.pipeline.keyed else {"keyed": False}),
        "fingerprint": job.pipeline.fingerprint(job.lexicon_text),
        "source": {
            "name": corpus.name,
            "format": corpus.origin or corpus.format,
            "language": corpus.language,
            "licence": corpus.licence,
            "citation": corpus.citation,
            "files": files,
            **({"revision": corpus.revision} if corpus.revision else {}),
            **({"layout": corpus.layout} if corpus.layout else {}),
        },
        "words": corpus.word_rule,
        "sentences": job.rule,
        "sentence_rule_version": RULE_VERSION,
        "policies": asdict(job.policies),
        "encoding": told.get("encoding", job.encoding),
    }


def manifest_of(
    job: Job, files: Files, plan_hash: str, results: Mapping[str, list[dict[str, Any]]], shared: dict[str, Any]
) -> dict[str, Any]:
    """Return the manifest of a finished set.

    results: of each split, the entries of the records of its tasks (`store/set_plan.py`). shared: what source and
    derived language have in common, from `shares`. DataError for a split without words.
    """
    corpus, parser = job.corpus, _parser_of(job)
    told = corpus.options.get("told", {})  # of a derived source: how its own source was read
    # What was widened or repaired when a derived source was first read still is, if all of it was read now.
    whole = set(job.plan) == set(corpus.splits) and all(s.limit is None for task in job.tasks for s in task.spans)
    counts = Counter(corpus.options.get("read", {}) if whole else {})
    counts.update(corpus.options.get("parsed", {}))  # a parse has the same splits and the same limit
    plug_ins = _plug_ins(job)
    splits: dict[str, Any] = {}
    for split, made in results.items():
        for entry in made:
            counts.update(entry["counts"])
        numbers = {name: sum(entry[name] for entry in made) for name in ("documents", "sentences", "tokens")}
        articles: list[Any] = [entry.get("articles") for entry in made]  # None where a task counted none
        shards = [{name: entry["shard"][name] for name in _SHARD} for entry in made if entry["shard"]["rows"]]
        of_text = {"articles": sum(articles)} if None not in articles and any(articles) else {}
        splits[split] = {**numbers, **of_text, "shards": shards}
        if not numbers["sentences"]:  # sentences whose words are all deleted stay, without words
            files_of = ", ".join(str(part.path) for part in corpus.parts if part.split == split)
            raise DataError(f"the split {split} of {corpus.name} holds no words", where=files_of, id="empty-file")
    return {
        "format": FORMAT,
        "derivlang": __version__,
        **asked_of(job, files),
        "schema": corpus.schema.to_json(),
        "splits": splits,
        "missing": corpus.missing,
        "changed": {k: v for k, v in sorted(counts.items()) if not k.endswith((*_DROPS, _TOTAL))},
        "dropped": {k: v for k, v in sorted(counts.items()) if k.endswith(_DROPS)},
        "entities": _entities(counts),
        "vocabulary": shared,
        "lexicon": LEXICON if job.lexicon_text else None,
        "columns_left_out": list(job.drop_columns),
        "limit": job.limit,
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "pyarrow": pa.__version__,
        },
        "plan": plan_hash,
        **({"parser": parser or told["parser"]} if parser or told.get("parser") else {}),
        **({"options": list(job.options)} if job.options else {}),
        **({"plug_ins": plug_ins} if plug_ins else {}),
    }


def _plug_ins(job: Job) -> dict[str, str]:
    """Return the packages of the transforms, kinds of layers and formats that are plug-ins, by kind and name."""
    corpus = job.corpus
    before = corpus.options.get("told", {}).get("plug_ins") or {}  # of a derived source, whose format is not read again
    format = f"format {corpus.origin or corpus.format}"
    return {
        **TRANSFORMS.providers(transform.name for transform in job.pipeline.transforms),
        **LAYERS.providers(field.kind for field in corpus.schema.fields),
        **({format: before[format]} if format in before else FORMATS.providers([corpus.format])),
    }


def _parser_of(job: Job) -> dict[str, str] | None:
    """Return name and fingerprint of the parser that finds the trees, or that found them when the source was parsed."""
    if job.parser is None:
        return job.corpus.options.get("parser")
    parser = find_parser(job.parser, job.corpus.language)
    return {"name": parser.name, "fingerprint": parser.fingerprint}


def _entities(counts: Counter[str]) -> dict[str, dict[str, Any]]:
    """Return, for each column with entities, how many there are and how many of them the order has split."""
    out = {}
    for key in sorted(key for key in counts if key.endswith(_TOTAL)):
        name, total = key.removesuffix(_TOTAL), counts[key]
        broken = counts[f"{name}-split"] + counts[f"{name}-dropped"]
        out[name] = {"entities": total, "broken": broken, "broken_percent": round(100 * broken / max(total, 1), 2)}
    return out


_OF_SOURCE = (
    "word_column", "text_column", "header", "quoting", "delimiter", "words", "lang", "encoding", "format",
    "column_names",
)  # fmt: skip
_RULES = ("limit", "sentences", "repair_tags", "parser")  # the other settings say how a run goes


def continued(corpus: Corpus, options: MakeOptions) -> MakeOptions:
    """Return the options for a derived set as the source: its sentences stay, and its policies hold for all transforms.

    Raises UsageError for a policy that would undo the set's policy, and for another rule of sentences.
    """
    rule = corpus.options["sentences"]
    if options.sentences not in (rule, declared(MakeOptions)["sentences"].default):
        raise UsageError(
            f"the set has its sentences already, by the rule {rule}",
            where="--sentences",
            fix="leave --sentences out, or make the set from its first source",
            id="unused-option",
        )
    for name, one in declared(Policies).items():
        policy = getattr(corpus.options["policies"], name)
        if policy not in (one.default, getattr(options.policies, name)):
            raise UsageError(
                f"the source was made with --{name} {policy}, which must hold for all transforms of a set",
                where=f"--{name}",
                fix=f"give --{name} {policy}, or make the set from its first source",
                id="other-policy",
            )
    limit = options.limit and min(options.limit, corpus.options["limit"] or options.limit)
    return replace(options, sentences=rule, limit=limit)


def recipe_of(corpus: Corpus, request: SourceRequest, options: MakeOptions) -> list[str]:
    """Return the options of the one command that makes the set. A derived source was read with its own options.

    its own --words=space --columns=source --limit=9, and now --limit=5  ->  ["--words=space", "--limit=5"]
    """
    if corpus.format != "derived":
        return options_of(request, options)
    later = options_of(SourceRequest(request.source), options)
    names = {option.partition("=")[0] for option in later} | {"--columns"}
    return [*(option for option in corpus.options["recipe"] if option.partition("=")[0] not in names), *later]


def options_of(request: SourceRequest, options: MakeOptions) -> list[str]:
    """Return the options that differ from their defaults, each as one word of a command line."""
    if options.parser and "/" in options.parser:
        options = replace(options, parser=f"{Path(options.parser).name}/")
    return [
        *typed(request, _OF_SOURCE),
        *typed(options, ("splits", "columns")),
        *([f"--lexicon={LEXICON}"] if options.lexicon else []),
        *typed(options, _RULES),
        *typed(options.policies, declared(Policies)),
    ]
