"""The sub-words that both languages share: measured under a lexicon of words, or chosen in the vocabulary.

A lexicon keeps words, and both languages then share the sub-words of kept words. The papers keep entries of the
vocabulary instead, in whatever word they occur. `choose` selects them by the rule of `trans:overlap=P:by=…` for words
(`transforms/trans.py`): k = floor(P T / 100 + 1/2) of the T entries without special tokens. Such a language consists
of ids; its words have no spelling.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.arrays import Bool, Int64
from derivlang.core.arrow import to_arrow
from derivlang.core.errors import DataError
from derivlang.core.parse_errors import parse_errors
from derivlang.lexical.encoding import Encoded
from derivlang.lexical.tokenizer import SUBWORDS, Tokenizer
from derivlang.transforms.trans import By, Reference, Trans, Transliteration

_TITLE = "# derivlang sub-words"
_HEADER = "id\tentry\tcount\tkept"


def subword_counts(encoded: Encoded, counts: Int64, vocab_size: int) -> Int64:
    """Return int64[V]: the frequency of each entry in the running words. encoded, counts [T]: of the word types."""
    weights = np.repeat(counts, np.diff(encoded.offsets))
    return np.bincount(encoded.ids, weights, minlength=vocab_size).astype(np.int64)


def choose(tokenizer: Tokenizer, counts: Int64, percent: int, by: By = "type", seed: int = 1) -> Bool:
    """Return bool[V]: the entries to share, nested for one seed and `by`. counts: int64[V]."""
    first = tokenizer.n_special
    kept = np.zeros(tokenizer.size, bool)
    rule = Trans(overlap=percent, by=by, seed=seed)  # raises UsageError for a percentage out of range
    if not rule.needs_reference:
        kept[first:] = percent == 100
        return kept
    entries = tokenizer.entries()[first:]
    fitted = rule.fit(entries, counts[first:], rule.stream(0))
    assert isinstance(fitted, Transliteration)
    assert isinstance(fitted.reference, Reference)
    chosen = set(fitted.reference.types.filter(to_arrow(fitted.reference.kept)).to_pylist())
    # By name, so that the order of the reference's types does not matter.
    kept[first:] = [entry in chosen for entry in tokenizer.bpe.entries[first:]]
    return kept


def under_lexicon(encoded: Encoded, counts: Int64, kept: Bool, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the shared types and tokens if the words of `kept`, bool[T], are the same in both languages.

    encoded, counts [T]: of the source's word types. Types are entries in use; an entry is shared if a kept word
    contains it. Tokens are running sub-words; shared are those in kept words of the derived text, and in
    `source_tokens_percent` all occurrences of shared entries in the source text.
    """
    all_counts = _plain(subword_counts(encoded, counts, tokenizer.size), tokenizer)
    # The same types with the frequency 0 for words that change: what is left occurs in kept words.
    ours = _plain(subword_counts(encoded, np.where(kept, counts, 0), tokenizer.size), tokenizer)
    used, shared = all_counts > 0, ours > 0
    tokens = int(all_counts.sum())
    return {
        "words": _shares(len(counts), int(kept.sum()), int(counts.sum()), int(counts[kept].sum())),
        "subwords": {
            **_shares(int(used.sum()), int(shared.sum()), tokens, int(ours.sum())),
            "source_tokens_percent": percent_of(int(all_counts[shared].sum()), tokens),
        },
    }


def of_entries(counts: Int64, kept: Bool, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the shared types and tokens if the entries of `kept`, bool[V], are shared. counts: int64[V]."""
    counts, kept = _plain(counts, tokenizer), kept[tokenizer.n_special :]
    return {"subwords": _shares(len(counts), int(kept.sum()), int(counts.sum()), int(counts[kept].sum()))}


def _plain(values: Int64, tokenizer: Tokenizer) -> Int64:
    return values[tokenizer.n_special :]


def _shares(types: int, shared_types: int, tokens: int, shared_tokens: int) -> dict[str, Any]:
    return {
        "types": types,
        "shared_types": shared_types,
        "shared_types_percent": percent_of(shared_types, types),
        "tokens": tokens,
        "shared_tokens": shared_tokens,
        "shared_tokens_percent": percent_of(shared_tokens, tokens),
    }


def percent_of(part: int, whole: int) -> float:
    """Return a percentage with three decimals; 0 of 0 is 0."""
    return round(100 * part / max(whole, 1), 3)


def subwords_text(tokenizer: Tokenizer, counts: Int64, kept: Bool) -> str:
    """Return the text of `subwords.tsv`: all entries except special tokens, by id. No entry holds white space."""
    lines = [f"{_TITLE}: {tokenizer.fingerprint()}", _HEADER]
    for i in range(tokenizer.n_special, tokenizer.size):
        lines.append(f"{i}\t{tokenizer.bpe.entries[i]}\t{counts[i]}\t{'kept' if kept[i] else 'changed'}")
    return "\n".join(lines) + "\n"


def read_subwords(path: Path, tokenizer: Tokenizer) -> Bool:
    """Return bool[V] of a saved `subwords.tsv`. Raise DataError if it is not one, or of another tokenizer."""
    with parse_errors(str(path), "file of kept sub-words", id="subwords"):
        text = path.read_text("utf-8")
    title, _, body = text.partition("\n")
    rows = [line.split("\t") for line in body.split("\n")[1:-1]]
    if not title.startswith(_TITLE) or any(len(row) != 4 or row[3] not in ("kept", "changed") for row in rows):
        raise DataError(
            "not a file of kept sub-words", where=str(path), fix=f"give the {SUBWORDS} of a twin", id="subwords"
        )
    entries = tokenizer.bpe.entries[tokenizer.n_special :]
    if title != f"{_TITLE}: {tokenizer.fingerprint()}" or tuple(row[1] for row in rows) != entries:
        raise DataError("belongs to another tokenizer, or is cut off", where=str(path), id="subwords")
    return np.array([False] * tokenizer.n_special + [row[3] == "kept" for row in rows], bool)
