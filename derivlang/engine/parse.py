"""Parse once: the trees of a source, kept as a set of its own that every `syn` run of the source reads.

    source ──identity + parser──▶ PARSES/wikitext2-train-0123456789abcdef/      a split a folder

Such a set is like any other that `make` writes (shards, journal, manifest, resumed where it stopped), with the columns
upos, head and deprel. Its name holds a hash of the source's files, of how they are read, and of the parser.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.splits import split_name
from derivlang.engine.job import Job
from derivlang.engine.make import Events, Options, build, identity_of, summary
from derivlang.engine.plan import make_plan, source_files
from derivlang.parsing.base import find_parser
from derivlang.pipeline import Pipeline
from derivlang.sources.corpus import Corpus, Part
from derivlang.sources.find import Request, find
from derivlang.store.disk import alone
from derivlang.store.journal import STAGE

SHARD_TOKENS = 500_000  # parsing is slow: shards small enough that workers share the work and little is lost on a stop
_SPEC = "identity"


def parse(request: Request, options: Options, events: Events) -> dict[str, Any]:
    """Parse a source. options.out: the folder of a set with all its splits; `Path()`: where `make` looks for them.

    Returns what `make` returns. UsageError has-trees where there is nothing to parse; those of `find_parser`.
    """
    began = time.perf_counter()
    corpus = find(request)
    if corpus.schema.has_trees:
        raise UsageError(f"{corpus.name} has trees already", fix="make it: no parser is needed", id="has-trees")
    if corpus.spec is not None:
        raise UsageError(
            f"{corpus.name} is derived ({corpus.spec}): its words are no longer in the order that a parser reads",
            fix="parse its source, and make the set from that",
            id="parse-derived",
        )
    if options.out != Path():
        settings = replace(options, shard_tokens=min(options.shard_tokens, SHARD_TOKENS), columns=())
        manifest = build(Pipeline.parse(_SPEC), _job(corpus, request, options), settings, events)
        return summary(options.out, manifest, began)
    manifests = [manifest for _, manifest in _by_split(corpus, request, options, events)]
    splits = {name: entry for manifest in manifests for name, entry in manifest["splits"].items()}
    return summary(_store(options), {**manifests[0], "splits": splits}, began)


def parsed(corpus: Corpus, request: Request, options: Options, events: Events) -> Corpus:
    """The corpus with its trees: parsed now, or read from where an earlier run left them."""
    if corpus.spec is not None:
        raise UsageError(
            f"{corpus.name} was derived without trees, so that {corpus.spec} cannot be followed by syn",
            fix="make it from its source with all transforms at once: --t " + f"{corpus.spec},syn…",
            id="needs-trees",
        )
    job = _job(corpus, request, options)
    files: list[dict[str, Any]] = []
    parts: list[Part] = []
    words, parser = "as given", {}
    for folder, manifest in _by_split(corpus, request, options, events):
        files += manifest["source"]["files"]
        words, parser = manifest["words"], manifest["parser"]
        parts += [
            Part(split, folder / shard["file"], f"{folder.name}/{shard['file']}")
            for split, entry in manifest["splits"].items()
            for shard in entry["shards"]
        ]
    return replace(
        job.corpus,
        format="derived",
        origin=corpus.format,
        parts=tuple(parts),
        options={"files": files, "words": words, "parser": parser},
    )


def _by_split(
    corpus: Corpus, request: Request, options: Options, events: Events
) -> Iterable[tuple[Path, dict[str, Any]]]:
    """Folder and manifest of each split that is wanted, one after the other."""
    wanted = [split_name(split) for split in options.splits] or corpus.splits
    job = _job(corpus, request, options)
    for split in dict.fromkeys(wanted):
        # Shards of one size, whatever the derived set's: the plan is part of what the parse is known by.
        settings = replace(options, splits=(split,), shard_tokens=SHARD_TOKENS, columns=(), force=False)
        plan = make_plan(job, Path(STAGE), splits=[split], shard_tokens=settings.shard_tokens, limit=options.limit)
        identity = identity_of(job, plan, source_files(job, [split]))
        name = "".join(c if c.isalnum() or c in "-_." else "-" for c in corpus.name)
        folder = _store(options) / f"{name}-{split}-{identity[:16]}"
        with alone(folder):
            manifest = build(Pipeline.parse(_SPEC), job, replace(settings, out=folder), events)
        yield folder, manifest


def _job(corpus: Corpus, request: Request, options: Options) -> Job:
    find_parser(options.parser, corpus.language)  # an unknown one is an error before anything is read
    return Job(
        _SPEC,
        None,
        replace(corpus, schema=replace(corpus.schema, parsed=True)),
        options.rule,
        options.policies,
        request.encoding,
        options.repair_tags,
        parser=options.parser or find_parser(None, corpus.language).name,
    )


def _store(options: Options) -> Path:
    """The folder that keeps parses: as asked, $DERIVLANG_PARSES, or the user's cache."""
    if options.parses is not None:
        return options.parses
    if os.environ.get("DERIVLANG_PARSES"):
        return Path(os.environ["DERIVLANG_PARSES"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "derivlang" / "parses"
