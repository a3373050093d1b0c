"""Words as treebanks write them: what is done to a reader's words before they are parsed, and the way back.

One word in, one word out: every reader's word gets a tag, a head and a relation.

    ” ’ -LRB- @-@   form of a word     " ' ( -
    don 't          English            do n't            (WikiText cuts before the apostrophe, treebanks before the n)
    cannot, don't   English            can, do           two syntactic words in one: parsed as the first of them
    4 @,@ 386 @.@ 5 three to one       4,386.5           the first piece is parsed, the others are its `goeswith`
    = Life cycle =  marks of headings  Life cycle        the marks hang from the root as `punct`
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int8, Int32, Int64, owners
from derivlang.parsing.base import UPOS, Parses

RULE_VERSION = 1
WORD, PIECE, MARK = 0, 1, 2  # what a reader's word is to the parser

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
class Normal:
    """What the parser reads, and how its words stand for the reader's.

    words: int32[M], codes into types (list of strings). sentences: int64[S + 1]. kind: int8[N] of the reader's words:
    WORD (the parser's words, in order), PIECE of the word before, MARK of a heading.
    """

    words: Int32
    types: list[str]
    sentences: Int64
    kind: Int8


def normal_form(word: str, language: str = "en") -> str:
    """The word in the spelling that the parser was trained on; a whole word in, a whole word out."""
    form = _FORMS.get(word)
    if form is not None:
        return form
    form = word.replace("’", "'").replace("‘", "'")
    if language == "en":
        if (low := form.lower()) in _FUSED:
            first = _FUSED[low]
            return first.capitalize() if form[0].isupper() else first
        if "'" in form[1:] and (found := _CLITIC.fullmatch(form)):
            return found[1]
    return form


def normalise(words: Int32, types: pa.Array, sentences: Int64, language: str = "en") -> Normal:
    """words: int32[N], codes into types (Arrow strings [T]); sentences: int64[S + 1]. See the table above."""
    used, inverse = np.unique(words.astype(np.int32, copy=False), return_inverse=True)
    # From the buffer: pa.array would import pandas, a third of a second and 40 MB.
    raw: list[str] = types.take(pa.Array.from_buffers(pa.int32(), len(used), [None, pa.py_buffer(used)])).to_pylist()
    codes: Int32 = inverse.reshape(-1).astype(np.int32)
    number = {word: i for i, word in enumerate(raw)}
    kind = np.zeros(len(words), np.int8)
    first = np.zeros(len(words) + 1, bool)
    first[sentences[:-1]] = True
    first[-1] = True
    forms = [normal_form(word, language) for word in raw]
    _headings(codes, number, sentences, kind)
    out = codes.copy()
    if language == "en" and ("'t" in number or "’t" in number):
        _contractions(codes, raw, number, first, forms, out)
    _numbers(codes, raw, number, first, forms, kind, out)
    kept = kind == WORD
    count = np.zeros(len(words) + 1, np.int64)
    np.cumsum(kept, out=count[1:])
    return Normal(out[kept], forms, count[sentences], kind)


def _headings(codes: Int32, number: dict[str, int], sentences: Int64, kind: Int8) -> None:
    """Marks the runs of `=` at both ends of a sentence that holds something else."""
    mark = number.get("=")
    if mark is None:
        return
    begin, end = sentences[:-1], sentences[1:]
    full = end - begin >= 3
    begin, end = begin[full], end[full]
    both = (codes[begin] == mark) & (codes[end - 1] == mark)
    for a, b in zip(begin[both].tolist(), end[both].tolist(), strict=True):
        inner = np.flatnonzero(codes[a:b] != mark)
        if len(inner):
            kind[a : a + inner[0]] = MARK
            kind[a + inner[-1] + 1 : b] = MARK


def _contractions(
    codes: Int32, raw: list[str], number: dict[str, int], first: Bool, forms: list[str], out: Int32
) -> None:
    """`don 't` -> `do n't`, by place: `'t` after a verb that ends in n."""
    stem = np.full(len(raw), -1, np.int32)
    for i, word in enumerate(raw):
        if word[-1:] in ("n", "N") and word[:-1].lower() in _BEFORE_NT:
            stem[i] = len(forms)
            forms.append(word[:-1])
    nt = len(forms)
    forms.append("n't")
    for form in ("'t", "’t"):
        second = np.flatnonzero((codes == number.get(form, -1)) & ~first[:-1])
        second = second[stem[codes[second - 1]] >= 0]
        out[second] = nt
        out[second - 1] = stem[codes[second - 1]]


def _numbers(
    codes: Int32, raw: list[str], number: dict[str, int], first: Bool, forms: list[str], kind: Int8, out: Int32
) -> None:
    """`4 @,@ 386` -> `4,386` and two pieces, where digits stand on both sides."""
    points = [number[mark] for mark in ("@,@", "@.@") if mark in number]
    if not points:
        return
    opens = np.array([word[:1].isdecimal() for word in raw])
    closes = np.array([word[-1:].isdecimal() for word in raw])
    at = np.flatnonzero(np.isin(codes, points))
    at = at[(at > 0) & (at < len(codes) - 1)]
    at = at[~first[at] & ~first[at + 1] & closes[codes[at - 1]] & opens[codes[at + 1]]]
    if not len(at):
        return
    kind[at] = PIECE
    kind[at + 1] = PIECE
    known: dict[str, int] = {}
    start = np.maximum.accumulate(np.where(kind == PIECE, 0, np.arange(len(kind))))
    piece = np.flatnonzero(kind == PIECE)
    whole: dict[int, str] = {}
    for i, a in zip(piece.tolist(), start[piece].tolist(), strict=True):
        whole[a] = whole.get(a, raw[codes[a]]) + (raw[codes[i]].strip("@") if codes[i] in points else raw[codes[i]])
    for a, form in whole.items():
        if form not in known:
            known[form] = len(forms)
            forms.append(form)
        out[a] = known[form]


def restore(normal: Normal, parses: Parses, sentences: Int64) -> Parses:
    """Parses of the reader's words, from those of the parser's words; sentences: int64[S + 1] of the reader's.

    A piece hangs from the word it continues (`X`, `goeswith`), a mark from the root (`PUNCT`, `punct`).
    """
    kind = normal.kind
    is_word = kind == WORD
    if is_word.all():
        return parses
    relations = parses.relations + tuple(name for name in ("goeswith", "punct") if name not in parses.relations)
    upos = np.where(kind == MARK, np.uint8(UPOS.index("PUNCT")), np.uint8(UPOS.index("X")))
    deprel = np.where(kind == MARK, np.int32(relations.index("punct")), np.int32(relations.index("goeswith")))
    upos[is_word], deprel[is_word] = parses.upos, parses.deprel
    return Parses(upos, _restored_heads(normal, parses.head, sentences), deprel, relations)


def _restored_heads(normal: Normal, head: Int32, sentences: Int64) -> Int32:
    word = np.flatnonzero(normal.kind == WORD)
    row = owners(sentences)
    start = normal.sentences[:-1][row[word]]
    up = np.empty(len(normal.kind), np.int64)  # each word's head in the batch, -1 = root
    up[word] = np.where(head > 0, word[np.where(head > 0, start + head - 1, 0)], -1)
    before = np.maximum.accumulate(np.where(normal.kind == WORD, np.arange(len(normal.kind)), 0))
    pieces = normal.kind == PIECE
    up[pieces] = before[pieces]
    roots = np.full(len(sentences) - 1, -1, np.int64)
    roots[row[word[head == 0]]] = word[head == 0]
    marks = normal.kind == MARK
    up[marks] = roots[row[marks]]
    return np.where(up >= 0, up - sentences[:-1][row] + 1, 0).astype(np.int32)
