"""Local entropy: how well a word is predicted from the words just before it, by an n-gram model of held-out sentences.

    word_bits(train, held_out, longest=5)   ->   means {2: 8.27, 3: 7.98, 4: 7.93, 5: 7.92}, of WikiText-2

The m-local entropy is H(w_t | w_(t-m+1) … w_(t-1)) (Someya et al. 2025, arXiv 2506.05136). It is estimated by the
cross-entropy of an m-gram model with interpolated Kneser-Ney smoothing (Chen and Goodman 1998; one
discount for each length, D = n1 / (n1 + 2 n2)). The plain frequencies of a text would not do: in a shuffled text nearly
every context of four words occurs once, so its next word would seem certain.

A model of length m interpolates the lengths 1 … m:

    p_n(w | h) = max(c_n(h w) - D_n, 0) / c_n(h ·) + D_n · types_n(h ·) / c_n(h ·) · p_(n-1)(w | h')

c_m counts occurrences; below it, c_n(h w) is the number of different words before h w. p_0 is uniform over the types
and one unknown word. Contexts begin with the sentence: before its first word there are m - 1 signs <s>.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int64, expand_ranges, lengths_of, offsets_of

Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sentences:
    """S sentences of words by number. words: int64[N]. offsets: int64[S + 1]."""

    words: Int64
    offsets: Int64

    def padded(self, signs: int, sign: int) -> tuple[Int64, Int64]:
        """Return the sentences, each after `signs` times the word `sign`, int64[N + S · signs], and the words' places.

        words a b | c, two signs   ->   <s> <s> a b <s> <s> c, places 2 3 6
        """
        lengths = lengths_of(self.offsets)
        starts = offsets_of(lengths + signs)[:-1] + signs
        places = expand_ranges(starts, lengths)
        out = np.full(len(self.words) + signs * len(lengths), sign, np.int64)
        out[places] = self.words
        return out, places


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts of the n-grams of one length. count: float64[G]. discount: D_n.

    total, types: float64[C], how often a context occurs, and with how many different words after it.
    """

    count: Float64
    total: Float64
    types: Float64
    discount: float

    @classmethod
    def of(cls, count: Float64, contexts: Int64, n_contexts: int) -> _Counts:
        """Return the counts of n-grams, with the number of the context of each that occurs."""
        seen = count > 0
        total = np.bincount(contexts[seen], count[seen], minlength=n_contexts).astype(np.float64)
        types = np.bincount(contexts[seen], minlength=n_contexts).astype(np.float64)
        once, twice = int((count == 1).sum()), int((count == 2).sum())
        return cls(count, total, types, once / (once + 2 * twice) if once else 0.5)

    def smoothed(self, grams: Int64, contexts: Int64, shorter: Float64) -> Float64:
        """Return p_n of n-grams by number, with their contexts and p_(n-1). -1: not seen in training."""
        total, types = (np.where(contexts >= 0, table[contexts], 0.0) for table in (self.total, self.types))
        count = np.where(grams >= 0, self.count[grams], 0.0)
        seen = total > 0
        divisor = np.where(seen, total, 1.0)
        mixed = np.maximum(count - self.discount, 0) / divisor + self.discount * types / divisor * shorter
        return np.where(seen, mixed, shorter)


def word_bits(train: Sentences, held_out: Sentences, longest: int) -> dict[int, Float64]:
    """Return {m: float64[N], the bits of each held-out word} for m = 2 … longest, by models of the other sentences.

    Words are numbered from 0; both share the numbers, and neither is without words.
    """
    sign = int(max(train.words.max(), held_out.words.max())) + 1
    text, places = train.padded(longest - 1, sign)
    other, asked = held_out.padded(longest - 1, sign)
    is_word = np.zeros(len(text), bool)
    is_word[places] = True
    known = np.zeros(sign + 1, bool)
    known[text] = True
    probability = np.full(len(asked), 1.0 / int(known.sum()))  # the sign stands for the unknown word
    out: dict[int, Float64] = {}
    # The n-gram that ends at each place, by number; -1 where training has not seen it. Those of one word come first.
    grams, found, n_grams = text, np.where(known[other], other, -1), sign + 1
    contexts, contexts_found, n_contexts = np.zeros_like(text), np.zeros_like(other), 1
    for length in range(1, longest + 1):
        context_of = np.zeros(n_grams, np.int64)
        context_of[grams[places]] = contexts[places]
        if length > 1:
            occurs = np.bincount(grams[places], minlength=n_grams).astype(np.float64)
            model = _Counts.of(occurs, context_of, n_contexts)
            out[length] = -np.log2(model.smoothed(found[asked], contexts_found[asked], probability))
            if length == longest:
                break
        # Longer by one: the n-gram at the place before, and the word. The first place has none; it holds a sign.
        before, before_found = np.roll(grams, 1), np.roll(found, 1)
        keys, longer = np.unique(before * (sign + 1) + text, return_inverse=True)
        one = np.empty(len(keys), np.int64)  # a place of each
        one[longer] = np.arange(len(text))
        continued = np.bincount(grams[one[is_word[one]]], minlength=n_grams).astype(np.float64)
        model = _Counts.of(continued, context_of, n_contexts)
        probability = model.smoothed(found[asked], contexts_found[asked], probability)
        wanted = before_found * (sign + 1) + other
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        contexts, contexts_found, n_contexts = before, before_found, n_grams
        grams, found, n_grams = longer, np.where((before_found >= 0) & (keys[at] == wanted), at, -1), len(keys)
    return out
