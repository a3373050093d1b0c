"""Words that take the place of their heads, for an order only: function heads and outer copulas.

Function heads: function words take the place of their heads; no word and no label changes.

For cc, case, cop and mark, in this order, from left to right: the word's head becomes its dependent, with the relation
`lifted_case` (…), and the word gets the head and the relation that its head had.

    gave  to  girl      case(girl, to), obl(gave, girl)   ->   obl(gave, to), lifted_case(to, girl)

Of two function words of one head the right one ends next to it: `from under the bed` becomes from, under, bed. Where a
word gets one of the four relations by that (a preposition whose noun was a `mark`), the published program drops the
sentence; here the word keeps it.
Source: Hahn, Jurafsky and Futrell 2020 (PNAS 117), corpora with function heads; the same in Clark et al. 2023.

Outer copulas: a copula whose predicate is a clause becomes the head of that clause; no word and no label changes.

UD hangs the subject of such a copula (nsubj:outer, csubj:outer) and the copula on the predicate of the inner clause, as
it does with the subject and the copula of the inner clause. Here the outer copula takes its subject, all dependents
outside of the inner clause, and the inner predicate, which gets the relation PREDICATE:

    The problem is that customers are loyal      nsubj:outer(loyal, problem), cop(loyal, is)
                                             ->  nsubj:outer(is, problem), lifted_cop(is, loyal)

The outer copula is the first one before the predicate, else the last one behind it. The inner clause begins with its
mark, if no subject stands before that, else behind the outer copula and subject.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64
from derivlang.grammar.families import FUNCTIONS, LIFTED
from derivlang.syntax.forest import Forest
from derivlang.syntax.words import WordKinds


def lifted(forest: Forest, words: WordKinds) -> tuple[Forest, WordKinds]:
    """Return the forest with function heads, and the words with their relations there."""
    parent, relation = forest.parent.tolist(), words.relation.tolist()
    names = [name.partition(":")[0] for name in words.relations]
    for lifted_relation, function in enumerate(FUNCTIONS, len(names)):
        of_function = {code for code, name in enumerate(names) if name == function}
        for word in [word for word, code in enumerate(relation) if code in of_function and parent[word] >= 0]:
            head = parent[word]
            if head >= 0 and relation[word] in of_function:  # still: it may have been the head of a word before it
                parent[word], relation[word] = parent[head], relation[head]
                parent[head], relation[head] = word, lifted_relation
    lifted_words = replace(words, relation=np.array(relation, np.int32), relations=(*words.relations, *LIFTED))
    return Forest(np.array(parent, np.int64), forest.trees), lifted_words


PREDICATE = "lifted_cop"


def outer_subjects(relations: Sequence[str]) -> Bool:
    """Return bool[R]: the relations of subjects of outer copulas."""
    return np.array([name.endswith(":outer") for name in relations], bool)


def with_outer_copulas(
    forest: Forest, relation: Int32, relations: Sequence[str]
) -> tuple[Forest, Int32, tuple[str, ...]]:
    """Return the forest with outer copulas as heads, the relation of each word there, and the names of relations.

    relation: int32[n], codes into relations. Subjects without a copula stay where they are.
    """
    plain = np.array([name.partition(":")[0] for name in relations], object)
    outer = outer_subjects(relations)[relation]
    names = (*relations, PREDICATE)
    if not outer.any():
        return forest, relation, names
    copula, mark = (plain == "cop")[relation], (plain == "mark")[relation]
    subject = np.isin(plain, ("nsubj", "csubj"))[relation] & ~outer
    parent, relation = forest.parent.copy(), relation.copy()
    for at in np.flatnonzero(outer & (parent >= 0)).tolist():
        predicate, tree = parent[at], forest.tree_of[at]
        begin, end = forest.trees[tree : tree + 2]
        below = begin + np.flatnonzero(parent[begin:end] == predicate)
        copulas = below[copula[below]]
        if len(copulas):
            head = copulas[0] if copulas[0] < predicate else copulas[-1]
            parent[below[_outside(below, predicate, np.array([head, at]), mark, subject)]] = head
            parent[head], relation[head] = parent[predicate], relation[predicate]
            parent[predicate], relation[predicate] = head, len(relations)
    return Forest(parent, forest.trees), relation, names


def _outside(below: Int64, predicate: int, outer: Int64, mark: Bool, subject: Bool) -> Bool:
    """Return bool[m]: the dependents of a predicate that stand outside of its clause. outer: a copula and its subject.

    The problem is really that we lost      outer [2, 1]: the dependents before `that`
    """
    out = np.zeros(len(below), bool)
    left, right = outer[outer < predicate], outer[outer > predicate]
    if len(left):
        inner = below[(below > left.max()) & (below < predicate)]
        first = inner[mark[inner] | subject[inner]][:1]
        out |= below < (first[0] if mark[first].any() else left.max() + 1)
    if len(right):
        out |= below >= right.min()
    return out
