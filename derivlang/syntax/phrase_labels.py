"""Labels of constituents of the Penn Treebank, as orders need them: `NP-SBJ-1` is an NP.

A part of speech is the constituent of one word, `(NN dog)`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np

from derivlang.core.arrays import Bool, Int64
from derivlang.core.batch import Batch
from derivlang.core.brackets import Constituents
from derivlang.core.errors import LayerError
from derivlang.core.layers.constituents import PARSE, ConstituentTrees
from derivlang.syntax.phrases import Phrases

_FUNCTION = re.compile(r"(?<=[^-=])[-=].*", re.DOTALL)


def labelled(found: Constituents, labels: Collection[str] = (), *, begin: str = "") -> Bool:
    """Return bool[K]: the constituents with one of these labels, without function tags (`NP-SBJ-1` is an NP).

    begin: or with a label that begins so.
    """
    plain = [plain_label(name) for name in found.names.to_pylist()]
    is_one = [name in labels or bool(begin and name.startswith(begin)) for name in plain]
    return np.array(is_one, bool)[found.label] if is_one else np.zeros(0, bool)


def plain_label(name: str) -> str:
    """Return a label without function tags: NP-SBJ-1 -> NP, but -LRB- stays."""
    return name if name.startswith("-") else _FUNCTION.sub("", name)


def with_child(found: Constituents, flags: Bool) -> Bool:
    """Return bool[K]: the constituents with a constituent among their children that has the flag."""
    out = np.zeros(len(found) + 1, bool)  # the last one is for parent -1
    out[found.parent[flags]] = True
    return out[:-1]


def check_tags(name: str, batch: Batch, phrases: Phrases, which: Bool) -> None:
    """Raise LayerError untagged if a word without a part of speech stands beside others in some constituents.

    Inserted words need none. name: of the transform. which: bool[K].
    """
    children = np.bincount(phrases.forest.parent[phrases.forest.parent >= 0], minlength=len(phrases.forest))
    several = which & (children[phrases.nodes] > 1)
    layer = batch.layers[PARSE]
    assert isinstance(layer, ConstituentTrees)
    own = True if layer.inserted is None else ~layer.inserted
    bare = np.flatnonzero(np.append(several, False)[phrases.holder] & own)
    if len(bare):
        word = batch.types[int(batch.words[bare[0]])].as_py()
        label = phrases.found.names[int(phrases.found.label[phrases.holder[bare[0]]])].as_py()
        raise LayerError(
            f"{name} needs parts of speech, but {word!r} stands in {label} without one",
            fix="take trees with tags, such as (NP (JJ big) (NN dog)), or for trees of source:pcfg=FILE give "
            "switch:110010:rules=FILE",
            id="untagged",
        )


def children_of(phrases: Phrases) -> tuple[Int64, Int64]:
    """Return (int64[K + 1] offsets, int64[E] nodes): the children of each constituent, in surface order."""
    parent = phrases.forest.parent
    child = np.flatnonzero(parent >= 0)
    by = child[np.argsort(parent[child], kind="stable")]
    return np.searchsorted(parent[by], np.append(phrases.nodes, len(parent))), by
