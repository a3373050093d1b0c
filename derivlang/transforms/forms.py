"""The images of single words: forms that depend on the place of a word, and one of several images of its type.

Transform.forms       the form of each word so far  ->  its new form: lemmas, and suffixes chosen in the tree
Transform.choices     the number of images of each word's type  ->  the one that it takes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of, offsets_of
from derivlang.core.arrow import filled, scalar, string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch, reordered, used_types
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.core.layers.words import Words, numbers_of
from derivlang.core.lexicon import Lexicon, TypeMap, chooses, special_types
from derivlang.core.order import Order
from derivlang.core.plugins import plug_in_errors
from derivlang.core.schema import UPOS
from derivlang.core.spec import param
from derivlang.transforms.base import Forms, Transform, check_layers, steps_of

_TAGS = {*UPOS} - {"_"}
_GROUPS = {"function": ("ADP", "AUX", "CCONJ", "DET", "PART", "SCONJ"), "punct": ("PUNCT",)}


@dataclass(frozen=True, kw_only=True)
class Drop(Transform):
    """Words left out by their part of speech.

        drop:function   The cat sat on the very old mat .   ->   cat sat very old mat .
        drop:punct      The cat sat on the very old mat .   ->   The cat sat on the very old mat
        drop:ADJ+ADV    The cat sat on the very old mat .   ->   The cat sat on the mat .

    `function` is DET, AUX, ADP, SCONJ, PART and CCONJ; `punct` is PUNCT. A dependent of a word that is left out hangs
    on the next word above that stays. A sentence may lose all its words: it stays as an empty one, and is counted.
    Source: Yang et al. 2025 (arXiv 2502.18795), function words; Clark et al. 2023 and Xu et al. 2026 leave out
    punctuation.
    """

    name = "drop"
    is_permutation = False
    needs: ClassVar[tuple[str, ...]] = ("upos",)

    upos: str = param("function", "function, punct, or tags: DET+AUX", positional=True, draws=False, file=False)

    def validate(self) -> None:
        """Raise UsageError for an unknown tag; name groups and sort tags, so that equal transforms have equal specs."""
        if unknown := sorted(self._tags() - _TAGS):
            raise UsageError(
                f"drop: {unknown[0]!r} is not a group of words",
                where="--t",
                fix=f"give function, punct, or tags joined by +, as in drop:AUX+DET: {', '.join(sorted(_TAGS))}",
                id="bad-value",
            )
        names = {tags: name for name, tags in _GROUPS.items()}
        tags = tuple(sorted(self._tags()))
        object.__setattr__(self, "upos", names.get(tags, "+".join(tags)))

    def _tags(self) -> set[str]:
        return {tag for part in self.upos.split("+") for tag in _GROUPS.get(part, (part,))}

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order of the words that stay. Counts sentences that lose all their words."""
        upos, gone = batch.layer("upos", Words), self._tags()
        stays = numbers_of(upos, lambda tag: tag not in gone) > 0
        before = offsets_of(stays)  # int64[N + 1]: how many words stay before each
        sentences = before[batch.sentences]
        ends = batch.sentences[1:]
        tails: Int32 = (before[ends] - before[ends - batch.tails]).astype(np.int32)
        emptied = int(((lengths_of(sentences) == 0) & (lengths_of(batch.sentences) > 0)).sum())
        counts = Counter({"sentences-emptied": emptied} if emptied else {})
        return Order(np.flatnonzero(stays).astype(np.int32), sentences, tails, batch.n_words, counts=counts)


FEATS, LEMMAS = "feats", "lemmas"
_NO_LEMMA = ("", "_")


def with_lemmas(forms: Forms, batch: Batch, at: Int64, before: Lexicon) -> Forms:
    """Return the forms with the lemma at some words, int64[n]. A word without a lemma keeps its form.

    before: the lexicon of the transforms before; the lemma goes through it, as the word did. None of them replaced some
    words only (`Pipeline`).
    """
    lemmas = batch.layer(LEMMAS, Words)
    has_one = ~to_numpy(pc.is_in(lemmas.values, value_set=string_array(_NO_LEMMA)))
    has_one &= to_numpy(pc.is_valid(lemmas.values))
    at = at[has_one[lemmas.codes[at]]]
    values = filled(lemmas.values.cast(pa.string()), "")
    return forms.changed(at, before.apply(values), lemmas.codes[at].astype(np.int64))


