"""Drawings of a row: where each word, link, arc and label stands. No markup is made here (`svg.html` does that).

across   the source line above the derived one, trees above and below: for lines that fit the page
down     a word per row, the source at the left and the derived words at the right, labels below them: for phones and
         long lines

Both draw the same pairs: a source word with its derived word, a deleted word, or an inserted one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from derivlang.display.arcs import arcs_of
from derivlang.display.linked import Line, LinkedLines
from derivlang.display.widths import is_rtl, isolated, width

SIZE, SMALL = 15, 11  # px, of words and of labels
WIDEST = 1600  # px: longer lines are drawn down only
_SPACE = 16  # between two words
_LEVEL, _NARROW_LEVEL = 19, 7  # between two levels of arcs, across and down
_ROW, _TAGGED_ROW = 28, 38  # heights of a word drawn down, without and with its labels below it
_GAP, _STRAIGHT_GAP, _GAP_DOWN = 88, 40, 64  # between the two lines
_BASE = 20  # from the top of a row drawn down to the base of its word
_TAGS, _LABELS = 14, 13  # heights of the rows of tags and of entity labels


@dataclass(frozen=True, slots=True)
class DrawnText:
    """A text at a place. kind: word, tag or label. anchor: start, middle or end."""

    x: float
    y: float
    text: str
    kind: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle behind the words of an entity or answer. colour: the number of its label's colour."""

    x: float
    y: float
    width: float
    height: float
    colour: int
    label: DrawnText | None = None


@dataclass(frozen=True, slots=True)
class Tip:
    """A box with the facts about a pair, shown when the pair has the pointer or the focus."""

    x: float
    y: float
    width: float
    height: float
    lines: tuple[DrawnText, ...]


@dataclass(frozen=True, slots=True)
class DrawnPair:
    """A pair of words. said: all about it in a sentence. kind: same, earlier, later, deleted or inserted.

    link: the path between the words, "" if there is only one. arcs: (path, arrow's path, label or None) of the edges
    to the heads of both words.
    """

    said: str
    kind: str
    texts: tuple[DrawnText, ...]
    link: str
    arcs: tuple[tuple[str, str, DrawnText | None], ...]
    tip: Tip | None = None


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing of `width` by `height` px. boxes lie below the links, links below the words."""

    kind: str
    width: float
    height: float
    boxes: tuple[Box, ...] = ()
    pairs: tuple[DrawnPair, ...] = ()


@dataclass(slots=True)
class _Side:
    """A line with the places of its words. x, y: of the words' middle and base. small: the label of each word."""

    line: Line
    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    arcs: dict[int, tuple[str, str, DrawnText | None]] = field(default_factory=dict)
    small: list[str] = field(default_factory=list)


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
    kept = sorted(word for word in row.order if word >= 0)
    rank = {word: number for number, word in enumerate(kept)}
    places = [place for place, word in enumerate(row.order) if word >= 0]
    rank_of_place = {place: number for number, place in enumerate(places)}
    out = []
    for word, place in enumerate(row.positions):
        moved = rank_of_place[place] - rank[word] if place >= 0 else 0
        kind = "deleted" if place < 0 else "same" if not moved else "earlier" if moved < 0 else "later"
        out.append((word, place, kind))
    return out + [(-1, place, "inserted") for place, word in enumerate(row.order) if word < 0]


def _said_of(row: LinkedLines, pairs: Sequence[tuple[int, int, str]]) -> list[tuple[str, ...]]:
    """Return what a reader should know of each pair: the source word, then the derived word, each with its labels."""
    labels = row.source.labels(), row.derived.labels()
    out = []
    for word, place, _ in pairs:
        parts = []
        for name, line, of, position in zip(
            ("source", "derived"), (row.source, row.derived), labels, (word, place), strict=True
        ):
            if position >= 0:
                known = f" ({', '.join(of[position])})" if of[position] else ""
                parts.append(f"{name} {position}: {isolated(line.words[position])}{known}")
        if word < 0:
            parts.append("inserted: it has no source word")
        if place < 0:
            parts.append("deleted: it has no derived word")
        out.append(tuple(parts))
    return out


# Across


def across(row: LinkedLines, colours: dict[str, int]) -> Drawing:
    """Return the drawing with a line above the other."""
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
        *_boxes_across(source, base, below_words, colours),
        *_boxes_across(derived, second, above_words, colours),
    ]
    drawn = []
    for (word, place, kind), said in zip(pairs, _said_of(row, pairs), strict=True):
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
        at = source.x[word] if word >= 0 else derived.x[place]
        arcs = tuple(side.arcs[p] for side, p in ((source, word), (derived, place)) if p in side.arcs)
        tip = _tip(said, at, begin + 6, total) if gap == _GAP else None
        drawn.append(DrawnPair("; ".join(said), kind, tuple(texts), link, arcs, tip))
    return Drawing("across", total, second + 10 + below, tuple(boxes), tuple(drawn))


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


def _boxes_across(side: _Side, base: float, label_y: dict[str, float], colours: dict[str, int]) -> list[Box]:
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


