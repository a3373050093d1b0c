"""Families: heads with the dependents to be ordered, in surface order.

A model sees only the label of a member: `UPOS&deprel` of a dependent, `@UPOS&@` of the head (Wang and Eisner 2016, §4).

    the old cat of Ann's    ->    DET&det ADJ&amod @NOUN&@ PROPN&nmod

A user writes a head as a UPOS and the labels of its family, with a tab between the two in a file:

    VERB    NOUN&nsubj @VERB&@ NOUN&obj

Subtypes of relations: what a label means in its own treebank, and in trees that are annotated otherwise.

Subtypes are optional, and each language chooses its own; the universal relation is what all treebanks share
(universaldependencies.org, *Syntax: General Principles*, on language-specific relations). So a relation without a
subtype is two things:

    in its own treebank     Hindi has `nmod:poss` and `nmod`, and `nmod` is not one of the first: it is named `nmod:-`
    in other trees          an English `nmod` is any Hindi one, with `nmod:poss` or without

A grammar learns each head twice, with all subtypes and without any, so that `nmod` has the order of all Hindi genitives
and `nmod:-` the order of the others.

    NOUN&nmod:poss DET&det @NOUN&@   at 0.5  ->  NOUN&nmod:poss DET&det @NOUN&@ 0.5    NOUN&nmod DET&det @NOUN&@ 0.5

`DET&det:dem` is a `det` with PronType=Dem, a universal feature, and stays (universaldependencies.org/u/feat/PronType).

Labels of Universal Dependencies version 1 and version 2, and the maps between them.

A grammar has labels of one version. `candidates` gives the names that a label may have there, best first; the grammar
uses the first whose relation it has weights for, else the first without its subtype. The maps see only the label, so
two differences remain: v1's `neg` cannot be distinguished from `advmod` on `ADV` in v2 trees (on `PART` it can), and v1
attached `cc` and commas to the first conjunct, v2 to the following one.

    v2 NOUN&obl:tmod under a verb   ->  v1 NOUN&nmod:tmod, then NOUN&nmod
    v1 NOUN&nmod under a verb       ->  v2 NOUN&obl
    NOUN&nmod under a numeral (two of them), an adjective or an adverb  ->  v2 NOUN&nmod, then NOUN&obl: v2 has both
    v2 AUX&cop                      ->  v1 AUX&cop, then VERB&cop  (v1 treebanks differ)
    PRON&nmod:poss (my, her)        ->  the same, then DET&det:poss, DET&nmod:poss, DET&det: a determiner elsewhere
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from derivlang.core import schema
from derivlang.core.arrays import Bool, Int32, Int64, UInt64, offsets_of, take_rows
from derivlang.core.errors import LayerError, UsageError
from derivlang.core.schema import V1_RELATIONS, V2_RELATIONS

# Nouns, proper nouns and pronouns share one model, as published. Verbs, and each other UPOS, are a class of their own.
NOMINAL = ("NOUN", "PROPN", "PRON")
UPOS = tuple(sorted({*schema.UPOS, "CONJ"} - {"_"}))  # CONJ: of UD v1, which the published models have


def head_class(token: str) -> str:
    """Return the head class of a label or UPOS: `@NOUN&@` -> N, `@VERB&@` -> V, `@ADJ&@` -> ADJ, NOUN -> N."""
    upos = token.removeprefix("@").removesuffix("&@")
    return "N" if upos in NOMINAL else "V" if upos == "VERB" else upos


def is_head(token: str) -> bool:
    """Return whether this is the label of a head."""
    return token.startswith("@")


@dataclass(frozen=True, eq=False)
class Families:
    """F families, struct of arrays.

    offsets: int64[F + 1], into members. members: int32[M], codes into tokens; each family is in surface order and has
    exactly one head. tokens: the distinct labels. keys: uint64[F], of the families' draws.
    Raises LayerError family-head if a family has no head, or several.
    """

    offsets: Int64
    members: Int32
    tokens: tuple[str, ...]
    keys: UInt64
    head_places: Int64 = field(init=False, repr=False)  # int64[F]: index of each head in members

    def __post_init__(self) -> None:
        heads = np.array([is_head(token) for token in self.tokens], bool)
        places = np.flatnonzero(heads.take(self.members)) if len(self.members) else np.zeros(0, np.int64)
        n = len(self.offsets) - 1
        if len(places) != n or not ((self.offsets[:-1] <= places) & (places < self.offsets[1:])).all():
            counts = np.diff(offsets_of(heads[self.members])[self.offsets])
            at = int(np.flatnonzero(counts != 1)[0])
            raise LayerError(
                f"family {at} has {int(counts[at])} heads, expected one: {' '.join(self.labels(at))}",
                fix="write the head as @UPOS&@",
                id="family-head",
            )
        object.__setattr__(self, "head_places", places)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def classes(self) -> NDArray[np.str_]:
        """[F]: the head class of each family."""
        return np.array([head_class(token) for token in self.tokens], str)[self.members[self.head_places]]

    def labels(self, at: int) -> list[str]:
        """Return the labels of one family."""
        return [self.tokens[code] for code in self.members[self.offsets[at] : self.offsets[at + 1]]]

    def take(self, chosen: Bool | Int64) -> Families:
        """Return some of the families. chosen: bool[F] or int64[K]."""
        which = np.arange(len(self))[chosen]
        index, offsets = take_rows(self.offsets, which)
        return Families(offsets, self.members[index], self.tokens, self.keys[which])

    @classmethod
    def of(cls, families: list[list[str]], keys: UInt64 | None = None) -> Families:
        """Return the families of lists of labels. keys: default 0, 1, 2 …"""
        codes: dict[str, int] = {}
        members = [codes.setdefault(token, len(codes)) for family in families for token in family]
        offsets = offsets_of(np.array([len(family) for family in families], np.int64))
        if keys is None:
            keys = np.arange(len(families), dtype=np.uint64)
        return cls(offsets, np.array(members, np.int32), tuple(codes), keys)


def families_of_trees(
    heads: Int32, offsets: Int64, upos: list[str], deprel: list[str], *, punct: bool = False
) -> tuple[Families, Int64]:
    """Return (the families of all heads with a dependent, in the order of the words; the word of each member int64[M]).

    heads: int32[N], 1-based in the sentence, 0 = root. offsets: int64[S + 1]. upos, deprel: N each. punct: keep
    dependents that are punctuation (by relation). A family's key is its number.
    """
    n = len(heads)
    start = np.repeat(offsets[:-1], np.diff(offsets))
    codes: dict[str, int] = {}
    own = np.array([codes.setdefault(f"{u}&{d}", len(codes)) for u, d in zip(upos, deprel, strict=True)], np.int64)
    as_head = np.array([codes.setdefault(f"@{u}&@", len(codes)) for u in upos], np.int64)
    dependent = np.flatnonzero((heads > 0) & (punct | (np.array(deprel) != "punct")))
    governor = start[dependent] + heads[dependent] - 1
    has = np.unique(governor)
    words = np.concatenate([dependent, has])
    family = np.concatenate([np.searchsorted(has, governor), np.arange(len(has))])
    at = np.argsort(family * max(n, 1) + words, kind="stable")
    words, family = words[at], family[at]
    members = np.where(has[family] == words, as_head[words], own[words]).astype(np.int32)
    lengths = np.bincount(family, minlength=len(has))
    keys = np.arange(len(has), dtype=np.uint64)
    return Families(offsets_of(lengths), members, tuple(codes), keys), words


def parse_head(upos: str, text: str, *, any_relation: bool = False) -> list[str]:
    """Return the labels of one head. any_relation: accept relations that UD does not have.

    Raises UsageError not-a-upos, family-head, not-a-relation.
    """
    labels = text.split()
    if upos not in UPOS:
        raise UsageError(f"{upos!r} is not a UPOS", where="--head", fix=f"one of {', '.join(UPOS)}", id="not-a-upos")
    heads = [label for label in labels if label.startswith("@")]
    if heads != [f"@{upos}&@"]:
        given = "no head" if not heads else f"the heads {' '.join(heads)}"
        raise UsageError(f"there must be one head @{upos}&@, found {given}", where="--nodes", id="family-head")
    for label in labels:
        tag, _, relation = label.removeprefix("@").partition("&")
        if tag not in UPOS:
            raise UsageError(
                f"{label!r}: {tag!r} is not a UPOS", where="--nodes", fix="write UPOS&deprel", id="not-a-upos"
            )
        plain = relation.partition(":")[0]
        if not relation or (not any_relation and relation != "@" and plain not in V1_RELATIONS | V2_RELATIONS):
            raise UsageError(
                f"{label!r}: {relation!r} is not a relation of UD version 1 or 2",
                where="--nodes",
                fix="write UPOS&deprel, or pass --labels as-is",
                id="not-a-relation",
            )
    return labels


NONE = "-"  # the subtype of a relation without one, in a treebank that has subtypes of it
DEMONSTRATIVE = "det:dem"


def plain(token: str) -> str:
    """Return a label without the subtype, `NOUN&nmod:poss` -> `NOUN&nmod`; `DET&det:dem` stays."""
    return token if token.endswith(DEMONSTRATIVE) else token.partition(":")[0]


def as_in_trees(token: str) -> str:
    """Return the label as trees have it, `NOUN&nmod:-` -> `NOUN&nmod`, `DET&det:dem` -> `DET&det`."""
    return token.partition(":")[0] if token.endswith((f":{NONE}", DEMONSTRATIVE)) else token


def named(families: Families) -> Families:
    """Return the families of one treebank with its relations without a subtype named: `nmod:-`.

    A relation is named if the treebank has a subtype of it.
    """
    divided = {relation_of(token) for token in families.tokens if plain(token) != token}
    tokens = [f"{t}:{NONE}" if ":" not in t and relation_of(t) in divided else t for t in families.tokens]
    return Families(families.offsets, families.members, tuple(tokens), families.keys)


def marked(upos: Iterable[str], deprel: Iterable[str], feats: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return (tags, relations), with DET and `det:dem` for words with the relation det and PronType=Dem.

    The tag is DET whatever the treebank says, because it is PRON in some (Welsh) and the relation says as much.
    """
    tags, relations = list(upos), list(deprel)
    for word, values in enumerate(feats):
        if relations[word] == "det" and "PronType=Dem" in values.split("|"):
            tags[word], relations[word] = "DET", DEMONSTRATIVE
    return tags, relations


