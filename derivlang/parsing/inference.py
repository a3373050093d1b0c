"""Inference: the network of a stored model in float32, from the words of many sentences to scores of tags and trees.

It computes with numpy what `training/fit.py` computes with torch. Layers are LSTMs, or light cells with half of the
products:

    lstm     i, f, o = logistic(z)   g = tanh(z)                c' = f c + i g      h' = o tanh(c')
    light    f = clip(z / 6 + 1/2, 0, 1)   g = clip(z, -1, 1)                       h' = h + f (g - h)

The light cell is the LSTM with one gate of van der Westhuizen and Lasenby (2018), "The unreasonable effectiveness of
the forget gate", with straight lines for curves. A model's matrices show which cells it has: four rows for each unit,
or two.

The last bits of a product depend on its shape, and so on the other sentences of the batch, and on the processor. So all
scores are rounded to multiples of 1 / GRID: equal scores stay equal, and sums over a tree are exact. Two heads whose
scores lie within a step of the grid may still change places; docs/guide/syntax.md says how often that was seen.

The layout of a batch: sentences packed step by step, without padding, as in torch's packed sequences.

Sentences are sorted by length, the longest first. Step t has a row for word t of each sentence that is longer than t.
For sentences a, b and c of 3, 2 and 1 words:

    step 0  a0 b0 c0      rows 0, 1, 2
    step 1  a1 b1         rows 3, 4
    step 2  a2            row 5

A backward layer takes the steps in the opposite order. So a sentence joins at the step of its last word, where its
state is still zero.

The best tree for given arc scores: the best head of each word if that is a tree, else a maximum spanning tree.

Chu and Liu (1965), Edmonds (1967): each word takes its best head. If that leaves a cycle, the cycle becomes one node,
and the score of an arc into it is reduced by the score of the cycle's arc that it replaces. Arcs from the root score so
little that the best tree has one of them, as a parse must have. Scores are multiples of 1 / 1024, so that sums are
exact; ties go to the first head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Bool, Float32, Int64, offsets_of
from derivlang.parsing.features import N_PIECES, WORD_LIMIT, piece_buckets, word_codes
from derivlang.parsing.model import StoredModel


@dataclass(frozen=True, slots=True, eq=False)
class PackedSentences:
    """The layout of B sentences, the longest first, with N words in all and L words in the longest.

    For sentences of 3, 2 and 1 words:

        lengths   int64[B]        [3, 2, 1]
        active    int64[L]        [3, 2, 1]                             number of sentences longer than each step
        starts    int64[L + 1]    [0, 3, 5, 6]                          the first row of each step
        row       int64[B, L]     [[0, 3, 5], [1, 4, 0], [2, 0, 0]]     the row of each word; 0 past the end
        inside    bool[B, L]      [[1, 1, 1], [1, 1, 0], [1, 0, 0]]     whether there is a word
    """

    lengths: Int64
    active: Int64
    starts: Int64
    row: Int64
    inside: Bool

    @classmethod
    def of(cls, lengths: Int64) -> PackedSentences:
        """Return the layout of sentences of these lengths, int64[B], at least 1 and in falling order."""
        longest = int(lengths[0])
        steps = np.arange(longest)
        # searchsorted needs rising numbers: lengths [3, 2, 1] read as [1, 2, 3] have 0, 1, 2 not above the steps 0, 1,
        # 2.
        active = len(lengths) - np.searchsorted(lengths[::-1], steps, "right")
        starts = offsets_of(active)
        inside = steps[None, :] < lengths[:, None]
        row = np.where(inside, starts[None, :-1] + np.arange(len(lengths))[:, None], 0)
        return cls(lengths, active, starts, row, inside)


GRID = np.float32(1024)  # steps per unit of a score


@dataclass(frozen=True, slots=True, eq=False)
class NetworkScores:
    """The scores of a packed batch.

    tags: float32[N, 17], by row. arcs: float32[B, L, 1 + L], the score of each head of each word. Head 0 is the root,
    head h is word h - 1. A word as its own head, and heads past the end of the sentence, score -inf. dep, head:
    float32[N, K], what `labels` needs of each word as a dependent and as a head. Tags and arcs are on the grid.
    """

    tags: Float32
    arcs: Float32
    dep: Float32
    head: Float32


class Network:
    """A stored model that is ready to run. Raises ValueError or KeyError if its weights do not fit together."""

    def __init__(self, model: StoredModel) -> None:
        self._floats = model.floats
        w = {name: matrix * model.floats[f"{name}.scale"][:, None] for name, matrix in model.matrices.items()}
        self._vocabulary = {word: i + 2 for i, word in enumerate(model.vocabulary)}
        self._words, self._pieces = w.pop("words"), w.pop("pieces") / N_PIECES
        self._weights = {name: np.ascontiguousarray(matrix.T) for name, matrix in w.items()}
        self._n_layers = sum(name.startswith("forward") and name.endswith(".state") for name in w)
        self._arc_root, self._label_root = np.tanh(model.floats["arc_root"]), np.tanh(model.floats["label_root"])

    def vectors(self, words: Sequence[str]) -> Float32:
        """Return float32[T, K], the vectors of word types."""
        x = self._words[word_codes(words, self._vocabulary)]
        for column in piece_buckets(words, len(self._pieces)).T:
            x += self._pieces[column]
        return np.clip(x, -WORD_LIMIT, WORD_LIMIT, out=x)

    def scores(self, vectors: Float32, code: Int64, packed: PackedSentences) -> NetworkScores:
        """Return the scores of the words.

        vectors: float32[T, K], from `vectors`. code: int64[N], the word type of each row.
        """
        x = self._states(vectors, code, packed)
        dep, head, label_dep, label_head = (
            np.tanh(self._linear(name, x)) for name in ("arc_dep", "arc_head", "label_dep", "label_head")
        )
        b, n = packed.inside.shape
        root = np.broadcast_to(self._arc_root, (b, 1, dep.shape[1]))
        arcs = _on_grid(dep[packed.row] @ np.concatenate([root, head[packed.row]], 1).swapaxes(1, 2))
        arcs[:, :, 1:] += np.where(packed.inside, np.float32(0), np.float32(-np.inf))[:, None, :]
        word = np.arange(n)
        arcs[:, word, word + 1] = -np.inf  # no word is its own head; head 0 is the root, so word i is head i + 1
        return NetworkScores(_on_grid(self._linear("tag", x)), arcs, label_dep, label_head)

    def labels(self, scores: NetworkScores, head_row: Int64) -> Float32:
        """Return float32[N, R], the score of each relation of each word, on the grid.

        head_row: int64[N], the row of the word's head, -1 for the root.
        """
        at = scores.head[head_row]
        at[head_row < 0] = self._label_root
        return _on_grid(self._linear("label", np.concatenate([scores.dep * at, scores.dep, at], 1)))

    def _states(self, vectors: Float32, code: Int64, packed: PackedSentences) -> Float32:
        """Return float32[N, 2 * hidden], the states of the last layer. Arguments as for `scores`."""
        x = vectors
        for layer in range(self._n_layers):
            sides = []
            for side in (f"forward{layer}", f"backward{layer}"):
                z = self._linear(f"{side}.input", x, f"{side}.bias")
                # The first layer computes the product once for each type, then gathers it for the words.
                z = z[code] if layer == 0 else z
                sides.append(_run(z, self._weights[f"{side}.state"], packed, back=side.startswith("backward")))
            x = np.concatenate(sides, 1)
        return x

    def _linear(self, name: str, x: Float32, bias: str | None = None) -> Float32:
        """Return x @ weights + bias, float32[n, R]; x: float32[n, K]. bias: its name, if not `NAME.bias`."""
        z: Float32 = x @ self._weights[name]
        z += self._floats[bias or f"{name}.bias"]
        return z


def _run(z: Float32, weights: Float32, packed: PackedSentences, *, back: bool) -> Float32:
    """Return float32[N, hidden], the states of one direction of a layer.

    z: float32[N, gates * hidden], what the inputs add. weights: float32[hidden, gates * hidden].
    """
    n, hidden = len(packed.lengths), len(weights)
    step = _lstm if weights.shape[1] == 4 * hidden else _light
    cell, last = np.zeros((n, hidden), np.float32), np.zeros((n, hidden), np.float32)
    out = np.empty((len(z), hidden), np.float32)
    steps = range(len(packed.active))
    for t in reversed(steps) if back else steps:
        # The longest sentences come first, so those with a word t are the first a. Beyond a, states stay as they are:
        # of sentences that have ended, or, backwards, zero until they begin.
        a, rows = int(packed.active[t]), slice(int(packed.starts[t]), int(packed.starts[t + 1]))
        step(z[rows] + last[:a] @ weights, cell[:a], last[:a])
        out[rows] = last[:a]
    return out


def _lstm(z: Float32, cell: Float32, last: Float32) -> None:
    """Set cell and last, float32[a, hidden], to the next states; z: float32[a, 4 * hidden]."""
    i, f, new, o = np.split(z, 4, 1)
    cell *= _logistic(f)
    cell += _logistic(i) * np.tanh(new)
    np.multiply(_logistic(o), np.tanh(cell), out=last)


def _light(z: Float32, cell: Float32, last: Float32) -> None:
    """Set last, float32[a, hidden], to the next state; z: float32[a, 2 * hidden]. The cell is not used."""
    f, new = np.split(z, 2, 1)
    last += np.clip(f / 6 + 0.5, 0, 1) * (np.clip(new, -1, 1) - last)


def _logistic(z: Float32) -> Float32:
    y: Float32 = np.tanh(z * 0.5) * 0.5 + 0.5
    return y


def _on_grid(scores: Float32) -> Float32:
    """Return the nearest multiples of 1 / GRID."""
    rounded: Float32 = np.rint(scores * GRID) / GRID
    return rounded


Float: TypeAlias = NDArray[np.floating]
_ROOT = 2.0**30  # taken off the arcs from the root: far above any sum of scores, and sums stay exact


def best_heads(arcs: Float, lengths: Int64) -> Int64:
    """Return int64[B, L], the heads of each sentence's best tree: 1-based, 0 for the root and past the end.

    arcs: float[B, L, 1 + L], [sentence, word, head], with -inf if there is no arc. lengths: int64[B].
    """
    inside = np.arange(arcs.shape[1])[None, :] < lengths[:, None]
    head: Int64 = np.where(inside, arcs.argmax(2), 0)
    for b in np.flatnonzero(~_are_trees(head, inside)).tolist():
        n = int(lengths[b])
        head[b, :n] = best_tree(arcs[b, :n, : n + 1])
    return head


def best_tree(arcs: Float) -> Int64:
    """Return int64[n], the heads of the best tree with one root; arcs: float[n, 1 + n], column 0 the root."""
    n = len(arcs)
    scores = np.full((n + 1, n + 1), -np.inf)
    scores[1:] = arcs  # row 0 is the root, which has no head; word i is row i + 1
    scores[1:, 0] -= _ROOT
    np.fill_diagonal(scores, -np.inf)
    return _spanning(scores)[1:]


def _are_trees(head: Int64, inside: Bool) -> Bool:
    """Return bool[B]: whether the heads have one root and no cycle.

    Each round doubles the steps that a word has gone up. A chain 0 <- 1 <- 2 <- 3 <- 4 (node 0 the root):

        above      0 0 1 2 3      one step up
                   0 0 0 1 2      two
                   0 0 0 0 0      four: all have reached the root; words on a cycle never do
    """
    one_root = ((head == 0) & inside).sum(1) == 1
    above = np.concatenate([np.zeros((len(head), 1), head.dtype), head], axis=1)
    for _ in range(head.shape[1].bit_length()):
        above = np.take_along_axis(above, above, 1)
    return np.asarray(one_root & (above == 0).all(1))


def _spanning(scores: NDArray[np.float64]) -> Int64:
    """Return int64[n], the heads of the best tree over nodes 0 … n - 1; node 0 is the root, and its head is 0.

    scores: float[n, n], [node, head].
    """
    n = len(scores)
    head: Int64 = scores.argmax(1)
    head[0] = 0
    cycle = _find_cycle(head)
    if not len(cycle):
        return head
    outside = np.ones(n, bool)
    outside[cycle] = False
    rest = np.flatnonzero(outside)
    m = len(rest)
    cost = scores[cycle, head[cycle]]
    into = scores[cycle[:, None], rest] - cost[:, None]  # an arc into a word replaces its arc within the cycle
    out = scores[rest[:, None], cycle]
    # Nodes of `rest` are numbered from 0, the cycle is node m. Four nodes with the cycle [1, 2]: rest [0, 3], so node 3
    # is 1 and the cycle is 2. rest[0] is 0, so the root stays node 0.
    smaller = np.full((m + 1, m + 1), -np.inf)
    smaller[:m, :m] = scores[rest[:, None], rest]
    smaller[m, :m] = into.max(0)
    smaller[:m, m] = out.max(1)
    smaller_heads = _spanning(smaller)
    # The arc into the cycle breaks it: the word that the arc enters leaves the cycle's own arc.
    entered = into[:, smaller_heads[m]].argmax()
    head[cycle[entered]] = rest[smaller_heads[m]]
    for i in range(1, m):  # rest[0] is the root
        head[rest[i]] = cycle[out[i].argmax()] if smaller_heads[i] == m else rest[smaller_heads[i]]
    return head


def _find_cycle(head: Int64) -> Int64:
    """Return the nodes of one cycle, ascending; none if every node reaches 0."""
    n = len(head)
    above = head
    for _ in range(n.bit_length()):
        above = above[above]
    stuck = np.flatnonzero(above != 0)
    if not len(stuck):
        return stuck
    node = int(above[stuck[0]])  # n steps up from a node without a way to 0 is a node on a cycle
    nodes = [node]
    while (node := int(head[node])) != nodes[0]:
        nodes.append(node)
    return np.array(sorted(nodes), np.int64)
