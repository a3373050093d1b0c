"""Character BPE from type counts: the vocabulary and merges of a tokenizer (Sennrich et al. 2016).

    low 5, lower 2, newest 6, widest 3   ->   merges  e s | es t</w> | l o | ...

Words are split at white space (`WhitespaceSplit`). The last character of a word carries the suffix `</w>`.
`tokenizers` does the training, on *symbols*: each character, and each character at the end of a word, is one code
point there. So ties do not depend on hash order, and a suffix differs from the same letters in a text.

An entry that could be read in two ways, here or in a twin, is not learnt. These are entries inside words that end in
the letters of the suffix or spell a special token, in any script (the twin of `f(</w>)` would be `</w>`).

Special tokens as whole words: a normalisation rule in a tokenizer's file.

    the <unk> x<unk>   ->   the <unk> x<·unk>        (· is U+FDD0, which no text holds)

A word that equals a special token is that token. A word that only contains one is an ordinary word, and a lexicon
changes it. But `tokenizers` finds special tokens anywhere in a text. So the rule first inserts a mark into every
string that looks like a special token inside a word. The mark becomes one extra `<unk>` in such a word, in the source
and in every twin. The rule changes nothing else.

A twin must insert the mark in the same places. Under the script f it reads f(w) for a word w, or w itself if w is a
special token or would become one. With a special token s and any other script g:

    the source's text    the twin's text     both
    s, whole             s                   the token
    x s y                f(x) f(s) f(y)      marked
    f(s), whole          f(s)                marked; the twin reads it as a marked s, as its entry for f(<) is <
    x f(s) y             f(x) s f(y)         marked
    g(s), x g(s) y       f(g(s)), …          marked

The source's rule lists the scripts of `script_names`. It cannot list all offset scripts, so it does not mark f(s) for
them. The twin then inserts no mark either: it replaces the first character of s, `<` or `[`, by the mark. Both
tokenizers read one `<unk>` there if the source's vocabulary lacks f(<) and f([), and `make_twin` checks that it does.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.errors import DataError, UsageError
from derivlang.core.lexicon import SPECIALS
from derivlang.formats.progress import Unit, stage, words_done
from derivlang.transforms.scripts import Script, load_script, script_names

SUFFIX = "</w>"
# The five special tokens of RoBERTa first, then the other words that no lexicon changes.
_FIRST = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
SPECIAL_TOKENS = (*_FIRST, *(token for token in SPECIALS if token not in _FIRST))
# Unicode's White_Space, at which `tokenizers` splits a text. Scripts leave all of it unchanged.
WHITE_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

_WHITE = re.compile(f"[{WHITE_SPACE}]+")
_FIRST_SYMBOL = 0x10000  # the first of 2^20 code points without white space
_AT_ONCE = 1 << 11  # symbols in one text for the trainer, which needs 16 bytes of memory for each byte of a text

Merge = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Bpe:
    """A character BPE.

    entries: strings by id, `n_special` special tokens first. merges: pairs of entries, in order of priority.
    """

    entries: tuple[str, ...]
    merges: tuple[Merge, ...]
    n_special: int = len(SPECIAL_TOKENS)

    @property
    def size(self) -> int:
        return len(self.entries)


def train_bpe(types: pa.Array, counts: Int64, vocab_size: int, min_frequency: int = 2) -> Bpe:
    """Train a BPE of exactly `vocab_size` entries, special tokens included.

    types: Arrow strings [T], words; counts: int64[T]. Special tokens among them are ignored. min_frequency: minimum
    frequency of a merged pair (2 as in MultilingualAnalysis). Raise UsageError, with a possible size, if these words do
    not allow this size; DataError if there are no words.
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
            fix=f"give --vocab-size {least} or more",
            id="vocab-size",
        )
    symbols = {pair: chr(_FIRST_SYMBOL + i) for i, pair in enumerate(pairs)}
    spelt = {"".join(symbols[end] for end in _ends(piece)): count for piece, count in pieces.items()}
    wanted = vocab_size - len(SPECIAL_TOKENS)
    ask = wanted
    while True:
        n_entries, merges = _merges(spelt, ask, min_frequency)
        entries, kept = _readable(list(symbols), merges, {symbol: pair for pair, symbol in symbols.items()}, wanted)
        if len(entries) == wanted:
            return Bpe((*SPECIAL_TOKENS, *entries), tuple(kept))
        if n_entries < ask:
            most = len(SPECIAL_TOKENS) + len(entries)
            raise UsageError(
                f"a vocabulary of {vocab_size:,} is more than these words allow: they give {most:,} entries",
                where="--vocab-size",
                fix=f"give --vocab-size {most} or less, "
                + (
                    "a larger source, or `derivlang tokenizer train --min-frequency 1`"
                    if min_frequency > 1
                    else "or a larger source"
                ),
                id="vocab-size",
            )
        ask += wanted - len(entries)


def _pieces(types: pa.Array, counts: Int64) -> Counter[str]:
    """Return the pieces of the words between white space, with their counts."""
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
    """Yield (character, whether it is the last) of a piece."""
    last = len(piece) - 1
    return ((c, i == last) for i, c in enumerate(piece))