def relation_of(token: str) -> str:
    """Return the relation of a label without its subtype."""
    return token.partition("&")[2].partition(":")[0]


ONLY_V1 = V1_RELATIONS - V2_RELATIONS
# Function words that may take the place of their heads (`syntax/lifting.py`), and the relations of the heads then.
FUNCTIONS = ("cc", "case", "cop", "mark")
LIFTED = tuple(f"lifted_{name}" for name in FUNCTIONS)

_TO_V1 = {
    "obj": "dobj",
    "obl": "nmod",
    "nsubj:pass": "nsubjpass",
    "csubj:pass": "csubjpass",
    "aux:pass": "auxpass",
    "fixed": "mwe",
    "flat": "name",
    "flat:foreign": "foreign",
    "flat:name": "name",
    "orphan": "remnant",
    "clf": "nmod",
    "obl:unmarked": "nmod:npmod",
    "nmod:unmarked": "nmod:npmod",
}
_TO_V2 = {
    "dobj": "obj",
    "nsubjpass": "nsubj:pass",
    "csubjpass": "csubj:pass",
    "auxpass": "aux:pass",
    "mwe": "fixed",
    "name": "flat",
    "foreign": "flat:foreign",
    "remnant": "orphan",
    "neg": "advmod",
}


def candidates(token: str, head_class: str, version: str) -> list[str]:
    """Return the names of a label in UD `version` ("v1", "v2"), best first; a label of that version is the first.

    token: `UPOS&deprel`, or `@UPOS&@` of a head. head_class: of its head, "N", "V" or a UPOS.
    """
    upos, _, relation = token.partition("&")
    if relation == "@":
        return [token]
    if version == "v1":
        tags, relations = _v1(upos, relation)
    else:
        tags, relations = _v2(upos, relation, head_class)
    full = [f"{tag}&{name}" for name in relations for tag in tags]
    if (upos, relation) == ("PRON", "nmod:poss"):
        full[1:1] = ["DET&det:poss", "DET&nmod:poss", "DET&det"]
    return list(dict.fromkeys(full))


