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

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int8, Int32, Int64, owners
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
    used, inverse = np.unique(words.astype(np.int32, copy=False), return_inverse=True)
    # Made from a buffer, because pa.array imports pandas (a third of a second and 40 MB).
    raw: list[str] = types.take(pa.Array.from_buffers(pa.int32(), len(used), [None, pa.py_buffer(used)])).to_pylist()
    codes: Int32 = inverse.reshape(-1).astype(np.int32)
    number = {word: i for i, word in enumerate(raw)}
    kind = np.zeros(len(words), np.int8)
    # One more than words: first[i + 1] may be asked of the last word, too, after which a sentence ends.
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
    return NormalisedWords(out[kept], forms, count[sentences], kind)


def _headings(codes: Int32, number: dict[str, int], sentences: Int64, kind: Int8) -> None:
    """Mark the runs of `=` at both ends of a sentence that has other words."""
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
    """Change `don 't` to `do n't`, where `'t` follows an auxiliary with an n at its end."""
    stem = np.full(len(raw), -1, np.int32)
    for i, word in enumerate(raw):
        if word[-1:] in ("n", "N") and word[:-1].lower() in _BEFORE_NT:
            stem[i] = len(forms)
            forms.append(word[:-1])
    nt = len(forms)
    forms.append("n't")
    for form in ("'t", "’t"):
        second = np.flatnonzero((codes == number.get(form, -1)) & ~first[:-1])
        # `~first` above: the word before is in the same sentence.
        second = second[stem[codes[second - 1]] >= 0]
        out[second] = nt
        out[second - 1] = stem[codes[second - 1]]


def _numbers(
    codes: Int32, raw: list[str], number: dict[str, int], first: Bool, forms: list[str], kind: Int8, out: Int32
) -> None:
    """Change `4 @,@ 386` to `4,386` and two pieces, if there are digits on both sides.

    For `a 4 @,@ 386 @.@ 5`: the marks are at 2 and 4, so the pieces are 2, 3, 4, 5. `start` has for each word the last
    word that is not a piece, 0 1 1 1 1 1; so word 1 becomes the joined form `4,386.5`.
    """
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


def restore(normal: NormalisedWords, parses: Parses, sentences: Int64) -> Parses:
    """Return parses of the reader's words from parses of the parser's words; sentences: int64[S + 1] of the reader's.

    A piece depends on the word that it continues (`X`, `goeswith`), a mark on the root (`PUNCT`, `punct`).
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


def _restored_heads(normal: NormalisedWords, head: Int32, sentences: Int64) -> Int32:
    """Return int32[N], the heads of the reader's words; head: int32[M], of the parser's words.

    For the sentence in `NormalisedWords`, with `4,386` (head 2) and `people` (head 0): `word` is [1, 4]; `up`, with
    positions from 0, is 4 for the MARKs (the root), 4 for `4`, 1 for the PIECEs and -1 for `people`. The heads are
    5 5 2 2 0 5.
    """
    word = np.flatnonzero(normal.kind == WORD)
    row = owners(sentences)
    start = normal.sentences[:-1][row[word]]
    up = np.empty(len(normal.kind), np.int64)  # position of each word's head in the batch, -1 = root
    up[word] = np.where(head > 0, word[np.where(head > 0, start + head - 1, 0)], -1)
    # before[i]: the last WORD at or before i, which a PIECE continues.
    before = np.maximum.accumulate(np.where(normal.kind == WORD, np.arange(len(normal.kind)), 0))
    pieces = normal.kind == PIECE
    up[pieces] = before[pieces]
    roots = np.full(len(sentences) - 1, -1, np.int64)
    roots[row[word[head == 0]]] = word[head == 0]
    marks = normal.kind == MARK
    up[marks] = roots[row[marks]]
    return np.where(up >= 0, up - sentences[:-1][row] + 1, 0).astype(np.int32)
