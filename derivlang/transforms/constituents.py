"""Orders of constituents: the children of some phrases are sorted (`np`) or reversed (`switch`).

They need a column of trees in brackets (`syntax/phrases.py`), with labels and tags of the Penn Treebank.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.arrow import to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, UsageError
from derivlang.core.keys import Draws
from derivlang.core.layers.constituents import PARSE
from derivlang.core.order import Order
from derivlang.core.spec import Named, param
from derivlang.formats.pcfg_file import Rule, Symbol, check_switches, grammar_path, grammars, read_rules
from derivlang.formats.places import once_per_version
from derivlang.syntax.phrases import Phrases, check_tags, labelled, phrase_order, phrases_of, with_child
from derivlang.transforms.base import Transform
from derivlang.transforms.word_order import Final, final_param

_SWITCHES = 6
_ADJECTIVES = ("JJ", "JJR", "JJS", "ADJP")
_NOUNS = ("NN", "NNS", "NNP", "NNPS", "NML", "NX")
_CLASSES = {
    "D": ("DT", "PRP$", "PDT"),
    "Num": ("QP", "CD", "$"),
    "A": ("JJ", "JJR", "JJS", "ADJP", "RB"),
    "N": ("NN", "NNS", "NNP", "NNPS"),
}


@dataclass(frozen=True, kw_only=True)
class NounPhrase(Transform):
    """Noun phrases: determiner, numeral, adjectives and noun in another order.

        np:N-Num-A-D      the two big city halls   ->   city halls two big the
        np:D-Num-N-A      the two big city halls   ->   the two city halls big

    In each NP the children of four classes are put into one of 24 orders, in the places that they have together:

        D    DT PRP$ PDT              Num  QP CD $
        N    NN NNS NNP NNPS          A    JJ JJR JJS ADJP RB

    All other children stay where they are. Children of one class keep their order, so compounds and names stay whole:
    with D-Num-A-N, `the York city halls` does not change. The published program sorts single labels, which gives `the
    city halls York`, and has the 's of a genitive (POS) among D; here it stays behind its noun. The paper writes n for
    Num, a for A: its orders are N-Num-D-A, A-Num-N-D, D-A-N-Num, D-Num-N-A, and D-Num-A-N for English.
    Source: Yang et al. 2025 (arXiv 2502.18795), orders of noun phrases, after Greenberg's Universal 20.
    """

    name = "np"
    needs: ClassVar[tuple[str, ...]] = (PARSE,)

    order_: str = param("N-Num-A-D", "order of D, Num, A and N", positional=True, draws=False, file=False)

    def validate(self) -> None:
        """Raise UsageError unless the order has each class once."""
        if sorted(self.order_.split("-")) != sorted(_CLASSES):
            raise UsageError(
                f"np: order={self.order_} must have each of D, Num, A and N once, with hyphens between them",
                fix="write np:N-Num-A-D, for example",
                id="bad-value",
            )

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order of a batch with constituents. Raise LayerError untagged for NPs of words without tags."""
        whole = phrases_of(batch)
        check_tags(str(self), batch, whole, labelled(whole.found, ("NP",)))
        return phrase_order(batch, whole, self._places, keep_tails=True)

    def _places(self, phrases: Phrases) -> Int64:
        """Return int64[N]: the position of each word."""
        found = phrases.found
        slot = np.zeros(len(found), np.int64)
        for number, name in enumerate(self.order_.split("-"), 1):
            slot[labelled(found, _CLASSES[name])] = number
        is_noun_phrase = np.append(labelled(found, ("NP",)), False)  # the last one is for parent -1
        return phrases.sorted_children(np.where(is_noun_phrase[found.parent], slot, 0))