def _v1(upos: str, relation: str) -> tuple[list[str], list[str]]:
    plain, _, subtype = relation.partition(":")
    relations = []
    if relation in _TO_V1:
        relations.append(_TO_V1[relation])
    elif plain in _TO_V1:
        relations += [f"{_TO_V1[plain]}:{subtype}"] if subtype else []
    else:
        relations.append(relation)
    relations.append(_TO_V1.get(plain, plain))
    tags = ["CONJ" if upos == "CCONJ" else upos]
    if relation.startswith("cop") and upos == "AUX":
        tags.append("VERB")
    if plain == "advmod" and upos == "PART":
        relations.insert(0, "neg")
    return tags, relations


def _v2(upos: str, relation: str, head_class: str) -> tuple[list[str], list[str]]:
    plain, _, subtype = relation.partition(":")
    new = _TO_V2.get(plain, "obl" if plain == "nmod" and head_class == "V" else plain)
    relations = [f"{new}:{subtype}" if subtype else new, new.partition(":")[0]]
    if plain == "nmod" and head_class not in ("N", "V"):
        relations += [f"obl:{subtype}", "obl"] if subtype else ["obl"]
    tags = ["CCONJ" if upos == "CONJ" else upos]
    if plain == "cop" and upos == "VERB":
        tags.insert(0, "AUX")
    return tags, relations


def old_labels(tokens: Iterable[str]) -> list[str]:
    """Return the relations and tags among these labels that only UD version 1 has, sorted."""
    old = set()
    for token in tokens:
        upos, _, relation = token.partition("&")
        if upos == "CONJ":
            old.add(upos)
        if relation.partition(":")[0] in ONLY_V1:
            old.add(relation.partition(":")[0])
    return sorted(old)
