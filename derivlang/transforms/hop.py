"""hop: verbs lose their number, and a marker for it stands some words later.

    hop:0          He clean 🅂 his very messy books he lf .       directly after the verb: the control
    hop:tokens=4   He clean his very messy books 🅂 he lf .       four words and marks later
    hop:words=4    He clean his very messy bookshelf 🅂 .         four words later, marks not counted

A verb with the features Person=3, Tense=Pres, VerbForm=Fin and a Number becomes its lemma; its marker is `sing` or
`plur`. `words` does not count marks and English clitics (n't 's 'll 're 've 'm), and a marker never stands between a
word and its clitic. `tokens` counts every word of the text. Where fewer words follow in the sentence, the marker stands
after the last one, before the final punctuation; such sentences are counted.

The study drops these sentences, counts sub-words of GPT-2 in place of tokens, and counts the marker of a later verb as
a word. Ours counts words of the source.
Source: Kallini et al. 2024 (arXiv 2401.06416), NoHop, TokenHop and WordHop.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int64, lengths_of, offsets_of, owners
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.syntax.words import CLITIC, kinds_of
from derivlang.transforms.base import Transform
from derivlang.transforms.features import FEATS, has_features
from derivlang.transforms.forms import LEMMAS, Forms, with_lemmas

_VERB = ("Person=3", "Tense=Pres", "VerbForm=Fin")


@dataclass(frozen=True, kw_only=True)
class Hop(Transform):
    """Hop: a verb becomes its lemma, and a marker of its number stands some words later."""

    name = "hop"
    injective = False
    is_permutation = False
    needs: ClassVar[tuple[str, ...]] = (FEATS, LEMMAS)

    words: int = param(
        4, "words between the verb and its marker, without marks and clitics", positional=True, draws=False, low=0,
        high=2**31 - 1,
    )  # fmt: skip
    tokens: int = param(
        0, "words and marks between the verb and its marker, in place of words; 0: by words", draws=False, low=0,
        high=2**31 - 1,
    )  # fmt: skip
    sing: str = param("🅂", "marker of the singular", draws=False, file=False)
    plur: str = param("🄿", "marker of the plural", draws=False, file=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for marker in (self.sing, self.plur):
            if not marker or marker != "".join(marker.split()):
                raise UsageError(f"hop: the marker {marker!r} must be one word, without spaces", id="bad-value")
        if self.sing == self.plur:
            raise UsageError(f"hop: {self.sing!r} is the marker of both numbers", fix="give two words", id="bad-value")
        if self.tokens and self.words != 4:
            raise UsageError("hop counts words or tokens, not both", fix="leave one of them out", id="bad-value")

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order with the markers. Counts markers that fewer words follow than they should hop over."""
        is_plural = has_features(batch, ["Number=Plur"])
        verbs = np.flatnonzero(_verbs(batch))
        after, whole = self._places(batch, verbs)
        by = np.argsort(after, kind="stable")  # of two markers at one place, the first verb's comes first
        verbs, after = verbs[by], after[by]
        index = np.insert(np.arange(batch.n_words), after + 1, -1).astype(np.int32)
        marks = np.bincount(owners(batch.sentences)[verbs], minlength=len(batch.sentences) - 1)
        sentences = offsets_of(lengths_of(batch.sentences) + marks)
        inserted = string_array([self.sing, self.plur]).take(to_arrow(is_plural[verbs].astype(np.int64)))
        short = int((~whole).sum())
        counts = Counter({"hops-cut": short} if short else {})
        return Order(index, sentences, batch.tails, batch.n_words, inserted, verbs.astype(np.int32), counts)

    def _places(self, batch: Batch, verbs: Int64) -> tuple[Int64, Bool]:
        """Return (the word after which the marker of each verb stands, int64[n]; whether enough words follow, bool[n]).

        Countable words are numbered; the marker stands after the one whose number is the verb's plus `words`.

            He clean his very messy bookshelf .     numbers 0 1 2 3 4 5 -     the verb 1, hop 4 -> 5
        """
        sentence = owners(batch.sentences)[verbs]
        last = (batch.sentences[1:] - batch.tails)[sentence] - 1  # the last word before the tail
        if self.tokens:
            return np.maximum(np.minimum(verbs + self.tokens, last), verbs), verbs + self.tokens <= last
        clitic = (kinds_of(batch.types) == CLITIC)[batch.words]
        has_letter = to_numpy(pc.match_substring_regex(batch.types, r"[\p{L}\p{M}\p{N}]"))[batch.words]
        countable = has_letter & ~clitic
        numbers = np.cumsum(countable)  # how many countable words up to each word, itself included
        places = np.flatnonzero(countable)
        wanted = numbers[verbs] + self.words
        most = numbers[np.maximum(last, verbs)]
        number = np.minimum(wanted, most)
        found = places[np.maximum(number, 1) - 1] if len(places) else verbs
        after = np.where(number > numbers[verbs], found, verbs)
        # The next word that is not a clitic, or the end of the sentence.
        following = np.append(np.flatnonzero(~clitic), batch.n_words)
        end = following[np.searchsorted(following, after + 1)] - 1
        return np.minimum(end, np.maximum(last, after)), wanted <= most

    def forms(self, batch: Batch, forms: Forms, before: Lexicon, draws: Draws) -> Forms:
        """Return the forms, the verbs as their lemmas."""
        return with_lemmas(forms, batch, np.flatnonzero(_verbs(batch)), before)


def _verbs(batch: Batch) -> Bool:
    """Return bool[N]: the finite verbs of the third person in the present tense that have a number."""
    return has_features(batch, _VERB) & has_features(batch, ["Number="])