def _merges(spelt: dict[str, int], size: int, min_frequency: int) -> tuple[int, list[Merge]]:
    """Return (number of entries, at most `size`; merges) that `tokenizers` learns from words of symbols."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    # The trainer reads the texts in threads of its own, where this context's receivers of progress are unknown. Once it
    # has read them it merges, and reports nothing until it is done.
    context, stages = copy_context(), ExitStack()

    def begin(what: str, unit: Unit | None, total: int | None = None) -> None:
        stages.close()
        stages.enter_context(stage(what, unit, total))

    def texts() -> Iterator[str]:
        for word, count in spelt.items():
            step = max(1, _AT_ONCE // len(word))
            for done in range(0, count, step):
                n = min(step, count - done)
                yield f"{word} " * n
                context.run(words_done, n)
        context.run(begin, "merging sub-words", None)

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=min_frequency, show_progress=False)
    try:
        context.run(begin, "training the tokenizer", "words", sum(spelt.values()))
        tokenizer.train_from_iterator(texts(), trainer)
    finally:
        context.run(stages.close)
    model: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    return len(model["vocab"]), [as_merge(merge) for merge in model["merges"]]


def as_merge(merge: str | list[str]) -> Merge:
    """Return a merge as a pair. Older files join its parts by a space, which no entry contains."""
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def _readable(
    pairs: list[tuple[str, bool]], merges: list[Merge], symbols: dict[str, tuple[str, bool]], wanted: int
) -> tuple[list[str], list[Merge]]:
    """Return (at most `wanted` entries, merges) spelt out, without entries that could be read in two ways."""
    endings, whole = _taken()
    entries = {c + (SUFFIX if last else ""): None for c, last in pairs}
    known = {symbol: _spell(symbol, symbols) for symbol in symbols}
    kept = []
    for left, right in merges:
        if left not in known or right not in known:
            continue  # one of its parts was excluded
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
    """Return (forbidden endings, forbidden strings) of entries inside words, for the source and all possible twins."""
    scripts = [load_script(name) for name in script_names()]
    endings = (SUFFIX, *(script.map_text(SUFFIX) for script in scripts))
    whole = {*SPECIAL_TOKENS, *(script.map_text(token) for script in scripts for token in SPECIAL_TOKENS)}
    return endings, whole


PART = "\ufdd0"  # the mark: a noncharacter, which every script leaves unchanged
# The characters that separate words in a text. Other white space can occur inside a word.
_AROUND = "\\t\\n\\r "


def normalizer(scripts: Iterable[Script | None]) -> Any:
    """Return the rule as a normalizer of `tokenizers`, for text in these scripts. None: the source's own script."""
    from tokenizers import Regex, normalizers

    inside: dict[str, None] = dict.fromkeys(SPECIAL_TOKENS)
    anywhere: dict[str, None] = {}
    escapes: dict[str, str] = {}
    scripts = list(scripts)
    unmarked = None not in scripts and not all(map(is_listed, scripts))
    for script in scripts:
        for name in script_names():
            other = load_script(name)
            for token in SPECIAL_TOKENS:
                seen = other.map_text(token)
                if script is None:
                    anywhere[seen] = None
                elif name != script.name:
                    anywhere[script.map_text(seen)] = None
        if script is not None:
            for token in SPECIAL_TOKENS:
                image = script.map_text(token)
                inside[image] = None
                escapes[image] = ("" if unmarked else token[0]) + PART + token[1:]
    rules = []
    if unmarked:
        for token in SPECIAL_TOKENS:
            del inside[token]
        rules.append(normalizers.Replace(Regex("|".join(_inside(SPECIAL_TOKENS, taken=True))), PART))
    rules.append(normalizers.Replace(Regex(_parting(inside, anywhere)), PART))
    rules += [normalizers.Replace(Regex(_whole(word)), read) for word, read in escapes.items()]
    return normalizers.Sequence(rules) if escapes else rules[0]


def is_listed(script: Script | None) -> bool:
    """Return whether the rule of every tokenizer knows the special tokens in this script."""
    return script is None or script.name in script_names()


def _parting(inside: Iterable[str], anywhere: Iterable[str]) -> str:
    """Return a pattern that matches nothing but the place after the first character of each word.

    Words of `inside` match only as parts of longer words, words of `anywhere` also as whole words.
    """
    return "|".join([*_inside(inside), *(f"(?<={first})(?={rest})" for first, rest in _by_first(anywhere))])


def _inside(words: Iterable[str], taken: bool = False) -> Iterable[str]:
    """Yield patterns for words as parts of longer words: of the empty string after the first character, or of that
    character if it is taken."""
    for first, rest in _by_first(words):
        yield (f"(?<=[^{_AROUND}]){first}" if taken else f"(?<=[^{_AROUND}]{first})") + f"(?={rest})"
        yield (first if taken else f"(?<={first})") + f"(?=(?:{rest})[^{_AROUND}])"


def _by_first(words: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Return (pattern of a first character, pattern of the rest) for each first character."""
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(re.escape(word[0]), []).append(re.escape(word[1:]))
    return ((first, "|".join(rest)) for first, rest in rests.items())


def _whole(word: str) -> str:
    return f"(?<![^{_AROUND}]){re.escape(word)}(?![^{_AROUND}])"
