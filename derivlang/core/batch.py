"""Batch: some million words of text or of a labelled set, as arrays, with their layers; and what is done to it.

build            from words, types and offsets
split_sentences  at the ends that the rule finds; join_sentences: not inside groups
realign          in another order, every annotation with its word
groups           words that count as one word to an order
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int8, Int32, Int64, Objects, UInt64, take_kept
from derivlang.core.arrow import to_numpy
from derivlang.core.bare_batch import BareBatch, together
from derivlang.core.errors import LayerError
from derivlang.core.gaps import Gaps
from derivlang.core.keys import hash_types, sequence_keys
from derivlang.core.layers.base import Layer, Realignment
from derivlang.core.layers.tree import Tree, Trees, parents
from derivlang.core.layers.words import Words, strings_of
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.policies import Policies
from derivlang.core.sentences import scan, type_classes
from derivlang.core.takes import Rule

AnyLayer = TypeVar("AnyLayer", bound=Layer)
_NAMES = {"head": "trees", "upos": "tags"}


@dataclass(frozen=True, eq=False)
class Batch(BareBatch):
    """layers: annotations of the words, by name."""

    layers: Mapping[str, Layer] = field(default_factory=dict)

    def layer(self, name: str, kind: type[AnyLayer]) -> AnyLayer:
        """Return a layer of a kind. Raise LayerError if the batch does not have it."""
        layer = self.layers.get(name)
        if not isinstance(layer, kind):
            raise LayerError(
                f"this batch has no {_NAMES.get(name, name)}",
                fix=f'declare `needs = ("{name}",)` in the class of a transform, so that the text is parsed',
                id="needs-layer",
            )
        return layer

    def trees(self) -> Trees:
        """Return the parent and the relation of each word. Raise LayerError if the batch has no trees."""
        tree = self.layer("head", Tree)
        return Trees(parents(tree.head, self.unit_words), strings_of(tree.deprel))

    def tags(self) -> Objects:
        """Return object[N]: the part of speech (UPOS) of each word. Raise LayerError if the batch has no tags."""
        return strings_of(self.layer("upos", Words))


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
    """Return a batch of units.

    sentences: (offsets, tails); without them each unit is one sentence, to be split later. unit_words: int64[U + 1]; an
    empty unit holds no sentence.
    """
    hashes = hash_types(types) if hashes is None else hashes
    if sentences is None:
        ends = unit_words[np.flatnonzero(np.diff(unit_words, prepend=-1))]  # each offset once
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
    """Return the batch with the sentences that the rule finds in its units; each is a record of running text.

    group: int64[G + 1] of `groups`, whose words count as one word: no sentence ends inside one.
    """
    scopes = batch.unit_words
    lines = batch.gaps.line_offsets(batch.unit_words) if batch.gaps is not None and not batch.running else scopes
    classes: Int8 = type_classes(batch.types, rule)
    grouped = None if group is None else together(group)
    if group is not None:
        # A line that ends inside a group does not end a sentence.
        lines = np.intersect1d(lines, group)
    offsets, tails = scan(batch.words, classes, scopes, lines, rule=rule, together=grouped)
    keys = sequence_keys(batch.type_hashes[batch.words], offsets)
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


def join_sentences(batch: Batch, group: Int64) -> Batch:
    """Return the batch without sentence ends inside groups, and without words of groups in tails.

    For sentences that were found before the groups were known, as in a derived set.

    a b . c | d .   with the group [b . c]: sentences [0, 3, 4, 6] become [0, 4, 6], and the tails [1, 0, 1] become
    [0, 1]. A sentence keeps the part of its tail that is after its last grouped word.
    """
    grouped = together(group)
    stays = np.isin(batch.sentences, group)
    offsets, tails = batch.sentences[stays], batch.tails[stays[1:]]
    last = np.maximum.accumulate(np.concatenate([[-1], np.where(grouped, np.arange(batch.n_words), -1)]))
    # last[i]: the last grouped word before word i. After it a sentence has end - 1 - last[end] words.
    tails = np.minimum(tails, offsets[1:] - 1 - last[offsets[1:]]).astype(np.int32)
    return replace(
        batch,
        sentences=offsets,
        tails=tails,
        keys=batch.keys if stays.all() else sequence_keys(batch.type_hashes[batch.words], offsets),
        units=np.searchsorted(offsets, batch.unit_words),
    )


def realign(
    batch: Batch,
    order: Order,
    types: pa.Array | None = None,
    *,
    words: Int32 | None = None,
    distinct: bool = False,
    policies: Policies | None = None,
    counts: Counter[str] | None = None,
    labels: Lexicon | None = None,
) -> Batch:
    """Return the batch in another order, every annotation with its word.

    types: Arrow strings [T], what each type looks like now (a lexicon's image); default: as it was. words: int32[N],
    codes into them, where words of one type look different. distinct: the types are known to differ from each other.
    Inserted words keep their own form: they are outside a lexicon's domain. White space is not carried over. labels:
    the lexicon that words in annotations follow. counts: what layers lose is added, by reason.
    """
    image = batch.types if types is None else types
    words = take_kept(batch.words if words is None else words, order.index)
    if order.inserted is not None and len(order.inserted):
        words = words.copy()
        inserted = order.inserted.dictionary_encode()
        words[order.index < 0] = len(image) + to_numpy(inserted.indices)
        image = pa.concat_arrays([image, inserted.dictionary])
    # Types must differ from each other, but an inserted word may be spelled like a type, and two types may have one
    # image.
    if (order.n_inserted or not (distinct or types is None)) and pc.count_distinct(image).as_py() < len(image):
        merged = image.dictionary_encode()
        words, image = to_numpy(merged.indices)[words], merged.dictionary
    move = Realignment(
        batch, order, policies or Policies(), counts if counts is not None else Counter(), labels or Lexicon()
    )
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
        grouped=None,
    )


def reordered(batch: Batch, order: Order, needs: tuple[str, ...]) -> Batch:
    """Return the batch in the order so far, as the next transform sees it."""
    layers = {name: batch.layers[name] for name in needs}
    view = realign(replace(batch, layers=layers), order)
    if order.is_permutation and not np.array_equal(order.sentences, batch.sentences):
        # Sentences that were merged get the key of all their source words.
        view = replace(view, keys=sequence_keys(batch.type_hashes[batch.words], order.sentences))
    return view


def settle_groups(batch: Batch, policies: Policies) -> Batch:
    """Return the batch with the groups of its answers settled, as its rows store them; stored groups stay."""
    if policies.answers != "atomic":
        return batch if batch.grouped is None else replace(batch, grouped=None)
    inside = np.zeros(batch.n_words + 1, bool)
    for layer in batch.layers.values():
        layer.group(batch, Policies(answers="atomic"), inside)
    return replace(batch, grouped=inside[:-1])


def groups(batch: Batch, policies: Policies) -> Int64 | None:
    """Return int64[G + 1]: word offsets of the groups that count as one word, or None where every word is its own."""
    # True: this word continues the group of the word before. One longer than the words, so that a layer may write
    # the word after its last one. [F, F, T, F] + [F]   ->   groups [0, 1, 3, 4]
    inside = np.zeros(batch.n_words + 1, bool)
    for layer in batch.layers.values():
        layer.group(batch, policies, inside)
    if not inside.any():
        return None
    return np.append(np.flatnonzero(~inside[:-1]), batch.n_words)


def used_types(words: Int32, n_types: int) -> tuple[Int64, Int32]:
    """Return the codes that occur, ascending, and the words recoded to them.

    words [7, 2, 7] of 9 types   ->   [2, 7], [1, 0, 1]
    """
    seen = np.zeros(n_types, bool)
    seen[words] = True
    used = np.flatnonzero(seen)
    if len(used) == n_types:
        return used, words
    recode = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    return used, recode.take(words, mode="clip")
