"""The drawing of a row: where each word, link, arc and label stands. No markup is made here (`svg.html` does that).

The source line stands above the derived one, trees above and below. What is linked are pairs: a source word with its
derived word, a deleted word, or an inserted one. The width of a word is estimated by classes of characters, rather too
wide than too narrow, since it only decides how far apart words stand. No font is read, so the same row gives the same
drawing everywhere.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from derivlang.display.rows import Line, LinkedLines

SIZE, SMALL = 15, 11  # px, of words and of labels
_SPACE = 16  # between two words
_LEVEL = 19  # between two levels of arcs
_GAP, _STRAIGHT_GAP = 88, 40  # between the two lines
_TAGS, _LABELS = 14, 13  # heights of the rows of tags and of entity labels
_NARROW = frozenset("iljtfrI.,:;'’‘|!()[]{}/\\-`\"·")
_WIDE = frozenset("mwMWQOGDHNU@%&—…")
# First and last code point of scripts with wide letters, and their width.
_SCRIPTS = (
    (0x0530, 0x058F, 0.70),  # Armenian
    (0x0590, 0x08FF, 0.58),  # Hebrew, Arabic
    (0x0900, 0x0DFF, 0.70),  # scripts of India
    (0x1C90, 0x1CBF, 0.80),  # Georgian capitals
    (0x10A0, 0x10FF, 0.66),  # Georgian
    (0x2D00, 0x2D2F, 0.70),  # Georgian, church script
    (0x1D400, 0x1D7FF, 0.80),  # mathematical letters
)
_ISOLATE, _END = "\u2068", "\u2069"  # first strong isolate, pop directional isolate


@dataclass(frozen=True, slots=True)
class DrawnText:
    """A text around a place. kind: word, tag, relation or label."""

    x: float
    y: float
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle behind the words of an entity or answer. colour: the number of its label's colour."""

    x: float
    y: float
    width: float
    height: float
    colour: int
    label: DrawnText


