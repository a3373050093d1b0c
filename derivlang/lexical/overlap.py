"""Which sub-words both languages share: measured under a lexicon of words, or chosen in the vocabulary itself.

A lexicon keeps words; the sub-words of kept words are then in both languages. The papers keep entries of the
vocabulary instead, whatever word they stand in: `choose` takes them by the rule that `trans:overlap=P:by=…` has for
words (`transforms/trans.py`), k = floor(P T / 100 + 1/2) of the T entries that are no special tokens. Such a language
is one of ids: no word is spelt in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.arrays import Bool, Int64
from derivlang.core.arrow import to_arrow
from derivlang.core.errors import DataError
from derivlang.lexical.encoding import Encoded
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.transforms.trans import By, Reference, Trans, Transliteration

SUBWORDS = "subwords.tsv"
_TITLE = "# derivlang sub-words"
_HEADER = "id\tentry\tcount\tkept"


def subword_counts(encoded: Encoded, counts: Int64, vocab_size: int) -> Int64:
    """int64[V]: how often each entry stands in the running words; encoded, counts [T]: of the word types."""
    weights = np.repeat(counts, np.diff(encoded.offsets))
    return np.bincount(encoded.ids, weights, minlength=vocab_size).astype(np.int64)


def choose(tokenizer: Tokenizer, counts: Int64, percent: int, by: By = "type", seed: int = 1) -> Bool:
    """bool[V]: the entries that both languages share; nested for one seed and `by`. counts: int64[V]."""
    first = tokenizer.n_special
    kept = np.zeros(tokenizer.size, bool)
    rule = Trans(overlap=percent, by=by, seed=seed)  # UsageError for a percentage out of range
    if not rule.needs_reference:
        kept[first:] = percent == 100
        return kept
    entries = tokenizer.entries()[first:]
    fitted = rule.fit(entries, counts[first:], rule.stream(0))
    assert isinstance(fitted, Transliteration)
    assert isinstance(fitted.reference, Reference)
    chosen = set(fitted.reference.types.filter(to_arrow(fitted.reference.kept)).to_pylist())
    kept[first:] = [entry in chosen for entry in tokenizer.bpe.entries[first:]]
    return kept


def under_lexicon(encoded: Encoded, counts: Int64, kept: Bool, tokenizer: Tokenizer) -> dict[str, Any]:
    """What both languages share where the words of `kept`, bool[T], are the same in both.

    encoded, counts [T]: of the source's word types. Types: entries in use; one is shared where a kept word holds it.
    Tokens: running sub-words; of the derived text those of kept words, of the source those that are a shared entry.
    """
    all_counts = _plain(subword_counts(encoded, counts, tokenizer.size), tokenizer)
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
    """What both languages share where the entries of `kept`, bool[V], are the same in both; counts: int64[V]."""
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
    return round(100 * part / max(whole, 1), 3)


def subwords_text(tokenizer: Tokenizer, counts: Int64, kept: Bool) -> str:
    """`subwords.tsv`: every entry that is no special token, by id. No entry holds white space."""
    lines = [f"{_TITLE}: {tokenizer.fingerprint()}", _HEADER]
    for i in range(tokenizer.n_special, tokenizer.size):
        lines.append(f"{i}\t{tokenizer.bpe.entries[i]}\t{counts[i]}\t{'kept' if kept[i] else 'changed'}")
    return "\n".join(lines) + "\n"


def read_subwords(path: Path, tokenizer: Tokenizer) -> Bool:
    """bool[V] of a saved `subwords.tsv`; DataError if it is none, or of another tokenizer."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the sub-words: {error}", where=str(path), id="subwords") from None
    title, _, body = text.partition("\n")
    rows = [line.split("\t") for line in body.split("\n")[1:-1]]
    if not title.startswith(_TITLE) or any(len(row) != 4 or row[3] not in ("kept", "changed") for row in rows):
        raise DataError("not a file of kept sub-words", where=str(path), fix=f"a twin's {SUBWORDS}", id="subwords")
    entries = tokenizer.bpe.entries[tokenizer.n_special :]
    if title != f"{_TITLE}: {tokenizer.fingerprint()}" or tuple(row[1] for row in rows) != entries:
        raise DataError("is of another tokenizer, or cut off", where=str(path), id="subwords")
    return np.array([False] * tokenizer.n_special + [row[3] == "kept" for row in rows], bool)
