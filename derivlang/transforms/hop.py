"""hop: verbs lose their number, and a marker for it stands some words later.

    hop:0          He clean 🅂 his very messy books he lf .       directly after the verb: the control
    hop:tokens=4   He clean his very messy books 🅂 he lf .       four words and marks later
    hop:words=4    He clean his very messy bookshelf 🅂 .         four words later, marks not counted
    hop:edge=VP    He clean his very messy bookshelf 🅂 .         after the verb phrase

A verb with the features Person=3, Tense=Pres, VerbForm=Fin and a Number becomes its lemma; its marker is `sing` or
`plur`. `words` does not count marks and English clitics (n't 's 'll 're 've 'm), and there, as with `edge`, a marker
never stands between a word and its clitic. `tokens` counts every word of the text, so the marker may stand before a
clitic (`Do 🅂 n't`), as it may inside a word in the study. Where fewer words follow in the sentence, the marker stands
after the last one, before the final punctuation; such sentences are counted.

`edge=VP` puts the marker after the constituent with this label that the verb heads: the one that the verb, or its part
of speech, is a child of. Where there is none, the marker stands directly after the verb, and is counted. It is a hop by
constituents, which the study has no language of.

`by=tags` reads the tags of the Penn Treebank, for trees in brackets: VBZ has the marker of the singular. VBP is any
other person of the present, so verbs with this tag have no marker; they are counted. These trees have no lemmas, so the
verbs keep their forms, as in Ziv et al. (2026).

The study drops these sentences, counts sub-words of GPT-2 in place of tokens, and counts the marker of a later verb as
a word. Ours counts words of the source.
Sources: Kallini et al. 2024 (arXiv 2401.06416), NoHop, TokenHop and WordHop; Hunter 2025 (Computational Linguistics 51,
arXiv 2410.12271), who asks for a hop by constituents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int64, owners
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.core.layers.constituents import PARSE
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.syntax.forest import merged
from derivlang.syntax.phrases import labelled, phrases_of, plain_label
from derivlang.syntax.words import CLITIC, kinds_of
from derivlang.transforms.base import Forms, Transform
from derivlang.transforms.forms import FEATS, LEMMAS, has_features, with_lemmas

_VERB = ("Person=3", "Tense=Pres", "VerbForm=Fin")


@dataclass(frozen=True, kw_only=True)
class Hop(Transform):
    """Hop: a verb becomes its lemma, and a marker of its number stands some words later."""

    name = "hop"
    is_permutation = False

    words: int = param(
        4, "words between the verb and its marker, without marks and clitics", positional=True, draws=False, low=0,
        high=2**31 - 1,
    )  # fmt: skip
    tokens: int = param(
        0, "words and marks between the verb and its marker, in place of words; 0: by words", draws=False, low=0,
        high=2**31 - 1,
    )  # fmt: skip
    edge: str = param(
        "", "label of the verb's constituent after which the marker stands, in place of words", draws=False, file=False
    )
    by: Literal["feats", "tags"] = param(
        "feats", "how verbs are known: by features, or by Penn tags of trees in brackets, without lemmas", draws=False
    )
    sing: str = param("🅂", "marker of the singular", draws=False, file=False)
    plur: str = param("🄿", "marker of the plural", draws=False, file=False)

    def validate(self) -> None:
        """Raise UsageError for unusable markers or labels, and for two ways of counting."""
        for marker in (self.sing, self.plur):
            if not marker or marker != "".join(marker.split()):
                raise UsageError(f"hop: the marker {marker!r} must be one word, without spaces", id="bad-value")
        if self.sing == self.plur:
            raise UsageError(f"hop: {self.sing!r} is the marker of both numbers", fix="give two words", id="bad-value")
        if plain_label(self.edge) != self.edge or set(self.edge) & set(" \t\n\v\f\r()"):
            raise UsageError(
                f"hop: edge={self.edge} must be a label without function tags, spaces and brackets",
                fix="write hop:edge=VP, for example",
                id="bad-value",
            )
        if sum([self.words != 4, bool(self.tokens), bool(self.edge)]) > 1:
            what = "hop counts words or tokens, or puts markers at an edge"
            raise UsageError(what, fix="leave all but one of words, tokens and edge out", id="bad-value")

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """Features and lemmas, or constituents with tags."""
        if self.by == "tags":
            return (PARSE,)
        return (FEATS, LEMMAS, PARSE) if self.edge else (FEATS, LEMMAS)

    def remedy(self, missing: Sequence[str], layers: Collection[str]) -> str:
        """Return what to do where a batch lacks layers: trees in brackets need `by=tags`, a grammar has no tags."""
        if self.by == "tags":
            return "take a file of trees in brackets (.mrg)"
        if not self.edge:
            return "add by=tags, or take a treebank in CoNLL-U" if PARSE in layers else ""
        tags = "add by=tags" if PARSE in layers else "take a file of trees in brackets (.mrg), with by=tags"
        return f"{tags}, or take a table with feats, lemmas and parse"

    @property
    def has_forms(self) -> bool:
        """Whether verbs become their lemmas."""
        return self.by == "feats"

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order with the markers. Counts markers that fewer words follow than they should hop over."""
        verbs, is_plural, unknown = self._marked(batch)
        sentences, tails = batch.sentences, batch.tails
        if self.edge:
            sentences, tails = merged(batch, phrases_of(batch).trees, tails=True)[1:]
            last = (sentences[1:] - tails)[owners(sentences)[verbs]] - 1
            after, whole, size = self._after_phrase(batch, verbs, last)
        else:
            after, whole = self._places(batch, verbs)
            size = np.zeros(len(verbs), np.int64)
        by = np.lexsort((size, after))  # of two markers at one place, the smaller phrase's comes first
        verbs, after = verbs[by], after[by]
        inserted = string_array([self.sing, self.plur]).take(to_arrow(is_plural[verbs].astype(np.int64)))
        found = {"hops-without-phrase" if self.edge else "hops-cut": int((~whole).sum()), "hops-unknown": unknown}
        counts = Counter({name: n for name, n in found.items() if n})
        order = replace(Order.identity(sentences, tails), counts=counts)
        return order.with_words(after + 1, owners(sentences)[verbs], inserted, verbs)

    def _marked(self, batch: Batch) -> tuple[Int64, Bool, int]:
        """Return (the verbs with markers int64[n], whether each word is plural bool[N], verbs of an unknown person)."""
        if self.by == "feats":
            return np.flatnonzero(_verbs(batch)), has_features(batch, ["Number=Plur"]), 0
        phrases = phrases_of(batch)
        third, other = (np.append(labelled(phrases.found, (tag,)), False)[phrases.holder] for tag in ("VBZ", "VBP"))
        return np.flatnonzero(third), np.zeros(batch.n_words, bool), int(other.sum())

    def _after_phrase(self, batch: Batch, verbs: Int64, last: Int64) -> tuple[Int64, Bool, Int64]:
        """Return the last word of the phrase that each verb heads, whether it heads one, and its words: int64/bool[n].

        last: int64[n], the last word before the final punctuation of the tree of each verb.

        (S (NP (PRP He)) (VP (VBZ is) (VP (VBG going))) (. .))   the verb 1, in VBZ in VP   ->   2, yes, 2 words
        """
        phrases = phrases_of(batch)
        found = phrases.found
        is_phrase = np.append(labelled(found, (self.edge,)), False)  # the last one is for holder -1
        phrase = phrases.holder[verbs]
        is_tag = (np.append(found.end - found.start, 0)[phrase] == 1) & ~is_phrase[phrase]
        phrase = np.where(is_tag, np.append(found.parent, -1)[phrase], phrase)
        end = np.append(found.end, 0)[phrase] - 1
        heads = is_phrase[phrase]
        after = np.where(heads, np.maximum(np.minimum(end, last), verbs), verbs)
        size = np.where(heads, np.append(found.end - found.start, 0)[phrase], 1)
        return _behind_clitics(batch, after, last), heads, size

    def _places(self, batch: Batch, verbs: Int64) -> tuple[Int64, Bool]:
        """Return (the word after which the marker of each verb stands, int64[n]; whether enough words follow, bool[n]).

        Countable words are numbered; the marker stands after the one whose number is the verb's plus `words`.

            He clean his very messy bookshelf .     numbers 0 1 2 3 4 5 -     the verb 1, hop 4 -> 5
        """
        sentence = owners(batch.sentences)[verbs]
        last = (batch.sentences[1:] - batch.tails)[sentence] - 1  # the last word before the tail
        if self.tokens:
            return np.maximum(np.minimum(verbs + self.tokens, last), verbs), verbs + self.tokens <= last
        has_letter = to_numpy(pc.match_substring_regex(batch.types, r"[\p{L}\p{M}\p{N}]"))[batch.words]
        countable = has_letter & ~_clitics(batch)
        numbers = np.cumsum(countable)  # how many countable words up to each word, itself included
        places = np.flatnonzero(countable)
        wanted = numbers[verbs] + self.words
        most = numbers[np.maximum(last, verbs)]
        number = np.minimum(wanted, most)
        found = places[np.maximum(number, 1) - 1] if len(places) else verbs
        after = np.where(number > numbers[verbs], found, verbs)
        return _behind_clitics(batch, after, last), wanted <= most

    def forms(self, batch: Batch, forms: Forms, before: Lexicon, draws: Draws) -> Forms:
        """Return the forms, the verbs as their lemmas."""
        return with_lemmas(forms, batch, np.flatnonzero(_verbs(batch)), before)


def _clitics(batch: Batch) -> Bool:
    """Return bool[N]: the English clitics."""
    clitic: Bool = (kinds_of(batch.types) == CLITIC)[batch.words]
    return clitic


def _behind_clitics(batch: Batch, after: Int64, last: Int64) -> Int64:
    """Return int64[n]: words, or the last of the clitics that follow them. last: int64[n], the last ones to take.

    Does n't he go ?     0 -> 1
    """
    following = np.append(np.flatnonzero(~_clitics(batch)), batch.n_words)  # the other words, and the end
    end: Int64 = following[np.searchsorted(following, after + 1)] - 1
    return np.minimum(end, np.maximum(last, after)).astype(np.int64)


def _verbs(batch: Batch) -> Bool:
    """Return bool[N]: the finite verbs of the third person in the present tense that have a number."""
    return has_features(batch, _VERB) & has_features(batch, ["Number="])
