"""The network of a stored model, in numpy: words of many sentences in, whole-number scores of tags and trees out.

The same network as in `training.py`, on whole numbers (`quantised.py` says why and how). Sentences are taken by falling
length and laid out time first without padding, as in torch's packed sequences: at step t the sentences longer than t
are the first n_t rows.

    step 0  a0 b0 c0      backward, the same rows are run from the last step to the first;
    step 1  a1 b1         a sentence joins at its own last word, with a state of zeros
    step 2  a2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int64, offsets_of
from derivlang.parsing.base import UPOS
from derivlang.parsing.features import N_PIECES, piece_buckets, word_codes
from derivlang.parsing.model import Model
from derivlang.parsing.quantised import (
    MIDDLE,
    SCORE_GRID,
    STEPS,
    WORD_GRID,
    WORD_LIMIT,
    Float32,
    Matrix,
    largest_grid,
    look_up,
    table_tanh,
)


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """B sentences of falling length, N words in all, L the longest.

    lengths: int64[B]. active: int64[L], sentences longer than each step. starts: int64[L + 1], the rows of each step.
    row: int64[B, L], the row of each word (that of word 0 for places past the end). inside: bool[B, L].
    """

    lengths: Int64
    active: Int64
    starts: Int64
    row: Int64
    inside: Bool

    @classmethod
    def of(cls, lengths: Int64) -> Packed:
        """lengths: falling, none 0."""
        longest = int(lengths[0])
        steps = np.arange(longest)
        active = len(lengths) - np.searchsorted(lengths[::-1], steps, "right")
        starts = offsets_of(active)
        inside = steps[None, :] < lengths[:, None]
        row = np.where(inside, starts[None, :-1] + np.arange(len(lengths))[:, None], 0)
        return cls(lengths, active, starts, row, inside)


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What the network says of a packed batch. Whole numbers in float32 but for `tags`' and the labels' biases.

    tags: float32[N, 17]. arcs: float32[B, L, 1 + L], of word, head; column 0 the root; -inf where no word is, and on
    the diagonal. dep, head: float32[N, K], for `labels`.
    """

    tags: Float32
    arcs: Float32
    dep: Float32
    head: Float32


