"""swap: one pair of words in the order of languages of the other type, everything else as it was.

    swap:VERB-obj    She gave him books            ->   She books him gave
    swap:ADP-NOUN    in the old house              ->   the old house in
    swap:aux-VERB    He has been sleeping at home  ->   He sleeping at home been has
    swap:cop-pred    The cat is very black         ->   The cat very black is
    swap:NOUN-of     the old capital of France     ->   the old of France capital

The first of the pair moves behind the phrase of the second; of several, the last one is the first behind it.

- VERB-obj: at each verb (VERB, AUX) the objects after it (obj, iobj, obl, expl, ccomp, xcomp; advcl without a subject)
  move before the verb's chunk, the last one first. The chunk is the verb and all other dependents right of the subject;
  a `mark` stays, except `to`. In `there are lions` the lions are the object. A clause whose subject follows the verb
  keeps its order. A copula moves as in cop-pred.
- ADP-NOUN: each preposition (ADP, case) moves behind the phrase of its NOUN, PROPN, PRON or NUM.
- aux-VERB: each auxiliary between subject and verb moves behind the verb's phrase, up to an advcl.
- cop-pred: a copula between subject and predicate moves behind the predicate's phrase, up to a ccomp, advcl or obl, or
  an xcomp unless the predicate is an adjective.
- NOUN-of: a noun with its nummod, compound, appos, flat and conj moves behind its `of` phrases (nmod); determiners and
  adjectives stay.

A conjunct belongs to the phrase unless it has its own first word of the pair or its own subject, or is a verb beside
the predicate of a copula: `in Paris and London` becomes `Paris and London in`, but `in Paris and in Rome` becomes
`Paris in and Rome in`. The published program repairs coordination one pattern at a time, also across clauses (an object
that two verbs share), and deletes punctuation; here it goes with its phrase.
Source: Xu et al. 2026 (TACL 14, 588–611, arXiv 2502.12317), pairs of counterfactual English.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from derivlang.core.arrays import Bool, Int64
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws
from derivlang.core.spec import param
from derivlang.syntax.layout import Listing, Members
from derivlang.syntax.nodes import TreeBlock
from derivlang.syntax.words import WordKinds, see, written
from derivlang.transforms.tree_transform import TreeTransform

_SUBJECTS = ("nsubj", "csubj")
_OBJECTS = ("obj", "iobj", "obl", "expl", "ccomp", "xcomp")
_NOUN_CHUNK = ("nummod", "compound", "appos", "flat", "conj")
# Relations of words that the rules know by their form: subtypes, so that `has_relation` finds the plain relation.
_OF, _TO = "case:of", "mark:to"


@dataclass(frozen=True, kw_only=True)
class Swap(TreeTransform):
    """Swap of a pair: verb and object, preposition and noun, and so on, as in languages of the other type."""

    name = "swap"

    pair: Literal["VERB-obj", "ADP-NOUN", "aux-VERB", "cop-pred", "NOUN-of"] = param(
        "VERB-obj", "pair whose first word moves behind the second", positional=True, draws=False
    )

    def words(self, batch: Batch) -> WordKinds:
        """Return the words; `of` and `to` have relations of their own. Raise LayerError if a word has no tag."""
        seen = see(batch)
        relation = seen.relation.copy()
        relation[seen.has_relation("case") & written(batch, ("of",))] = len(seen.relations)
        relation[seen.has_relation("mark") & written(batch, ("to",))] = len(seen.relations) + 1
        return replace(seen, relation=relation, relations=(*seen.relations, _OF, _TO))

    def choose(self, draws: Draws, block: TreeBlock, members: Members) -> Listing:
        """Return the families with the pair swapped."""
        rules = _Relations(members, block.seen)
        if self.pair == "VERB-obj":
            return _objects_first(rules)
        if self.pair == "NOUN-of":
            return _noun_last(rules)
        if self.pair == "ADP-NOUN":
            return _swapped(rules, rules.prepositions(), rules.nothing())
        if self.pair == "aux-VERB":
            return _swapped(rules, rules.after_subject("aux"), rules.has("advcl", *_SUBJECTS))
        return _swapped(rules, rules.after_subject("cop"), rules.clauses())


@dataclass(frozen=True, eq=False)
class _Relations:
    """The members of some families with their relations and tags."""

    members: Members
    seen: WordKinds

    def nothing(self) -> Bool:
        return np.zeros(len(self.members.word), bool)

    def has(self, *relations: str) -> Bool:
        """Return bool[E]: the dependents with one of these relations, with or without a subtype."""
        is_one = [name.partition(":")[0] in relations for name in self.seen.relations]
        return np.array([*is_one, False])[self._relation]

    @cached_property
    def _relation(self) -> Int64:
        """int64[E]: the relation of each dependent; one more than there are for heads and for roots."""
        relation = self.seen.relation[self.members.word].astype(np.int64)
        relation[~(self.members.before | self.members.after)] = len(self.seen.relations)
        return relation

    def tag(self, *tags: str) -> Bool:
        """Return bool[E]: the entries with one of these tags."""
        return np.asarray(self.seen.has_tag(*tags)[self.members.word])

    def head_tag(self, *tags: str) -> Bool:
        """Return bool[E]: the entries of families whose head has one of these tags."""
        return np.asarray(self.seen.has_tag(*tags)[self.members.head])

    def form(self, relation: str) -> Bool:
        """Return bool[E]: the dependents with exactly this relation."""
        return np.asarray(self._relation == self.seen.relations.index(relation))

    def prepositions(self) -> Bool:
        """Return bool[E]: prepositions of nominals."""
        nominal = self.head_tag("NOUN", "PROPN", "PRON", "NUM")
        return self.has("case") & self.tag("ADP") & self.members.before & nominal

    def after_subject(self, relation: str) -> Bool:
        """Return bool[E]: dependents with the relation between a subject and its head, or in a clause without one."""
        found = self.has(relation) & self.members.before
        return found & (self.members.place > self.members.last(self.has(*_SUBJECTS)))

    def clauses(self) -> Bool:
        """Return bool[E]: dependents that do not belong to the phrase of a predicate with a copula."""
        out = self.has("ccomp", "advcl", "obl") | (self.has("xcomp") & ~self.head_tag("ADJ"))
        return out | (self.has("conj") & self.tag("VERB"))


def _swapped(rules: _Relations, movers: Bool, stops: Bool) -> Listing:
    """Return the families with the movers behind the head's phrase, the last one first."""
    return rules.members.arranged(_behind(rules, movers, stops), movers)


