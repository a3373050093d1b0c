"""Statistics: how a treebank orders subject, verb and object, and other pairs, and what a model expects.

Counted are the six orders of a verb with a nominal subject and a nominal object, and the position before or after the
head of the adjective, adposition, genitive and relative clause of a nominal head, and of the oblique of a verb. What a
model expects is exact: the probability of an event is Z with all other orders ruled out, over Z.

    S-V-O: s left of the head, o right of it;      S-O-V: both left, and o not before s
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of
from derivlang.grammar import exact
from derivlang.grammar.families import Families, head_class
from derivlang.grammar.local import Local
from derivlang.grammar.order_model import OrderModel
from derivlang.grammar.treebank import as_they_stand
from derivlang.grammar.weights import Float

SVO = ("S-V-O", "S-O-V", "V-S-O", "V-O-S", "O-V-S", "O-S-V")
_RULED_OUT = -1e3  # added to a log score: its factor underflows to nothing
_NOMINAL = ("NOUN", "PROPN")


@dataclass(frozen=True, slots=True)
class Pair:
    """Dependents of one kind. head: head class. is_one: test of UPOS and relation without subtype."""

    name: str
    head: str
    is_one: Callable[[str, str], bool]


PAIRS_OF_INTEREST = (
    Pair("adjective before noun", "N", lambda upos, relation: upos == "ADJ" and relation == "amod"),
    Pair("adposition before noun", "N", lambda upos, relation: upos == "ADP" and relation == "case"),
    Pair("genitive before noun", "N", lambda upos, relation: upos in _NOMINAL and relation == "nmod"),
    Pair("relative clause before noun", "N", lambda upos, relation: upos == "VERB" and relation == "acl"),
    Pair("oblique before verb", "V", lambda upos, relation: upos in _NOMINAL and relation == "obl"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Clauses:
    """C verbs with a nominal subject and a nominal object.

    subject, object: int64[C], position of the first of each among the dependents (the head is not counted).
    """

    families: Families
    subject: Int64
    object: Int64


def clauses(families: Families) -> Clauses:
    """Return the clauses among some families; labels are UD v2 or v1, with or without subtypes."""
    is_subject = _flags(families, lambda upos, relation: upos in _NOMINAL and relation == "nsubj")
    is_object = _flags(families, lambda upos, relation: upos in _NOMINAL and relation in ("obj", "dobj"))
    n = len(families)
    owner = np.repeat(np.arange(n), lengths_of(families.offsets))
    of_class = np.array([head_class(token) == "V" for token in families.tokens])
    chosen = of_class[families.members[families.head_places]]
    for flags in (is_subject, is_object):
        chosen &= np.bincount(owner[flags], minlength=n) > 0
    which = np.flatnonzero(chosen)
    return Clauses(families.take(which), _places(families, is_subject, which), _places(families, is_object, which))


def observed_shares(transitive: Clauses, orders: Int32 | None = None) -> Float:
    """Return float64[6]: the share of each order of SVO, at present or under `orders` (int32[M])."""
    families = transitive.families
    if orders is None:
        orders = as_they_stand(families)
    counts = np.zeros(len(SVO))
    for f in range(len(families)):
        begin, end = families.offsets[f], families.offsets[f + 1]
        head = int(families.head_places[f] - begin)
        line = orders[begin:end].tolist()
        s, o = (int(x[f]) + (x[f] >= head) for x in (transitive.subject, transitive.object))
        places = sorted([(line.index(s), "S"), (line.index(o), "O"), (line.index(head), "V")])
        counts[SVO.index("-".join(letter for _, letter in places))] += 1
    return np.asarray(counts / max(counts.sum(), 1))


def expected_shares(model: OrderModel, transitive: Clauses) -> tuple[Float, int]:
    """Return (float64[6]: mean probability of each order of SVO, the number of clauses small enough to be exact)."""
    total, number = np.zeros(len(SVO)), 0
    for at, local, log_z in model.exact_parts(transitive.families):
        s, o = transitive.subject[at], transitive.object[at]
        for i, name in enumerate(SVO):
            total[i] += np.exp(model.log_sum(_ordered(local, s, o, name)) - log_z).sum()
        number += len(at)
    return total / max(number, 1), number


def before_head(families: Families, pair: Pair) -> tuple[int, float]:
    """Return (the number of dependents of this kind, the share of them before the head)."""
    flags = _of_pair(families, pair)
    owner = np.repeat(np.arange(len(families)), lengths_of(families.offsets))
    before = np.arange(len(families.members)) < families.head_places[owner]
    return int(flags.sum()), float(before[flags].mean()) if flags.any() else float("nan")


def expected_before_head(model: OrderModel, families: Families, pair: Pair) -> float:
    """Return the mean probability that such a dependent is before its head, over families small enough to be exact."""
    families, _ = _with_any(families, _of_pair(families, pair))
    families, counts = _distinct(families)
    flags = _of_pair(families, pair)
    total, number = 0.0, 0
    for at, local, _ in model.exact_parts(families):
        places = np.arange(local.n_dependents)[:, None]
        heads = families.head_places[at] - families.offsets[at]
        mine = flags[families.offsets[at] + places + (places >= heads)] * counts[at]  # [d, b]
        total += float((exact.before_head(local) * mine).sum())
        number += int(mine.sum())
    return total / number if number else float("nan")


def _distinct(families: Families) -> tuple[Families, Int64]:
    """Return (each label sequence once, how often it occurs): `a b, c, a b` -> `a b, c`, [2, 1]."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    number = np.empty(len(families), np.int64)
    for f in range(len(families)):
        labels = families.members[families.offsets[f] : families.offsets[f + 1]].tobytes()
        number[f] = seen.setdefault(labels, len(seen))
        if number[f] == len(first):
            first.append(f)
    return families.take(np.array(first, np.int64)), np.bincount(number, minlength=len(first))


