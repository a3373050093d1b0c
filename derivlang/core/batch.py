"""Batch: some million words of text or of a labelled set, as arrays.

    words -> sentences -> units -> records      (offsets of offsets; a record's units by number)

A *record* is an output row: a sentence of running text, an annotated sentence, a pair, a question. It holds
a *unit* (one word sequence) for each *side* of the set: `("",)` for one sequence, `("premise", "hypothesis")`
for a pair. Records may share a unit: the context of several questions is there, and is derived, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int8, Int32, Int64, UInt64, owners, stretches
from derivlang.core.arrow import list_array, to_arrow, to_numpy
from derivlang.core.keys import hash_types, mix, sequence_keys
from derivlang.core.order import Order
from derivlang.core.sentences import Rule, scan, type_classes

if TYPE_CHECKING:
    from derivlang.core.layers import Layer
    from derivlang.core.layers.gaps import Gaps

Fragment = Literal["split", "drop", "atomic"]


@dataclass(frozen=True, slots=True)
class Policies:
    """What happens to annotations that an order takes apart (methods: labels under an order)."""

    entities: Fragment = "split"
    answers: Fragment = "split"
    mwt: Literal["free", "atomic"] = "free"


@dataclass(frozen=True, eq=False)
class Batch:
    """Struct of arrays; N words, T types, S sentences, U units, R records, K sides.

    words: int32[N], codes into types. types: Arrow strings [T], distinct. hashes: uint64[T] or None.
    sentences: int64[S + 1], word offsets. tails: int32[S], words in each sentence's tail.
    units: int64[U + 1], sentence offsets. records: int32[R, K], the unit of each side.
    documents: int64[R], number of the document that a record stands in. keys: uint64[S], content keys
    of the *source* words.
    running: records are the sentences of running text, documents its lines.
    layers: annotations by name; gaps: the source's white space, where it is known.
    """

    words: Int32
    types: pa.Array
    sentences: Int64
    tails: Int32
    units: Int64
    records: Int32
    documents: Int64
    keys: UInt64
    hashes: UInt64 | None = None
    sides: tuple[str, ...] = ("",)
    running: bool = False
    layers: Mapping[str, Layer] = field(default_factory=dict)
    gaps: Gaps | None = None

    @property
    def n_words(self) -> int:
        return len(self.words)

    @property
    def n_records(self) -> int:
        return len(self.records)

    @cached_property
    def type_hashes(self) -> UInt64:
        """uint64[T]: content hashes of the types."""
        return hash_types(self.types) if self.hashes is None else self.hashes

    @cached_property
    def unit_words(self) -> Int64:
        """int64[U + 1]: word offsets of the units."""
        return self.sentences[self.units]

    @cached_property
    def unit_keys(self) -> UInt64:
        """uint64[U]: content keys of the units' source words."""
        if len(self.units) == len(self.sentences) and (self.units == np.arange(len(self.units))).all():
            return self.keys
        return sequence_keys(self.type_hashes[self.words], self.unit_words)

    @cached_property
    def record_keys(self) -> UInt64:
        """uint64[R]: a record's key; that of its unit, or the keys of its units mixed in order."""
        keys = self.unit_keys[self.records[:, 0]]
        for side in range(1, len(self.sides)):
            keys = mix(keys) + self.unit_keys[self.records[:, side]]
        return keys

    def strings(self) -> pa.Array:
        """Arrow strings [N]: the words, written out. For small batches."""
        return self.types.take(to_arrow(self.words))

    def unit_lists(self) -> pa.Array:
        """list<string>[U]: the words of each unit."""
        return list_array(self.unit_words, self.strings())

    def texts(self) -> pa.Array:
        """Arrow strings [U]: each unit as text; with its own gaps where known, else joined by one space."""
        if self.gaps is not None:
            return self.gaps.texts(self)
        return pc.binary_join(self.unit_lists(), " ")

    def word_starts(self) -> Int64:
        """int64[N]: where each word begins in its unit's text, in code points."""
        lengths = to_numpy(pc.utf8_length(self.types))[self.words].astype(np.int64)
        before = self.gaps.widths(self) if self.gaps is not None else _one_space(self)
        ends = np.cumsum(lengths + before)
        starts = ends - lengths
        unit = owners(self.unit_words)
        first = self.unit_words[:-1]
        zero = np.zeros(len(first), np.int64)
        full = first < self.unit_words[1:]
        zero[full] = starts[first[full]] - before[first[full]]
        return np.asarray(starts - zero[unit])

    def word_lengths(self) -> Int64:
        """int64[N]: code points of each word."""
        return np.asarray(to_numpy(pc.utf8_length(self.types))[self.words], np.int64)


def _one_space(batch: Batch) -> Int64:
    before = np.ones(batch.n_words, np.int64)
    first = batch.unit_words[:-1]
    before[first[first < batch.unit_words[1:]]] = 0
    return before


def build(
    words: Int32,
    types: pa.Array,
    unit_words: Int64,
    records: Int32,
    documents: Int64,
    *,
    hashes: UInt64 | None = None,
    sides: tuple[str, ...] = ("",),
    layers: Mapping[str, Layer] | None = None,
    gaps: Gaps | None = None,
    sentences: tuple[Int64, Int32] | None = None,
    running: bool = False,
    keys: UInt64 | None = None,
) -> Batch:
    """A batch of units; sentences as given (offsets, tails), else each unit one sentence, still to be scanned.

    unit_words: int64[U + 1]; an empty unit holds no sentence.
    """
    hashes = hash_types(types) if hashes is None else hashes
    if sentences is None:
        ends = np.unique(unit_words)
        sentences = ends if ends[0] == 0 else np.concatenate([[0], ends]), np.zeros(len(ends) - 1, np.int32)
    offsets, tails = sentences
    return Batch(
        words=words,
        types=types,
        sentences=offsets,
        tails=tails,
        units=np.searchsorted(offsets, unit_words),
        records=records,
        documents=documents,
        keys=sequence_keys(hashes[words], offsets) if keys is None else keys,
        hashes=hashes,
        sides=sides,
        running=running,
        layers=layers or {},
        gaps=gaps,
    )