class Network:
    """A model ready to run. Raises ValueError or KeyError if the weights do not fit together."""

    def __init__(self, model: Model) -> None:
        _check_shapes(model)
        self.vocabulary = {word: i + 2 for i, word in enumerate(model.vocabulary)}
        m, f = model.matrices, model.floats
        self._words, self._word_scale = m["words"], f["words.scale"]
        self._pieces, self._piece_scale = m["pieces"], f["pieces.scale"] / np.float32(N_PIECES)
        n_layers = sum(name.startswith("forward") and name.endswith(".state") for name in m)
        names = [f"{side}{layer}" for layer in range(n_layers) for side in ("forward", "backward")]
        outputs = ["tag", "arc_dep", "arc_head", "label_dep", "label_head"]
        reading = [m[f"{name}.state"] for name in names] + [m[f"{name}.input"] for name in names[2:]]
        self.grid = largest_grid([*reading, *(m[name] for name in outputs)])
        self.layers: list[list[tuple[Matrix, Matrix]]] = []
        for layer in range(n_layers):
            grid, largest = (WORD_GRID, int(WORD_GRID * WORD_LIMIT)) if layer == 0 else (self.grid, self.grid)
            sides = []
            for side in ("forward", "backward"):
                name = f"{side}{layer}"
                # Gates i, f and o are logistic: (1 + tanh(z / 2)) / 2. The table's steps and middle come in here, too.
                unit = np.full(len(f[f"{name}.bias"]), STEPS / 2, np.float32)
                hidden = len(unit) // 4
                unit[2 * hidden : 3 * hidden] = STEPS
                bias = f[f"{name}.bias"] * unit + np.float32(MIDDLE)
                scale: Float32 = f[f"{name}.input.scale"] * unit / np.float32(grid)
                given = Matrix.of(m[f"{name}.input"], scale, bias, largest)
                scale = f[f"{name}.state.scale"] * unit / np.float32(self.grid)
                sides.append((given, Matrix.of(m[f"{name}.state"], scale, np.zeros(len(bias), np.float32), self.grid)))
            self.layers.append(sides)
        scale = np.concatenate([f[f"{name}.scale"] for name in outputs])
        scale /= np.float32(self.grid)
        bias = np.concatenate([f[f"{name}.bias"] for name in outputs])
        self._outputs = Matrix.of(np.concatenate([m[name] for name in outputs]), scale, bias, self.grid)
        self._cuts = np.cumsum([len(m[name]) for name in outputs])[:-1]
        if m["arc_dep"].shape[0] * SCORE_GRID**2 >= 1 << 24:
            raise ValueError("arcs of more than 258 numbers would not be exact")
        self._arc_root = _score_grid(f["arc_root"])
        self._label_root = _score_grid(f["label_root"])
        self._label = Matrix.of(m["label"], f["label.scale"] / np.float32(SCORE_GRID), f["label.bias"], SCORE_GRID)

    def vectors(self, words: Sequence[str]) -> Float32:
        """float32[T, K] of word types, whole numbers on the word grid."""
        codes = word_codes(words, self.vocabulary)
        x = self._words[codes] * self._word_scale[codes, None]
        buckets = piece_buckets(words, len(self._pieces))
        for column in buckets.T:  # one after the other: a sum whose order numpy may choose is not exact
            x += self._pieces[column] * self._piece_scale[column, None]
        np.clip(x, -WORD_LIMIT, WORD_LIMIT, out=x)
        x *= np.float32(WORD_GRID)
        np.rint(x, out=x)
        return x

    def states(self, vectors: Float32, code: Int64, packed: Packed) -> Float32:
        """float32[N, 2 * hidden] of the last layer, whole numbers on the state grid.

        vectors: float32[T, K] of word types; code: int64[N], the type of each row in packed order.
        """
        x = vectors
        for layer, sides in enumerate(self.layers):
            hidden = len(sides[0][1].weights)
            out = np.empty((len(code), 2 * hidden), np.float32)
            for side, (given, state) in enumerate(sides):
                # Handed over at once: two of these, the largest arrays, are never there together.
                self._run(
                    given.times(x)[code] if layer == 0 else given.times(x),  # a type's product is the same anywhere
                    state,
                    packed,
                    out[:, side * hidden : (side + 1) * hidden],
                    back=side == 1,
                )
            x = out
        return x

    def _run(self, z: Float32, state: Matrix, packed: Packed, out: Float32, *, back: bool) -> None:
        """One LSTM over the steps. z: float32[N, 4 * hidden], in table steps; out: whole numbers on the state grid."""
        n, hidden = len(packed.lengths), len(state.weights)
        half = np.float32(0.5)
        up = np.float32(self.grid / 2)
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
            np.matmul(last[:a], state.weights, out=p)
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

    def scores(self, vectors: Float32, code: Int64, packed: Packed) -> Scores:
        """Of words as `states` takes them."""
        z = self._outputs.times(self.states(vectors, code, packed))
        tags, arc_dep, arc_head, label_dep, label_head = np.split(z, self._cuts, axis=1)
        b, n = packed.inside.shape
        dep, head = _score_grid(arc_dep), _score_grid(arc_head)
        heads = np.empty((b, n + 1, dep.shape[1]), np.float32)
        heads[:, 0] = self._arc_root
        heads[:, 1:] = head[packed.row]
        arcs = dep[packed.row] @ heads.transpose(0, 2, 1)
        arcs[:, :, 1:][np.broadcast_to(~packed.inside[:, None, :], (b, n, n))] = -np.inf
        arcs[:, np.arange(n), np.arange(n) + 1] = -np.inf
        return Scores(tags, arcs, _score_grid(label_dep), _score_grid(label_head))

    def labels(self, scores: Scores, head_row: Int64) -> Float32:
        """float32[N, R]: of each word under the head in row `head_row` int64[N], -1 = root."""
        at = scores.head[head_row]
        at[head_row < 0] = self._label_root
        both = scores.dep * at
        both /= np.float32(SCORE_GRID)
        np.rint(both, out=both)
        return self._label.times(np.concatenate([both, scores.dep, at], axis=1))


def _check_shapes(model: Model) -> None:
    """Raises ValueError if a matrix does not take what the one before it gives."""
    m, f = model.matrices, model.floats
    given, layer = m["words"].shape[1], 0
    expected = {"pieces": (len(m["pieces"]), given)}
    while f"forward{layer}.state" in m:
        hidden = m[f"forward{layer}.state"].shape[1]
        for side in ("forward", "backward"):
            expected[f"{side}{layer}.input"] = (4 * hidden, given)
            expected[f"{side}{layer}.state"] = (4 * hidden, hidden)
        given, layer = 2 * hidden, layer + 1
    arc, label = len(m["arc_dep"]), len(m["label_dep"])
    for name, n in (("arc_dep", arc), ("arc_head", arc), ("label_dep", label), ("label_head", label)):
        expected[name] = (n, given)
    expected |= {"tag": (len(UPOS), given), "label": (len(model.relations), 3 * label)}
    expected |= {"arc_root": (1, arc), "label_root": (1, label)}
    for name, shape in expected.items():
        found = (f if name.endswith("_root") else m)[name].shape
        if found != shape:
            raise ValueError(f"{name} has the shape {found}, not {shape}")
        if name in m and any(f[f"{name}.{kind}"].shape != shape[:1] for kind in _kinds(name)):
            raise ValueError(f"the scale or bias of {name} does not fit it")


def _kinds(name: str) -> tuple[str, ...]:
    if name == "pieces" or name.endswith((".input", ".state")):
        return ("scale",)
    return ("scale", "bias")


def _score_grid(z: Float32) -> Float32:
    """tanh on the score grid."""
    y = table_tanh(z)
    y *= np.float32(SCORE_GRID)
    return np.rint(y, out=y)
