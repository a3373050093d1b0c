"""The entries of a dictionary: a source's vocabulary, with its images under a lexicon; a part of it by one ranking.

word    the types of the split that lexicons are fitted on (train, else the first)
token   the entries of a tokenizer, each with its twin (twin.py). Counts come from encoding every word type once

The entries at a given coverage, and the held-out ones, are parts of one ranking:

    keyed ranking of T entries     e7 e2 e9 e4 | e1 e5        the last floor(hT/100 + 1/2) are held out, for any `by`
    coverage c                     the first k = floor(cT/100 + 1/2) of the others by `random` (keyed) or `frequency`
                                   (by count, ties by key);
                                   `mass`: the shortest prefix of the keyed ranking with c % of the running words

A key is a draw of the word itself. So a ranking depends on the set of words and the seed, but not on the order of the
text. Cuts of one ranking are nested: 50 % contains 25 %. Methods, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.errors import UsageError
from derivlang.core.keys import draw, hash_types, text_key
from derivlang.core.lexicon import Lexicon
from derivlang.lexical.encoding import SubwordEncoder
from derivlang.lexical.settings import By, Share, portion
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.lexical.twin import subword_counts, twin_of
from derivlang.pipeline import Pipeline
from derivlang.transforms.trans import Trans

RULE_VERSION = 1  # of rankings


@dataclass(frozen=True, slots=True)
class Entries:
    """T entries. images: of each word, in the order of the words. counts: int64[T], of the words."""

    images: dict[str, list[str]]
    counts: Int64


def word_entries(types: pa.Array, counts: Int64, lexicon: Lexicon) -> Entries:
    """Return the entries of types that have an image. Special tokens have none."""
    images: dict[str, list[str]] = {}
    pairs = lexicon.pairs(types)
    for word, image in zip(*(pairs[name].to_pylist() for name in ("source", "derived")), strict=True):
        images.setdefault(word, []).append(image)
    number = dict(zip(types.to_pylist(), counts.tolist(), strict=True))
    return Entries(images, np.array([number[word] for word in images], np.int64))


def token_entries(folder: Path, types: pa.Array, counts: Int64, pipeline: Pipeline) -> Entries:
    """Return the entries of the tokenizer in a folder, without special tokens, and their twins.

    Raise UsageError unless the pipeline's lexicon maps all words through a script; StoreError if derivlang has not made
    the tokenizer.
    """
    lexical = [t for t in pipeline.transforms if t.has_lexicon]
    if not lexical or any(t.name != "trans" or getattr(t, "overlap", 0) for t in lexical):
        raise UsageError(
            f"sub-words have twins only if all words change script, not under {pipeline}",
            where="--level",
            fix="leave out overlap= (sub-words have the same twins with and without it), or give --level word",
            id="token-level",
        )
    source = twin = Tokenizer.load(folder)
    for step in lexical:
        assert isinstance(step, Trans)
        twin = twin_of(twin, step.loaded)
    pairs = list(zip(source.bpe.entries, twin.bpe.entries, strict=True))[source.n_special :]
    seen = subword_counts(SubwordEncoder(source).types(types), counts, source.size)[source.n_special :]
    return Entries({entry: [image] for entry, image in pairs}, seen)


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut ranking. chosen: int64[k], the dictionary's entries in ranking order. heldout: int64[h]."""

    chosen: Int64
    heldout: Int64


def cut(
    words: pa.Array,
    counts: Int64,
    *,
    coverage: Share,
    by: By = "random",
    heldout: Share = 0,
    seed: int = 1,
) -> Cut:
    """Choose the entries of a dictionary.

    words: Arrow strings [T], distinct. counts: int64[T]. Raise UsageError if the entries that are not held out
    cannot reach the coverage.
    """
    keyed = ranking(words, seed)
    n = len(keyed)
    kept = n - portion(heldout, n)
    rest = keyed[:kept]
    if by == "mass":
        # The shortest prefix with c % of the mass ends at the first running sum of at least that share, rounded up.
        target = -int(-coverage * int(counts.sum()) // 100)
        k = int(np.searchsorted(np.cumsum(counts[rest]), target, "left")) + 1 if target else 0
    else:
        k = portion(coverage, n)
    if k > kept:
        what = f"{float(coverage):g} % of the running words" if by == "mass" else f"{k:,} of {n:,} entries"
        raise UsageError(
            f"a coverage of {float(coverage):g} is {what}, but {n - kept:,} of the entries are held out",
            where="--coverage",
            fix="lower --coverage or --heldout",
            id="coverage",
        )
    if by == "frequency":
        rest = rest[np.argsort(-counts[rest], kind="stable")]
    return Cut(rest[:k], keyed[kept:])


def ranking(words: pa.Array, seed: int) -> Int64:
    """Return int64[T]: the words sorted by their keys."""
    hashes = hash_types(words)
    stream = text_key(f"dict|seed={seed}|rule={RULE_VERSION}")
    return np.lexsort((hashes, draw(stream, hashes, np.zeros(len(hashes), np.int64))))
