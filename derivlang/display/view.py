"""View: rows that a notebook shows as a drawing, a terminal as text, and that can be saved as a page or a picture.

In a terminal there are both lines, then a line for each derived word with its source word and labels.

row 0  split test  document 0  key 0d4cfc6a3e2b9f10
  source   Welcome to ACL .
  derived  ᲐᲪᲚ ტო Წელცომე ．
    0 ᲐᲪᲚ      <-   2 ACL
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from derivlang.core.errors import UsageError, visible
from derivlang.core.layers.constituents import PARSE
from derivlang.core.layers.tag_schemes import tag as tag_of
from derivlang.core.messages import counted
from derivlang.display.drawing import colours_of, kinds_of
from derivlang.display.rows import Line, LinkedLines
from derivlang.formats.places import check_local, located
from derivlang.store.files import held_file, writing

Paint = Callable[[str, str], str]
"""Returns a text with the colour of a kind: soft, earlier, later, same, deleted, inserted, or label N."""


def text_of(row: LinkedLines, paint: Paint, colours: dict[str, int]) -> str:
    """Return a row as text, with control characters as visible escapes.

    paint: colours a piece of text. colours: a number for each label of a span.
    """

    def shown(text: str, kind: str) -> str:
        return paint(visible(text), kind)

    source, derived = row.source, row.derived
    values = row.values.items() if not derived.brackets else [(n, v) for n, v in row.values.items() if n != PARSE]
    header = "  ".join(f"{name} {value}" for name, value in (*row.facts.items(), *values))
    lines = [visible(header)] if header else []
    for name, line in (("source", source), ("derived", derived)):
        lines.append(f"  {paint(f'{name:<8}', 'soft')} {' '.join(_painted(line, shown, colours))}".rstrip())
    kinds = {place: kind for _, place, kind in kinds_of(row) if place >= 0}
    wide = max(map(columns, derived.words), default=0)
    own = max((columns(source.words[i]) if i >= 0 else 1 for i in row.order), default=0)
    labels = _labels(derived)
    words, partners = _painted(derived, shown, colours), _painted(source, shown, colours)
    for place, word in enumerate(row.order):
        left = words[place] + " " * (wide - columns(derived.words[place]))
        right = f"  - {' ' * own}"
        if word >= 0:
            right = f"{word:>3} {partners[word]}{' ' * (own - columns(source.words[word]))}"
        arrow = paint("<-", kinds[place])
        known = shown("  ".join(labels[place]), "soft")
        lines.append(f"  {place:>3} {left}  {arrow} {right}  {known}".rstrip())
    for word, place in enumerate(row.positions):
        if place < 0:
            lines.append(f"    - {' ' * wide}  {paint('<-', 'deleted')} {word:>3} {partners[word]}  deleted")
    return "\n".join(lines)


def tags_of(line: Line) -> dict[str, list[str]]:
    """Return the entities of a line as BIO tags, by column."""
    out: dict[str, list[str]] = {}
    for span in line.spans:
        if span.kind == "entity":
            tags = out.setdefault(span.column, ["O"] * len(line.words))
            first, other = tag_of("B", span.label), tag_of("I", span.label)
            tags[span.first : span.end] = [first, *[other] * (span.end - span.first - 1)]
    return out


def columns(text: str) -> int:
    """Return the number of terminal columns: wide East Asian characters take two, combining marks none."""
    shown = visible(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in shown)


def _painted(line: Line, paint: Paint, colours: dict[str, int]) -> list[str]:
    """Return the words of a line, with entities and answers in their colours."""
    words = list(map(visible, line.words))
    for span in sorted(line.spans, key=lambda span: span.kind):
        for word in range(span.first, span.end):
            words[word] = paint(line.words[word], f"label {colours[span.label]}")
    return words


def _labels(line: Line) -> list[list[str]]:
    """Return the labels in the line of each word: tag, relation and number of the head, BIO tags, brackets, answer."""
    labels: list[list[str]] = [[] for _ in line.words]
    wide = max(map(len, line.tag), default=0)
    for word, tag in enumerate(line.tag):
        labels[word].append(f"{tag:<{wide}}")
    for word, governor in enumerate(line.head):
        labels[word].append(line.relation[word] + (f" of {governor - 1}" if governor else ""))
    for tags in tags_of(line).values():
        for word, tag in enumerate(tags):
            labels[word] += [tag] if tag != "O" else []
    labels = [[visible(label) for label in own] for own in labels]
    wide = max(len("  ".join(own)) for own in labels) if line.brackets else 0
    for word, piece in enumerate(map(visible, line.brackets)):
        labels[word] = [f"{'  '.join(labels[word]):<{wide}}", piece] if wide else [piece]
    for span in line.spans:
        for word in range(span.first, span.end) if span.kind == "answer" else ():
            labels[word].append("answer")
    return labels


_SUFFIXES = (".html", ".htm", ".svg")  # of drawings


@dataclass(frozen=True, slots=True)
class View:
    """One or several rows. A notebook shows them as a drawing; `print` writes them as `derivlang show` does."""

    rows: Sequence[LinkedLines]
    title: str = "derivlang"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"View of {counted(len(self.rows), 'row')}; .save('FILE.html') writes it"

    def _repr_html_(self) -> str:
        from derivlang.display.page import fragment

        return fragment(self.rows)

    def text(self, paint: Paint = lambda text, kind: text) -> str:
        """Return the rows as a terminal shows them. paint: colours a piece of text."""
        colours = colours_of(self.rows)
        return "\n\n".join(text_of(row, paint, colours) for row in self.rows)

    def save(self, file: Path | str, told: str = "", *, force: bool = False) -> None:
        """Write the rows as a page, or the first row as a picture if the file ends in .svg.

        told: a sentence to show below the page's title. force: replace a file that holds something else. Raises
        StoreError if the file cannot be written, or may not be replaced, UsageError if there is no row.
        """
        from derivlang.display.page import page, standalone_svg

        path = located(file)
        check_local(path, "pages and pictures")
        if not self.rows:
            raise UsageError("there is no row to draw", where=str(path), id="no-row")
        if path.suffix.lower() not in _SUFFIXES:
            fix = f"name the file {' or '.join(_SUFFIXES)}"
            raise UsageError("the file would hold a page (HTML)", where=str(path), fix=fix, id="output")
        text = standalone_svg(self.rows[0]) if path.suffix.lower() == ".svg" else page(self.rows, self.title, told)
        with held_file(path, "a drawing", text), writing(path, replace=force) as stream:
            stream.write(text.encode())
