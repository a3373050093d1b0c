"""Encode every word type once; the ids of a corpus are then gathered from the ids of its types.

    types   lower -> 17 4      SubwordEncoder.batch:   lower the lower   ->   ids 17 4 9 17 4, offsets 0 2 3 5

The ids equal the result of `encode_batch` for the words joined by one space. A space inside a word becomes U+00A0 in
text, so text is split into the same words. A word of only white space has no sub-words.

Lift orders and links of words to their sub-words, and order sub-words themselves.

    words  we lower it      sub-words  we low er it      order [2, 1, 0]  ->  [3, 1, 2, 0]

A word's sub-words stay together and keep their order. `inv:unit=token` and `perm:unit=token` order the sub-words
themselves (the unit of MultilingualAnalysis, Deshpande et al. 2022): they are the same transforms, applied to a batch
whose words are the sub-words. A derived text cannot hold such an order, so it exists only for encoded batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int32, Int64, Ints, expand_ranges, lengths_of, offsets_of, owners, take_rows
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.lexical.bpe import WHITE_SPACE
from derivlang.lexical.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tokenizers
from dataclasses import replace
from typing import Literal

from derivlang.core.batch import realign
from derivlang.core.errors import LayerError, UsageError
from derivlang.core.layers.words import Words
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.pipeline import Pipeline
from derivlang.transforms.base import SUBWORDS, Transform

_TEXTS_AT_ONCE = 1 << 16  # bounds memory: `tokenizers` makes an object of each text and of each sub-word
_MOST_TYPES = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """The sub-words of N words: word i has ids[offsets[i]:offsets[i + 1]]. ids: int32[M]; offsets: int64[N + 1]."""

    ids: Int32
    offsets: Int64

    @property
    def n_words(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_subwords(self) -> int:
        return len(self.ids)

    def words(self) -> Int32:
        """Return int32[M]: the word of each sub-word."""
        return owners(self.offsets)

    def take(self, words: Ints) -> Encoded:
        """Return the sub-words of these words, in this order. A word may occur several times."""
        at, offsets = take_rows(self.offsets, words)
        return Encoded(self.ids[at], offsets)


class SubwordEncoder:
    """Encode words. The sub-words of a type are remembered, so a batch costs only its new types.

    most: maximum number of types to remember; above it, the encoder forgets all of them at the next batch.
    """

    def __init__(self, tokenizer: Tokenizer, most: int = _MOST_TYPES):
        self.tokenizer = tokenizer
        self._library: tokenizers.Tokenizer = tokenizer.build()
        self._most = most
        self._last: tuple[pa.Array, Encoded] | None = None
        self._clear()

    def _clear(self) -> None:
        self._types = string_array([])
        self._known = Encoded(np.zeros(0, np.int32), np.zeros(1, np.int64))

    @property
    def n_types(self) -> int:
        """The number of types in memory."""
        return len(self._types)

    def batch(self, batch: Batch) -> Encoded:
        """Return the sub-words of a batch's words."""
        return self.types(batch.types).take(batch.words)

    def types(self, types: pa.Array) -> Encoded:
        """Return the sub-words of types, Arrow strings [T]."""
        if self._last is not None and self._last[0] is types:
            return self._last[1]
        if len(self._types) > self._most:
            self._clear()
        known = len(self._types)
        coded = pa.concat_arrays([self._types, types]).dictionary_encode()
        self._types = coded.dictionary
        if len(self._types) > known:
            self._known = _joined(self._known, self._fresh(self._types[known:]))
        encoded = self._known.take(to_numpy(coded.indices)[known:])
        self._last = types, encoded
        return encoded

    def _fresh(self, types: pa.Array) -> Encoded:
        """Encode new types with the library, each as a text of its own. A type of only white space gives no ids."""
        # White space inside a word becomes U+00A0: `<unk>` between spaces would be a word of the text, and special.
        texts = pc.replace_substring_regex(types, f"[{WHITE_SPACE}]", "\u00a0").to_pylist()
        ids, lengths = [np.zeros(0, np.int32)], []
        for begin in range(0, len(texts), _TEXTS_AT_ONCE):
            for encoding in self._library.encode_batch(texts[begin : begin + _TEXTS_AT_ONCE], add_special_tokens=False):
                ids.append(np.array(encoding.ids, np.int32))
                lengths.append(len(encoding.ids))
        return Encoded(np.concatenate(ids), offsets_of(np.array(lengths, np.int64)))


