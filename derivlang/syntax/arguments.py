"""Arguments: the subjects, objects and indirect objects of a batch's trees, with their number.

The relations are UD v2's (and v1's); words with other relations are not arguments:

    subject          nsubj, nsubj:pass, nsubj:outer (nsubjpass)
    object           obj (dobj)
    indirect object  iobj

A clause with an object is transitive: its head has a dependent that is one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int64
from derivlang.core.batch import Batch
from derivlang.core.layers.tree import Tree, parents
from derivlang.core.layers.words import numbers_of

SUBJECT, OBJECT, INDIRECT = range(3)
ROLES = {"nsubj": SUBJECT, "nsubjpass": SUBJECT, "obj": OBJECT, "dobj": OBJECT, "iobj": INDIRECT}


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """The n arguments of a batch, in the order of the words.

    word: int64[n]. head: int64[n], the word that each depends on. role: int64[n], SUBJECT, OBJECT or INDIRECT.
    transitive: bool[n], whether the clause has an object.
    """

    word: Int64
    head: Int64
    role: Int64
    transitive: Bool


def arguments_of(batch: Batch) -> Arguments:
    """Return the arguments of a batch with trees."""
    tree = batch.layers["head"]
    assert isinstance(tree, Tree)
    parent = parents(tree.head, batch.unit_words)
    role = numbers_of(tree.deprel, lambda relation: ROLES.get(relation.partition(":")[0], -1))
    word = np.flatnonzero((role >= 0) & (parent >= 0))
    head, role = parent[word], role[word]
    has_object = np.zeros(batch.n_words, bool)
    has_object[head[role == OBJECT]] = True
    return Arguments(word, head, role, has_object[head])
