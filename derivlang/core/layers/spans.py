"""Spans: entities, which move as spans. Their tags are IOB2; a source may use another scheme.

An entity whose words are still adjacent in the derived order stays one entity, whatever the order of its words. If they
are separated, `split` makes each maximal run an entity and `drop` removes the entity; `atomic` prevents this, as the
order then treats the entity as one word. Two adjacent entities of one type stay two. A word inserted inside an entity
belongs to it and is tagged I-.

    visit Acme Inc .    O B-ORG I-ORG I-ORG   --inv-->   Inc Acme visit .    B-ORG I-ORG O B-ORG
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, expand_ranges
from derivlang.core.arrow import string_array, to_arrow
from derivlang.core.bare_batch import BareBatch
from derivlang.core.errors import LayerError
from derivlang.core.layers.base import Labels, Layer, Realignment, read_classes, side_columns
from derivlang.core.layers.tag_schemes import (
    IOB2,
    PREFIXES,
    SCHEMES,
    UNKNOWN,
    Entities,
    first_words,
    parse_tags,
    read_tags,
    spelled,
    tag,
)
from derivlang.core.messages import in_shell
from derivlang.core.order import runs_of_ranges
from derivlang.core.policies import Policies
from derivlang.core.schema import Field


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
        if labels.stored:  # in IOB2
            field = replace(field, given=None, given_classes=None, scheme=None)
        given = replace(field, classes=field.given_classes or field.classes)
        codes = read_classes(given, labels.per_word(field.column, shown=field.input), labels.word)
        return cls.from_tags(
            field.column,
            codes,
            _classes(field),
            labels.batch.unit_words,
            given=_classes(given),
            scheme=field.scheme or IOB2,
            where=labels.word,
            repair=labels.repair,
            counts=labels.counts,
        )

    @classmethod
    def from_tags(
        cls,
        name: str,
        tags: Int32,
        classes: tuple[str, ...],
        batch_units: Int64,
        *,
        given: tuple[str, ...] | None = None,
        scheme: str = IOB2,
        where: Callable[[int], str | None] | None = None,
        repair: bool = False,
        counts: dict[str, int] | None = None,
    ) -> Self:
        """Return the entities of one tag per word.

        tags: int32[N], codes into `given`, by default the classes. batch_units: int64[U + 1], word offsets; an entity
        ends with its unit. scheme: the tag scheme. where: returns the place of a word, for errors. Raises LayerError
        for a tag with an unknown prefix, and for one that the scheme would not write for the entities that were read.
        With `repair` the second is counted in `counts`: the entities are those that were read, none is lost.

            O B-PER I-PER B-PER  ->  start [1, 3], end [3, 4]
            O I-PER I-PER I-LOC  ->  start [1, 3], end [3, 4], with `repair` (2 tags)
        """
        names, types = given or classes, parse_tags(classes)[0]
        named, prefixes, kinds = parse_tags(names)
        place = {kind: i for i, kind in enumerate(types)}
        # From numbers of the source's types to numbers of the classes' types. A tag without a type has -1 and reads the
        # last element, -1.
        kinds = np.array([*(place.get(kind, -1) for kind in named), -1], np.int32)[kinds]
        prefix, kind = prefixes[tags], kinds[tags]
        unknown = np.flatnonzero(prefix == UNKNOWN)
        if unknown.size:
            raise _unknown_tag(name, names, int(tags[unknown[0]]), _place(where, unknown), unknown.size)
        firsts = first_words(batch_units, len(tags))
        entities = read_tags(prefix, kind, firsts)
        # Tags follow a scheme if they are what it writes for the entities that were read from them.
        wrong = np.flatnonzero(SCHEMES[scheme].write(entities, firsts) != prefix)
        if wrong.size and not repair:
            raise _ill_formed(name, names[tags[wrong[0]]], scheme, _place(where, wrong), wrong.size)
        if wrong.size and counts is not None:
            counts[f"{name}-repaired"] = counts.get(f"{name}-repaired", 0) + wrong.size
        return cls(name, entities.start, entities.end, entities.types, types, classes)

    def tags(self, n_words: int) -> Int32:
        """Return int32[N]: the tag of each word, a code into classes."""
        prefixes, kinds = self._written(IOB2, np.zeros(n_words, bool))  # B- and I- are prefixes 1 and 2
        number = {name: i for i, name in enumerate(self.classes)}
        table = np.array([[*(number.get(tag(prefix, kind), -1) for kind in self.types), -1] for prefix in "BI"])
        return np.where(prefixes > 0, table[prefixes - 1, kinds], number["O"]).astype(np.int32)

    def tags_in(self, scheme: str, given: Sequence[str], units: Int64) -> pa.Array:
        """Return Arrow strings [N]: the tag of each word in a scheme, spelled as the given tags.

        units: int64[U + 1], word offsets.
        """
        prefixes, kinds = self._written(scheme, first_words(units, int(units[-1])))
        tags = [("O", ""), *((prefix, kind) for prefix in PREFIXES[1:] for kind in self.types)]
        # Types PER and LOC: tags O, B-PER, B-LOC, I-PER, I-LOC …; I (prefix 2) of LOC (1) is 1 + (2 - 1) · 2 + 1 = 4.
        codes = np.where(prefixes > 0, 1 + (prefixes - 1) * len(self.types) + kinds, 0)
        return string_array(spelled(given, tags)).take(to_arrow(codes))

    def _written(self, scheme: str, firsts: Bool) -> tuple[Int32, Int32]:
        """Return the prefix of each word in a scheme, and its type. firsts: bool[N], words that begin a sentence."""
        kinds = np.zeros(len(firsts), np.int32)
        kinds[expand_ranges(self.start, self.end - self.start)] = np.repeat(self.labels, self.end - self.start)
        return SCHEMES[scheme].write(Entities(self.start, self.end, self.labels), firsts), kinds

    def realign(self, move: Realignment) -> Spans:
        """Return the entities in the derived order, under the policy `entities`. Counts what is lost."""
        # One run for each part of an entity: an entity that was split occurs several times, a deleted one never.
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
        # Runs come by entity; layers list entities by position.
        by = np.argsort(start)
        entity, start, end = entity[by], start[by], end[by]
        return Spans(self.name, start, end, self.labels[entity], self.types, self.classes)

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return the column of class numbers, list<int64>[R]."""
        tags = to_arrow(self.tags(batch.n_words).astype(np.int64))
        return side_columns(self.name, batch, tags)

    def group(self, batch: BareBatch, policies: Policies, inside: Bool) -> None:
        """Set `inside` for each word of an entity but its first, under `atomic`."""
        if policies.entities == "atomic":
            inside[expand_ranges(self.start + 1, self.end - self.start - 1)] = True