@dataclass(frozen=True, kw_only=True)
class Switch(Transform):
    """Switch: the children of some constituents in reverse, chosen by six switches.

        switch:100000    The dog saw a cat .   ->   saw a cat The dog .
        switch:010000    The dog saw a cat .   ->   The dog a cat saw .

    Digit n of the value turns switch n on. On trees with labels of the Penn Treebank the switches are

        1  S, SINV, SQ   subject and predicate
        2  VP            verb and objects, complements, adjuncts
        3  SBAR          complementiser and clause, unless the SBAR begins with a question word
        4  PP            preposition and its phrase; NP and PP in an NP
        5  NP            adjective and noun, in an NP that has both among its children
        6  SBAR          question word and clause, as in a relative clause; NP and SBAR in an NP

    0 leaves the source's order, 1 reverses all children of these constituents. A constituent has one switch: an NP with
    a relative clause (its child is an SBAR with a question word) has switch 6, else with a PP 4, else with an adjective
    5. Function tags do not count (NP-SBJ is an NP). `rules=FILE` takes the switches of a grammar instead, which numbers
    its rules with `# switch 2`: then each constituent has the switch of the rule that made it, with its children in the
    order of the rule or in reverse. Final punctuation stays last; `final=move` reverses it as any word.
    Sources: White and Cotterell 2021 (ACL 2021), six switches; Kuribayashi et al. 2024 (arXiv 2402.12363). Their 0 is
    the order of a head-final grammar. The table for Penn labels is derivlang's.
    """

    name = "switch"
    needs: ClassVar[tuple[str, ...]] = (PARSE,)

    on: str = param(
        "100000", "for each switch 0, or 1 to reverse the children of its constituents", positional=True, draws=False,
        file=False,
    )  # fmt: skip
    rules: str = param(
        "", "grammar whose rules have the switches, as source:pcfg takes it", draws=False, file=Named(grammars)
    )
    final: Final = final_param()

    def validate(self) -> None:
        """Raise UsageError for other digits than switches; DataError for a broken file."""
        if self.rules:
            self._rules()
        elif len(self.on) != _SWITCHES or not set(self.on) <= {"0", "1"}:
            raise UsageError(
                f"switch: on={self.on} must be {_SWITCHES} zeros and ones",
                fix="write switch:110010, for example",
                id="bad-value",
            )

    def _rules(self) -> _Rules:
        rules = _read(str(grammar_path(self.rules)))
        check_switches("switch: on", self.on, rules.rules, str(self.rules))
        return rules

    @property
    def resources(self) -> tuple[str, ...]:
        """The fingerprint of the grammar."""
        return (f"rules {self._rules().fingerprint}",) if self.rules else ()

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order of a batch with constituents. Counts constituents that no rule of the grammar makes."""
        whole = phrases_of(batch)
        number = self._rules().numbers(batch, whole) if self.rules else self._numbers(batch, whole)
        is_on = np.array([False, *(digit == "1" for digit in self.on), False])
        unknown = int((number < 0).sum())
        found = phrase_order(
            batch, whole, lambda phrases: phrases.mirrored(is_on[number]), keep_tails=self.final == "keep"
        )
        return replace(found, counts=Counter({"switch-unknown": unknown} if unknown else {}))

    def _numbers(self, batch: Batch, phrases: Phrases) -> Int64:
        """Return int64[K]: the switch of each constituent by its label, 0 for none."""
        found = phrases.found
        number = np.zeros(len(found), np.int64)
        noun_phrase, clause = labelled(found, ("NP",)), labelled(found, ("SBAR",))
        if self.on[4] == "1":
            check_tags(f"switch:{self.on}", batch, phrases, noun_phrase)
        relative = clause & with_child(found, labelled(found, begin="WH"))
        prepositional = labelled(found, ("PP",))
        number[labelled(found, ("S", "SINV", "SQ"))] = 1
        number[labelled(found, ("VP",))] = 2
        number[clause] = 3
        number[prepositional] = 4
        has_adjective, has_noun = (with_child(found, labelled(found, labels)) for labels in (_ADJECTIVES, _NOUNS))
        number[noun_phrase & has_adjective & has_noun] = 5
        number[noun_phrase & with_child(found, prepositional)] = 4
        number[relative | (noun_phrase & with_child(found, relative))] = 6
        return number


class _Rules(NamedTuple):
    """The rules of a grammar. switches: of left sides and children."""

    switches: dict[tuple[str, tuple[Symbol, ...]], int]
    rules: list[Rule]
    fingerprint: str

    def numbers(self, batch: Batch, phrases: Phrases) -> Int64:
        """Return int64[K]: the switch of the rule that made each constituent, -1 if no rule makes it.

        Of a rule and its mirror image, both of which the grammar has, the one with the children in their order counts.
        """
        nodes, parent = phrases.nodes, phrases.forest.parent
        labels = phrases.found.names.take(to_arrow(phrases.found.label)).to_pylist()
        words = batch.types.take(to_arrow(batch.words)).to_pylist()
        symbols = dict(zip(phrases.words.tolist(), ((word, True) for word in words), strict=True))
        symbols |= dict(zip(nodes.tolist(), ((label, False) for label in labels), strict=True))
        children: dict[int, list[Symbol]] = {node: [] for node in [-1, *nodes.tolist()]}
        for node, above in enumerate(parent.tolist()):
            children[above].append(symbols[node])
        sides = [(label, tuple(children[node])) for label, node in zip(labels, nodes.tolist(), strict=True)]
        found = [self.switches.get(side, self.switches.get((side[0], side[1][::-1]), -1)) for side in sides]
        return np.array(found, np.int64)


@once_per_version
def _read(file: Path) -> _Rules:
    """Return the rules of a file. Raise as `_check_one_switch`."""
    rules, text = read_rules(file)
    _check_one_switch(rules, file)
    switches = {(rule.left, rule.right): rule.switch for rule in rules}
    return _Rules(switches, rules, sha256(text.encode()).hexdigest())


def _check_one_switch(rules: list[Rule], file: Path) -> None:
    """Raise DataError pcfg-switch for a rule that the file has under two switches: a tree does not show which."""
    first: dict[tuple[str, tuple[Symbol, ...]], Rule] = {}
    for rule in rules:
        other = first.setdefault((rule.left, rule.right), rule)
        if other.switch != rule.switch:
            raise DataError(
                f"a rule of {rule.left} has switch {rule.switch}, but switch {other.switch} in line {other.line}",
                where=f"{file}:{rule.line}",
                fix="give the rule one switch (0: none), or write it once",
                id="pcfg-switch",
            )
