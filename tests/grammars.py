"""What the tests of grammars share: real families, keyed draws, and the published model written out plainly.

`plain_distribution` is the reference: it knows nothing of the package. It lists all orders, counts every feature of
each in each view, pads as the data listing says, and normalises.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np

from derivlang.core.keys import draw, text_key
from derivlang.formats import conllu
from derivlang.grammar.families import Families, families_of_trees
from tests.real import SHARED

MODELS = sorted(SHARED.glob("gd/models/*/*.orm.gz"))
V1 = {"obj": "dobj", "obl": "nmod", "nsubj:pass": "nsubjpass", "aux:pass": "auxpass", "flat": "name", "fixed": "mwe"}


class Keyed:
    """Draws of one stream."""

    def __init__(self, name: str = "test"):
        self.stream = text_key(name)

    def draw(self, keys, positions):
        return draw(self.stream, keys, positions)


def plain_weights(path: Path) -> dict[str, float]:
    """`KIND_TOKEN_TOKEN` -> weight."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return {name: float(weight) for name, weight in (line.split() for line in file)}


def plain_features(order: list[str]) -> Iterator[str]:
    """Every feature of one order of labels, as often as it occurs."""
    joint = order
    tag = [label.split("&")[0] for label in order]
    relation = [label.split("&")[1] for label in order]
    head = next(place for place, label in enumerate(order) if label.startswith("@"))
    n = len(order)
    for view in (joint, tag, relation):
        for i in range(n):
            for j in range(i + 1, n):
                pair = f"{view[i]}_{view[j]}"
                yield f"PRE_{pair}"
                if j < head:
                    yield f"BFR_{pair}"
                elif i > head:
                    yield f"AFT_{pair}"
                elif i < head < j:
                    yield f"BTW_{pair}"
        for first, second in zip(["BOS", *view], [*view, "EOS"], strict=True):
            yield f"BI_{first}_{second}"
    m = min(5, n)
    if n >= 3:
        padded = ["BOS"] * (m - 1) + joint + ["EOS"] * (m - 1)
        for end in range(m - 1, len(padded)):
            for length in range(3, m + 1):
                yield "HI_" + "_".join(padded[end - length + 1 : end + 1])


def plain_distribution(labels: list[str], *mixture: tuple[float, dict[str, float]]) -> dict[tuple[int, ...], float]:
    """Order -> probability under a weighted mixture of models."""
    scores = {}
    for order in permutations(range(len(labels))):
        features = list(plain_features([labels[i] for i in order]))
        scores[order] = sum(share * math.fsum(w.get(f, 0.0) for f in features) for share, w in mixture)
    top = max(scores.values())
    total = math.fsum(math.exp(score - top) for score in scores.values())
    return {order: math.exp(score - top) / total for order, score in scores.items()}


@cache
def treebank(name: str, split: str, punct: bool = True) -> Families:
    """All families of a treebank's split."""
    path = next((SHARED / "ud" / name).glob(f"*-{split}.conllu*"))
    heads, lengths, upos, deprel = [], [], [], []
    for rows in conllu.read(path):
        head = rows.table["head"].combine_chunks()
        heads.append(head.flatten().to_numpy())
        lengths += np.diff(head.offsets.to_numpy()).tolist()
        upos += rows.table["upos"].combine_chunks().flatten().to_pylist()
        deprel += rows.table["deprel"].combine_chunks().flatten().to_pylist()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return families_of_trees(np.concatenate(heads), offsets, upos, deprel, punct=punct)[0]


def sizes(families: Families):
    return np.diff(families.offsets)


def old(label: str) -> str:
    """A label of UD v2 as v1 has it, by the plain table above."""
    upos, _, relation = label.partition("&")
    return f"{'CONJ' if upos == 'CCONJ' else upos}&{V1.get(relation, relation)}"