def _ordered(local: Local, s: Int64, o: Int64, name: str) -> Local:
    """Return the scores with all orders of subject, object and head but one ruled out."""
    left, right = local.left.copy(), local.right.copy()
    before, after = local.before.copy(), local.after.copy()
    b = np.arange(len(s))
    letters = name.split("-")
    for letter, x in (("S", s), ("O", o)):
        is_left = letters.index(letter) < letters.index("V")
        (after if is_left else before)[x, b] += _RULED_OUT
    late, early = (o, s) if letters.index("S") < letters.index("O") else (s, o)
    left[late, early, b] += _RULED_OUT
    right[late, early, b] += _RULED_OUT
    return replace(local, left=left, right=right, before=before, after=after)


def _flags(families: Families, is_one: Callable[[str, str], bool]) -> Bool:
    """Return bool[M]: the members that pass a test of UPOS and relation without subtype."""
    labels = [token.partition("&") for token in families.tokens]
    tests = [not upos.startswith("@") and is_one(upos, relation.partition(":")[0]) for upos, _, relation in labels]
    return np.asarray(np.array(tests, bool)[families.members])


def _of_pair(families: Families, pair: Pair) -> Bool:
    flags = _flags(families, pair.is_one)
    of_class = np.array([head_class(token) == pair.head for token in families.tokens])
    chosen = of_class[families.members[families.head_places]]
    return np.asarray(flags & np.repeat(chosen, lengths_of(families.offsets)))


def _with_any(families: Families, flags: Bool) -> tuple[Families, Bool]:
    owner = np.repeat(np.arange(len(families)), lengths_of(families.offsets))
    which = np.bincount(owner[flags], minlength=len(families)) > 0
    return families.take(which), flags[which[owner]]


def _places(families: Families, flags: Bool, which: Int64) -> Int64:
    """Return int64[C]: the position, head not counted, of the first flagged member of each family in `which`."""
    flagged = np.flatnonzero(flags)
    begin = families.offsets[which]
    at = flagged[np.searchsorted(flagged, begin)]
    head = families.head_places[which]
    return np.asarray(at - begin - (at > head))