def _tip(said: Sequence[str], at: float, y: float, total: float) -> Tip:
    wide = min(max(width(line) for line in said) * (SMALL + 1) + 16, total)
    x = min(max(at - wide / 2, 0), max(total - wide, 0))
    lines = tuple(DrawnText(x + 8, y + 16 + 16 * n, line, "said", "start") for n, line in enumerate(said))
    return Tip(x, y, wide, 16 * len(said) + 10, lines)


def _word(side: _Side, position: int, anchor: str = "middle") -> DrawnText:
    root = " root" if side.line.head and side.line.head[position] == 0 else ""
    return DrawnText(side.x[position], side.y[position], isolated(side.line.words[position]), f"word{root}", anchor)


# Down


def down(row: LinkedLines, colours: dict[str, int]) -> Drawing:
    """Return the drawing with a word per row."""
    source, derived = _Side(row.source), _Side(row.derived)
    for side in (source, derived):
        side.small = _small(side.line)
    row_height = _TAGGED_ROW if any([*source.small, *derived.small]) else _ROW
    room, widest = [], []
    for side in (source, derived):
        side.widths = [width(word) * SIZE for word in side.line.words]
        highest = max((arc.level for arc in arcs_of(side.line.head)), default=0)
        room.append(highest * _NARROW_LEVEL + 12 if highest else 0)
        widest.append(max([*side.widths, *(width(text) * SMALL for text in side.small)], default=0) + 8)
        side.y = [row_height * n + _BASE for n in range(len(side.line.words))]
    left = room[0] + widest[0]
    right = left + _GAP_DOWN
    source.x, derived.x = [left - 4] * len(source.widths), [right + 4] * len(derived.widths)
    _bend_sideways(source, room[0] - 4, -1)
    _bend_sideways(derived, right + widest[1] + 4, 1)
    drawn = []
    pairs = kinds_of(row)
    for (word, place, kind), said in zip(pairs, _said_of(row, pairs), strict=True):
        texts = []
        for side, position, anchor in ((source, word, "end"), (derived, place, "start")):
            if position >= 0:
                texts.append(_word(side, position, anchor))
                if side.small[position]:
                    x, y = side.x[position], side.y[position] + SMALL + 2
                    texts.append(DrawnText(x, y, side.small[position], "tag", anchor))
        link = ""
        if word >= 0 and place >= 0:
            a, b, middle = source.y[word] - 5, derived.y[place] - 5, (left + right) / 2
            link = f"M{left + 4:.1f},{a:.1f} C{middle:.1f},{a:.1f} {middle:.1f},{b:.1f} {right - 4:.1f},{b:.1f}"
        arcs = tuple(side.arcs[p] for side, p in ((source, word), (derived, place)) if p in side.arcs)
        drawn.append(DrawnPair("; ".join(said), kind, tuple(texts), link, arcs))
    boxes = [*_boxes_down(source, -1, row_height, colours), *_boxes_down(derived, 1, row_height, colours)]
    high = row_height * max(len(source.x), len(derived.x), 1) + 8
    return Drawing("down", right + widest[1] + room[1], high, tuple(boxes), tuple(drawn))


def _small(line: Line) -> list[str]:
    """Return the label below each word: its tag, its relation, and the entities and answers that begin there."""
    parts: list[list[str]] = [[] for _ in line.words]
    for values in (line.tag, line.relation):
        for place, value in enumerate(values):
            parts[place].append(value)
    for span in line.spans:
        parts[span.first].append(span.label)
    return [" ".join(each) for each in parts]


def _bend_sideways(side: _Side, x: float, way: int) -> None:
    """Draw the arcs of a side from a column to the left (way -1) or right (1). Relations stand at their words."""
    for arc in arcs_of(side.line.head):
        to = side.y[arc.word] - 5
        begin = side.y[arc.head] - 5 + (3 if arc.word > arc.head else -3)
        far = x + way * arc.level * _NARROW_LEVEL
        r = min(5.0, abs(to - begin) / 2)
        turn, out = (r if begin < to else -r), way * r
        path = (
            f"M{x:.1f},{begin:.1f} H{far - out:.1f} Q{far:.1f},{begin:.1f} {far:.1f},{begin + turn:.1f} "
            f"V{to - turn:.1f} Q{far:.1f},{to:.1f} {far - out:.1f},{to:.1f} H{x:.1f}"
        )
        arrow = f"M{x + way * 5:.1f},{to - 3:.1f} L{x + way * 5:.1f},{to + 3:.1f} L{x:.1f},{to:.1f} Z"
        side.arcs[arc.word] = (path, arrow, None)


def _boxes_down(side: _Side, way: int, row_height: int, colours: dict[str, int]) -> list[Box]:
    out = []
    for span in side.line.spans:
        inside = slice(span.first, span.end)
        wide = max(*side.widths[inside], *(width(text) * SMALL for text in side.small[inside])) + 8
        x = side.x[span.first] + 4 - wide if way < 0 else side.x[span.first] - 4
        high = row_height * (span.end - span.first)
        out.append(Box(x, side.y[span.first] - _BASE + 3, wide, high - 4, colours[span.label]))
    return out
