"""Word vectors from plain text: which words stand at which places around a word, compressed.

    X[w, (place, c)] = max(0, log P(w, place, c) / (P(w) P(c)^0.75))    places -2, -1, 1, 2; c: frequent words

A truncated singular value decomposition of these, U S^0.5, rows of equal length: positive pointwise mutual information
with places kept apart, so that words of like syntax come out alike (Levy, Goldberg and Dagan 2015). A treebank of
200,000 words leaves most words unseen or seen once; running text, without any annotation, tells what they are like.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from derivlang.core.arrays import Int32, Int64, owners
from derivlang.parsing.quantised import Float32

PLACES = (-2, -1, 1, 2)
N_CONTEXTS = 3000  # the most frequent words; all others are one context


def context_vectors(codes: Int32, lines: Int64, rows: Sequence[int], width: int, seed: int) -> Float32:
    """float32[len(rows), width] of some types, each row of length 1 (0 where a type has no context).

    codes: int32[N], the types of running text; lines: int64[L + 1], offsets within which contexts are taken.
    """
    import torch

    n_types = int(codes.max()) + 1
    counts = np.bincount(codes, minlength=n_types)
    frequent = np.argsort(-counts, kind="stable")[:N_CONTEXTS]
    context = np.full(n_types, N_CONTEXTS, np.int64)
    context[frequent] = np.arange(len(frequent))
    row_of = np.full(n_types, -1, np.int64)
    row_of[np.asarray(rows)] = np.arange(len(rows))
    line = owners(lines)
    n_columns = len(PLACES) * (N_CONTEXTS + 1)
    cells, times = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for number, place in enumerate(PLACES):
        first, second = (slice(0, -place), slice(place, None)) if place > 0 else (slice(-place, None), slice(0, place))
        row = row_of[codes[first]]
        kept = (row >= 0) & (line[first] == line[second])
        column = context[codes[second][kept]] + number * (N_CONTEXTS + 1)
        found, n = np.unique(row[kept] * n_columns + column, return_counts=True)
        cells, times = np.concatenate([cells, found]), np.concatenate([times, n])
    order = np.argsort(cells)
    cells, times = cells[order], times[order].astype(np.float64)
    row, column = np.divmod(cells, n_columns)
    of_row = np.bincount(row, times, len(rows))
    of_column = np.bincount(column, times, n_columns) ** 0.75
    pmi = np.log(times * of_column.sum() / (of_row[row] * of_column[column]))
    positive = pmi > 0
    place_in = torch.from_numpy(np.stack([row[positive], column[positive]]))
    values = torch.from_numpy(pmi[positive].astype(np.float32))
    table = torch.sparse_coo_tensor(place_in, values, (len(rows), n_columns), check_invariants=False).coalesce()
    torch.manual_seed(seed)
    u, s, _ = torch.svd_lowrank(table, q=min(width + 32, *table.shape), niter=4)
    flat: Float32 = (u[:, :width] * s[:width].sqrt()).numpy()
    out = np.zeros((len(rows), width), np.float32)  # a small text has fewer dimensions
    out[:, : flat.shape[1]] = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-8)
    return out
