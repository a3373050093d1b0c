"""Recurrent layers on whole numbers: LSTMs, and light cells with half of the products and a third of the other work.

    lstm     i, f, o = logistic(z)   g = tanh(z)         c' = f c + i g         h = o tanh(c')
    light    f = clip(z / 6 + 1/2, 0, 1)   g = clip(z, -1, 1)                   h' = h + f (g - h)

The light cell is the LSTM with one gate of van der Westhuizen and Lasenby (2018), "The unreasonable effectiveness of
the forget gate", with straight lines for curves: a clip costs a tenth of a table look-up. A model's matrices show which
cells it has: four rows for each unit, or two.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from derivlang.core.arrays import Float32, Int8
from derivlang.parsing.packed import PackedSentences
from derivlang.parsing.products import Array
from derivlang.parsing.quantised import Matrix
from derivlang.parsing.tanh_table import MIDDLE, STEPS


class RecurrentCell(Protocol):
    """gates: rows of the matrices for each unit."""

    gates: int

    def units(self, hidden: int, grid: int) -> tuple[Float32, Float32]:
        """Return float32[gates * hidden], twice: what `run` takes for z is z times the first plus the second."""
        ...

    def run(self, z: Array, state: Matrix, packed: PackedSentences, out: Array, grid: int, *, back: bool) -> None:
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

    def run(self, z: Array, state: Matrix, packed: PackedSentences, out: Array, grid: int, *, back: bool) -> None:
        backend = state.backend
        n, hidden = len(packed.lengths), state.product.n_inputs
        cell, last = backend.zeros(n, hidden), backend.zeros(n, hidden)
        product, gates = backend.empty(n, 4 * hidden), backend.empty(n, 4 * hidden)
        inner = backend.empty(n, hidden)
        tanh_of_gates, tanh_of_cell = backend.tanh_table(n, 4 * hidden), backend.tanh_table(n, hidden)
        steps = range(len(packed.active))
        for t in reversed(steps) if back else steps:
            # The longest sentences come first, so those with a word t are the first a. Beyond a, states stay as they
            # are: of sentences that have ended, or, backwards, zero until they begin.
            a, rows = int(packed.active[t]), slice(int(packed.starts[t]), int(packed.starts[t + 1]))
            p, g, c, u = product[:a], gates[:a], cell[:a], inner[:a]
            state.product(last[:a], p)
            p *= state.scale
            p += z[rows]
            tanh_of_gates(p, g)
            i, f, new, o = (g[:, k * hidden : (k + 1) * hidden] for k in range(4))
            # c = sigma(f) c + sigma(i) g, with sigma = (1 + tanh) / 2
            f += 1.0
            c *= f
            i += 1.0
            i *= new
            c += i
            c *= 0.5
            backend.scale(c, STEPS, u)
            u += MIDDLE
            tanh_of_cell(u, u)
            # h = sigma(o) tanh(c), on the grid
            o += 1.0
            u *= o
            u *= grid / 2
            backend.round(u, last[:a])
            out[rows] = last[:a]


class Light:
    """Gates f and g. States, and what `run` takes for g, are in units of 1 / grid."""

    gates = 2

    def units(self, hidden: int, grid: int) -> tuple[Float32, Float32]:
        unit, offset = np.full(2 * hidden, grid, np.float32), np.zeros(2 * hidden, np.float32)
        unit[:hidden], offset[:hidden] = 1 / 6, 0.5
        return unit, offset

    def run(self, z: Array, state: Matrix, packed: PackedSentences, out: Array, grid: int, *, back: bool) -> None:
        backend = state.backend
        n, hidden = len(packed.lengths), state.product.n_inputs
        exact, last = backend.zeros(n, hidden), backend.zeros(n, hidden)
        product = backend.empty(n, 2 * hidden)
        steps = range(len(packed.active))
        for t in reversed(steps) if back else steps:
            a, rows = int(packed.active[t]), slice(int(packed.starts[t]), int(packed.starts[t + 1]))
            p, h = product[:a], exact[:a]
            state.product(last[:a], p)
            p *= state.scale
            p += z[rows]
            f, g = p[:, :hidden], p[:, hidden:]
            backend.clip(f, 0.0, 1.0)
            backend.clip(g, -grid, grid)
            g -= h
            g *= f
            h += g
            backend.round(h, last[:a])
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
