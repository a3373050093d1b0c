"""Rows of derived sets that were loaded with `datasets`, as linked lines.

The source's labels follow from the derived ones and the order; a column `source_<label>`, where it is not null, has
what the order does not restore.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.layers.tag_schemes import are_entity_tags
from derivlang.display.linked import SHORT_TAGS, Line, LinkedLines, Span


def rows_of_dataset(data: Any, row: int = 0) -> list[LinkedLines]:
    """Return what is shown of a row, one for each side.

    data: a mapping of columns, or a set of `datasets`, of which `row` is taken. Raises UsageError for other data, a row
    that is not there, and a row without the words of both languages.
    """
    names: dict[str, Sequence[str]] = {}
    if isinstance(data, Mapping):
        columns: Mapping[str, Any] = data
    elif hasattr(data, "features") and hasattr(data, "__getitem__"):
        if not 0 <= row < len(data):
            raise UsageError(f"there is no row {row} of {len(data):,}", id="no-row")
        columns = data[row]
        names = {name: _names(feature) for name, feature in data.features.items()}
    else:
        raise UsageError(
            f"view takes a derived text, a row of a derived set, or a set of `datasets`, not {type(data).__name__}",
            fix="pass what derive returns, or dataset[5]",
            id="no-view",
        )
    orders = [name for name in columns if name == "order" or name.endswith("_order")]
    sides = [name.removesuffix("order") for name in orders if name == "order" or f"{name[:-5]}tokens" in columns]
    missing = [f"{side}{part}" for side in sides or [""] for part in ("source", "tokens", "order")]
    missing = [name for name in missing if columns.get(name) is None]
    if missing:
        raise UsageError(
            f"the row has no column {missing[0]!r}, so it is not a complete row of a derived set",
            fix="make the set without --columns, or use `derivlang show DERIVED --html FILE`",
            id="no-view",
        )
    return [_side(columns, side, names, alone=len(sides) == 1) for side in sides]


def _side(columns: Mapping[str, Any], side: str, names: Mapping[str, Sequence[str]], *, alone: bool) -> LinkedLines:
    order = tuple(int(i) for i in columns[f"{side}order"])
    words, source = columns[f"{side}tokens"], columns[f"{side}source"]
    derived_labels: dict[str, list[Any]] = {}
    source_labels: dict[str, list[Any]] = {}
    spans: list[Span] = []
    source_spans: list[Span] = []
    for name, values in columns.items():
        if not isinstance(values, list | tuple) or len(values) != len(words):
            continue
        if not name.startswith(side) or name.startswith("source_"):
            continue
        if name.removeprefix(side) in ("tokens", "source", "order"):  # a word such as B-52 is not a tag
            continue
        label, named = name.removeprefix(side), _named(values, names.get(name, ()))
        given = columns.get(f"source_{name}")
        stored = None if given is None or len(given) != len(source) else _named(given, names.get(name, ()))
        if _are_bio(names.get(name) or named):
            spans += _entities(named, label)
            source_spans += _spans_back(_entities(named, label), order) if stored is None else _entities(stored, label)
            continue
        derived_labels[label] = named
        if stored is None:
            back = _heads_back if label == "head" else _back
            stored = back(named, order, len(source))
        source_labels[label] = stored
    facts = {name: str(columns[name]) for name in ("document",) if name in columns}
    if isinstance(columns.get("key"), int):
        facts["key"] = f"{columns['key']:016x}"
    if side:
        facts["side"] = side.removesuffix("_")
    if alone or side == "context_":
        spans += _answers(columns, words)
    return LinkedLines(_line(source, source_labels, source_spans), _line(words, derived_labels, spans), order, facts)


def _line(words: Sequence[str], labels: Mapping[str, Sequence[Any]], spans: Sequence[Span]) -> Line:
    tags = {name: tuple(map(str, labels[name])) for name in SHORT_TAGS if name in labels}
    line = Line.of_columns(words, {name: labels[name] for name in ("head", "deprel") if name in labels})
    return replace(line, tags=tags, spans=tuple(spans))


def _named(values: Sequence[Any], classes: Sequence[str]) -> list[Any]:
    """Return class numbers as their names."""
    return [classes[v] if classes and isinstance(v, int) and 0 <= v < len(classes) else v for v in values]


def _back(values: Sequence[Any], order: Sequence[int], n_source: int) -> list[Any]:
    """Return the values in source order: [a, b, c] under the order [2, 0, 1] -> [b, c, a]; `_` for deleted words."""
    out = ["_"] * n_source
    for value, word in zip(values, order, strict=True):
        if word >= 0:
            out[word] = value
    return out


def _heads_back(heads: Sequence[int], order: Sequence[int], n_source: int) -> list[int]:
    """Return heads in source order with source numbers; 0 for deleted words and dependents of inserted ones."""
    out = [0] * n_source
    for head, word in zip(heads, order, strict=True):
        if word >= 0:
            out[word] = order[head - 1] + 1 if head > 0 else head
    return out


def _are_bio(values: Sequence[Any]) -> bool:
    """Return whether classes, or the values of a row, are tags of entities."""
    tags = [v for v in values if v != "_"]
    return all(isinstance(v, str) for v in tags) and are_entity_tags(tags)


def _spans_back(spans: Sequence[Span], order: Sequence[int]) -> list[Span]:
    """Return the spans of derived words as spans of source words, one for each run of adjacent ones."""
    out: list[Span] = []
    for span in spans:
        begun = len(out)
        for word in sorted(order[place] for place in range(span.first, span.end) if order[place] >= 0):
            if len(out) > begun and out[-1].end == word:
                out[-1] = replace(out[-1], end=word + 1)
            else:
                out.append(replace(span, first=word, end=word + 1))
    return sorted(out, key=lambda span: span.first)


def _entities(values: Sequence[Any], column: str) -> list[Span]:
    """Return the entities of BIO tags."""
    spans: list[Span] = []
    for place, tag in enumerate(values):
        if tag[:2] in ("I-", "I") and spans and spans[-1].end == place and spans[-1].label == tag[2:]:
            spans[-1] = Span("entity", spans[-1].first, place + 1, tag[2:], column)
        elif tag[:2] in ("B-", "I-", "B", "I"):
            spans.append(Span("entity", place, place + 1, tag[2:], column))
    return spans


def _answers(columns: Mapping[str, Any], words: Sequence[str]) -> list[Span]:
    """Return the answers of a question's row, found by their places in the words joined by spaces."""
    answers = columns.get("answers")
    if not isinstance(answers, Mapping) or "answer_start" not in answers:
        return []
    starts, at = [], 0
    for word in words:
        starts.append(at)
        at += len(word) + 1
    spans = set()
    for text, begin in zip(answers["text"], answers["answer_start"], strict=True):
        covered = [i for i, start in enumerate(starts) if start < begin + len(text) and start + len(words[i]) > begin]
        if covered:
            spans.add((covered[0], covered[-1] + 1))
    return [Span("answer", first, end, "answer", "answers") for first, end in sorted(spans)]


def _names(feature: Any) -> Sequence[str]:
    """Return the class names of a feature or of a list's elements, () if it has none."""
    inner = getattr(feature, "feature", feature)
    return tuple(getattr(inner, "names", None) or ())
