"""Links from posteriors, block by block.

A direction's links are, for each word made, the word that most likely made it, unless no word did: the posterior of
the link is below what all its links lack to 1.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from derivlang.align.blocks import Block, Table
from derivlang.align.links import Links
from derivlang.align.symmetrise import Method, symmetrise
from derivlang.align.train import Beliefs
from derivlang.core.arrays import Int64


def decode(table: Table, beliefs: Iterable[Beliefs], n_rows: int, method: Method) -> Links:
    """The links of n_rows sentence pairs; pairs with an empty side have none."""
    if method.name == "posterior":
        return _collect(
            ((block, _above(belief, method.threshold)) for block, belief in zip(table.blocks, beliefs, strict=True)),
            n_rows,
        )
    beliefs = list(beliefs)
    both = [
        _collect(
            ((block, _best(belief, reverse=reverse)) for block, belief in zip(table.blocks, beliefs, strict=True)),
            n_rows,
        )
        for reverse in (False, True)
    ]
    return symmetrise(both[0], both[1], method.name)


_Cells = tuple[Int64, Int64, Int64]  # target words, pairs, source words


def _above(belief: Beliefs, threshold: float) -> _Cells:
    if belief.forward is belief.backward:
        return np.nonzero(belief.forward > threshold)  # type: ignore[return-value]
    return np.nonzero(belief.forward * belief.backward > threshold**2)  # type: ignore[return-value]


def _best(belief: Beliefs, *, reverse: bool) -> _Cells:
    links = belief.backward if reverse else belief.forward
    axis = 0 if reverse else 2
    best = links.argmax(axis)  # [S, I] or [J, S]
    value = links.max(axis)
    linked = (value > 1 - links.sum(axis)) & (value > 0)
    if reverse:
        pair, source = np.nonzero(linked)
        return best[pair, source], pair, source
    target, pair = np.nonzero(linked)
    return target, pair, best[target, pair]


def _collect(found: Iterable[tuple[Block, _Cells]], n_rows: int) -> Links:
    rows, source, target = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for block, (j, s, i) in found:
        rows.append(block.rows[s])
        source.append(i.astype(np.int32))
        target.append(j.astype(np.int32))
    return Links.of(np.concatenate(rows), np.concatenate(source), np.concatenate(target), n_rows)