def _joined(first: Encoded, then: Encoded) -> Encoded:
    offsets = np.concatenate([first.offsets, then.offsets[1:] + first.offsets[-1]])
    return Encoded(np.concatenate([first.ids, then.ids]), offsets)


def lift_links(links: Ints, source: Encoded, derived: Encoded, how: Literal["each", "all"] = "all") -> Int64:
    """Return int64[L', 2]: links (i, j) of words as links of their sub-words, in the order of `links`.

    links: int[L, 2]. how: `all` links every sub-word of a word to every sub-word of the other. `each` links the k-th to
    the k-th, for derived languages, where a word and its image have the same number of sub-words. Raise LayerError if
    the numbers differ.

        one link between words of sub-words 4 5 and 7 8:  all -> 4-7 4-8 5-7 5-8     each -> 4-7 5-8
    """
    i, j = np.asarray(links, np.int64).reshape(-1, 2).T
    ours, theirs = lengths_of(source.offsets)[i], lengths_of(derived.offsets)[j]
    if how == "each":
        if (ours != theirs).any():
            raise LayerError(
                f"{int((ours != theirs).sum())} links of words with unequal numbers of sub-words", id="links"
            )
        left, right = expand_ranges(source.offsets[:-1][i], ours), expand_ranges(derived.offsets[:-1][j], theirs)
        return np.stack([left, right], axis=1)
    # Above, sub-words 4 5 have 2 partners each: left 4 4 5 5, and the range 7 8 twice.
    left = expand_ranges(source.offsets[:-1][i], ours)
    # For each sub-word of the left word, the number of its partners.
    per_left = np.repeat(theirs, ours)
    right = expand_ranges(np.repeat(derived.offsets[:-1][j], ours), per_left)
    return np.stack([np.repeat(left, per_left), right], axis=1)


def subword_batch(batch: Batch, encoded: Encoded, entries: pa.Array) -> Batch:
    """Return the batch with sub-words as its words, and the same sentences, tails, units, records and keys.

    encoded: sub-words of the batch's words. entries: Arrow strings [V], the vocabulary. The layer `subwords` holds the
    word number of each sub-word and follows orders. Other layers are dropped.
    """
    numbers = to_arrow(np.arange(batch.n_words, dtype=np.int32))
    ends = batch.sentences[1:]
    return replace(
        batch,
        words=encoded.ids,
        types=entries,
        hashes=None,
        sentences=encoded.offsets[batch.sentences],
        tails=(encoded.offsets[ends] - encoded.offsets[ends - batch.tails]).astype(np.int32),
        layers={SUBWORDS: Words(SUBWORDS, encoded.words(), numbers)},
        gaps=None,
    )


def subword_order(
    pipeline: Pipeline, batch: Batch, encoded: Encoded, entries: pa.Array, lexicon: Lexicon | None = None
) -> Order:
    """Return the order of a batch's sub-words under a pipeline: first its lifted word orders, then the orders of
    unit=token.

    batch: split into sentences. Keys are computed from the sentences' words, so equal sentences are permuted alike.
    lexicon: of the pipeline, for orders that are fitted.

    Raise UsageError if a word order follows a sub-word order, as it would have no words to order; LayerError if one
    inserts words.
    """
    units = [is_token(t) for t in pipeline.transforms if t.has_order]
    if units != sorted(units):
        raise UsageError(
            f"{pipeline}: an order of words cannot come after one of sub-words",
            where="--t",
            fix="put the transforms with unit=token last",
            id="unit",
        )
    words = Pipeline(tuple(t for t in pipeline.transforms if not is_token(t)))
    order = words.order(batch, lexicon=lexicon)
    if order.n_inserted:
        raise LayerError(f"the sub-words of {order.n_inserted} inserted words are not given", id="order")
    order = order.expand(encoded.offsets)
    view = subword_batch(batch, encoded, entries)
    for transform, draws in pipeline.streams():
        if is_token(transform):
            order = order.then(transform.order(realign(view, order), draws))
    return order


def is_token(transform: Transform) -> bool:
    """Return whether a transform orders sub-words (`unit=token`)."""
    return getattr(transform, "unit", "word") == "token"
