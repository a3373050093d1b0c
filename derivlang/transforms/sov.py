"""sov: subject, object and verb of each clause in a fixed order, other dependents where they were.

    sov:ovs     object, verb, subject       sov:random     one of the six orders, drawn for each sentence

    they say the broker took them out for lunch frequently          sov:ovs
    them took out frequently the broker for lunch say they

At each verb (UPOS VERB or AUX) the dependents are sorted into five groups: others before the verb, then S, O and V in
the order of the language, then others after the verb. Each group is in source order; a subtree moves as one block.
The study has Penn Treebank trees with relations of UD v1. In UD v2 they are:

    S   nsubj, and csubj before its predicate, and their subtypes (v1: nsubj, nsubjpass, csubj)
    O   obj, ccomp, xcomp (v1: dobj, ccomp, xcomp); not iobj
    V   the verb; aux and aux:pass, compound:prt (v1: prt), expl, advmod (with v1's neg), and the `to` that is a mark

English question words (`who`, `which`, `what`), and `that` in a relative clause (acl:relcl, advcl:relcl and what is
joined to them), count as others (tags WP and WDT in the study). A clause behind its predicate stays there (`it is hard
to win`). A copula takes the subject of its predicate: the two stand side by side at its place, in the order of S and V
(`the cat is black`, ovs: `is the cat black`), unless the clause has an auxiliary. The subject of an outer copula
(nsubj:outer, csubj:outer) goes with that copula, and what stands outside of the inner clause stays outside
(`syntax/lifting.py`; `the problem is that we lost`, ovs: `is the problem that lost we`). Final marks stay last.
Sentences without a subject, which the study drops, are ordered by the same rule.
Source: Ravfogel, Goldberg and Linzen 2019 (NAACL, N19-1356), languages with other orders; the example is theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Literal

import numpy as np

from derivlang.core.arrays import Bool, Int64
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws
from derivlang.core.layers.tree import Tree, parents
from derivlang.core.spec import param
from derivlang.syntax.forest import Forest
from derivlang.syntax.layout import Listing, Members
from derivlang.syntax.lifting import PREDICATE, outer_subjects, with_outer_copulas
from derivlang.syntax.nodes import TreeBlock
from derivlang.syntax.words import WordKinds, see, written
from derivlang.transforms.tree_transform import TreeTransform

_ORDERS = tuple(map("".join, permutations("svo")))
# Roles of words at their heads, and the row of `_slots` for each, -1 for others. A CLAUSE is a subject before its
# predicate, an INNER predicate depends on an outer copula.
OTHER, SUBJECT, OBJECT, VERB, AUX, COPULA, CLAUSE, INNER = range(8)
_ROWS = np.array([-1, 0, 1, 2, 2, -1, 0, -1])
_PLAIN = {
    **dict.fromkeys(("nsubj", "nsubjpass"), SUBJECT),
    **dict.fromkeys(("csubj", "csubjpass"), CLAUSE),
    **dict.fromkeys(("obj", "ccomp", "xcomp", "dobj"), OBJECT),
    **dict.fromkeys(("expl", "advmod", "neg", "prt"), VERB),
    **dict.fromkeys(("aux", "auxpass"), AUX),
    "cop": COPULA,
    PREDICATE: INNER,
}
# Relations of words that the rule knows by their form: subtypes, which no treebank has.
_TO, _STAYS, _STAYS_OUTER = _BY_FORM = ("mark:=to", "nsubj:=who", "nsubj:=who:outer")
_WHOLE = {"compound:prt": VERB, _TO: VERB, _STAYS: OTHER, _STAYS_OUTER: OTHER}
_QUESTION_WORDS = ("who", "whom", "which", "what", "whoever", "whomever", "whichever", "whatever")


@dataclass(frozen=True, kw_only=True)
class Sov(TreeTransform):
    """Subject, object and verb of each clause in a fixed order, other dependents where they were."""

    name = "sov"
    rule_version = 2

    sequence: Literal["ovs", "sov", "vso", "vos", "osv", "svo", "random"] = param(
        "ovs", "order of subject, object and verb; random: drawn for each sentence", positional=True, draws=False
    )
    seed: int = param(1, "seed of random: each seed gives another language", low=0)

    def words(self, batch: Batch) -> WordKinds:
        """Return the words; some English forms have relations of their own. Raise LayerError if a word has no tag."""
        seen, tree = see(batch), batch.layer("head", Tree)
        role, relation = _roles(seen.relations)[seen.relation], seen.relation.copy()
        pronoun = seen.has_tag("PRON", "DET") & ((role == SUBJECT) | (role == OBJECT))
        stays = pronoun & written(batch, _QUESTION_WORDS)
        that = np.flatnonzero(pronoun & written(batch, ("that",)))
        stays[that[_in_relative(parents(tree.head, batch.unit_words), seen, that)]] = True
        relation[seen.has_relation("mark") & written(batch, ("to",))] = len(seen.relations)
        relation[stays] = len(seen.relations) + 1 + outer_subjects(seen.relations)[relation[stays]]
        return replace(seen, relation=relation, relations=(*seen.relations, *_BY_FORM))

    def lift(self, forest: Forest, words: WordKinds) -> tuple[Forest, WordKinds]:
        """Return the trees with outer copulas as heads of their clauses."""
        forest, relation, relations = with_outer_copulas(forest, words.relation, words.relations)
        return forest, replace(words, relation=relation, relations=relations)

    def choose(self, draws: Draws, block: TreeBlock, members: Members) -> Listing:
        """Return the families of verbs and copulas in the order of the language."""
        listing, seen = members.listing, block.seen
        roles = _roles(seen.relations)
        role = np.where(listing.itself, VERB, roles[seen.relation[members.word]])
        role[members.head < 0] = OTHER
        is_outer = members.any(role == INNER)
        role[listing.itself & is_outer] = COPULA
        role[(role == CLAUSE) & members.after] = OTHER
        role[role == CLAUSE] = SUBJECT
        is_verb = seen.has_tag("VERB", "AUX")[members.head] & ~is_outer
        slots = self._slots(draws, block, members)
        # Slots 0 and 4 are other dependents; s, o and v have the slots 1 to 3 of their letters.
        slot = np.where(members.after, 4, 0)
        row = _ROWS[role]
        at = np.flatnonzero(row >= 0)
        slot[at] = slots[row[at], members.family[at]]
        # A copula and the subjects: 0 what stands before the copula, 1 to 3 these, 4 what stands after it.
        copula = members.first(role == COPULA)
        has_copula = (copula < len(copula)) & ~members.any(role == AUX)
        beside = np.sign(members.place - copula) * 2 + 2
        at = np.flatnonzero((role == SUBJECT) & has_copula)
        beside[at] = np.where(slots[0, members.family[at]] < slots[2, members.family[at]], 1, 3)
        return members.arranged(np.where(is_verb, slot, np.where(has_copula, beside, 0)))

    def _slots(self, draws: Draws, block: TreeBlock, members: Members) -> Int64:
        """Return int64[3, F]: the slots of s, o and v in each family, from 1."""
        table = np.array([[order.index(letter) + 1 for order in _ORDERS] for letter in "sov"])
        if self.sequence != "random":
            return np.repeat(table[:, [_ORDERS.index(self.sequence)]], len(members.listing.heads), axis=1)
        # One draw for each tree, at position 0; its upper 32 bits times 6, divided by 2^32, is the order.
        drawn = draws.draw(block.keys, np.zeros(len(block.keys), np.int64)) >> np.uint64(32)
        order = ((drawn * np.uint64(len(_ORDERS))) >> np.uint64(32)).astype(np.int64)
        tree = np.append(members.forest.tree_of, np.arange(len(block.keys)))[members.listing.heads]  # of roots: n + t
        return table[:, order[tree]]


def _in_relative(parent: Int64, seen: WordKinds, words: Int64) -> Bool:
    """Return bool[m]: whether the clause of each word is a relative clause, or joined to one. parent: int64[n]."""
    joined = np.append(seen.has_relation("conj"), False)  # the last one is for parent -1
    relative = np.array([name.endswith(":relcl") for name in seen.relations], bool)[seen.relation]
    head = parent[words]
    while joined[head].any():
        head = np.where(joined[head], parent[head], head)
    return np.append(relative, False)[head]


def _roles(relations: Sequence[str]) -> Int64:
    """Return int64[R]: the role of each relation."""
    plain = [_PLAIN.get(relation.partition(":")[0], OTHER) for relation in relations]
    return np.array([_WHOLE.get(relation, role) for relation, role in zip(relations, plain, strict=True)], np.int64)
