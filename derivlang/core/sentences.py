"""Find the ends of sentences in one scan over word codes. This is the only module that implements the rule.

*End marks* are words made only of `. ! ? … 。 ！ ？ । ॥ ؟ ۔`. A word of two or more dots, or `…`, is an end mark only
as the last word of its line. *Closers* are `) ] } ” ’ » ''`, and a straight `"` or `'` with an odd number of its kind
before it in its scope (the line of running text, else the unit). A sentence ends after a maximal run of end marks and
closers that begins with an end mark, and at the end of its line and unit. This run is the sentence's *tail*.

    said " .       tail: .          said . "       tail: . "   (if the quote closes)

Rules: `marks` is described above; under `period` the only end mark is `.`; under `unit` each unit is one sentence.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int8, Int32, Int64
from derivlang.core.arrow import string_array, to_numpy
from derivlang.core.errors import unknown
from derivlang.core.takes import RULES, Rule

RULE_VERSION = 1

END_MARKS = frozenset(".!?…。！？।॥؟۔")
CLOSERS = frozenset([")", "]", "}", "”", "’", "»", "''"])
_END, _ELLIPSIS, _CLOSER, _DOUBLE, _SINGLE = 1, 2, 3, 4, 5
_FIRST = string_array(sorted({mark[0] for mark in [*END_MARKS, *CLOSERS, '"']}))  # how marks and quotes begin


def type_classes(types: pa.Array, rule: Rule = "marks") -> Int8:
    """Return int8[T]: the class of each word type, 0 for an ordinary word. Raise UsageError for an unknown rule."""
    if rule not in RULES:
        raise unknown("sentence rule", rule, RULES, where="--sentences", id="unknown-sentence")
    classes = np.zeros(len(types), np.int8)
    for code in np.flatnonzero(to_numpy(pc.is_in(pc.utf8_slice_codeunits(types, 0, 1), value_set=_FIRST))):
        classes[code] = _class(types[int(code)].as_py(), rule)
    return classes


def _class(word: str, rule: Rule) -> int:
    if word in CLOSERS:
        return _CLOSER
    if word == '"':
        return _DOUBLE
    if word == "'":
        return _SINGLE
    if rule == "period":
        return _END if word == "." else 0
    if not END_MARKS.issuperset(word):
        return 0
    return _ELLIPSIS if word != "." and set(word) <= {".", "…"} else _END


def scan(
    words: Int32,
    classes: Int8,
    scopes: Int64,
    lines: Int64,
    *,
    rule: Rule = "marks",
    together: Bool | None = None,
) -> tuple[Int64, Int32]:
    """Return the sentence offsets int64[S + 1] and tails int32[S] of N words.

    words: int32[N]. classes: int8[T], from `type_classes`. scopes: word offsets of the scopes in which quotes are
    paired. lines: word offsets of the lines; every end of a scope must be an end of a line. Scopes and lines without
    words are allowed. together: bool[N], words of groups that count as one word; they do not end a sentence.

        words  " Go ! ) " Now .      tails  ! ) " and .      sentences [0, 5, 7], tails [3, 1]

    Step by step: only the marks are looked at (`at` [0, 2, 3, 4, 6]); the second quote closes, so it and `! ) .` are
    kept; [2, 3, 4] are adjacent and begin with an end mark, so their tail is [2, 5), and the tail of [6] is [6, 7).
    """
    n = len(words)
    if rule == "unit":
        lines = scopes
    kind = classes.take(words, mode="clip") if len(classes) else np.zeros(0, np.int8)
    if together is not None:
        kind = np.where(together, np.int8(0), kind)
    at = np.flatnonzero(kind != 0)  # flatnonzero is five times as fast on a bool array
    kind = kind[at]
    # line_end[i]: a line ends before word i. So word w is the last of its line if line_end[w + 1].
    line_end = np.zeros(n + 1, bool)
    line_end[lines[1:]] = True
    last = line_end[at + 1]
    ends = (kind == _END) | ((kind == _ELLIPSIS) & last)
    closes = kind == _CLOSER
    for quote in (_DOUBLE, _SINGLE):
        which = np.flatnonzero(kind == quote)
        if which.size:
            position = at[which]
            scope_start = scopes[np.searchsorted(scopes, position, "right") - 1]
            # Number of quotes of this kind before each one in its scope; an odd number: this one closes.
            # Quotes at 2, 5 and 9, scopes [0, 8, 12]: the first quotes of their scopes are number 0, 0 and 2, so before
            # = [0, 1, 0].
            before = np.arange(which.size) - np.searchsorted(position, scope_start)
            closes[which] = (before & 1) == 1
    keep = ends | closes
    at, ends, last = at[keep], ends[keep], last[keep]
    tail_start, tail_end = _tails(at, ends, last)
    if rule == "unit":
        whole = line_end[tail_end]
        tail_start, tail_end = tail_start[whole], tail_end[whole]
    # One flag for each offset: 0 inside a sentence, 1 at the end of a line, 2 at the end of a tail.
    # A view of line_end, which is not read again below, so that no second array of N + 1 flags is needed.
    flags = line_end.view(np.int8)
    flags[tail_end] = 2
    # An empty first line ends at 0, where no sentence ends.
    flags[0] = 0
    sentence_ends = np.flatnonzero(flags != 0)
    tails = np.zeros(len(sentence_ends), np.int32)
    # Both sides are in text order: the k-th flag 2 is the end of the k-th tail.
    tails[flags[sentence_ends] == 2] = tail_end - tail_start
    return np.concatenate([np.zeros(1, np.int64), sentence_ends]), tails


def _tails(at: Int64, ends: Bool, last: Bool) -> tuple[Int64, Int64]:
    """Return (start, end) of the tail of each run of adjacent marks and closers: from its first end mark to its end.

    at: positions of marks and closers. ends: which of them are end marks. last: which are the last word of their line,
    where a run ends. Runs without an end mark have no tail.

    at [1, 2, 3, 5], ends [no, yes, no, yes]  ->  runs 1-3 and 5, tails [2, 4) and [5, 6)
    """
    if not at.size:
        return at, at
    new = np.ones(len(at), bool)
    new[1:] = (at[1:] != at[:-1] + 1) | last[:-1]
    first = np.flatnonzero(new)
    # A run without an end mark gets the largest number as its start, so that start < stop is False below.
    start = np.minimum.reduceat(np.where(ends, at, np.iinfo(np.int64).max), first)
    stop = at[np.append(first[1:], len(at)) - 1] + 1
    tailed = start < stop
    return start[tailed], stop[tailed]
