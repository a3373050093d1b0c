"""A bilingual dictionary from a pair's lexicon, at a stated coverage; a file and the recipe that makes it again.

    vocabulary of the source  ->  its images under the lexicon  ->  ranked, cut (ranking.py)  ->  noise (noise.py)
    OUT                 the dictionary             OUT.recipe.json     how it was made, and its wrong translations
    NAME.heldout.tsv    the entries held out, for tests: no word of OUT is among them

A file for every objective: what reads a dictionary reads the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import derivlang
from derivlang.core.arrays import Int64, lengths_of, spread
from derivlang.core.arrow import to_arrow
from derivlang.core.errors import DataError, UsageError
from derivlang.engine.job import Job
from derivlang.engine.plan import make_plan, source_files
from derivlang.formats.dictionary import Dictionary, format_of, read_dictionary, written
from derivlang.formats.opening import check_encoding
from derivlang.lexical.noise import wrong_translations
from derivlang.lexical.percent import Share, number
from derivlang.lexical.ranking import RULE_VERSION, By, cut
from derivlang.lexical.vocabulary import Entries, count, token_entries, word_entries
from derivlang.pipeline import Pipeline, read_lexicon
from derivlang.sources.find import Request, find
from derivlang.store.export import writing

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Options:
    """What a dictionary takes besides the pipeline and the source. Shares in percent; tokenizer: the folder of
    `tokenizer.json`, for level token."""

    out: Path
    coverage: Share = Fraction(100)
    by: By = "random"
    level: Literal["word", "token"] = "word"
    tokenizer: Path | None = None
    noise: Share = Fraction(0)
    heldout: Share = Fraction(0)
    seed: int = 1
    lexicon: Path | None = None
    format: str | None = None
    repair_tags: bool = False


def make_dictionary(
    spec: str | None, request: Request, options: Options, warn: Callable[[str], None] = lambda message: None
) -> dict[str, Any]:
    """Write the dictionary of a pair. spec: as of `make`; None for the pipeline of a derived set.

    Returns {"out", "pairs", "types", "entries", "coverage_types", "coverage_tokens", "heldout", "noise", "spaces"}:
    lines, entries of the vocabulary, entries of the dictionary, its shares of types and of running words in percent,
    entries held out, wrong pairs, words that hold a space. Raises DerivlangError; nothing is half-written.
    """
    _check(options)
    kind = format_of(options.out, options.format)
    check_encoding(request.encoding)
    corpus = find(request)
    pipeline = _pipeline(spec, corpus.spec)
    saved = read_lexicon(options.lexicon) if options.lexicon else corpus.lexicon
    job = Job(str(pipeline), saved, corpus, encoding=request.encoding, repair_tags=options.repair_tags)
    split = corpus.splits[0]
    if split != "train" and "train" in corpus.expected:
        warn(f"no train split here: the dictionary is made of {split}")
    tasks = make_plan(job, options.out, splits=[split], shard_tokens=1 << 40, limit=None)[split]
    types, counts, tags = count(job, tasks, tags=options.by == "pos")
    lexicon = pipeline.fit(types, counts, saved=saved, where=str(options.lexicon or "--lexicon"))
    if options.level == "token":
        assert options.tokenizer is not None
        entries = token_entries(options.tokenizer, types, counts, pipeline)
    else:
        entries = word_entries(types, counts, lexicon, tags)
    if not len(entries):
        raise DataError("no word of the source has an entry", where=request.source, id="empty-dictionary")
    parts = cut(
        entries.words,
        entries.counts,
        coverage=options.coverage,
        by=options.by,
        heldout=options.heldout,
        seed=options.seed,
        tags=entries.tags,
    )
    if not len(parts.chosen):
        raise UsageError(
            f"a coverage of {float(options.coverage):g} % of {len(entries):,} entries is none",
            where="--coverage",
            id="coverage",
        )
    pairs, numbers = _pairs(entries, parts.chosen)
    wrong = wrong_translations([a for a, _ in pairs], [b for _, b in pairs], options.noise, options.seed)
    noisy = [(word, wrong.get(i, translation)) for i, (word, translation) in enumerate(pairs)]
    files = {options.out.name: written(noisy, numbers, kind)}
    if len(parts.heldout):
        files[heldout_name(options.out)] = written(*_pairs(entries, parts.heldout), kind)
    total = int(entries.counts.sum())
    result = {
        "pairs": len(pairs),
        "types": len(entries),
        "entries": len(parts.chosen),
        "coverage_types": round(100 * len(parts.chosen) / len(entries), 4),
        "coverage_tokens": round(100 * int(entries.counts[parts.chosen].sum()) / max(total, 1), 4),
        "heldout": len(parts.heldout),
        "noise": len(wrong),
        "spaces": sum(spaces for _, spaces in files.values()),
    }
    recipe = {
        "format": FORMAT,
        "derivlang": derivlang.__version__,
        "spec": str(pipeline),
        "fingerprint": pipeline.fingerprint(pipeline.save(lexicon)),
        "source": {
            "name": corpus.name,
            "language": corpus.language,
            "licence": corpus.licence,
            "citation": corpus.citation,
            "split": split,
            "files": source_files(job, [split]),
        },
        "rule_version": RULE_VERSION,
        "level": options.level,
        "by": options.by,
        "seed": options.seed,
        **{name: number(getattr(options, name)) for name in ("coverage", "heldout", "noise")},
        "kind": kind,
        "result": result,
        "files": {name: sha256(text.encode()).hexdigest() for name, (text, _) in files.items()},
        "wrong": [[pairs[i][0], found, pairs[i][1]] for i, found in sorted(wrong.items())],
    }
    texts = {name: text for name, (text, _) in files.items()}
    texts[f"{options.out.name}.recipe.json"] = json.dumps(recipe, ensure_ascii=False, indent=1) + "\n"
    write_texts(options.out.parent, texts)
    return {"out": str(options.out), **result}


def check_dictionary(
    path: Path,
    *,
    strict: bool = False,
    named: str | None = None,
    out: Path | None = None,
    out_format: str | None = None,
) -> tuple[Dictionary, dict[str, Any]]:
    """A dictionary file read, and written again where `out` is given: without what is no pair.

    Returns it with {"pairs", "types", "skipped", "faults": {kind: n}, "unit", "lines": [{"line", "kind", "what"}]}:
    the first hundred faults; under JSON "unit" is "entry", and "line" the entry's number. Raises DataError, with
    strict at the first fault.
    """
    kind = format_of(out, out_format) if out is not None else None
    found = read_dictionary(path, named, strict=strict)
    if out is not None and kind is not None:
        text, _ = written(found.pairs, [1] * len(found.pairs), kind)
        write_texts(out.parent, {out.name: text})
    return found, {
        "pairs": len(found.pairs),
        "types": len(found.entries()),
        "skipped": len(found.faults),
        "faults": found.counts(),
        "unit": found.unit,
        "lines": [{"line": f.line, "kind": f.kind, "what": f.what} for f in found.faults[:100]],
    }


def heldout_name(out: Path) -> str:
    """`en.tsv` -> `en.heldout.tsv`."""
    return f"{out.stem}.heldout{out.suffix}"


def write_texts(folder: Path, texts: dict[str, str]) -> None:
    """Several files of which none is there before all are written whole."""
    with ExitStack() as files:
        streams = {name: files.enter_context(writing(folder / name)) for name in texts}
        for name, text in texts.items():
            streams[name].write(text.encode())


def _pairs(entries: Entries, chosen: Int64) -> tuple[list[tuple[str, str]], list[int]]:
    """The pairs of some entries in their order, and the count of each pair's word."""
    sizes = lengths_of(entries.offsets)[chosen]
    images: pa.Array = entries.images.take(to_arrow(spread(entries.offsets[chosen], sizes)))
    words = entries.words.take(to_arrow(np.repeat(chosen, sizes)))
    counts = np.repeat(entries.counts[chosen], sizes)
    return list(zip(words.to_pylist(), images.to_pylist(), strict=True)), counts.tolist()


