"""States of parallel sentences by layer, and which of their words are equal.

The state of a word is the mean of its sub-words' states, that of a sentence the mean of all its sub-words' states, both
without special ids. Layer 0 is the embeddings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from derivlang.core.arrays import Int64, expand_ranges, lengths_of, offsets_of
from derivlang.evaluation.heldout import Heldout
from derivlang.evaluation.padding import by_length, framed, inside, padded, tokens_on
from derivlang.evaluation.trained import ModelEncoder
from derivlang.formats.progress import rows_done, stage
from derivlang.training.devices import to_device
from derivlang.training.languages import DERIVED, SOURCE, LanguageSide


@dataclass(frozen=True, slots=True, eq=False)
class ParallelWords:
    """W words of S sentences, with the one rule for equal words, which word-level measures share.

    Words of a sentence are equal if their source sub-words are. No model that sees the words alone can tell them apart,
    so a link between a source word and a derived word is right if the derived word comes from it or from an equal word.
    `source` and `derived` number the words in this sense: a link is right if the numbers of its two words are the same.

        the cat saw the dog         source   0 1 2 0 4
        god eht was tac eht         derived  4 0 2 1 0          either `eht` is right for either `the`

    offsets: int64[S + 1], of the sentences. source: int64[W], for each source word the first word of its sentence that
    equals it, counted from the start of the text. derived: int64[W], the same for the words in derived order; the place
    of a word is that of its first sub-word. of_source, of_derived: int64[M], the word of each sub-word in the order of
    its language, by the place of the word in this language; -1 if the word has no sub-words in the other language.
    """

    offsets: Int64
    source: Int64
    derived: Int64
    of_source: Int64
    of_derived: Int64

    @classmethod
    def of(cls, text: Heldout) -> ParallelWords:
        """Return the words of sentences. Words without sub-words in one of the languages are left out."""
        new = np.ones(len(text.words), bool)
        new[1:] = (np.diff(text.rows) != 0) | (np.diff(text.words) != 0)
        number, n = np.cumsum(new) - 1, int(new.sum())
        sides = [number[side.slots] for side in (text.source, text.derived)]
        there = np.logical_and(*(np.bincount(side, minlength=n) > 0 for side in sides))
        of_source, moved = (np.where(there, np.cumsum(there) - 1, -1)[side] for side in sides)
        rows = text.rows[new][there]
        ids = text.source.ids[of_source >= 0]
        starts = offsets_of(np.bincount(of_source[of_source >= 0], minlength=len(rows)))
        first: dict[tuple[int, bytes], int] = {}
        source = np.array(
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
        offsets = offsets_of(np.bincount(rows, minlength=text.n_sentences))
        return cls(offsets, source, source[order], of_source, np.where(moved < 0, -1, place[moved]))


@dataclass(frozen=True, slots=True, eq=False)
class ParallelStates:
    """States by layer, each a pair of the source's and the derived language's, in the order of the language.

    words: [W, D] each. sentences: [S, D] each. All are on the model's device.
    """

    words: list[tuple[torch.Tensor, torch.Tensor]]
    sentences: list[tuple[torch.Tensor, torch.Tensor]]

    @classmethod
    def of(cls, model: ModelEncoder, text: Heldout, words: ParallelWords) -> ParallelStates:
        """Return the states of a text. Any head of the model is left out."""
        encoder, rows = model.base(), text.rows.astype(np.int64)
        sentences = [rows[side.slots] for side in (text.source, text.derived)]
        encoder.module.train(False)
        # Not inference mode, so that a measure may train a probe on the states.
        with stage("encoding parallel sentences", "rows", 2 * text.n_sentences), torch.no_grad():
            ours = _means(encoder, text, text.source, SOURCE, (words.of_source, sentences[SOURCE]))
            theirs = _means(encoder, text, text.derived, DERIVED, (words.of_derived, sentences[DERIVED]))
        by_word, by_sentence = (list(zip(*sides, strict=True)) for sides in zip(ours, theirs, strict=True))
        return cls(by_word, by_sentence)


def _means(
    model: ModelEncoder, text: Heldout, side: LanguageSide, language: int, groupings: Sequence[Int64]
) -> list[list[torch.Tensor]]:
    """Return for each grouping, and in it for each layer, the mean state of each group's sub-words, [groups, D].

    groupings: int64[M] each, the group of each sub-word, or -1; each number from 0 occurs.
    """
    to = model.device
    within = text.offsets_in(side)
    whole, offsets = framed(side.ids, within, model.marks)
    lengths = lengths_of(offsets)
    sizes = [np.bincount(groups[groups >= 0]) for groups in groupings]
    sums: list[list[torch.Tensor]] = []
    for rows in by_length(lengths, tokens_on(to)):
        block, mask = padded(whole, offsets, rows)
        layers = model(to_device(block, to), to_device(mask, to), language, output_hidden_states=True).hidden_states
        if not sums:
            sums = [[torch.zeros(len(size), layers[0].shape[-1], device=to) for _ in layers] for size in sizes]
        groups = [grouping[expand_ranges(within[rows], lengths[rows] - 2)] for grouping in groupings]
        positions = np.flatnonzero(inside(mask))
        numbers = [(to_device(positions[g >= 0], to), to_device(g[g >= 0], to)) for g in groups]
        for layer, states in enumerate(layers):
            flat = states.flatten(0, 1).float()
            for total, (taken, number) in zip(sums, numbers, strict=True):
                total[layer].index_add_(0, number, flat[taken])
        rows_done(len(rows))
    counts = [to_device(size[:, None].astype(np.float32), to) for size in sizes]
    return [[total / count for total in totals] for totals, count in zip(sums, counts, strict=True)]
