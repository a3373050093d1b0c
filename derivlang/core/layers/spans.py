"""Spans: entities in BIO / IOB2, moved as spans (methods, section 2).

Words of an entity that are still together stay one entity, whatever their order. Otherwise `split` makes each
maximal run an entity, `drop` takes the entity away, `atomic` keeps it together beforehand (one word to the
order). Adjacent entities of one type stay two. An inserted word breaks no entity: inside one it is an I-.

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
from derivlang.core.order import contiguous_runs
from derivlang.core.policies import Policies
from derivlang.core.schema import Field

_OUT, _BEGIN, _INSIDE = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class Spans(Layer):
    """name: the column. start, end: int64[E], word range of each entity in the batch, ascending.

    labels: int32[E] into types (`PER` …). classes: the tag names of the column, `O`, `B-PER`, `I-PER` ….
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
        """Return the entities of one tag a word: int32[N] into classes. batch_units: int64[U + 1], word offsets.

        Raises LayerError where a tag has an unknown prefix or an I- does not go on an entity of its type
        (`where` names the place of a word), unless `repair`: then such an I- begins an entity, an unknown
        prefix is O, and both are added to `counts`.
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
        """int32[N]: the tag of each word, into classes."""
        begin, inside = _tag_numbers(self.classes, self.types)
        out = np.full(n_words, self.classes.index("O"), np.int32)
        out[expand_ranges(self.start, self.end - self.start)] = np.repeat(inside[self.labels], self.end - self.start)
        out[self.start] = begin[self.labels]
        return out

    def realign(self, move: Move) -> Spans:
        sizes = self.end - self.start
        owner = np.repeat(np.arange(len(sizes)), sizes)
        members = expand_ranges(self.start, sizes)
        entity, start, end, whole = contiguous_runs(move.order, owner, members, move.positions)
        broken = len(np.unique(entity[~whole]))
        gone = len(sizes) - len(np.unique(entity))
        move.counts[f"{self.name}-total"] += len(sizes)
        if gone:
            move.counts[f"{self.name}-deleted"] += gone
        if broken:
            how = "dropped" if move.policies.entities == "drop" else "split"
            move.counts[f"{self.name}-{how}"] += broken
        if move.policies.entities == "drop":
            entity, start, end = entity[whole], start[whole], end[whole]
        by = np.argsort(start)
        entity, start, end = entity[by], start[by], end[by]
        # Runs of two entities cannot overlap, save over a word inserted between two entities' words.
        end = np.minimum(end, np.append(start[1:], np.iinfo(np.int64).max))
        return Spans(self.name, start, end, self.labels[entity], self.types, self.classes)

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        tags = to_arrow(self.tags(batch.n_words).astype(np.int64))
        return {self.name: record_lists(batch, tags)}

    def group(self, batch: BareBatch, policies: Policies, inside: Bool) -> None:
        if policies.entities == "atomic":
            inside[expand_ranges(self.start + 1, self.end - self.start - 1)] = True


def _classes(field: Field) -> tuple[str, ...]:
    assert field.classes is not None
    return field.classes


def _parse(classes: tuple[str, ...]) -> tuple[tuple[str, ...], Int32, Int32]:
    """Entity types, and for each tag name its prefix (-1: unknown) and type number."""
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
    number = {name: i for i, name in enumerate(classes)}
    begin = np.array([number.get(f"B-{kind}", -1) for kind in types], np.int32)
    inside = np.array([number.get(f"I-{kind}", -1) for kind in types], np.int32)
    return begin, inside


def complete_classes(names: list[str]) -> tuple[str, ...]:
    """The tag names of a column in the usual order: `O`, then `B-` and `I-` of every type that occurs."""
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
