"""Weights in 8 bits, and matrix products that are exact: the same bits in any batch, on any number of threads.

A product of float matrices depends, in its last bits, on how the library cuts it up: by its shape, and so by the
sentences that stand together. A parse must depend on its own sentence only. So every product here is of whole
numbers: a weight is an int8 times its row's scale, an activation a whole number times the grid's step. As long as no
sum of absolute values reaches 2^24, float32 adds whole numbers without rounding, in any order:

    sum over k of |weight[k]| * |activation[k]|  <  2^24         (checked when a model is loaded, `Matrix.of`)

All else is done element by element, with additions, multiplications and table look-ups alone, which IEEE 754 and the
table define to the last bit. So machines agree, too.

    z = (integers @ integers) * scale + bias  ->  table  ->  whole numbers of the next grid
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int8, Int32, Ints

if TYPE_CHECKING:
    import torch

Float32: TypeAlias = NDArray[np.float32]

EXACT = 1 << 24  # float32 holds every whole number up to here
WORD_GRID, WORD_LIMIT = 128, 8.0  # word vectors: steps a unit, largest absolute value
ROWS_AT_ONCE = 256  # of a product: scale and bias are applied while they are in the cache
STATE_GRID = 1024  # states of an LSTM, -1 … 1: steps a unit; 512 where a model's weights are too large for that
SCORE_GRID = 255  # what enters a product of two activations: 192 * 255 * 255 < 2^24


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """weights: float32[K, R], whole numbers of -127 … 127, one output a column; scale, bias: float32[R]."""

    weights: Float32
    scale: Float32
    bias: Float32

    @classmethod
    def of(cls, stored: Int8, scale: Float32, bias: Float32, largest: int) -> Matrix:
        """From int8[R, K]; activations are whole numbers of at most `largest`. ValueError if a sum could be inexact."""
        if np.abs(stored.astype(np.int64)).sum(1).max(initial=0) * largest >= EXACT:
            raise ValueError(f"a row of weights is too large for activations of {largest}")
        return cls(np.ascontiguousarray(stored.T, np.float32), scale, bias)

    def times(self, x: Float32) -> Float32:
        """float32[n, R] of whole numbers x float32[n, K]."""
        z = np.empty((len(x), len(self.bias)), np.float32)
        for start in range(0, len(x), ROWS_AT_ONCE):
            part = z[start : start + ROWS_AT_ONCE]
            np.matmul(x[start : start + ROWS_AT_ONCE], self.weights, out=part)
            part *= self.scale
            part += self.bias
        return z


def largest_grid(rows: list[Int8]) -> int:
    """The finest grid up to STATE_GRID, a power of two, on which products with these weights [R, K] are exact."""
    total = max(int(np.abs(w.astype(np.int64)).sum(1).max()) for w in rows)
    grid = STATE_GRID
    while total * grid >= EXACT:
        grid //= 2
    return grid


def stored(w: Float32) -> tuple[Int8, Float32]:
    """int8[R, K] and float32[R]: weights with one scale a row, the largest of a row at 127."""
    scale = (np.maximum(np.abs(w).max(1), 1e-8) / 127).astype(np.float32)
    return np.rint(w / scale[:, None]).astype(np.int8), scale


def rounded(w: torch.Tensor) -> torch.Tensor:
    """The same in training: a matrix as it will come back from storage."""
    scale = w.abs().amax(1, keepdim=True).clamp_min(1e-8) / 127
    return (w / scale).round() * scale


STEPS, SPAN = 512, 5  # of the table of tanh: entries a unit, and how far it reaches; beyond, the ends hold
TANH: Float32 = (np.rint(np.tanh(np.arange(-SPAN * STEPS, SPAN * STEPS + 1) / STEPS) * 65536) / 65536).astype(
    np.float32
)
MIDDLE = SPAN * STEPS + 0.5  # the half makes cutting off rounding


def table_tanh(z: Float32) -> Float32:
    """tanh, z to the nearest entry; the same on every machine: 16 bits, none near the middle of two (tested)."""
    out = z * np.float32(STEPS)
    out += np.float32(MIDDLE)
    look_up(out, np.empty(z.shape, np.int32), np.empty(z.shape, np.intp), out)
    return out


def look_up(place: Float32, narrow: Int32, wide: Ints, out: Float32) -> None:
    """out = TANH[place], places cut off to whole numbers; narrow, wide: room of the same shape.

    By way of int32: numpy turns float32 into that six times as fast as into the int64 that an index has to be.
    """
    np.copyto(narrow, place, casting="unsafe")
    np.copyto(wide, narrow)
    np.take(TANH, wide, out=out, mode="clip")