def with_suffixes(forms: Forms, at: Int64, codes: Int64, suffixes: pa.Array) -> Forms:
    """Return the forms with a suffix at some words. at: int64[n]. codes: int64[n], into suffixes, Arrow strings [K].

    the cat, suffixes kar kon, at [1], codes [0]   ->   the catkar
    """
    n = len(suffixes)
    pairs, which = np.unique(forms.words[at].astype(np.int64) * n + codes, return_inverse=True)
    stems, ends = forms.types.take(to_arrow(pairs // n)), suffixes.take(to_arrow(pairs % n))
    return forms.changed(at, pc.binary_join_element_wise(stems, ends, scalar("")), which)


def has_features(batch: Batch, features: Iterable[str]) -> Bool:
    """Return bool[N]: the words that have all of some features (FEATS of CoNLL-U). `Number=` is any number."""
    layer = batch.layer(FEATS, Words)
    sought = [f"|{feature}" if feature.endswith("=") else f"|{feature}|" for feature in features]
    has_all = [all(one in held for one in sought) for held in (f"|{value}|" for value in layer.values.to_pylist())]
    return np.array(has_all, bool)[layer.codes]


@dataclass(frozen=True, kw_only=True)
class Lemma(Transform):
    """Lemmas: each word as its lemma.

        He cleans his very messy books .   ->   he clean his very messy book .

    The lemmas are the column `lemmas` of the source (CoNLL-U), in their own case. A word without a lemma (`_`) stays.
    After `trans` the lemma is written in that script. Several words become one, so `undo` reads the stored source.
    """

    name = "lemma"
    needs: ClassVar[tuple[str, ...]] = (LEMMAS,)

    def forms(self, batch: Batch, forms: Forms, before: Lexicon, draws: Draws) -> Forms:
        """Return the lemmas."""
        return with_lemmas(forms, batch, np.arange(batch.n_words), before)


def choose_images(
    streams: Sequence[tuple[Transform, Draws]],
    lexicon: Lexicon,
    batch: Batch,
    order_before: Callable[[int], Order | None],
    counts: Counter[str] | None,
) -> tuple[Int32, pa.Array]:
    """Return the image of each source word, int32[N] codes, and the types they index. Words of one type may differ.

    streams: the transforms with their draws. order_before: returns the order of the batch under the transforms before
    one of them, None without an order. counts: where to count the words that got another image than the first.

    "the cat the dog" has the types the, cat, dog and the words 0 1 0 2. A dictionary with cat: chat, minet and
    dog: chien has the images the | cat chat minet | dog chien, that is, offsets [0, 1, 4, 6]. So the words have
    1 3 1 2 images. The choices 0 2 0 1 take the strings 0 + 0, 1 + 2, 0 + 0, 4 + 1: "the minet the chien", which are
    the words 0 1 0 2 of the types the, minet, chien.
    """
    words, types = batch.words, batch.types
    so_far: list[TypeMap] = []
    steps = steps_of([transform for transform, _ in streams], lexicon)
    for place, ((transform, draws), step) in enumerate(zip(streams, steps, strict=True)):
        if step is None:
            continue
        if transform.has_forms:
            words, types = _changed(transform, batch, Forms(words, types), Lexicon(tuple(so_far)), draws)
            continue
        so_far.append(step)
        if not chooses(step):
            types = step.apply(types)
            continue
        check_layers(transform, batch)
        type_images = step.images(types)
        images = lengths_of(type_images.offsets).astype(np.int32)[words]
        # Choices are drawn by the position that a word has in the order so far.
        order = order_before(place) or Order.identity(batch.sentences, batch.tails)
        kept = order.index >= 0
        seen = np.where(kept, images[np.where(kept, order.index, 0)], 1).astype(np.int32)
        image_number = np.zeros(len(words), np.int32)
        with plug_in_errors("transform", transform, transform.choices):
            chosen = transform.choices(reordered(batch, order, transform.needs), seen, draws)
            image_number[order.index[kept]] = chosen[kept]
        if counts is not None:
            counts[f"{transform.name}-replaced"] += int((image_number > 0).sum())
        used, words = used_types(
            (type_images.offsets[:-1][words] + image_number).astype(np.int32), len(type_images.strings)
        )
        types = type_images.strings.take(to_arrow(used))
    return words, types


def _changed(transform: Transform, batch: Batch, forms: Forms, before: Lexicon, draws: Draws) -> Forms:
    """Return the forms of words under a transform that changes them by their place, with the types that occur.

    Special tokens stay. The new types follow the old ones, so that a word may keep its old form.
    """
    check_layers(transform, batch)
    with plug_in_errors("transform", transform, transform.forms):
        words, types = transform.forms(batch, forms, before, draws)
    words = np.where(special_types(batch.types)[batch.words], forms.words, words).astype(np.int32)
    used, words = used_types(words, len(types))
    return Forms(words, types.take(to_arrow(used)))
