"""A bilingual dictionary from a language pair's lexicon, at a given coverage, with a recipe to make it again.

    vocabulary of the source  ->  its images under the lexicon  ->  ranked, cut (vocabulary.py)  ->  noise
    OUT                 the dictionary             OUT.recipe.json     its recipe and its wrong translations
    NAME.heldout.tsv    the entries held out for tests; OUT contains none of their words

All training objectives that need a dictionary read this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.core.keys import draw, hash_types, text_key
from derivlang.core.lexicon import special_types
from derivlang.core.messages import warn
from derivlang.core.policies import warn_of_unused
from derivlang.core.seal import sealed
from derivlang.core.version import __version__
from derivlang.engine.build import vocabulary_of
from derivlang.engine.job import Job
from derivlang.engine.plan import look, source_files
from derivlang.formats.dictionary import Dictionary, Format, fits, format_of, read_dictionary, written
from derivlang.formats.opening import check_encoding
from derivlang.lexical.pairs import first_by_key
from derivlang.lexical.settings import DictionaryOptions, Share, number, portion
from derivlang.lexical.vocabulary import (
    RULE_VERSION,
    Entries,
    cut,
    token_entries,
    word_entries,
)
from derivlang.pipeline import Pipeline
from derivlang.sources.corpus import Corpus
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.artifact import RECIPE, check_replaceable
from derivlang.store.files import held_file, is_stream, refuse_source, write_texts
from derivlang.store.record import read_record, record_text
from derivlang.transforms.fitting import read_lexicon

FORMAT = 1
_NOISE_RULE = 1


def choice_of(options: DictionaryOptions) -> dict[str, Any]:
    """Return what a recipe records of the choice of entries and of the file's format."""
    return {
        "rule_version": RULE_VERSION,
        "level": options.level,
        "by": options.by,
        "seed": options.seed,
        **{name: number(share) for name, share in options.shares.items()},
        "kind": format_of(options.out, options.format),
    }


def make_dictionary(
    spec: str | None,
    request: SourceRequest,
    options: DictionaryOptions,
    warn: Callable[[str], None] = warn,
) -> dict[str, Any]:
    """Write the dictionary of a language pair. spec: as for `make`; None for the pipeline of a derived set.

    The file is held meanwhile: another process that makes it with other options is refused.

    Return {"out", "pairs", "types", "entries", "coverage_types", "coverage_tokens", "heldout", "noise", "left_out",
    "heldout_left_out"}: numbers of lines, of words with a translation and of chosen ones; percentages of these and of
    running words in the file; numbers of held-out entries, of wrong pairs, and of chosen and of held-out pairs that the
    format cannot hold. Raise
    DerivlangError without leaving partial files.
    """
    _check(options)
    with held_file(options.out, f"dict of {request.source}", spec, request, options, warn=warn):
        return _make(spec, request, options, warn)