def _pipeline(spec: str | None, before: str | None) -> Pipeline:
    """The source's own pipeline, then the one that was asked for; UsageError where no word has another form."""
    parsed = [Pipeline.parse(part) for part in (before, spec) if part is not None]
    if not parsed:
        raise UsageError(
            "a dictionary needs a pair of languages", where="--t", fix="e.g. --t trans, or a derived set", id="no-pair"
        )
    pipeline = parsed[0] if len(parsed) == 1 else parsed[0].then(parsed[1])
    if not any(t.has_lexicon for t in pipeline.transforms):
        raise UsageError(
            f"{pipeline} leaves every word as it is: there is nothing to translate",
            where="--t",
            fix="take a transform with a lexicon, e.g. trans or lex:FILE",
            id="no-lexicon",
        )
    return pipeline


def _check(options: Options) -> None:
    """UsageError for options that do not go together."""
    if str(options.out) == "-":
        raise UsageError("a dictionary is a file with a recipe beside it", where="-o", fix="name a file", id="output")
    if (options.level == "token") != (options.tokenizer is not None):
        raise UsageError(
            "the level token needs a tokenizer, and no other level takes one",
            where="--tokenizer" if options.tokenizer is not None else "--level",
            fix="--level token --tokenizer DIR",
            id="tokenizer",
        )
    if options.level == "token" and options.by == "pos":
        raise UsageError("sub-words have no tags", where="--by", fix="random, frequency or mass", id="needs-tags")
