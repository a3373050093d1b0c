"""The twin of a tokenizer: every entry and merge mapped through a script. It gives derived text the source's ids.

    twin.encode(f(text)) = source.encode(text), id by id

The suffix and special tokens are not mapped. *Joint* ids number a common vocabulary of both languages. The source
keeps its ids, and a twin's id i becomes i + (V - n_special) unless it is a special token:

    0 … n_special - 1 | source's n_special … V - 1 | twin's V … 2V - n_special - 1

With an overlap, kept words have the source's ids. If all are kept, as under an order of words, there is one block of
ids, 0 … V - 1. One *file* for both languages is exact only if no entry is the image of an entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64
from derivlang.core.errors import DataError
from derivlang.lexical.bpe import SPECIAL_TOKENS, SUFFIX, Bpe, is_listed
from derivlang.lexical.encoding import Encoded
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.transforms.scripts import Script

_LISTED = 20


def twin_of(source: Tokenizer, script: Script) -> Tokenizer:
    """Return the twin in a script.

    Raise DataError if two entries have the same image, which does not occur in derivlang's own tokenizers.
    """
    image = images(source.bpe, script)
    entries = tuple(image[entry] for entry in source.bpe.entries)
    if len(set(entries)) < len(entries):
        seen: set[str] = set()
        twice = [entry for entry in entries if entry in seen or seen.add(entry)]  # type: ignore[func-returns-value]
        raise DataError(f"entries have the same image in {script.name}: {_some(twice)}", id="clash")
    merges = tuple((image[left], image[right]) for left, right in source.bpe.merges)
    return Tokenizer(Bpe(entries, merges, source.n_special), (script.name,))


def check_unmarked(source: Tokenizer, script: Script) -> None:
    """Raise DataError if an offset script turns a character of an entry into `<` or `[` (`bpe.py`)."""
    letters = set() if is_listed(script) else {script.map_text(token[0]) for token in SPECIAL_TOKENS}
    held = [entry for entry in source.bpe.entries if not letters.isdisjoint(entry)]
    if held:
        raise DataError(
            f"{script.name} turns characters of the vocabulary into < or [, which begin special tokens: {_some(held)}",
            where="--t",
            fix="use another offset, or a tokenizer of text without them",
            id="clash",
        )


def images(bpe: Bpe, script: Script) -> dict[str, str]:
    """Return the image of each entry."""
    out = {entry: entry for entry in bpe.entries[: bpe.n_special]}
    for entry in bpe.entries[bpe.n_special :]:
        stem = entry.removesuffix(SUFFIX)
        out[entry] = script.map_text(stem) + entry[len(stem) :]
    return out


def clashes(source: Tokenizer, script: Script) -> list[str]:
    """Return the entries, without special tokens, that are the image of an entry."""
    plain = source.bpe.entries[source.n_special :]
    known, image = set(plain), images(source.bpe, script)
    return [image[entry] for entry in plain if image[entry] in known]


def joint_file(source: Tokenizer, twin: Tokenizer, script: Script) -> Tokenizer:
    """Return one tokenizer for both languages with joint ids. Raise DataError if an entry is the image of another.

    It is exact for text whose characters are in the source's vocabulary. Others are `<unk>` for the source's tokenizer,
    but may be letters of the twin here.
    """
    clashing = clashes(source, script)
    if clashing:
        raise DataError(
            f"one file for both languages cannot be exact: {len(clashing):,} entries are also the image of one in "
            f"{script.name}: {_some(clashing)}",
            where="--joint",
            fix="leave --joint out (two files and the joint ids are exact), or use another script (private)",
            id="joint-clash",
        )
    entries = source.bpe.entries + twin.bpe.entries[twin.n_special :]
    bpe = Bpe(entries, source.bpe.merges + twin.bpe.merges, source.n_special)
    return Tokenizer(bpe, (*source.scripts, *twin.scripts))


@dataclass(frozen=True, slots=True, eq=False)
class JointIds:
    """The joint ids of a source and its twin.

    vocab_size: V of either tokenizer. same: whether all words have the source's ids. after: the first id of a twin
    whose entries do not follow the source's; 0 if they do. separate: whether no word has the source's ids.
    """

    vocab_size: int
    n_special: int
    same: bool = False
    after: int = 0
    separate: bool = False

    @property
    def shift(self) -> int:
        """The number that is added to a twin's id; 0 if the languages share all ids."""
        return 0 if self.same else (self.after or self.vocab_size) - self.n_special

    @property
    def size(self) -> int:
        """The number of rows of a joint embedding."""
        return self.vocab_size + self.shift

    def table(self) -> Int32:
        """Return int32[V]: the joint id of each id of the twin."""
        ids = np.arange(self.vocab_size, dtype=np.int32)
        return np.where(ids >= self.n_special, ids + np.int32(self.shift), ids)

    def of(self, encoded: Encoded, kept_words: Bool | None = None) -> Int32:
        """Return int32[M]: the derived language's joint ids of the sub-words of N source words, in their order.

        kept_words: bool[N], words that the lexicon keeps. Their sub-words have the source's ids.
        """
        ids = self.table().take(encoded.ids)
        if self.separate or kept_words is None or not kept_words.any():
            return ids
        return np.where(np.repeat(kept_words, np.diff(encoded.offsets)), encoded.ids, ids)


def subword_counts(encoded: Encoded, counts: Int64, vocab_size: int) -> Int64:
    """Return int64[V]: the frequency of each entry in the running words. encoded, counts [T]: of the word types."""
    weights = np.repeat(counts, np.diff(encoded.offsets))
    return np.bincount(encoded.ids, weights, minlength=vocab_size).astype(np.int64)


def under_lexicon(encoded: Encoded, counts: Int64, kept: Bool, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the shared types and tokens if the words of `kept`, bool[T], are the same in both languages.

    encoded, counts [T]: of the source's word types. Types are entries in use; an entry is shared if a kept word
    contains it. Tokens are running sub-words; shared are those in kept words of the derived text, and in
    `source_tokens_percent` all occurrences of shared entries in the source text.
    """
    all_counts = subword_counts(encoded, counts, tokenizer.size)[tokenizer.n_special :]
    # The same types with the frequency 0 for words that change: what is left occurs in kept words.
    ours = subword_counts(encoded, np.where(kept, counts, 0), tokenizer.size)[tokenizer.n_special :]
    used, shared = all_counts > 0, ours > 0
    tokens = int(all_counts.sum())
    return {
        "words": _shares(len(counts), int(kept.sum()), int(counts.sum()), int(counts[kept].sum())),
        "subwords": {
            **_shares(int(used.sum()), int(shared.sum()), tokens, int(ours.sum())),
            "source_tokens_percent": _percent(int(all_counts[shared].sum()), tokens),
        },
    }


def _shares(types: int, shared_types: int, tokens: int, shared_tokens: int) -> dict[str, Any]:
    return {
        "types": types,
        "shared_types": shared_types,
        "shared_types_percent": _percent(shared_types, types),
        "tokens": tokens,
        "shared_tokens": shared_tokens,
        "shared_tokens_percent": _percent(shared_tokens, tokens),
    }


def _percent(part: int, whole: int) -> float:
    """Return a percentage with three decimals; 0 of 0 is 0."""
    return round(100 * part / max(whole, 1), 3)


def _some(entries: list[str]) -> str:
    return ", ".join(entries[:_LISTED]) + (" …" if len(entries) > _LISTED else "")