def _make(
    spec: str | None, request: SourceRequest, options: DictionaryOptions, warn: Callable[[str], None]
) -> dict[str, Any]:
    kind = format_of(options.out, options.format)
    check_encoding(request.encoding)
    corpus = find(request)
    warn_of_unused(corpus.name, corpus.schema, None, warn, repair_tags=options.repair_tags)
    pipeline = _pipeline(spec, corpus)
    saved = read_lexicon(Path(options.lexicon)) if options.lexicon else corpus.lexicon_text
    job = Job(corpus, pipeline, lexicon_text=saved, encoding=request.encoding, repair_tags=options.repair_tags)
    split = corpus.splits[0]
    if split != "train" and "train" in corpus.expected:
        warn(f"there is no train split: the dictionary is made from {split}")
    job = replace(job, seen=look(job, [split]))
    refuse_source(options.out, job.seen, "a dictionary")
    types, counts = vocabulary_of(job, split)
    lexicon = pipeline.fit(types, counts, saved=saved, where=str(options.lexicon or "--lexicon"))
    if options.level == "token":
        assert options.tokenizer is not None
        entries = token_entries(Path(options.tokenizer), types, counts, pipeline)
    else:
        entries = word_entries(types, counts, lexicon)
    if not len(entries.images):
        raise DataError("no word of the source has an entry", where=request.source, id="empty-dictionary")
    shares = options.shares
    parts = cut(
        string_array(entries.images),
        entries.counts,
        coverage=shares["coverage"],
        by=options.by,
        heldout=shares["heldout"],
        seed=options.seed,
    )
    if not len(parts.chosen):
        raise UsageError(
            f"{float(shares['coverage']):g} % of {len(entries.images):,} entries is less than one entry",
            where="--coverage",
            id="coverage",
        )
    pairs, numbers, left_out = _pairs(entries, parts.chosen, kind)
    held_left_out = 0
    if not pairs:
        raise DataError(
            "MUSE reads no entry of this dictionary: all have capitals or white space",
            where=str(options.out),
            fix="write TSV or JSON: --format tsv",
            id="empty-dictionary",
        )
    wrong = wrong_translations([a for a, _ in pairs], [b for _, b in pairs], shares["noise"], options.seed)
    noisy = [(word, wrong.get(i, translation)) for i, (word, translation) in enumerate(pairs)]
    files = {options.out.name: written(noisy, numbers, kind)}
    if len(parts.heldout):
        held, held_numbers, held_left_out = _pairs(entries, parts.heldout, kind)
        files[heldout_name(options.out)] = written(held, held_numbers, kind)
    covered = {word: n for (word, _), n in zip(pairs, numbers, strict=True)}
    running = entries.counts if options.level == "token" else counts[~special_types(types)]
    result = {
        "pairs": len(pairs),
        "types": len(entries.images),
        "entries": len(parts.chosen),
        "coverage_types": round(100 * len(covered) / len(entries.images), 4),
        "coverage_tokens": round(100 * sum(covered.values()) / max(int(running.sum()), 1), 4),
        "heldout": len(parts.heldout),
        "noise": len(wrong),
        "left_out": left_out,
        "heldout_left_out": held_left_out,
    }
    recipe = {
        "format": FORMAT,
        "derivlang": __version__,
        "spec": pipeline.stored,
        "fingerprint": pipeline.fingerprint(pipeline.save(lexicon)),
        "source": {
            "name": corpus.name,
            "language": corpus.language,
            "licence": corpus.licence,
            "citation": corpus.citation,
            "split": split,
            "files": source_files(job, [split]),
        },
        "reading": corpus.reading(request.encoding),
        **choice_of(options),
        "result": result,
        "files": {name: sha256(text.encode()).hexdigest() for name, text in files.items()},
        "wrong": [[pairs[i][0], translation, pairs[i][1]] for i, translation in sorted(wrong.items())],
    }
    told = options.out.with_name(options.out.name + RECIPE)
    if not options.force:
        wanted = {name: value for name, value in recipe.items() if name not in ("result", "files", "wrong")}
        check_replaceable([options.out.with_name(name) for name in files], told, wanted, noun="dictionary")
    if is_stream(options.out):  # which has no room for a second file
        write_texts(options.out, files, replace=options.force)
        return {"out": str(options.out), **result}
    apart = heldout_name(options.out)
    gone = {apart}.intersection(files_of_recipe(told)) - files.keys()  # its words may be in this dictionary
    write_texts(options.out, {**files, told.name: record_text(sealed(recipe))}, list(gone), replace=options.force)
    return {"out": str(options.out), **result}


def check_dictionary(
    path: Path,
    *,
    strict: bool = False,
    out: Path | None = None,
    out_format: str | None = None,
    force: bool = False,
) -> tuple[Dictionary, dict[str, Any]]:
    """Read a dictionary file and, if `out` is given, write its valid pairs there; with `force` over any other file.

    Return it with {"pairs", "types", "skipped", "left_out", "faults": {kind: n}, "unit", "lines": [{"line", "kind",
    "what"}]}. "left_out" counts pairs that the format of `out` cannot hold. "lines" has the first hundred faults. For
    JSON files "unit" is "entry" and "line" the entry's number. Raise DataError, if strict at the first fault.
    """
    kind = format_of(out, out_format) if out is not None else None
    dictionary, left_out = read_dictionary(path, strict=strict), 0
    if out is not None and kind is not None:
        pairs, numbers, left_out = _fitting(dictionary.pairs, dictionary.numbers, kind)
        write_texts(out, {out.name: written(pairs, numbers, kind)}, replace=force)
    return dictionary, {
        "pairs": len(dictionary.pairs),
        "types": len(dictionary.entries()),
        "skipped": len(dictionary.faults),
        "left_out": left_out,
        "faults": dictionary.counts(),
        "unit": dictionary.unit,
        "lines": [{"line": f.line, "kind": f.kind, "what": f.what} for f in dictionary.faults[:100]],
    }


