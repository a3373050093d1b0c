"""Spans: entities tagged in BIO (IOB2), which move as spans.

An entity whose words are still adjacent in the derived order stays one entity, whatever the order of its words. If they
are separated, `split` makes each maximal run an entity and `drop` removes the entity; `atomic` prevents this, as the
order then treats the entity as one word. Two adjacent entities of one type stay two. A word inserted inside an entity
belongs to it and is tagged I-.

    visit Acme Inc .    O B-ORG I-ORG I-ORG   --inv-->   Inc Acme visit .    B-ORG I-ORG O B-ORG
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, expand_ranges
from derivlang.core.arrow import to_arrow
from derivlang.core.bare_batch import BareBatch
from derivlang.core.errors import LayerError
from derivlang.core.layers.base import Layer, Move, record_lists
from derivlang.core.layers.classes import read_classes, stored_classes
from derivlang.core.layers.labels import Labels
from derivlang.core.order import runs_of_ranges
from derivlang.core.policies import Policies
from derivlang.core.schema import Field

_OUT, _BEGIN, _INSIDE = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class Spans(Layer):
    """E entities.

    name: the column. start, end: int64[E], the words start … end - 1 of each entity, counted in the batch, ascending.
    labels: int32[E], codes into types (`PER` …). classes: the tag names of the column, `O`, `B-PER`, `I-PER` ….
    """

    losses: ClassVar[Mapping[str, str]] = {
        "{}-total": "entit[y|ies] of {}",
        "{}-split": "entit[y|ies] of {} [was|were] split by the reordering (--entities atomic keeps [it|them] whole, "
        "drop leaves [it|them] out)",
        "{}-dropped": "entit[y|ies] of {} [was|were] left out, since the reordering splits [it|them] "
        "(--entities atomic keeps [it|them] whole)",
        "{}-deleted": "entit[y|ies] of {} [was|were] deleted with all [its|their] words",
        "{}-repaired": "ill-formed tag[|s] of {} [was|were] repaired",
    }

    name: str
    start: Int64
    end: Int64
    labels: Int32
    types: tuple[str, ...]
    classes: tuple[str, ...]

    @classmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the entities of a tag column, strings or class numbers. Raises as `from_tags`."""
        codes = read_classes(field, labels.per_word(field.column, shown=field.input), labels.word)
        return cls.from_tags(
            field.column,
            codes,
            _classes(field),
            labels.batch.unit_words,
            where=labels.word,
            repair=labels.repair,
            counts=labels.counts,
        )

    @classmethod
    def restore(cls, field: Field, labels: Labels) -> Self:
        """Return the entities of a derived set's column of class numbers."""
        codes = stored_classes(field, labels.per_word(field.column), lowest=0)
        return cls.from_tags(field.column, codes, _classes(field), labels.batch.unit_words)

    @classmethod
    def from_tags(
        cls,
        name: str,
        tags: Int32,
        classes: tuple[str, ...],
        batch_units: Int64,
        *,
        where: Callable[[int], str | None] | None = None,
        repair: bool = False,
        counts: dict[str, int] | None = None,
    ) -> Self:
        """Return the entities of one tag a word.

        tags: int32[N], codes into classes. batch_units: int64[U + 1], word offsets; an entity ends with its unit.
        where: returns the place of a word, for errors. Raises LayerError for a tag with an unknown prefix, and for an
        I- that does not continue an entity of its type. With `repair`, such an I- begins an entity, an unknown prefix
        counts as O, and both are counted in `counts`.

            O B-PER I-PER B-PER  ->  start [1, 3], end [3, 4]
        """
        if "O" not in classes:
            raise LayerError(f"the classes of {name} lack O", id="tag-classes")
        types, prefixes, kinds = _parse(classes)
        prefix, kind = prefixes[tags], kinds[tags]
        bad = np.flatnonzero(prefix < 0)
        if bad.size:
            _ill_formed(name, "has a prefix other than B-, I- or O", classes[tags[bad[0]]], bad, where, repair)
            prefix = np.where(prefix < 0, _OUT, prefix)
        first = np.zeros(len(tags) + 1, bool)
        first[batch_units[:-1]] = True
        before = np.concatenate([np.full(1, _OUT), prefix[:-1]])
        kind_before = np.concatenate([np.full(1, -1), kind[:-1]])
        goes_on = (before != _OUT) & (kind_before == kind) & ~first[:-1]
        orphan = np.flatnonzero((prefix == _INSIDE) & ~goes_on)
        if orphan.size:
            _ill_formed(name, "follows no word of its entity", classes[tags[orphan[0]]], orphan, where, repair)
            prefix = prefix.copy()
            prefix[orphan] = _BEGIN
        if counts is not None and (bad.size or orphan.size):
            counts[f"{name}-repaired"] = counts.get(f"{name}-repaired", 0) + bad.size + orphan.size
        start = np.flatnonzero(prefix == _BEGIN)
        stops = np.append(prefix != _INSIDE, True)
        ends = np.flatnonzero(stops)
        end = ends[np.searchsorted(ends, start, "right")]
        return cls(name, start, end, kind[start].astype(np.int32), types, classes)

    def tags(self, n_words: int) -> Int32:
        """Return int32[N]: the tag of each word, a code into classes."""
        begin, inside = _tag_numbers(self.classes, self.types)
        out = np.full(n_words, self.classes.index("O"), np.int32)
        out[expand_ranges(self.start, self.end - self.start)] = np.repeat(inside[self.labels], self.end - self.start)
        out[self.start] = begin[self.labels]
        return out

    def realign(self, move: Move) -> Spans:
        """Return the entities in the derived order, under the policy `entities`. Counts what is lost."""
        entity, start, end, whole = runs_of_ranges(move.order, self.start, self.end, move.positions)
        broken = len(np.unique(entity[~whole]))
        gone = len(self.start) - len(np.unique(entity))
        move.counts[f"{self.name}-total"] += len(self.start)
        if gone:
            move.counts[f"{self.name}-deleted"] += gone
        if broken:
            how = "dropped" if move.policies.entities == "drop" else "split"
            move.counts[f"{self.name}-{how}"] += broken
        if move.policies.entities == "drop":
            entity, start, end = entity[whole], start[whole], end[whole]
        by = np.argsort(start)
        entity, start, end = entity[by], start[by], end[by]
        return Spans(self.name, start, end, self.labels[entity], self.types, self.classes)

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return the column of class numbers, list<int64>[R]."""
        tags = to_arrow(self.tags(batch.n_words).astype(np.int64))
        return {self.name: record_lists(batch, tags)}

    def group(self, batch: BareBatch, policies: Policies, inside: Bool) -> None:
        """Set `inside` for each word of an entity but its first, under `atomic`."""
        if policies.entities == "atomic":
            inside[expand_ranges(self.start + 1, self.end - self.start - 1)] = True


def _classes(field: Field) -> tuple[str, ...]:
    assert field.classes is not None
    return field.classes


def _parse(classes: tuple[str, ...]) -> tuple[tuple[str, ...], Int32, Int32]:
    """Return the entity types, and the prefix and the type of each tag name; -1: unknown prefix, or no type.

    (O, B-PER, I-PER, X-PER)  ->  (PER,), [_OUT, _BEGIN, _INSIDE, -1], [-1, 0, 0, -1]
    """
    types: dict[str, int] = {}
    prefixes, kinds = np.full(len(classes), -1, np.int32), np.full(len(classes), -1, np.int32)
    for i, tag in enumerate(classes):
        head, _, kind = tag.partition("-")
        if tag == "O":
            prefixes[i] = _OUT
        elif head in ("B", "I") and kind:
            prefixes[i] = _BEGIN if head == "B" else _INSIDE
            kinds[i] = types.setdefault(kind, len(types))
    return tuple(types), prefixes, kinds


def _tag_numbers(classes: tuple[str, ...], types: tuple[str, ...]) -> tuple[Int32, Int32]:
    """Return the number of the B- and of the I- tag of each type, -1 without one."""
    number = {name: i for i, name in enumerate(classes)}
    begin = np.array([number.get(f"B-{kind}", -1) for kind in types], np.int32)
    inside = np.array([number.get(f"I-{kind}", -1) for kind in types], np.int32)
    return begin, inside


def complete_classes(names: list[str]) -> tuple[str, ...]:
    """Return the tag names of a column in the usual order: `O`, then `B-` and `I-` of each type that occurs."""
    kinds = {name[2:] for name in names if name[:2] in ("B-", "I-") and name[2:]}
    usual = [kind for kind in ("PER", "ORG", "LOC") if kind in kinds]
    order = usual + sorted(kinds - set(usual))
    return ("O", *(f"{prefix}-{kind}" for kind in order for prefix in "BI"))


def _ill_formed(
    name: str, what: str, tag: str, at: Int64, where: Callable[[int], str | None] | None, repair: bool
) -> None:
    if not repair:
        more = f" (and {at.size - 1} more like it near here)" if at.size > 1 else ""
        raise LayerError(
            f"the tag {tag!r} in {name} {what}{more}",
            where=where(int(at[0])) if where else None,
            fix="correct the file, or pass --repair-tags: an I- without its B- then begins an entity, "
            "an unknown prefix is O, and both are counted",
            id="ill-formed-tags",
        )
