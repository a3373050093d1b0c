"""Links from posteriors, block by block.

In each direction a generated word is linked to the word that most likely generated it, unless the empty word is more
likely:

    posteriors [.3, .4] leave .3 for no link: link to the second word;    [.3, .2] leave .5: no link
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from derivlang.align.blocks import BitextBlock, TypePairs
from derivlang.align.links import Links
from derivlang.align.symmetrise import Method, symmetrise
from derivlang.align.train import Beliefs
from derivlang.core.arrays import Int64
from derivlang.formats.progress import rows_done, stage


def decode(table: TypePairs, beliefs: Iterable[Beliefs], n_rows: int, method: Method) -> Links:
    """Return the links of n_rows sentence pairs; pairs with an empty side have none."""
    n_pairs = sum(len(block.rows) for block in table.blocks)
    if method.name == "posterior":
        with stage("choosing links", "rows", n_pairs):
            return _collect(
                (
                    (block, _above(belief, method.threshold))
                    for block, belief in zip(table.blocks, beliefs, strict=True)
                ),
                n_rows,
            )
    beliefs = list(beliefs)
    with stage("choosing links", "rows", 2 * n_pairs):
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


def _collect(decoded: Iterable[tuple[BitextBlock, _Cells]], n_rows: int) -> Links:
    rows, source, target = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for block, (j, s, i) in decoded:
        rows.append(block.rows[s])
        source.append(i.astype(np.int32))
        target.append(j.astype(np.int32))
        rows_done(len(block.rows))
    return Links.of(np.concatenate(rows), np.concatenate(source), np.concatenate(target), n_rows)
