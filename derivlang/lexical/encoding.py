"""Encode every word type once; the ids of a corpus are then gathered from the ids of its types.

    types   lower -> 17 4      SubwordEncoder.batch:   lower the lower   ->   ids 17 4 9 17 4, offsets 0 2 3 5

The ids equal the result of `encode_batch` for the words joined by one space. A space inside a word becomes U+00A0 in
text, so text is split into the same words. A word of only white space has no sub-words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int32, Int64, Ints, expand_ranges, lengths_of, offsets_of, owners
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.lexical.bpe import WHITE_SPACE
from derivlang.lexical.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tokenizers

_STRETCH = 1 << 16  # words gathered at once: the temporaries stay in the cache
_TYPES_A_TEXT = 64  # a text costs `tokenizers` as much as four words: 2 µs a type in texts of 64, 6 µs in single texts
_TEXTS_AT_ONCE = 1 << 10  # bounds memory: `tokenizers` makes an object of each text and of each sub-word
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
        lengths = lengths_of(self.offsets)
        offsets = offsets_of(lengths.take(words))
        ids = np.empty(int(offsets[-1]), np.int32)
        for begin in range(0, len(words), _STRETCH):
            some = words[begin : begin + _STRETCH]
            at = expand_ranges(self.offsets.take(some), lengths.take(some))
            self.ids.take(at, out=ids[offsets[begin] : offsets[begin + len(some)]], mode="clip")
        return Encoded(ids, offsets)


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
        """Encode new types with the library."""
        odd = to_numpy(pc.match_substring_regex(types, f"^$|[{WHITE_SPACE}]"))
        words, alone = np.flatnonzero(~odd), np.flatnonzero(odd)
        encoded = _joined(self._texts(types.take(to_arrow(words))), self._alone(types.take(to_arrow(alone))))
        # place[t]: where type t is in `encoded`, in which types without white space come first.
        place = np.empty(len(types), np.int64)
        place[words], place[alone] = np.arange(len(words)), len(words) + np.arange(len(alone))
        return encoded.take(place)

    def _texts(self, types: pa.Array) -> Encoded:
        """Encode types without white space, joined into texts; word k of a text is its k-th type."""
        words = types.to_pylist()
        ids, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        texts = [" ".join(words[k : k + _TYPES_A_TEXT]) for k in range(0, len(words), _TYPES_A_TEXT)]
        for begin in range(0, len(texts), _TEXTS_AT_ONCE):
            some = texts[begin : begin + _TEXTS_AT_ONCE]
            for encoding in self._library.encode_batch(some, add_special_tokens=False):
                ids.append(np.array(encoding.ids, np.int32))
                lengths.append(np.bincount(np.array(encoding.word_ids, np.int64)))
        n_subwords = np.concatenate(lengths)
        if len(n_subwords) != len(words) or not n_subwords.all():
            raise RuntimeError(f"{len(words)} words, but sub-words of {np.count_nonzero(n_subwords)}")
        return Encoded(np.concatenate(ids), offsets_of(n_subwords))

    def _alone(self, types: pa.Array) -> Encoded:
        """Encode types with white space, each as a text of its own. A type of only white space gives no ids."""
        # White space inside a word becomes U+00A0: `<unk>` between spaces would be a word of the text, and special.
        spaced = pc.replace_substring_regex(types, f"[{WHITE_SPACE}]", "\u00a0").to_pylist()
        parts = [encoding.ids for encoding in self._library.encode_batch(spaced, add_special_tokens=False)]
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        return Encoded(np.array([i for part in parts for i in part], np.int32), offsets_of(lengths))


def _joined(first: Encoded, then: Encoded) -> Encoded:
    offsets = np.concatenate([first.offsets, then.offsets[1:] + first.offsets[-1]])
    return Encoded(np.concatenate([first.ids, then.ids]), offsets)
