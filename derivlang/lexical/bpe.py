"""Character BPE from type counts: the vocabulary and merges of a tokenizer (Sennrich et al. 2016).

    low 5, lower 2, newest 6, widest 3   ->   merges  e s | es t</w> | l o | ...

Words are what white space divides (`WhitespaceSplit`); the last character of a word carries the suffix `</w>`.
`tokenizers` does the training, on *symbols*: each character, and each character at a word's end, is one code point
there. That keeps ties, hence the result, independent of hash order, and tells the suffix from its letters in a text.
An entry that could be read in two ways, here or in a twin, is not learnt: one inside a word that spells the suffix
at its end, or a special token (in any script: the twin of `f(</w>)` would be `</w>`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.errors import DataError, UsageError
from derivlang.core.lexicon import SPECIALS
from derivlang.transforms.scripts import load_script, script_names

SUFFIX = "</w>"
# RoBERTa's five first, then the other words that no lexicon changes.
_FIRST = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
SPECIAL_TOKENS = (*_FIRST, *(token for token in SPECIALS if token not in _FIRST))
# Unicode's White_Space, at which `tokenizers` divides a text. Scripts leave all of it where it is.
WHITE_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

_WHITE = re.compile(f"[{WHITE_SPACE}]+")
_FIRST_SYMBOL = 0x10000  # 2^20 code points from here on, none of them white space
_AT_ONCE = 1 << 16  # symbols in a text that the trainer gets: it keeps 16 bytes of notes a byte

Merge = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Bpe:
    """entries: the strings by id, `n_special` special tokens first. merges: pairs of entries, the first counts most."""

    entries: tuple[str, ...]
    merges: tuple[Merge, ...]
    n_special: int = len(SPECIAL_TOKENS)

    @property
    def size(self) -> int:
        return len(self.entries)


def train_bpe(types: pa.Array, counts: Int64, vocab_size: int, min_frequency: int = 2) -> Bpe:
    """A BPE of exactly `vocab_size` entries, special tokens included.

    types: Arrow strings [T], words; counts: int64[T]. Special tokens among them are left out. min_frequency: a pair
    that is seen less often is not merged (2 as in MultilingualAnalysis). UsageError, with the figure that is possible,
    for a size that these words do not allow; DataError where there are none.
    """
    pieces = _pieces(types, counts)
    if not pieces:
        raise DataError("there are no words to train a tokenizer on", id="empty-file")
    pairs = sorted({(c, last) for piece in pieces for c, last in _ends(piece)})
    least = len(SPECIAL_TOKENS) + len(pairs)
    if vocab_size < least:
        raise UsageError(
            f"a vocabulary of {vocab_size:,} is too small: {len(SPECIAL_TOKENS)} special tokens and {len(pairs):,} "
            "characters, inside and at the end of words, need an entry each",
            where="--vocab-size",
            fix=f"--vocab-size {least} or more",
            id="vocab-size",
        )
    symbols = {pair: chr(_FIRST_SYMBOL + i) for i, pair in enumerate(pairs)}
    spelt = {"".join(symbols[end] for end in _ends(piece)): count for piece, count in pieces.items()}
    wanted = vocab_size - len(SPECIAL_TOKENS)
    ask = wanted
    while True:
        found, merges = _merges(spelt, ask, min_frequency)
        entries, kept = _readable(list(symbols), merges, {symbol: pair for pair, symbol in symbols.items()}, wanted)
        if len(entries) == wanted:
            return Bpe((*SPECIAL_TOKENS, *entries), tuple(kept))
        if found < ask:
            most = len(SPECIAL_TOKENS) + len(entries)
            raise UsageError(
                f"a vocabulary of {vocab_size:,} is more than these words allow: they give {most:,} entries",
                where="--vocab-size",
                fix=f"--vocab-size {most} or less, a larger source, or --min-frequency 1",
                id="vocab-size",
            )
        ask += wanted - len(entries)


def _pieces(types: pa.Array, counts: Int64) -> Counter[str]:
    """What white space leaves of the words, counted."""
    pieces: Counter[str] = Counter()
    specials = set(SPECIAL_TOKENS)
    for word, count in zip(types.to_pylist(), counts.tolist(), strict=True):
        if word in specials:
            continue
        for piece in _WHITE.split(word):
            if piece:
                pieces[piece] += count
    return pieces


def _ends(piece: str) -> Iterator[tuple[str, bool]]:
    """(character, is it the last) of a piece."""
    last = len(piece) - 1
    return ((c, i == last) for i, c in enumerate(piece))


def _merges(spelt: dict[str, int], size: int, min_frequency: int) -> tuple[int, list[Merge]]:
    """(entries, merges) that `tokenizers` finds for words of symbols, of at most `size` entries."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    def texts() -> Iterator[str]:
        for word, count in spelt.items():
            step = max(1, _AT_ONCE // len(word))
            for done in range(0, count, step):
                yield f"{word} " * min(step, count - done)

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=min_frequency, show_progress=False)
    tokenizer.train_from_iterator(texts(), trainer)
    model: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    return len(model["vocab"]), [as_merge(merge) for merge in model["merges"]]


def as_merge(merge: str | list[str]) -> Merge:
    """A merge as a pair: older files join it by a space, which no entry holds."""
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def _readable(
    pairs: list[tuple[str, bool]], merges: list[Merge], symbols: dict[str, tuple[str, bool]], wanted: int
) -> tuple[list[str], list[Merge]]:
    """Entries and merges of symbols as strings, at most `wanted` entries; what reads two ways is left out."""
    endings, whole = _taken()
    entries = {c + (SUFFIX if last else ""): None for c, last in pairs}
    known = {symbol: _spell(symbol, symbols) for symbol in symbols}
    kept = []
    for left, right in merges:
        if left not in known or right not in known:
            continue  # a part was left out
        both = left + right
        text = _spell(both, symbols)
        inside = not symbols[both[-1]][1]
        if inside and (text.endswith(endings) or text in whole):
            continue
        if both not in known:
            if len(entries) == wanted:
                break
            known[both] = text
            entries[text] = None
        kept.append((known[left], known[right]))
    return list(entries), kept


def _spell(word: str, symbols: dict[str, tuple[str, bool]]) -> str:
    return "".join(symbols[s][0] for s in word) + (SUFFIX if symbols[word[-1]][1] else "")


def _taken() -> tuple[tuple[str, ...], set[str]]:
    """What an entry inside a word may not end in, and may not be, in the source and in the twins of all scripts."""
    scripts = [load_script(name) for name in script_names()]
    endings = (SUFFIX, *(script.map_text(SUFFIX) for script in scripts))
    whole = {*SPECIAL_TOKENS, *(script.map_text(token) for script in scripts for token in SPECIAL_TOKENS)}
    return endings, whole