@dataclass(frozen=True, slots=True)
class DrawnPair:
    """A pair of words. said: all about it in a sentence. kind: same, earlier, later, deleted or inserted.

    link: the path between the words, "" if there is only one. arcs: (path, arrow's path, label) of the edges to the
    heads of both words.
    """

    said: str
    kind: str
    texts: tuple[DrawnText, ...]
    link: str
    arcs: tuple[tuple[str, str, DrawnText], ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing of `width` by `height` px. boxes lie below the links, links below the words."""

    width: float
    height: float
    boxes: tuple[Box, ...] = ()
    pairs: tuple[DrawnPair, ...] = ()


@dataclass(slots=True)
class _Side:
    """A line with the places of its words. x, y: of the words' middle and base."""

    line: Line
    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    arcs: dict[int, tuple[str, str, DrawnText]] = field(default_factory=dict)


def colours_of(rows: Sequence[LinkedLines]) -> dict[str, int]:
    """Return a number for each label of entities and answers, in the order in which they occur: answer is 0."""
    labels = dict.fromkeys(
        span.label for row in rows for line in (row.source, row.derived) for span in line.spans if span.kind == "entity"
    )
    return {"answer": 0, **{label: 1 + number for number, label in enumerate(sorted(labels))}}


def kinds_of(row: LinkedLines) -> list[tuple[int, int, str]]:
    """Return (source position, derived position, kind) of each pair, in source order, then the inserted words.

    A pair is the same, earlier or later by its place among all pairs: a deleted word before it moves nothing.
    """
    kept = [word for word in row.order if word >= 0]
    rank = {word: number for number, word in enumerate(sorted(kept))}
    kinds = {word: ("same", "later", "earlier")[np.sign(place - rank[word])] for place, word in enumerate(kept)}
    out = [(word, place, kinds.get(word, "deleted")) for word, place in enumerate(row.positions)]
    return out + [(-1, place, "inserted") for place, word in enumerate(row.order) if word < 0]


def _said_of(name: str, line: Line) -> list[str]:
    """Return what a reader should know of each word of a line: its position, its letters and its labels."""
    known = (f" ({', '.join(labels)})" if labels else "" for labels in line.labels())
    words = enumerate(zip(line.words, known, strict=True))
    return [f"{name} {position}: {isolated(word)}{labels}" for position, (word, labels) in words]


def draw(row: LinkedLines, colours: dict[str, int]) -> Drawing:
    """Return the drawing of a row. colours: as of `colours_of`."""
    source, derived = _Side(row.source), _Side(row.derived)
    total = max(_spread(source), _spread(derived), 120.0)
    for side in (source, derived):
        if is_rtl(side.line.words):  # from the right edge to the left
            side.x = [total - x for x in side.x]
    pairs = kinds_of(row)
    gap = _GAP if any(kind not in ("same",) for _, _, kind in pairs) else _STRAIGHT_GAP
    tags = _TAGS if row.source.tag or row.derived.tag else 0
    kinds = sorted({span.kind for line in (row.source, row.derived) for span in line.spans}, reverse=True)
    labels = _LABELS * len(kinds)  # a row for the entities, and one for the answers, which may contain them
    above, below = _arc_room(source), _arc_room(derived)
    base = 6 + above + SIZE
    begin = base + 10 + tags + labels
    end = begin + gap
    second = end + labels + tags + SIZE + 3
    source.y, derived.y = [base] * len(source.x), [second] * len(derived.x)
    _bend(source, base - SIZE - 3, -1)
    _bend(derived, second + 8, 1)
    below_words: dict[str, float] = {kind: base + 8 + tags + SMALL + _LABELS * n for n, kind in enumerate(kinds)}
    above_words: dict[str, float] = {kind: end + labels - 3 - _LABELS * n for n, kind in enumerate(kinds)}
    boxes = [
        *_boxes(source, base, below_words, colours),
        *_boxes(derived, second, above_words, colours),
    ]
    drawn = []
    # The last one is for the position -1, of a word that is not there.
    of_source = [*_said_of("source", row.source), "inserted: it has no source word"]
    of_derived = [*_said_of("derived", row.derived), "deleted: it has no derived word"]
    for word, place, kind in pairs:
        texts = []
        for side, position, tag_y in ((source, word, base + 5 + SMALL), (derived, place, second - SIZE - 4)):
            if position >= 0:
                texts.append(_word(side, position))
                if side.line.tag:
                    texts.append(DrawnText(side.x[position], tag_y, side.line.tag[position], "tag"))
        link = ""
        if word >= 0 and place >= 0:
            a, b, middle = source.x[word], derived.x[place], (begin + end) / 2
            link = f"M{a:.1f},{begin:.1f} C{a:.1f},{middle:.1f} {b:.1f},{middle:.1f} {b:.1f},{end:.1f}"
        said = f"{of_source[word]}; {of_derived[place]}" if word >= 0 else f"{of_derived[place]}; {of_source[word]}"
        arcs = tuple(side.arcs[p] for side, p in ((source, word), (derived, place)) if p in side.arcs)
        drawn.append(DrawnPair(said, kind, tuple(texts), link, arcs))
    return Drawing(total, second + 10 + below, tuple(boxes), tuple(drawn))


def _spread(side: _Side) -> float:
    """Place the words of a side from 0 and return the width of the line."""
    line, at = side.line, 0.0
    label_of = {span.first: span.label for span in line.spans}
    for place, word in enumerate(line.words):
        own = width(word) * SIZE
        needed = [own]
        needed += [width(line.tag[place]) * SMALL] if line.tag else []
        needed += [width(line.relation[place]) * SMALL] if line.relation else []
        needed += [width(label_of[place]) * SMALL] if place in label_of else []
        slot = max(needed) + _SPACE
        side.widths.append(own)
        side.x.append(at + slot / 2)
        at += slot
    return at


def _arc_room(side: _Side) -> float:
    highest = max((arc.level for arc in arcs_of(side.line.head)), default=0)
    return highest * _LEVEL + SMALL + 6 if highest else 0


def _bend(side: _Side, y: float, way: int) -> None:
    """Draw the arcs of a side from a height upwards (way -1) or downwards (1).

    The arc ends in the middle of the word and begins a little beside the middle of its head, so that arrows are free.
    """
    for arc in arcs_of(side.line.head):
        to, beside = side.x[arc.word], 4 if side.x[arc.head] < side.x[arc.word] else -4
        begin, top = side.x[arc.head] + beside, y + way * (arc.level * _LEVEL)
        r = min(5.0, abs(to - begin) / 2)
        turn, up = (r if begin < to else -r), way * r
        path = (
            f"M{begin:.1f},{y:.1f} V{top - up:.1f} Q{begin:.1f},{top:.1f} {begin + turn:.1f},{top:.1f} "
            f"H{to - turn:.1f} Q{to:.1f},{top:.1f} {to:.1f},{top - up:.1f} V{y:.1f}"
        )
        arrow = f"M{to - 3:.1f},{y + way * 5:.1f} L{to + 3:.1f},{y + way * 5:.1f} L{to:.1f},{y:.1f} Z"
        label = DrawnText((begin + to) / 2, top + 3.5, side.line.relation[arc.word], "relation")
        side.arcs[arc.word] = (path, arrow, label)


def _boxes(side: _Side, base: float, label_y: dict[str, float], colours: dict[str, int]) -> list[Box]:
    """Return the boxes of a side, answers first. label_y: the height of the labels of each kind."""
    out = []
    for span in sorted(side.line.spans, key=lambda span: span.kind):
        more = 2 if span.kind == "answer" else 0
        edges = [side.x[i] + s * side.widths[i] / 2 for i in range(span.first, span.end) for s in (-1, 1)]
        x = min(edges) - 5
        wide = max(edges) + 5 - x
        label = DrawnText(x + wide / 2, label_y[span.kind], span.label, "label")
        out.append(Box(x, base - SIZE - 1 - more, wide, SIZE + 6 + 2 * more, colours[span.label], label))
    return out


def _word(side: _Side, position: int) -> DrawnText:
    root = " root" if side.line.head and side.line.head[position] == 0 else ""
    return DrawnText(side.x[position], side.y[position], isolated(side.line.words[position]), f"word{root}")


# Arcs


@dataclass(frozen=True, slots=True)
class Arc:
    """The edge from a head to a word, positions from 0. level: from 1, above all arcs that it spans."""

    head: int
    word: int
    level: int


def arcs_of(head: Sequence[int]) -> list[Arc]:
    """Return the arcs of heads (from 1, 0 = root), short ones first. Roots have no arc.

    An arc is one level above the highest arc that shares a stretch between two words with it, crossing ones included.
    """
    ends = sorted(((h - 1, w) for w, h in enumerate(head) if h > 0), key=lambda arc: (abs(arc[0] - arc[1]), arc[1]))
    levels = np.zeros(len(head), np.int64)  # the highest so far over the stretch behind each word
    out = []
    for governor, word in ends:
        first, last = sorted((governor, word))
        levels[first:last] = 1 + levels[first:last].max()
        out.append(Arc(governor, word, int(levels[first])))
    return out


# Widths


def width(text: str) -> float:
    """Return the estimated width of a text, in em."""
    return sum(map(_of_character, text))


def _of_character(character: str) -> float:
    if character in _NARROW:
        return 0.38
    if character in _WIDE:
        return 0.90
    if character.isascii():
        return 0.70 if character.isupper() else 0.60
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    code = ord(character)
    return next((em for first, last, em in _SCRIPTS if first <= code <= last), 0.72 if character.isupper() else 0.64)


def is_rtl(words: Iterable[str]) -> bool:
    """Return whether most words with a direction begin with a letter that is written from right to left."""
    right = left = 0
    for word in words:
        first = next((d for d in map(unicodedata.bidirectional, word) if d in ("L", "R", "AL")), "")
        right += first in ("R", "AL")
        left += first == "L"
    return right > left


def isolated(text: str) -> str:
    """Return a text that keeps its own direction beside other text: a word with right-to-left letters is enclosed."""
    if any(unicodedata.bidirectional(c) in ("R", "AL") for c in text):
        return f"{_ISOLATE}{text}{_END}"
    return text
