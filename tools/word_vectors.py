"""Word vectors from plain text: positive pointwise mutual information with the words around, compressed.

    X[w, (offset, c)] = max(0, log P(w, offset, c) / (P(w) P(c)^0.75))    offsets -2, -1, 1, 2; c: frequent words

The vectors are U S^0.5 of a truncated singular value decomposition, scaled to equal length. Offsets are kept apart, so
that words of like syntax have like vectors (Levy, Goldberg and Dagan 2015). Most words of a language are unseen or seen
once in a treebank of 200,000 words; running text, without any annotation, shows how they are used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from derivlang.core.arrays import Float32, Int32, Int64, owners

OFFSETS = (-2, -1, 1, 2)  # of a context word from the word
N_CONTEXTS = 3000  # the most frequent words; all other words are one context


def context_vectors(codes: Int32, lines: Int64, rows: Sequence[int], width: int, seed: int) -> Float32:
    """Return float32[len(rows), width]: the vectors of the types `rows`, of length 1 (0 for a type without context).

    codes: int32[N], the types of running text; lines: int64[L + 1], offsets. Contexts do not cross lines.
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
    n_columns = len(OFFSETS) * (N_CONTEXTS + 1)
    cells, times = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for number, offset in enumerate(OFFSETS):
        # Pairs (word, context) of neighbours: for offset 1, words 0 … N - 2 with words 1 … N - 1; for -1 the reverse.
        ahead, back = slice(abs(offset), None), slice(0, -abs(offset))
        first, second = (back, ahead) if offset > 0 else (ahead, back)
        row = row_of[codes[first]]
        kept = (row >= 0) & (line[first] == line[second])
        column = context[codes[second][kept]] + number * (N_CONTEXTS + 1)
        new_cells, n = np.unique(row[kept] * n_columns + column, return_counts=True)
        cells, times = np.concatenate([cells, new_cells]), np.concatenate([times, n])
    order = np.argsort(cells)
    cells, times = cells[order], times[order].astype(np.float64)
    row, column = np.divmod(cells, n_columns)
    of_row = np.bincount(row, times, len(rows))
    of_column = np.bincount(column, times, n_columns) ** 0.75
    pmi = np.log(times * of_column.sum() / (of_row[row] * of_column[column]))
    positive = pmi > 0
    index = torch.from_numpy(np.stack([row[positive], column[positive]]))
    values = torch.from_numpy(pmi[positive].astype(np.float32))
    table = torch.sparse_coo_tensor(index, values, (len(rows), n_columns), check_invariants=False).coalesce()
    torch.manual_seed(seed)
    u, s, _ = torch.svd_lowrank(table, q=min(width + 32, *table.shape), niter=4)
    flat: Float32 = (u[:, :width] * s[:width].sqrt()).numpy()
    out = np.zeros((len(rows), width), np.float32)  # a small text gives fewer dimensions
    out[:, : flat.shape[1]] = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-8)
    return out
