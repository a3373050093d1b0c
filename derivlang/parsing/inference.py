"""Inference: the network of a stored model, from the words of many sentences to scores of tags and trees.

It computes what `training/network.py` computes, on whole numbers (`quantised.py` has the reasons), with numpy or on a
device of torch (`backend.py`). `packed.py` has the layout of a batch, `recurrent.py` the layers that read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from derivlang.core.arrays import Float32, Int64
from derivlang.parsing.backend import Backend, NumpyBackend, tanh
from derivlang.parsing.base import UPOS
from derivlang.parsing.features import N_PIECES, piece_buckets, word_codes
from derivlang.parsing.model import StoredModel
from derivlang.parsing.packed import PackedSentences
from derivlang.parsing.products import Array
from derivlang.parsing.quantised import (
    SCORE_GRID,
    WORD_GRID,
    WORD_LIMIT,
    Matrix,
    largest_grid,
)
from derivlang.parsing.recurrent import cell_of


@dataclass(frozen=True, slots=True, eq=False)
class NetworkScores:
    """The scores of a packed batch.

    tags: float32[N, 17], by row. arcs: float32[B, L, 1 + L], the score of each head of each word. Head 0 is the root,
    head h is word h - 1. A word as its own head, and heads past the end of the sentence, score -inf. dep, head:
    float32[N, K], what `labels` needs of each word as a dependent and as a head. All numbers except tags are whole. The
    arrays belong to the network's backend.
    """

    tags: Array
    arcs: Array
    dep: Array
    head: Array


class Network:
    """A stored model that is ready to run on a backend (numpy, if none is given).

    Raises ValueError or KeyError if the weights do not fit together.
    """

    def __init__(self, model: StoredModel, backend: Backend | None = None) -> None:
        _check_shapes(model)
        self.backend = backend = backend or NumpyBackend()
        self.vocabulary = {word: i + 2 for i, word in enumerate(model.vocabulary)}
        m, f = model.matrices, model.floats
        self._words, self._word_scale = m["words"], f["words.scale"]
        self._pieces, self._piece_scale = m["pieces"], f["pieces.scale"] / np.float32(N_PIECES)
        n_layers = sum(name.startswith("forward") and name.endswith(".state") for name in m)
        names = [f"{side}{layer}" for layer in range(n_layers) for side in ("forward", "backward")]
        outputs = ["tag", "arc_dep", "arc_head", "label_dep", "label_head"]
        reading = [m[f"{name}.state"] for name in names] + [m[f"{name}.input"] for name in names[2:]]
        self.grid = largest_grid([*reading, *(m[name] for name in outputs)])
        self.cells = [cell_of(m[f"forward{layer}.state"]) for layer in range(n_layers)]
        self.layers: list[list[tuple[Matrix, Matrix]]] = []
        for layer, cell in enumerate(self.cells):
            grid, largest = (WORD_GRID, int(WORD_GRID * WORD_LIMIT)) if layer == 0 else (self.grid, self.grid)
            sides = []
            for side in ("forward", "backward"):
                name = f"{side}{layer}"
                unit, offset = cell.units(m[f"{name}.state"].shape[1], self.grid)
                bias = f[f"{name}.bias"] * unit + offset
                scale: Float32 = f[f"{name}.input.scale"] * unit / np.float32(grid)
                given = Matrix.of(m[f"{name}.input"], scale, bias, largest, backend)
                scale = f[f"{name}.state.scale"] * unit / np.float32(self.grid)
                zero = np.zeros(len(bias), np.float32)
                sides.append((given, Matrix.of(m[f"{name}.state"], scale, zero, self.grid, backend)))
            self.layers.append(sides)
        scale = np.concatenate([f[f"{name}.scale"] for name in outputs])
        scale /= np.float32(self.grid)
        bias = np.concatenate([f[f"{name}.bias"] for name in outputs])
        self._outputs = Matrix.of(np.concatenate([m[name] for name in outputs]), scale, bias, self.grid, backend)
        ends = np.cumsum([len(m[name]) for name in outputs]).tolist()
        self._columns = [slice(*bounds) for bounds in pairwise([0, *ends])]
        # Sums of whole numbers below 2^24 are exact in float32 in any order, so that every backend finds the same arcs.
        if m["arc_dep"].shape[0] * SCORE_GRID**2 >= 1 << 24:
            raise ValueError("arcs of more than 258 numbers would not be exact")
        self._arc_root = self._score_grid(backend.own(f["arc_root"]))
        self._label_root = self._score_grid(backend.own(f["label_root"]))
        scale = f["label.scale"] / np.float32(SCORE_GRID)
        self._label = Matrix.of(m["label"], scale, f["label.bias"], SCORE_GRID, backend)

    def vectors(self, words: Sequence[str]) -> Float32:
        """Return float32[T, K], the vectors of word types: whole numbers, in units of 1 / WORD_GRID."""
        codes = word_codes(words, self.vocabulary)
        x = self._words[codes] * self._word_scale[codes, None]
        buckets = piece_buckets(words, len(self._pieces))
        # A loop, not a sum over the axis: numpy chooses the order of such a sum, and float sums depend on their order.
        for column in buckets.T:
            x += self._pieces[column] * self._piece_scale[column, None]
        np.clip(x, -WORD_LIMIT, WORD_LIMIT, out=x)
        x *= np.float32(WORD_GRID)
        np.rint(x, out=x)
        return x

    def states(self, vectors: Float32, code: Int64, packed: PackedSentences) -> Array:
        """Return float32[N, 2 * hidden], the states of the last layer: whole numbers, in units of 1 / grid.

        vectors: float32[T, K], from `vectors`. code: int64[N], the word type of each row.
        """
        x, of_type = self.backend.own(vectors), self.backend.own(code)
        for layer, (cell, sides) in enumerate(zip(self.cells, self.layers, strict=True)):
            hidden = sides[0][1].product.n_inputs
            out = self.backend.empty(len(code), 2 * hidden)
            for side, (given, state) in enumerate(sides):
                # The product is the largest array. It gets no name, so that it is freed before the next one is
                # computed. The first layer computes it once for each type, then gathers it for the words.
                cell.run(
                    given.times(x)[of_type] if layer == 0 else given.times(x),
                    state,
                    packed,
                    out[:, side * hidden : (side + 1) * hidden],
                    self.grid,
                    back=side == 1,
                )
            x = out
        return x

    def scores(self, vectors: Float32, code: Int64, packed: PackedSentences) -> NetworkScores:
        """Return the scores of the words. Arguments as for `states`."""
        z = self._outputs.times(self.states(vectors, code, packed))
        tags, arc_dep, arc_head, label_dep, label_head = (z[:, columns] for columns in self._columns)
        b, n = packed.inside.shape
        row, dep, head = self.backend.own(packed.row), self._score_grid(arc_dep), self._score_grid(arc_head)
        heads = self.backend.empty(b, n + 1, dep.shape[1])
        heads[:, 0] = self._arc_root
        heads[:, 1:] = head[row]
        arcs = dep[row] @ heads.swapaxes(1, 2)
        past_the_end, word = np.where(packed.inside, np.float32(0), np.float32(-np.inf)), self.backend.own(np.arange(n))
        arcs[:, :, 1:] += self.backend.own(past_the_end)[:, None, :]
        # No word is its own head; head 0 is the root, so word i is head i + 1.
        arcs[:, word, word + 1] = -np.inf
        return NetworkScores(tags, arcs, self._score_grid(label_dep), self._score_grid(label_head))

    def labels(self, scores: NetworkScores, head_row: Int64) -> Array:
        """Return float32[N, R], the score of each relation of each word.

        head_row: int64[N], the row of the word's head, -1 for the root.
        """
        row = self.backend.own(head_row)
        at = scores.head[row]
        at[row < 0] = self._label_root
        both = scores.dep * at
        both /= SCORE_GRID
        self.backend.round(both, both)
        return self._label.times(self.backend.join([both, scores.dep, at], 1))

    def _score_grid(self, z: Array) -> Array:
        """Return tanh of z, float32[n, K]: whole numbers, in units of 1 / SCORE_GRID."""
        y = tanh(z, self.backend)
        y *= SCORE_GRID
        self.backend.round(y, y)
        return y


def _check_shapes(model: StoredModel) -> None:
    """Raise ValueError if the input width of a matrix is not the output width of the matrix before it."""
    m, f = model.matrices, model.floats
    given, layer = m["words"].shape[1], 0
    expected = {"pieces": (len(m["pieces"]), given)}
    while f"forward{layer}.state" in m:
        hidden, gates = m[f"forward{layer}.state"].shape[1], cell_of(m[f"forward{layer}.state"]).gates
        for side in ("forward", "backward"):
            expected[f"{side}{layer}.input"] = (gates * hidden, given)
            expected[f"{side}{layer}.state"] = (gates * hidden, hidden)
        given, layer = 2 * hidden, layer + 1
    arc, label = len(m["arc_dep"]), len(m["label_dep"])
    for name, n in (("arc_dep", arc), ("arc_head", arc), ("label_dep", label), ("label_head", label)):
        expected[name] = (n, given)
    expected |= {"tag": (len(UPOS), given), "label": (len(model.relations), 3 * label)}
    expected |= {"arc_root": (1, arc), "label_root": (1, label)}
    for name, shape in expected.items():
        actual = (f if name.endswith("_root") else m)[name].shape
        if actual != shape:
            raise ValueError(f"{name} has the shape {actual}, not {shape}")
        if name in m and any(f[f"{name}.{kind}"].shape != shape[:1] for kind in _kinds(name)):
            raise ValueError(f"the scale or bias of {name} does not fit it")


def _kinds(name: str) -> tuple[str, ...]:
    """Return which vectors a matrix has beside its weights."""
    if name == "pieces" or name.endswith((".input", ".state")):
        return ("scale",)
    return ("scale", "bias")