def wrong_translations(words: Sequence[str], translations: Sequence[str], share: Share, seed: int) -> dict[int, str]:
    """Choose a share of the pairs and return a wrong translation for each, by the number of the pair.

    Of n pairs, p percent are floor(pn/100 + 1/2). A wrong translation belongs to another pair and is not a translation
    of the word, right or wrong. Draws are keyed, so equal pairs get equal ones. Raise UsageError if there is none.
    """

    def stream(name: str) -> np.uint64:
        return text_key(f"noise-{name}|seed={seed}|rule={_NOISE_RULE}")

    own: dict[str, set[str]] = {}
    rank = []  # the number of each pair among the pairs of its word
    for word, translation in zip(words, translations, strict=True):
        rank.append(len(own.setdefault(word, set())))
        own[word].add(translation)
    hashes = hash_types(string_array(words))
    places = np.array(rank, np.int64)
    out: dict[int, str] = {}
    starts = draw(stream("translation"), hashes, places) % np.uint64(max(len(words), 1))
    for pair in first_by_key(draw(stream("dict"), hashes, places), portion(share, len(words))).tolist():
        # From a drawn place on, the first translation that the word does not have yet.
        at = int(starts[pair])
        for step in range(len(words)):
            wrong = translations[(at + step) % len(words)]
            if wrong not in own[words[pair]]:
                break
        else:
            why = "no other entry has a different translation"
            raise UsageError(f"so much noise is not possible: {why}", where="--noise", fix="lower --noise", id="noise")
        # Another pair of this word must not get the same wrong translation.
        own[words[pair]].add(wrong)
        out[pair] = wrong
    return out


def heldout_name(out: Path) -> str:
    """Return the file of held-out entries: `en.tsv` -> `en.heldout.tsv`."""
    return f"{out.stem}.heldout{out.suffix}"


def files_of_recipe(path: Path) -> list[str]:
    """Return the files that the recipe of an earlier run lists, [] without a readable recipe."""
    try:
        recipe = read_record(path, "recipe", {"files": dict}, id="data")
        return list(recipe["files"])
    except StoreError:
        return []


def _pairs(entries: Entries, chosen: Int64, kind: Format) -> tuple[list[tuple[str, str]], list[int], int]:
    """Return the pairs of some entries in their order, as `_fitting`."""
    words, counts = list(entries.images), entries.counts.tolist()
    found = [(words[at], image, counts[at]) for at in chosen.tolist() for image in entries.images[words[at]]]
    return _fitting([(word, image) for word, image, _ in found], [count for *_, count in found], kind)


def _fitting(
    pairs: Sequence[tuple[str, str]], numbers: Sequence[int], kind: Format
) -> tuple[list[tuple[str, str]], list[int], int]:
    """Return the pairs that a format can hold, the count of each pair's word, and the number of the other pairs."""
    kept = [fits(pair, kind) for pair in pairs]
    return list(compress(pairs, kept)), list(compress(numbers, kept)), kept.count(False)


def _pipeline(spec: str | None, corpus: Corpus) -> Pipeline:
    """Return the source's own pipeline followed by `spec`.

    Raise UsageError if no transform changes words, or if one changes them by their place.
    """
    if spec is not None:
        pipeline = Pipeline.parse(spec).after(corpus.spec, corpus.spec_files)
    elif corpus.spec is not None:
        pipeline = Pipeline.parse(corpus.spec, files=corpus.spec_files)
    else:
        raise UsageError(
            "a dictionary needs a pair of languages", where="--t", fix="give --t trans, or a derived set", id="no-pair"
        )
    if not any(t.has_lexicon for t in pipeline.transforms):
        raise UsageError(
            f"{pipeline} changes no word: there is nothing to translate",
            where="--t",
            fix="use a transform with a lexicon, e.g. trans or lex:FILE",
            id="no-lexicon",
        )
    if by_place := next((t for t in pipeline.transforms if t.has_forms), None):
        raise UsageError(
            f"a dictionary needs words that always change alike, but under {by_place} they change by their place",
            where="--t",
            fix="leave it out, or take the linked words of derivlang pair",
            id="no-lexicon",
        )
    return pipeline


def _check(options: DictionaryOptions) -> None:
    """Raise UsageError for options that exclude each other."""
    if is_stream(options.out) and options.shares["heldout"]:
        raise UsageError(
            "held-out entries need a second file beside the dictionary",
            where="--heldout",
            fix="name the dictionary with -o, e.g. -o en-derived.tsv",
            id="output",
        )
    if (options.level == "token") != (options.tokenizer is not None):
        raise UsageError(
            "the level token needs a tokenizer, and no other level takes one",
            where="--tokenizer" if options.tokenizer is not None else "--level",
            fix="give --level token --tokenizer DIR",
            id="tokenizer",
        )
