"""Weights in 8 bits, and exact matrix products: the same bits in any batch, on any number of threads.

The last bits of a product of float matrices depend on how the library divides it into blocks. This depends on its
shape, and so on the other sentences of the batch. But a parse must depend on its own sentence only. So every product
here is of whole numbers: a weight is an int8 times the scale of its row, an activation is a whole number times the step
of its grid. If no sum of absolute values reaches 2^24, float32 adds whole numbers without rounding, in any order:

    sum over k of |weight[k]| * |activation[k]|  <  2^24         (checked when a model is loaded, `Matrix.of`)

Everything else is done element by element with additions, multiplications and table look-ups, which IEEE 754 and the
table define to the last bit. So results agree between machines, too.

    z = (integers @ integers) * scale + bias  ->  table  ->  whole numbers of the next grid
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from derivlang.core.arrays import Float32, Int8
from derivlang.parsing.backend import Backend
from derivlang.parsing.products import Array, Product

if TYPE_CHECKING:
    import torch

EXACT = 1 << 24  # float32 holds every whole number up to here
WORD_GRID, WORD_LIMIT = 128, 8.0  # word vectors: steps per unit, largest absolute value
STATE_GRID = 1024  # states of an LSTM, -1 … 1: steps per unit; 512 if a model's weights are too large
SCORE_GRID = 255  # factors of a product of two activations: steps per unit; 192 * 255 * 255 < 2^24


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A quantised matrix with R outputs: its product, and scale and bias float32[R], all on a backend."""

    product: Product
    scale: Array
    bias: Array
    backend: Backend

    @classmethod
    def of(cls, stored: Int8, scale: Float32, bias: Float32, largest: int, backend: Backend) -> Matrix:
        """Make a matrix of int8[R, K] for activations up to `largest`. Raises ValueError if a sum could be inexact."""
        if np.abs(stored.astype(np.int64)).sum(1).max(initial=0) * largest >= EXACT:
            raise ValueError(f"a row of weights is too large for activations of {largest}")
        return cls(backend.product(stored, largest), backend.own(scale), backend.own(bias), backend)

    def times(self, x: Array) -> Array:
        """Return x @ weights * scale + bias, float32[n, R]; x: float32[n, K], whole numbers.

        Scale and bias are applied to some rows at a time, while these are in the cache.
        """
        z = self.backend.empty(len(x), len(self.bias))
        for start in range(0, len(x), self.product.rows):
            part = z[start : start + self.product.rows]
            self.product(x[start : start + self.product.rows], part)
            part *= self.scale
            part += self.bias
        return z


def largest_grid(rows: list[Int8]) -> int:
    """Return the finest grid, a power of two up to STATE_GRID, with exact products for these weights [R, K]."""
    total = max(int(np.abs(w.astype(np.int64)).sum(1).max()) for w in rows)
    grid = STATE_GRID
    while total * grid >= EXACT:
        grid //= 2
    return grid


def stored(w: Float32) -> tuple[Int8, Float32]:
    """Return (weights int8[R, K], scales float32[R]), with the largest weight of each row at 127."""
    scale = (np.maximum(np.abs(w).max(1), 1e-8) / 127).astype(np.float32)
    return np.rint(w / scale[:, None]).astype(np.int8), scale


def rounded(w: torch.Tensor) -> torch.Tensor:
    """Return a matrix with the values that it has after storage, for training."""
    scale = w.abs().amax(1, keepdim=True).clamp_min(1e-8) / 127
    return (w / scale).round() * scale
