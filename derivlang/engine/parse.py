"""Parse a source once, and keep the trees for all later runs of `syn` on this source.

    source ──identity + parser──▶ PARSES/wikitext2-train-0123456789abcdef/      one folder for each split

A parse is a derived set that `make` could have written: unchanged words, and the columns upos, head and deprel. So it
has shards, records and a manifest, and an interrupted parse is continued. The folder is named after a hash of the
source's files, the options that they are read with, and the parser.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.messages import in_shell
from derivlang.core.names import split_name
from derivlang.core.policies import warn_of_unused
from derivlang.core.settings import typed
from derivlang.engine.build import build, look_at_source, summary
from derivlang.engine.engines import check_main
from derivlang.engine.job import Events, Job
from derivlang.engine.manifest import plan_hash, recipe_of
from derivlang.engine.options import MakeOptions
from derivlang.engine.plan import files_of, warn_of_uncut
from derivlang.formats.inspection import inspecting
from derivlang.formats.progress import LOOKING, stage
from derivlang.parsing.registry import find_parser
from derivlang.pipeline import Pipeline
from derivlang.sources.corpus import Corpus, CorpusFile
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.manifest import counts_of_reading
from derivlang.transforms.word_order import Identity

# Parsing is slow. Small shards let workers share the work, and a stopped run loses little.
SHARD_TOKENS = 500_000
_IDENTITY = Pipeline((Identity(),))


@inspecting()
def parse(request: SourceRequest, options: MakeOptions, events: Events) -> dict[str, Any]:
    """Parse a source. Returns what `make` returns.

    options.out: the folder for one set with all splits. `Path()`: a folder for each split, where `make` finds them.
    Raises UsageError if the source has trees already or is derived, and what `find_parser` raises.
    """
    began = time.perf_counter()
    check_main()
    if options.out != Path():
        job, settings = parse_job(request, options, events)
        return summary(options.out, build(job, settings, events), began)
    corpus = _without_trees(request, options, events)
    manifests = [manifest for _, manifest in _by_split(corpus, request, options, events)]
    splits = {name: entry for manifest in manifests for name, entry in manifest["splits"].items()}
    counts: dict[str, Counter[str]] = {"changed": Counter(), "dropped": Counter()}
    for manifest in manifests:
        for name, counter in counts.items():
            counter.update(manifest[name])
    return summary(parses_folder(options), {**manifests[0], **counts, "splits": splits}, began)


def parse_job(request: SourceRequest, options: MakeOptions, events: Events) -> tuple[Job, MakeOptions]:
    """Find a source, and return the job of its parse in one folder, and the options of that. Raises as `parse`."""
    for name in typed(options, ("columns", "lexicon")):
        raise UsageError("a parse has all columns, and no lexicon", where=name.partition("=")[0], fix="leave it out",
                         id="unused-option")  # fmt: skip
    corpus = _without_trees(request, options, events)
    settings = replace(options, shard_tokens=min(options.shard_tokens, SHARD_TOKENS), columns=())
    job = replace(_job(corpus, request, options), options=tuple(recipe_of(corpus, request, settings)))
    if typed(options, ("shard_tokens",)) and options.shard_tokens > SHARD_TOKENS:
        events.warn(f"shards of a parse have at most {SHARD_TOKENS:,} words, whatever --shard-tokens says")
    warn_of_uncut(job, options, events.warn)
    return job, settings


def _without_trees(request: SourceRequest, options: MakeOptions, events: Events) -> Corpus:
    """Find a source that can be parsed. UsageError for one that has trees, or whose words are in another order."""
    with stage(LOOKING):
        corpus = find(request)
    if corpus.schema.has_trees:
        raise UsageError(f"{corpus.name} has trees already", fix="make it: no parser is needed", id="has-trees")
    if corpus.spec is not None:
        raise UsageError(
            f"{corpus.name} is derived ({corpus.spec}): its words are no longer in the order that a parser reads",
            fix="parse its source, and make the set from that",
            id="parse-derived",
        )
    warn_of_unused(corpus.name, corpus.schema, options.policies, events.warn, repair_tags=options.repair_tags)
    return corpus


def parsed(corpus: Corpus, request: SourceRequest, options: MakeOptions, events: Events) -> Corpus:
    """Return the corpus with trees, parsing those splits that no earlier run has parsed.

    The parts of this corpus are the shards of the parses. Raises UsageError if the source is a derived set.
    """
    if corpus.spec is not None:
        raise UsageError(
            f"{corpus.name} was derived without trees, so syn cannot follow {corpus.spec}",
            fix=f"make it from its source with all transforms at once: --t {in_shell(f'{corpus.spec},syn')}…",
            id="needs-trees",
        )
    job = _job(corpus, request, options)
    events = replace(events, found=lambda out: None)  # the parses are there already, but not the set that is made
    files: list[dict[str, Any]] = []
    parts: list[CorpusFile] = []
    words, parser = "as given", {}
    hashes: dict[str, str] = {}
    read: Counter[str] = Counter()
    for folder, manifest in _by_split(corpus, request, options, events):
        files += manifest["source"]["files"]
        words, parser = manifest["words"], manifest["parser"]
        read.update(counts_of_reading(manifest))
        hashes |= {
            f"{folder.name}/{shard['file']}": shard["sha256"]
            for entry in manifest["splits"].values()
            for shard in entry["shards"]
        }
        parts += [
            CorpusFile(split, folder / shard["file"], f"{folder.name}/{shard['file']}")
            for split, entry in manifest["splits"].items()
            for shard in entry["shards"]
        ]
    return replace(
        job.corpus,
        format="derived",
        origin=corpus.format,
        parts=tuple(parts),
        options={
            "files": files,
            "told": {"words": words},
            "parser": parser,
            "sha256": hashes,
            "parsed": dict(read),
        },
    )


def no_parser(corpus: Corpus, pipeline: Pipeline) -> str:
    """Return why a source is not parsed for a pipeline."""
    return f"{corpus.name} has trees already" if pipeline.needs_trees else f"{pipeline} needs no trees"


def _by_split(
    corpus: Corpus, request: SourceRequest, options: MakeOptions, events: Events
) -> Iterable[tuple[Path, dict[str, Any]]]:
    """Yield the folder and the manifest of each wanted split, parsed unless the folder is complete."""
    wanted = [split_name(split) for split in options.splits] or corpus.splits
    job = _job(corpus, request, options)
    for split in dict.fromkeys(wanted):
        # The folder's name depends on the plan, and the plan on the size of shards. So that size is fixed here.
        settings = replace(options, splits=(split,), shard_tokens=SHARD_TOKENS, columns=(), force=False)
        planned = look_at_source(job, settings)
        hash = plan_hash(planned, files_of(planned))
        name = "".join(c if c.isalnum() or c in "-_." else "-" for c in corpus.name)
        folder = parses_folder(options) / f"{name}-{split}-{hash[:16]}"
        yield folder, build(planned, replace(settings, out=folder), events)


def _job(corpus: Corpus, request: SourceRequest, options: MakeOptions) -> Job:
    # Raises for an unknown parser before anything is read.
    find_parser(options.parser, corpus.language)
    return Job(
        replace(corpus, schema=replace(corpus.schema, parsed=True)),
        _IDENTITY,
        rule=options.sentences,
        policies=options.policies,
        encoding=request.encoding,
        repair_tags=options.repair_tags,
        parser=options.parser or find_parser(None, corpus.language).name,
        request=request,
    )


def parses_folder(options: MakeOptions) -> Path:
    """Return the folder of all parses: `options.parses`, else $DERIVLANG_PARSES, else one in the user's cache."""
    if named := options.parses or os.environ.get("DERIVLANG_PARSES"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "derivlang" / "parses"
