"""The properties of words that orders of trees need: tags, relations and kinds of punctuation, as arrays.

They are looked up once per type or label, then gathered.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int8, Int32, Int64
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import LayerError
from derivlang.core.layers.tree import Tree
from derivlang.core.layers.words import Words
from derivlang.grammar.families import DEMONSTRATIVE

# Kinds of words. Straight quotes open and close in turn; an opener of pair i has 16 + i, its closer 48 + i.
OTHER, JOINER, HYPHEN, CLITIC, QUOTE, APOSTROPHE = 0, 1, 2, 3, 4, 5
FIRST_OPENER, FIRST_CLOSER = 16, 48
_PAIRS = (
    "( )",
    "[ ]",
    "{ }",
    "“ ”",
    "‘ ’",
    "« »",
    "‹ ›",
    "„ “",
    "`` ''",
    "-LRB- -RRB-",
    "-LSB- -RSB-",
    "（ ）",
    "「 」",
    "『 』",
    "《 》",
)
_KINDS = {
    # Of a mark in two pairs, such as the first of “ ” and the second of „ “, the first pair counts.
    **{
        mark: first + number
        for number, pair in reversed([*enumerate(_PAIRS)])
        for mark, first in zip(pair.split(), (FIRST_OPENER, FIRST_CLOSER), strict=True)
    },
    **dict.fromkeys(("@-@", "@,@", "@.@"), JOINER),
    **dict.fromkeys(("-", "/", "‐", "‑"), HYPHEN),
    **dict.fromkeys(
        ("n't", "n’t", "'t", "’t", "'s", "’s", "'re", "’re", "'ve", "’ve", "'ll", "’ll", "'d", "’d", "'m", "’m"), CLITIC
    ),
    '"': QUOTE,
    "'": APOSTROPHE,
}


@dataclass(frozen=True, eq=False)
class WordKinds:
    """Properties of N words. upos, relation: int32[N], codes into tags and relations. kind: int8[N], see above."""

    upos: Int32
    tags: tuple[str, ...]
    relation: Int32
    relations: tuple[str, ...]
    kind: Int8

    def take(self, words: slice | Int64) -> WordKinds:
        """Return the properties of some of the words."""
        return replace(self, upos=self.upos[words], relation=self.relation[words], kind=self.kind[words])

    def with_demonstratives(self, batch: Batch, forms: Collection[str]) -> WordKinds:
        """Return the properties with the relation `det:dem` for determiners of these lower-case forms."""
        if not forms:
            return self
        is_one = written(batch, forms)
        is_det = np.array([relation == "det" for relation in self.relations], bool)
        is_demonstrative = is_one & is_det[self.relation] & self.has_tag("DET")
        relation = np.where(is_demonstrative, np.int32(len(self.relations)), self.relation)
        return replace(self, relation=relation, relations=(*self.relations, DEMONSTRATIVE))

    def has_tag(self, *tags: str) -> Bool:
        """Return bool[N]: the words with one of these UPOS."""
        return np.array([tag in tags for tag in self.tags], bool).take(self.upos)

    def has_relation(self, *relations: str) -> Bool:
        """Return bool[N]: the words with one of these relations, with or without a subtype (`flat`, `flat:name`)."""
        wanted = [relation.partition(":")[0] in relations for relation in self.relations]
        return np.array(wanted, bool).take(self.relation)


def see(batch: Batch) -> WordKinds:
    """Return the properties of a batch's words. Raises LayerError upos-missing if a word has no tag."""
    tree, upos = batch.layer("head", Tree), batch.layer("upos", Words)
    tags = [tag if tag is not None else "_" for tag in upos.values.to_pylist()]
    if (without := np.isin(np.array(tags), ["_", ""])[upos.codes]).any():
        at = int(np.flatnonzero(without)[0])
        unit = int(np.searchsorted(batch.unit_words, at, "right")) - 1
        first = int(batch.unit_words[unit])
        words = batch.types.take(to_arrow(batch.words[first : int(batch.unit_words[unit + 1])])).to_pylist()
        raise LayerError(
            f"word {at - first + 1} ({words[at - first]!r}) of {' '.join(words[:20])!r} has no UPOS",
            fix="an order of trees needs a tag and a head for every word: parse the text, or remove such sentences",
            id="upos-missing",
        )
    relations = [relation or "_" for relation in tree.deprel.values.to_pylist()]
    return WordKinds(upos.codes, tuple(tags), tree.deprel.codes, tuple(relations), kinds_of(batch.types)[batch.words])


def written(batch: Batch, forms: Collection[str]) -> Bool:
    """Return bool[N]: the words of a batch that are one of these lower-case forms, in any case."""
    is_one = to_numpy(pc.is_in(pc.utf8_lower(batch.types), value_set=string_array(forms)))
    return np.asarray(is_one[batch.words])


def kinds_of(types: pa.Array) -> Int8:
    """Return int8[T]: the kind of each type."""
    return np.array([_KINDS.get(word, OTHER) for word in types.to_pylist()], np.int8)