def split_sentences(batch: Batch, rule: Rule = "marks", group: Int64 | None = None) -> Batch:
    """The batch with the sentences that the rule finds in its units; running text gets a record for each.

    group: int64[G + 1] of `groups`, whose words are one word to the order: no sentence ends inside one.
    """
    scopes = batch.unit_words
    lines = batch.gaps.line_offsets(batch) if batch.gaps is not None and not batch.running else scopes
    classes: Int8 = type_classes(batch.types, rule)
    grouped = None if group is None else together(group, batch.n_words)
    if group is not None:
        lines = np.intersect1d(lines, group)
    parts = []
    for first, last in stretches(scopes):  # each small enough for the cache: twice as fast as all at once
        begin, end = scopes[first], scopes[last]
        inside = lines[np.searchsorted(lines, begin) : np.searchsorted(lines, end, "right")]
        words = batch.words[begin:end]
        inner = None if grouped is None else grouped[begin:end]
        local = scopes[first : last + 1] - begin
        offsets, tails = scan(words, classes, local, inside - begin, rule=rule, together=inner)
        parts.append((offsets[1:] + begin, tails, sequence_keys(batch.type_hashes[words], offsets)))
    zero = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint64)
    offsets = np.concatenate([zero[0], *(part[0] for part in parts)])
    tails = np.concatenate([zero[1], *(part[1] for part in parts)])
    keys = np.concatenate([zero[2], *(part[2] for part in parts)])
    units = np.searchsorted(offsets, scopes)
    split = replace(batch, sentences=offsets, tails=tails, keys=keys, units=units)
    if not batch.running:
        return split
    n = len(tails)
    # Running text: every sentence becomes a unit and a record of its own; a unit was a line.
    return replace(
        split,
        units=np.arange(n + 1, dtype=np.int64),
        records=np.arange(n, dtype=np.int32)[:, None],
        documents=np.repeat(batch.documents, np.diff(units)),
        gaps=None if batch.gaps is None else batch.gaps.recut(units, offsets),
    )


@dataclass(frozen=True)
class Move:
    """What a layer needs in order to follow an order: both sides' units, and where each word went.

    places: int32[N], derived place of each source word or -1. derived_units: int64[U + 1], word offsets.
    counts: what was lost or changed, by reason; layers add to it.
    """

    source: Batch
    order: Order
    policies: Policies = Policies()
    counts: Counter[str] = field(default_factory=Counter)

    @cached_property
    def places(self) -> Int32:
        return self.order.places()

    @cached_property
    def derived_units(self) -> Int64:
        return self.order.sentences[self.source.units]

    @cached_property
    def derived_unit_of(self) -> Int32:
        """int32[M]: the unit of each derived place."""
        return owners(self.derived_units)

    @cached_property
    def source_unit_of(self) -> Int32:
        """int32[N]: the unit of each source word."""
        return owners(self.source.unit_words)


def realign(
    batch: Batch,
    order: Order,
    types: pa.Array | None = None,
    *,
    words: Int32 | None = None,
    distinct: bool = False,
    policies: Policies | None = None,
    counts: Counter[str] | None = None,
) -> Batch:
    """The batch in another order, every annotation with its word.

    types: Arrow strings [T], what each type looks like now (a lexicon's image); default: as it was. words: int32[N],
    codes into them, where words of one type look unlike. distinct: they are known to differ from each other. Inserted
    words keep their own form: they are outside a lexicon's domain. White space is left behind.
    """
    image = batch.types if types is None else types
    words = (batch.words if words is None else words).take(order.index, mode="clip")
    if order.inserted is not None and len(order.inserted):
        words = words.copy()
        marks = order.inserted.dictionary_encode()
        words[order.index < 0] = len(image) + to_numpy(marks.indices)
        image = pa.concat_arrays([image, marks.dictionary])
    if (order.n_inserted or not (distinct or types is None)) and pc.count_distinct(image).as_py() < len(image):
        merged = image.dictionary_encode()
        words, image = to_numpy(merged.indices)[words], merged.dictionary
    move = Move(batch, order, policies or Policies(), counts if counts is not None else Counter())
    move.counts.update(order.counts)
    return replace(
        batch,
        words=words,
        types=image,
        hashes=None,
        sentences=order.sentences,
        tails=order.tails,
        layers={name: layer.realign(move) for name, layer in batch.layers.items()},
        gaps=None,
    )


def groups(batch: Batch, policies: Policies) -> Int64 | None:
    """int64[G + 1]: word offsets of the groups that count as one word, or None where every word does."""
    inside = np.zeros(batch.n_words + 1, bool)  # True: this word continues the group of the word before
    for layer in batch.layers.values():
        layer.group(batch, policies, inside)
    if not inside.any():
        return None
    return np.append(np.flatnonzero(~inside[:-1]), batch.n_words)


def together(group_offsets: Int64, n_words: int) -> Bool:
    """bool[N]: words of the groups of two and more."""
    sizes = np.diff(group_offsets)
    return np.repeat(sizes > 1, sizes)


def used_types(words: Int32, n_types: int) -> tuple[Int64, Int32]:
    """The codes that occur, ascending, and the words recoded to them."""
    seen = np.zeros(n_types, bool)
    seen[words] = True
    used = np.flatnonzero(seen)
    if len(used) == n_types:
        return used, words
    recode = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    return used, recode.take(words, mode="clip")
