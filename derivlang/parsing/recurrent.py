"""Recurrent layers on whole numbers: LSTMs, and light cells with half of the products and a third of the other work.

    lstm     i, f, o = logistic(z)   g = tanh(z)         c' = f c + i g         h = o tanh(c')
    light    f = clip(z / 6 + 1/2, 0, 1)   g = clip(z, -1, 1)                   h' = h + f (g - h)

The light cell is the LSTM with one gate of van der Westhuizen and Lasenby (2018), "The unreasonable effectiveness of
the forget gate", with straight lines for curves: a clip costs a tenth of a table look-up. A model's matrices tell which
cells it has: four rows for each unit, or two.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from derivlang.core.arrays import Float32, Int8
from derivlang.parsing.packed import PackedSentences
from derivlang.parsing.quantised import MIDDLE, STEPS, Matrix, look_up


class RecurrentCell(Protocol):
    """gates: rows of the matrices for each unit."""

    gates: int

    def units(self, hidden: int, grid: int) -> tuple[Float32, Float32]:
        """Return float32[gates * hidden], twice: what `run` takes for z is z times the first plus the second."""
        ...

    def run(self, z: Float32, state: Matrix, packed: PackedSentences, out: Float32, grid: int, *, back: bool) -> None:
        """Run one direction of a layer and write its states into `out`: whole numbers, in units of 1 / grid.

        z: float32[N, gates * hidden], what the inputs add; it may be overwritten.
        """
        ...


class Lstm:
    """Gates i, f, g and o.

    i, f and o are logistic functions, and logistic(z) = (1 + tanh(z / 2)) / 2. So tanh is looked up for all four gates,
    with half the scale for i, f and o. The table has STEPS entries per unit and tanh(0) at MIDDLE; z is a place in it.
    """

    gates = 4

    def units(self, hidden: int, grid: int) -> tuple[Float32, Float32]:
        unit = np.full(4 * hidden, STEPS / 2, np.float32)
        unit[2 * hidden : 3 * hidden] = STEPS
        return unit, np.full(4 * hidden, MIDDLE, np.float32)

    def run(self, z: Float32, state: Matrix, packed: PackedSentences, out: Float32, grid: int, *, back: bool) -> None:
        n, hidden = len(packed.lengths), state.product.n_inputs
        half = np.float32(0.5)
        up = np.float32(grid / 2)
        cell = np.zeros((n, hidden), np.float32)
        last = np.zeros((n, hidden), np.float32)
        product = np.empty((n, 4 * hidden), np.float32)
        gates = np.empty((n, 4 * hidden), np.float32)
        narrow, wide = np.empty((n, 4 * hidden), np.int32), np.empty((n, 4 * hidden), np.intp)
        inner = np.empty((n, hidden), np.float32)
        inner_narrow, inner_wide = np.empty((n, hidden), np.int32), np.empty((n, hidden), np.intp)
        steps = range(len(packed.active))
        for t in reversed(steps) if back else steps:
            a, rows = int(packed.active[t]), slice(int(packed.starts[t]), int(packed.starts[t + 1]))
            p, g, c, u = product[:a], gates[:a], cell[:a], inner[:a]
            state.product(last[:a], p)
            p *= state.scale
            p += z[rows]
            look_up(p, narrow[:a], wide[:a], g)
            i, f, new, o = (g[:, k * hidden : (k + 1) * hidden] for k in range(4))
            # c = sigma(f) c + sigma(i) g, with sigma = (1 + tanh) / 2
            f += np.float32(1)
            c *= f
            i += np.float32(1)
            i *= new
            c += i
            c *= half
            np.multiply(c, np.float32(STEPS), out=u)
            u += np.float32(MIDDLE)
            look_up(u, inner_narrow[:a], inner_wide[:a], u)
            # h = sigma(o) tanh(c), on the grid
            o += np.float32(1)
            u *= o
            u *= up
            np.rint(u, out=last[:a])
            out[rows] = last[:a]


class Light:
    """Gates f and g. States, and what `run` takes for g, are in units of 1 / grid."""

    gates = 2

    def units(self, hidden: int, grid: int) -> tuple[Float32, Float32]:
        unit, offset = np.full(2 * hidden, grid, np.float32), np.zeros(2 * hidden, np.float32)
        unit[:hidden], offset[:hidden] = 1 / 6, 0.5
        return unit, offset

    def run(self, z: Float32, state: Matrix, packed: PackedSentences, out: Float32, grid: int, *, back: bool) -> None:
        n, hidden = len(packed.lengths), state.product.n_inputs
        zero, one, most = np.float32(0), np.float32(1), np.float32(grid)
        exact = np.zeros((n, hidden), np.float32)
        last = np.zeros((n, hidden), np.float32)
        product = np.empty((n, 2 * hidden), np.float32)
        steps = range(len(packed.active))
        for t in reversed(steps) if back else steps:
            a, rows = int(packed.active[t]), slice(int(packed.starts[t]), int(packed.starts[t + 1]))
            p, h = product[:a], exact[:a]
            state.product(last[:a], p)
            p *= state.scale
            p += z[rows]
            f, g = p[:, :hidden], p[:, hidden:]
            np.clip(f, zero, one, out=f)
            np.clip(g, -most, most, out=g)
            g -= h
            g *= f
            h += g
            np.rint(h, out=last[:a])
            out[rows] = last[:a]


CELLS: dict[int, RecurrentCell] = {4: Lstm(), 2: Light()}


def cell_of(state: Int8) -> RecurrentCell:
    """Return the cell whose states this matrix [gates * hidden, hidden] multiplies.

    Raises ValueError if no cell has this number of rows.
    """
    rows, hidden = state.shape
    for gates, cell in CELLS.items():
        if rows == gates * hidden:
            return cell
    raise ValueError(f"no cell has {rows} rows of weights for {hidden} units")
