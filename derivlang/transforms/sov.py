"""sov: subject, object and verb of each clause in a fixed order, other dependents where they were.

    sov:ovs     object, verb, subject       sov:random     one of the six orders, drawn for each sentence

    they say the broker took them out for lunch frequently          sov:ovs
    them took out frequently the broker for lunch say they

At each verb (UPOS VERB or AUX) the dependents are sorted into five groups: others before the verb, then S, O and V in
the order of the language, then others after the verb. Each group is in source order; a subtree moves as one block.
The study has Penn Treebank trees with relations of UD v1. In UD v2 they are:

    S   nsubj, csubj and their subtypes (v1: nsubj, nsubjpass, csubj)
    O   obj, ccomp, xcomp (v1: dobj, ccomp, xcomp); not iobj
    V   the verb; aux and aux:pass, compound:prt (v1: prt), expl, advmod (with v1's neg), and the `to` that is a mark

English question words (`who`, `which`, `what`), and `that` in a relative clause, count as others (tags WP and WDT in the
study). A copula takes the subject of its predicate: the two stand side by side at its place, in the order of S and V
(`the cat is black`, ovs: `is the cat black`), unless the clause has an auxiliary. Final marks stay last. Sentences
without a subject, which the study drops, are ordered by the same rule.
Source: Ravfogel, Goldberg and Linzen 2019 (NAACL, N19-1356), languages with other orders; the example is theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from typing import Literal

import numpy as np

from derivlang.core.arrays import Int64, UInt64
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws
from derivlang.core.spec import param
from derivlang.syntax.block import TreeBlock
from derivlang.syntax.forest import Forest
from derivlang.syntax.layout import Listing
from derivlang.syntax.slots import Members
from derivlang.syntax.tree_order import Freeze, Nonprojective, Punct
from derivlang.syntax.words import WordKinds, see, written
from derivlang.transforms.tree_transform import TreeTransform, freeze_param, nonprojective_param, punct_param

_ORDERS = tuple(map("".join, permutations("svo")))
# Roles of words at their heads, in the place of relations. `that` is another dependent in a RELATIVE clause.
_ROLES = ("other", "subject", "object", "verb", "aux", "copula", "relative", "that-subject", "that-object")
OTHER, SUBJECT, OBJECT, VERB, AUX, COPULA, RELATIVE, THAT_SUBJECT, THAT_OBJECT = range(len(_ROLES))
_PLAIN = {
    **dict.fromkeys(("nsubj", "csubj", "nsubjpass", "csubjpass"), SUBJECT),
    **dict.fromkeys(("obj", "ccomp", "xcomp", "dobj"), OBJECT),
    **dict.fromkeys(("expl", "advmod", "neg", "prt"), VERB),
    **dict.fromkeys(("aux", "auxpass"), AUX),
    "cop": COPULA,
}
_WHOLE = {"compound:prt": VERB, "acl:relcl": RELATIVE}
_QUESTION_WORDS = ("who", "whom", "which", "what", "whoever", "whomever", "whichever", "whatever")


@dataclass(frozen=True, kw_only=True)
class Sov(TreeTransform):
    """Subject, object and verb of each clause in a fixed order, other dependents where they were."""

    name = "sov"

    sequence: Literal["ovs", "sov", "vso", "vos", "osv", "svo", "random"] = param(
        "ovs", "order of subject, object and verb; random: drawn for each sentence", positional=True, draws=False
    )
    freeze: Freeze = freeze_param()
    punct: Punct = punct_param()
    nonprojective: Nonprojective = nonprojective_param()
    seed: int = param(1, "seed of random: each seed gives another language", low=0)

    def words(self, batch: Batch) -> WordKinds:
        """Return the words with roles in the place of relations. Raise LayerError if a word has no tag."""
        seen = see(batch)
        names = [relation.partition(":")[0] for relation in seen.relations]
        table = [_WHOLE.get(full, _PLAIN.get(plain, OTHER)) for full, plain in zip(seen.relations, names, strict=True)]
        role = np.array(table, np.int32)[seen.relation]
        is_mark = np.array([name == "mark" for name in names], bool)[seen.relation]
        role[is_mark & written(batch, ("to",))] = VERB
        pronoun, argument = seen.has_tag("PRON", "DET"), (role == SUBJECT) | (role == OBJECT)
        role[argument & pronoun & written(batch, _QUESTION_WORDS)] = OTHER
        role[argument & pronoun & written(batch, ("that",))] += THAT_SUBJECT - SUBJECT
        return replace(seen, relation=role, relations=_ROLES)

    def choose(
        self, draws: Draws, keys: UInt64, block: TreeBlock, forest: Forest, listing: Listing, top: Int64
    ) -> Listing:
        """Return the families of verbs and copulas in the order of the language."""
        members, seen = Members(forest, listing, top), block.seen
        role = np.where(listing.itself, OTHER, seen.relation[members.word])
        in_relative = seen.relation[members.head] == RELATIVE
        for that, plain in ((THAT_SUBJECT, SUBJECT), (THAT_OBJECT, OBJECT)):
            role = np.where(role == that, np.where(in_relative, OTHER, plain), role)
        before, after = members.before, members.after
        # Slots 0 and 4 are other dependents; s, o and v have the slots 1 to 3 of their letters.
        s, o, v = self._slots(draws, keys, block, forest, listing)[:, members.family]
        slot = np.where(after, 4, 0)
        slot = np.where(role == SUBJECT, s, np.where(role == OBJECT, o, slot))
        slot = np.where((role == VERB) | (role == AUX) | listing.itself, v, slot)
        is_verb = seen.has_tag("VERB", "AUX")[members.head]
        # A copula and the subjects: 0 what stands before the copula, 1 to 3 these, 4 what stands after it.
        at = members.first((role == COPULA) & (before | after))
        beside = np.where(role == SUBJECT, np.where(s < v, 1, 3), np.where(members.place == at, 2, 0))
        beside[(members.place > at) & (role != SUBJECT)] = 4
        has_copula = (at < len(at)) & ~members.any((role == AUX) & (before | after))
        return members.arranged(np.where(is_verb, slot, np.where(has_copula, beside, 0)))

    def _slots(self, draws: Draws, keys: UInt64, block: TreeBlock, forest: Forest, listing: Listing) -> Int64:
        """Return int64[3, F]: the slots of s, o and v in each family, from 1."""
        table = np.array([[order.index(letter) + 1 for order in _ORDERS] for letter in "sov"])
        if self.sequence != "random":
            return np.repeat(table[:, [_ORDERS.index(self.sequence)]], len(listing.heads), axis=1)
        # One draw for each tree, at position 0; its upper 32 bits times 6, divided by 2^32, is the order.
        drawn = draws.draw(keys[block.numbers], np.zeros(len(block.numbers), np.int64)) >> np.uint64(32)
        order = ((drawn * np.uint64(len(_ORDERS))) >> np.uint64(32)).astype(np.int64)
        tree = np.append(forest.tree_of, np.arange(len(block.numbers)))[listing.heads]  # of roots: n + t
        return table[:, order[tree]]
