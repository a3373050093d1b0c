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

from derivlang.core.arrays import Float32, Int8, Int32, Ints
from derivlang.parsing.products import MakeProduct, Product

if TYPE_CHECKING:
    import torch

EXACT = 1 << 24  # float32 holds every whole number up to here
WORD_GRID, WORD_LIMIT = 128, 8.0  # word vectors: steps per unit, largest absolute value
STATE_GRID = 1024  # states of an LSTM, -1 … 1: steps per unit; 512 if a model's weights are too large
SCORE_GRID = 255  # factors of a product of two activations: steps per unit; 192 * 255 * 255 < 2^24


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A quantised matrix with R outputs: its product, and scale and bias float32[R]."""

    product: Product
    scale: Float32
    bias: Float32

    @classmethod
    def of(cls, stored: Int8, scale: Float32, bias: Float32, largest: int, make: MakeProduct) -> Matrix:
        """Make a matrix of int8[R, K] for activations up to `largest`. Raises ValueError if a sum could be inexact."""
        if np.abs(stored.astype(np.int64)).sum(1).max(initial=0) * largest >= EXACT:
            raise ValueError(f"a row of weights is too large for activations of {largest}")
        return cls(make(stored, largest), scale, bias)

    def times(self, x: Float32) -> Float32:
        """Return x @ weights * scale + bias, float32[n, R]; x: float32[n, K], whole numbers.

        Scale and bias are applied to some rows at a time, while these are in the cache.
        """
        z = np.empty((len(x), len(self.bias)), np.float32)
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


STEPS, SPAN = 512, 5  # table of tanh: entries per unit, and its range -5 … 5; its ends hold beyond
TANH: Float32 = (np.rint(np.tanh(np.arange(-SPAN * STEPS, SPAN * STEPS + 1) / STEPS) * 65536) / 65536).astype(
    np.float32
)
MIDDLE = SPAN * STEPS + 0.5  # index of tanh(0); the half turns truncation into rounding


def table_tanh(z: Float32) -> Float32:
    """Return tanh of z, rounded to the nearest entry.

    Entries have 16 bits, and no exact value is near the middle of two (tested), so that all machines have one table.
    """
    out = z * np.float32(STEPS)
    out += np.float32(MIDDLE)
    look_up(out, np.empty(z.shape, np.int32), np.empty(z.shape, np.intp), out)
    return out


def look_up(place: Float32, narrow: Int32, wide: Ints, out: Float32) -> None:
    """Set out = TANH[place], with places truncated to whole numbers. narrow, wide: buffers of the shape of place.

    The conversion goes through int32, because numpy converts float32 to int32 six times as fast as to the int64 that an
    index must be.
    """
    np.copyto(narrow, place, casting="unsafe")
    np.copyto(wide, narrow)
    np.take(TANH, wide, out=out, mode="clip")