def _behind(rules: _Relations, movers: Bool, stops: Bool) -> Int64:
    """Return int64[E]: the slots that bring movers behind the head's phrase.

    stops: bool[E], dependents that end the phrase if they stand after the head; conjuncts of their own do, too.
    """
    members = rules.members
    stops = stops | (rules.has("conj") & (members.has_child(movers) | members.has_child(rules.has(*_SUBJECTS))))
    return np.where(movers, 1, np.where(members.place >= members.first(stops & members.after), 2, 0))


def _objects_first(rules: _Relations) -> Listing:
    """Return the families with objects before the chunk of their verb, and copulas behind their predicates."""
    members = rules.members
    subject, expletive = rules.has(*_SUBJECTS), rules.has("expl") & members.before
    late = subject & members.after
    lions = late & members.any(expletive)
    adverbial = rules.has("advcl") & ~members.has_child(subject)
    objects = (rules.has(*_OBJECTS) | lions | adverbial) & members.after
    verbal = rules.head_tag("VERB", "AUX") & ~members.any(late & ~lions)
    first = members.last((subject | expletive) & members.before)
    stays = (members.place <= first) | (rules.has("mark") & ~rules.form(_TO) & members.before)
    slot = np.where(stays, 0, np.where(objects, 1, 2))
    # Without an object nothing moves: a mark that stays must not pass the words before it.
    verbal &= members.any(objects)
    copulas = rules.after_subject("cop")
    behind = _behind(rules, copulas, rules.clauses())
    return members.arranged(np.where(verbal, slot, behind), np.where(verbal, objects, copulas))


def _noun_last(rules: _Relations) -> Listing:
    """Return the families with a noun and what belongs to it behind its `of` phrases."""
    members = rules.members
    genitive = rules.has("nmod") & members.after & members.has_child(rules.form(_OF))
    end = members.last(genitive)
    chunk = (members.listing.itself | rules.has(*_NOUN_CHUNK)) & (members.place < end)
    return members.arranged(np.where(members.place > end, 2, np.where(chunk, 1, 0)))
