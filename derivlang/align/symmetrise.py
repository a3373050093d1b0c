"""Symmetrisation: one set of links from the links of both directions (Och and Ney 2003; Koehn, Och and Marcu 2003).

intersection, union            links of both directions, or of either
grow-diag-final-and            the intersection, plus neighbours of its links that are in the union, plus links of
                               either direction between two words without a link (Koehn et al. 2005)
posterior:0.3                  links whose two posteriors have a geometric mean above 0.3
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

import numpy as np

from derivlang.align.links import Links, keys_of
from derivlang.core.arrays import Int64
from derivlang.core.errors import UsageError, unknown
from derivlang.formats.progress import rows_done, stage

METHODS = ("intersection", "union", "grow-diag-final-and", "posterior")
DEFAULT_THRESHOLD = 0.3
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))

Link = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Method:
    """A symmetrisation. name: one of METHODS; threshold: of `posterior`."""

    name: str
    threshold: float = DEFAULT_THRESHOLD


def method(text: str) -> Method:
    """Return the method of a text such as `intersection` or `posterior:0.4`. Raises UsageError."""
    name, colon, value = text.partition(":")
    if name not in METHODS:
        raise unknown("symmetrisation", name, METHODS)
    if not colon:
        return Method(name)
    try:
        threshold = float(value)
    except ValueError:
        threshold = -1.0
    if name != "posterior" or not 0 <= threshold < 1:
        raise UsageError(
            f"{text!r} is not a symmetrisation",
            where="--symmetrise",
            fix="posterior takes a threshold from 0 to below 1, for example posterior:0.3; the others take none",
            id="symmetrisation",
        )
    return Method(name, threshold)


def symmetrise(forward: Links, backward: Links, name: str) -> Links:
    """Return one set of links. name: any of METHODS except `posterior`, which needs posteriors."""
    n_rows = len(forward)
    width = 1 + max(
        int(side.max(initial=0)) for side in (forward.source, forward.target, backward.source, backward.target)
    )
    first, second = (np.unique(keys_of(links, width)) for links in (forward, backward))
    if name == "union":
        return _links(np.union1d(first, second), width, n_rows)
    both = np.intersect1d(first, second)
    if name == "intersection":
        return _links(both, width, n_rows)
    if name != "grow-diag-final-and":
        raise unknown("symmetrisation", name, METHODS)
    either = np.setxor1d(first, second)
    rows = np.unique(either // (width * width))  # in other rows the directions agree, and nothing can grow
    kept = [both[~np.isin(both // (width * width), rows)]]
    with stage("joining both directions", "rows", len(rows)):
        for row in rows.tolist():
            low = row * width * width
            span = [_of_row(keys, low, width) for keys in (first, second)]
            grown = grow_diag_final_and(*span)
            kept.append(np.array([low + i * width + j for i, j in grown], np.int64))
            rows_done(1)
    return _links(np.concatenate(kept), width, n_rows)


def grow_diag_final_and(forward: list[Link], backward: list[Link]) -> set[Link]:
    """Return the links of one sentence pair; both inputs are sorted by source, then target word."""
    links = set(forward) & set(backward)
    union = set(forward) | set(backward)
    source, target = {i for i, _ in links}, {j for _, j in links}
    size = -1
    while size < len(links):
        size = len(links)
        order, at = sorted(links), 0
        while at < len(order):  # links added after this position take part in the same sweep
            i, j = order[at]
            at += 1
            for di, dj in _NEIGHBOURS:
                new = (i + di, j + dj)
                if new in union and new not in links and (new[0] not in source or new[1] not in target):
                    links.add(new)
                    source.add(new[0])
                    target.add(new[1])
                    if new > (i, j):
                        insort(order, new, at)
    for direction in (forward, backward):
        for i, j in direction:
            if i not in source and j not in target:
                links.add((i, j))
                source.add(i)
                target.add(j)
    return links


def _of_row(keys: Int64, low: int, width: int) -> list[Link]:
    begin, end = np.searchsorted(keys, [low, low + width * width])
    return [divmod(key, width) for key in (keys[begin:end] - low).tolist()]


def _links(keys: Int64, width: int, n_rows: int) -> Links:
    rows, cells = np.divmod(keys, width * width)
    source, target = np.divmod(cells, width)
    return Links.of(rows, source.astype(np.int32), target.astype(np.int32), n_rows)
