"""States of parallel sentences by layer, and which of their words are equal.

The state of a word is the mean of its sub-words' states; the state of a sentence is the mean of all its sub-words'
states, both without special ids. Layer 0 is the embeddings. A sentence and its derived one are encoded apart, each in a
row of its own, or jointly, in one row, as in the pair rows of pre-training without position reset:

    apart      <s> the cat sat </s>      <s> tas tac eht </s>
    jointly    <s> the cat sat </s> <s> tas tac eht </s>
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.core.arrays import Int32, Int64, expand_ranges, lengths_of, offsets_of, owners
from derivlang.evaluation.examples import by_length, framed, padded, tokens_on
from derivlang.evaluation.heldout import Heldout
from derivlang.formats.progress import rows_done, stage
from derivlang.training.devices import arrays_to_device, to_device
from derivlang.training.languages import DERIVED, SOURCE

if TYPE_CHECKING:
    import torch

    from derivlang.training.encoder import Encoder

    # By layer, the states of the source and of the derived language.
    Layers = list[tuple[torch.Tensor, torch.Tensor]]


class ParallelWords:
    """W words of S sentences, with the one rule for equal words, which word-level measures share.

    Words without sub-words in one of the languages are left out.

    Words of a sentence are equal if their source sub-words are. No model that sees only the words can distinguish them,
    so a link between a source word and a derived word is right if the derived word comes from it or from an equal word.
    `source` and `derived` number the words in this sense: a link is right if the numbers of its two words are the same.

        the cat saw the dog         source   0 1 2 0 4
        god eht was tac eht         derived  4 0 2 1 0          either `eht` is right for either `the`

    offsets: int64[S + 1], of the sentences. source: int64[W], for each source word the first word of its sentence that
    equals it, counted from the start of the text. derived: int64[W], the same for the words in derived order; the place
    of a word is the language of its first sub-word. of_source, of_derived: int64[M], the word of each sub-word in the
    order of its language, by the place of the word in this language; -1 if the word has no sub-words in the other
    language.
    """

    def __init__(self, text: Heldout):
        new = text.begins
        number, n = np.cumsum(new) - 1, int(new.sum())
        sides = [number[side.slots] for side in (text.source, text.derived)]
        there = np.logical_and(*(np.bincount(side, minlength=n) > 0 for side in sides))
        of_source, moved = (np.where(there, np.cumsum(there) - 1, -1)[side] for side in sides)
        rows = text.rows[new][there]
        ids = text.source.ids[of_source >= 0]
        starts = offsets_of(np.bincount(of_source[of_source >= 0], minlength=len(rows)))
        first: dict[tuple[int, bytes], int] = {}
        self.source = np.array(
            [
                first.setdefault((row, ids[begin:end].tobytes()), word)
                for word, (row, (begin, end)) in enumerate(zip(rows.tolist(), pairwise(starts.tolist()), strict=True))
            ],
            np.int64,
        )
        _, places = np.unique(moved[moved >= 0], return_index=True)
        order = np.argsort(places)  # the source word at each derived place
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        self.offsets, self.derived = offsets_of(np.bincount(rows, minlength=text.n_sentences)), self.source[order]
        self.of_source, self.of_derived = of_source, np.where(moved < 0, -1, place[moved])

    def sums(self, values: Any) -> Floats:
        """Return float64[S]: the sum over the words of each sentence. values: [W], numbers or bool."""
        return np.asarray(np.bincount(owners(self.offsets), values, len(self.offsets) - 1), np.float64)


class ParallelStates:
    """States of sentences that are encoded apart, by layer, in the order of the language.

    words: [W, D] each. sentences, first: [S, D] each; `first` has the states of `<s>`. All are on the model's device.
    Any head of the model is left out.
    """

    def __init__(self, model: Encoder, text: Heldout, words: ParallelWords):
        with stage("encoding parallel sentences", "rows", 2 * text.n_sentences):
            ours, theirs = (mean_states(model, side) for side in _sides(text, words, model))
        layers: list[Layers] = [list(zip(*sides, strict=True)) for sides in zip(ours, theirs, strict=True)]
        self.words, self.sentences, self.first = layers


def joint_states(model: Encoder, text: Heldout) -> tuple[Heldout, ParallelWords, Layers]:
    """Return (the sentences whose joint row fits the model, their words, states of words by layer).

    Each sentence is encoded with its derived one in one row. States are [W, D], in the order of the language; there are
    none if no row fits. Any head of the model is left out.
    """
    from derivlang.training.encoder import positions_of  # loads torch, which a list of measures does without

    longest = positions_of(model.module).longest
    length = sum(np.diff(text.offsets_in(side)) + 2 for side in (text.source, text.derived))
    fits = np.full(text.n_sentences, True) if longest is None else length <= longest
    text = text.take(np.flatnonzero(fits))
    words = ParallelWords(text)
    if not text.n_sentences:
        return text, words, []
    with stage("encoding pairs of sentences", "rows", text.n_sentences):
        ours, theirs = mean_states(model, _joined(*_sides(text, words, model)))
    return text, words, list(zip(ours, theirs, strict=True))


class StateRows(NamedTuple):
    """R rows with special ids. ids, language: [M]. offsets: int64[R + 1].

    groupings: int64[M] each, the group of each sub-word, or -1; each number from 0 occurs.
    """

    ids: Int32
    language: Int32
    offsets: Int64
    groupings: tuple[Int64, ...]


def _sides(text: Heldout, words: ParallelWords, model: Encoder) -> tuple[StateRows, StateRows]:
    """Return a row for each sentence, of each language. Groups: words, sentences, and the `<s>` of each sentence."""
    sides = []
    for side, language in ((text.source, SOURCE), (text.derived, DERIVED)):
        within = text.offsets_in(side)
        ids, offsets = framed(side.ids, within, model.special_ids)
        of_word, sentence, first = np.full((3, len(ids)), -1, np.int64)
        subwords = expand_ranges(offsets[:-1] + 1, lengths_of(within))
        of_word[subwords] = words.of_source if language == SOURCE else words.of_derived
        sentence[subwords] = owners(within)
        first[offsets[:-1]] = np.arange(text.n_sentences)
        sides.append(StateRows(ids, np.full(len(ids), language, np.int32), offsets, (of_word, sentence, first)))
    return sides[SOURCE], sides[DERIVED]


def _joined(source: StateRows, derived: StateRows) -> StateRows:
    """Return rows of both sides. Groups: words of the source, words of the derived language.

    rows of 3 and 2 sub-words, of 4 and 5: joint offsets [0, 7, 14], sides at [0, 3] and [3, 9]
    """
    offsets = source.offsets + derived.offsets
    sides, starts = (source, derived), (offsets[:-1], offsets[:-1] + lengths_of(source.offsets))
    ids, language = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32)
    groupings = np.full((2, len(ids)), -1, np.int64)
    for grouping, side, start in zip(groupings, sides, starts, strict=True):
        at = expand_ranges(start, lengths_of(side.offsets))
        ids[at], language[at], grouping[at] = side.ids, side.language, side.groupings[0]
    return StateRows(ids, language, offsets, tuple(groupings))


def mean_states(model: Encoder, rows: StateRows, layer: int | None = None) -> list[list[torch.Tensor]]:
    """Return for each grouping, and in it for each layer, the mean state of each group's sub-words, [groups, D].

    layer: the only one that is wanted; None: all.
    """
    import torch

    to = model.device
    model.module.train(False)
    lengths = lengths_of(rows.offsets)
    sizes = [np.bincount(groups[groups >= 0]) for groups in rows.groupings]
    sums: list[list[torch.Tensor]] = []
    for some in by_length(lengths, tokens_on(to)):
        block, mask = padded(rows.ids, rows.offsets, some)
        language, _ = padded(rows.language, rows.offsets, some)
        with torch.no_grad():  # not inference mode, so that a measure may train a probe on the states
            layers = model.layers(**arrays_to_device({"ids": block, "mask": mask, "language": language}, to))
        if layer is not None:
            layers = layers[layer : layer + 1]
        if not sums:
            sums = [[torch.zeros(len(size), layers[0].shape[-1], device=to) for _ in layers] for size in sizes]
        at, positions = expand_ranges(rows.offsets[some], lengths[some]), np.flatnonzero(mask)
        groups = [grouping[at] for grouping in rows.groupings]
        numbers = [(to_device(positions[g >= 0], to), to_device(g[g >= 0], to)) for g in groups]
        for at_layer, states in enumerate(layers):
            flat = states.flatten(0, 1).float()
            for total, (taken, number) in zip(sums, numbers, strict=True):
                total[at_layer].index_add_(0, number, flat[taken])
        rows_done(len(some))
    counts = [to_device(size[:, None].astype(np.float32), to) for size in sizes]
    return [[total / count for total in totals] for totals, count in zip(sums, counts, strict=True)]
