"""Normalise words to the spelling of treebanks before parsing, and restore the reader's words afterwards.

Each of the reader's words gets a tag, a head and a relation.

    ” ’ -LRB- @-@   form of a word     " ' ( -
    don 't          English            do n't            (WikiText splits before the apostrophe, treebanks before the n)
    cannot, don't   English            can, do           two syntactic words in one are parsed as the first of them
    4 @,@ 386 @.@ 5 several into one   4,386.5           the first piece is parsed, the others are its `goeswith`
    = Life cycle =  marks of headings  Life cycle        the marks depend on the root as `punct`
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int8, Int32, Int64
from derivlang.core.arrow import to_arrow
from derivlang.parsing.base import UPOS, Parses

RULE_VERSION = 1
WORD, PIECE, MARK = 0, 1, 2  # the kinds of the reader's words: parsed, piece of the word before, mark of a heading

_FORMS = {
    "``": '"', "''": '"', "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "’": "'", "‘": "'", "`": "'",
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "@-@": "-", "@,@": ",", "@.@": ".", "–": "-", "—": "-", "−": "-", "--": "-", "…": "...",
    "<UNK>": "<unk>", "[UNK]": "<unk>",
}  # fmt: skip
_FUSED = {"cannot": "can", "gonna": "going", "wanna": "want", "gotta": "got", "gimme": "give", "lemme": "let"}
_CLITIC = re.compile(r"(.+?)(?:n't|'(?:s|m|re|ve|ll|d))", re.IGNORECASE)
_BEFORE_NT = set(
    "ai are ca could dare did do does had has have is may might must need ought sha should was were wo would".split()
)


@dataclass(frozen=True, slots=True, eq=False)
class NormalisedWords:
    """The M words that the parser reads, and their relation to the N words of the reader.

    words: int32[M], codes into types (list of strings). sentences: int64[S + 1]. kind: int8[N], WORD, PIECE or MARK for
    each of the reader's words; the parser reads those whose kind is WORD, in order.

        reader    =    4    @,@   386   people   =
        kind      MARK WORD PIECE PIECE WORD     MARK
        words          4,386            people
    """

    words: Int32
    types: list[str]
    sentences: Int64
    kind: Int8


@lru_cache(1 << 16)
def normal_form(word: str, language: str = "en") -> str:
    """Return the word in the spelling that the parser was trained on."""
    form = _FORMS.get(word)
    if form is not None:
        return form
    form = word.replace("’", "'").replace("‘", "'")
    if language == "en":
        if (low := form.lower()) in _FUSED:
            first = _FUSED[low]
            return first.capitalize() if form[0].isupper() else first
        if "'" in form[1:] and (match := _CLITIC.fullmatch(form)):
            return match[1]
    return form


def normalise(words: Int32, types: pa.Array, sentences: Int64, language: str = "en") -> NormalisedWords:
    """Normalise sentences; words: int32[N], codes into types (Arrow strings [T]); sentences: int64[S + 1]."""
    used, codes = np.unique(words, return_inverse=True)
    raw = types.take(to_arrow(used)).to_pylist()
    read, kinds, ends = [], [], [0]
    for begin, end in pairwise(sentences.tolist()):
        forms, kind = _read([raw[code] for code in codes[begin:end].tolist()], language)
        read += [form for form, one in zip(forms, kind, strict=True) if one == WORD]
        kinds += kind
        ends.append(len(read))
    number: dict[str, int] = {}
    out = np.array([number.setdefault(form, len(number)) for form in read], np.int32)
    return NormalisedWords(out, list(number), np.array(ends), np.array(kinds, np.int8))


def _read(words: list[str], language: str) -> tuple[list[str], list[int]]:
    """Return what the parser reads for each word of a sentence that is a WORD, and the kind of each word."""
    forms, kinds = [normal_form(word, language) for word in words], [WORD] * len(words)
    title = [i for i, word in enumerate(words) if word != "="]
    if title and words[0] == words[-1] == "=":  # the marks at both ends, but not an equals sign inside
        kinds = [WORD if title[0] <= i <= title[-1] else MARK for i in range(len(words))]
    whole = 0  # the word that the next piece of a number continues
    for i, (before, word) in enumerate(pairwise(words), 1):
        if language == "en" and word in ("'t", "’t") and before[-1:] in "nN" and before[:-1].lower() in _BEFORE_NT:
            forms[i - 1 : i + 1] = before[:-1], "n't"
        if word in ("@,@", "@.@") and before[-1:].isdecimal() and "".join(words[i + 1 : i + 2])[:1].isdecimal():
            if kinds[i - 1] != PIECE:
                whole, forms[i - 1] = i - 1, before
            forms[whole] += word.strip("@") + words[i + 1]
            kinds[i : i + 2] = PIECE, PIECE
    return forms, kinds


def restore(normal: NormalisedWords, parses: Parses, sentences: Int64) -> Parses:
    """Return parses of the reader's words from parses of the parser's words; sentences: int64[S + 1] of the reader's.

    A piece depends on the word that it continues (`X`, `goeswith`), a mark on the root (`PUNCT`, `punct`).

    For the sentence in `NormalisedWords`, with heads 2 and 0 of `4,386` and `people`, the heads are 5 5 2 2 0 5.
    """
    is_word, is_piece, is_mark = (normal.kind == kind for kind in (WORD, PIECE, MARK))
    if is_word.all():
        return parses
    relations = parses.relations + tuple(name for name in ("goeswith", "punct") if name not in parses.relations)
    upos = np.where(is_mark, UPOS.index("PUNCT"), UPOS.index("X")).astype(np.uint8)
    deprel = np.where(is_mark, relations.index("punct"), relations.index("goeswith")).astype(np.int32)
    upos[is_word], deprel[is_word] = parses.upos, parses.deprel
    heads = np.zeros(len(is_word), np.int32)
    for (begin, end), (first, last) in zip(pairwise(sentences), pairwise(normal.sentences), strict=True):
        here, head = slice(begin, end), parses.head[first:last]
        number = np.append(0, np.flatnonzero(is_word[here]) + 1)  # of each word that the parser read; 0 of the root
        heads[here][is_word[here]] = number[head]
        heads[here][is_piece[here]] = number[np.cumsum(is_word[here])[is_piece[here]]]
        heads[here][is_mark[here]] = number[1:][head == 0]
    return Parses(upos, heads, deprel, relations)