def _classes(field: Field) -> tuple[str, ...]:
    assert field.classes is not None
    return field.classes


def _place(where: Callable[[int], str | None] | None, words: Int64) -> str | None:
    return where(int(words[0])) if where else None


def _unknown_tag(name: str, names: tuple[str, ...], tag: int, where: str | None, count: int) -> LayerError:
    prefixes = parse_tags(names)[1]
    if (prefixes > 0).any():
        return LayerError(
            f"the tag {names[tag]!r} in {name} is not O, and has no prefix and type as in B-PER{_more(count)}",
            where=where,
            fix="correct the file: --repair-tags removes no label; in a table, "
            f"--label-column {in_shell(name)}=tags moves each tag by itself",
            id="ill-formed-tags",
        )
    return LayerError(
        f"the tags of {name} have no prefixes such as B- and I-, so it is open where the entities "
        f"begin: {names[tag]!r}",
        where=where,
        fix="if they are entities, write B- before the first tag of each and I- before the others; "
        f"if each word has a tag of its own, such as its part of speech, pass --label-column {in_shell(name)}=tags",
        id="tags-without-prefix",
    )


def _ill_formed(name: str, tag: str, scheme: str, where: str | None, count: int) -> LayerError:
    plain = scheme == IOB2 and tag.startswith("I-")
    what = "follows no word of its entity" if plain else f"does not fit the tags beside it under {scheme}"
    return LayerError(
        f"the tag {tag!r} in {name} {what}{_more(count)}",
        where=where,
        fix="correct the file, or pass --repair-tags: words with tags of one type are then one entity, unless a prefix "
        "says that it begins or ends; no label is lost, and such tags are counted",
        id="ill-formed-tags",
    )


def _more(count: int) -> str:
    return f" (and {count - 1} more like it near here)" if count > 1 else ""
