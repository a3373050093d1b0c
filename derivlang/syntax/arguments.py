"""Arguments: the subjects, objects and indirect objects of a batch's trees, with their number.

The relations are UD v2's (and v1's); words with other relations are not arguments:

    subject          nsubj, nsubj:pass, nsubj:outer (nsubjpass)
    object           obj (dobj)
    indirect object  iobj

A clause with an object is transitive: its head has a dependent that is one. The head of an outer subject is its copula
(`lifting.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64
from derivlang.core.batch import Batch
from derivlang.core.layers.tree import Tree
from derivlang.syntax.forest import forest_of
from derivlang.syntax.lifting import with_outer_copulas

SUBJECT, OBJECT, INDIRECT = range(3)
ROLES = {"nsubj": SUBJECT, "nsubjpass": SUBJECT, "obj": OBJECT, "dobj": OBJECT, "iobj": INDIRECT}


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """The n arguments of a batch of N words, in the order of the words.

    word: int64[n]. head: int64[n], the word that each depends on. role: int64[n], SUBJECT, OBJECT or INDIRECT.
    transitive: bool[n], whether the clause has an object. parent: int64[N], -1 for roots, and relation: int32[N], codes
    into relations: the trees in which the heads are these.
    """

    word: Int64
    head: Int64
    role: Int64
    transitive: Bool
    parent: Int64
    relation: Int32
    relations: tuple[str, ...]


def arguments_of(batch: Batch) -> Arguments:
    """Return the arguments of a batch with trees."""
    tree = batch.layers["head"]
    assert isinstance(tree, Tree)
    forest, relation, relations = with_outer_copulas(
        forest_of(tree.head, batch.unit_words, batch.sentences),
        tree.deprel.codes,
        [name or "_" for name in tree.deprel.values.to_pylist()],
    )
    parent = forest.parent
    role = np.array([ROLES.get(name.partition(":")[0], -1) for name in relations])[relation]
    word = np.flatnonzero((role >= 0) & (parent >= 0))
    head, role = parent[word], role[word]
    has_object = np.zeros(batch.n_words, bool)
    has_object[head[role == OBJECT]] = True
    return Arguments(word, head, role, has_object[head], parent, relation, relations)
