"""Contextual alignment of words and of sentences on parallel sentences, by layer, in percent.

    words       source words whose most similar word of the derived sentence, by cosine, is their own
    sentences   sentences whose most similar sentence of all, by cosine, is their own; the mean of both directions

A word is the mean of its sub-words' states, a sentence the mean of all its sub-words' states without special ids. Layer
0 is the embeddings. Ties: the first. Sentence retrieval follows XTREME's Tatoeba (Hu et al. 2020).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.core.arrays import Int32, expand_ranges, lengths_of
from derivlang.evaluation.heldout import Heldout
from derivlang.evaluation.padding import by_length, inside, padded, tokens_on
from derivlang.evaluation.trained import ModelEncoder
from derivlang.formats.progress import rows_done
from derivlang.training.devices import to_device
from derivlang.training.languages import DERIVED, SOURCE

if TYPE_CHECKING:
    import torch


def contextual(encoder: ModelEncoder, text: Heldout) -> list[dict[str, Any]]:
    """Return [{"layer", "words", "sentences"}, …] over the text's sentences."""
    import torch

    encoder.module.train(False)
    # Number words through the whole text, on both sides by their source word.
    # Two sentences with words 0 0 1 | 0 1: first [0, 2, 4], number 0 0 1 2 3.
    first = np.zeros(text.n_sentences + 1, np.int64)
    np.maximum.at(first[1:], text.rows, text.words + 1)
    first = np.cumsum(first)
    number = text.words + first[text.rows]
    with torch.inference_mode():
        ours = _states(encoder, text, text.source, SOURCE)
        theirs = _states(encoder, text, text.derived, DERIVED)
        out = []
        for layer, (left, right) in enumerate(zip(ours, theirs, strict=True)):
            words = word_accuracy(_means(left, number), _means(right, number[text.index]), first)
            rows = text.rows.astype(np.int64)
            sentences = retrieval(_means(left, rows), _means(right, rows))
            out.append({"layer": layer, "words": words, "sentences": sentences})
    return out


def word_accuracy(source: torch.Tensor, derived: torch.Tensor, offsets: Any) -> float:
    """Return the percentage of words. source, derived: [W, D], words in source order; offsets: [S + 1] of sentences."""
    import torch

    source, derived = (torch.nn.functional.normalize(states, dim=1) for states in (source, derived))
    hits: Any = 0  # accumulated on the device, which is synchronised once
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        found = (source[begin:end] @ derived[begin:end].T).argmax(dim=1)
        hits = hits + (found == torch.arange(end - begin, device=found.device)).sum()
    return 100 * int(hits) / len(source)


def retrieval(source: torch.Tensor, derived: torch.Tensor) -> float:
    """Return the percentage of sentences, the mean of both directions. source, derived: [S, D]."""
    import torch

    source, derived = (torch.nn.functional.normalize(states, dim=1) for states in (source, derived))
    cosines = source @ derived.T
    own = torch.arange(len(source), device=cosines.device)
    hits = sum(int((cosines.argmax(dim=side) == own).sum()) for side in (0, 1))
    return 50 * hits / len(source)


def _states(encoder: ModelEncoder, text: Heldout, ids: Int32, language: int) -> list[torch.Tensor]:
    """Return [M, D] for each layer: the states of the sub-words, in the order of `ids`."""
    import torch

    framed, offsets = text.framed(ids)
    lengths = lengths_of(offsets)
    layers: list[torch.Tensor] = []
    for rows in by_length(lengths, tokens_on(encoder.device)):
        block, mask = padded(framed, offsets, rows)
        to = encoder.device
        states = encoder(to_device(block, to), to_device(mask, to), language, output_hidden_states=True).hidden_states
        if not layers:
            layers = [torch.empty(len(ids), states[0].shape[-1], device=to) for _ in states]
        at = expand_ranges(text.offsets[rows], lengths[rows] - 2)
        place, taken = to_device(at, to), to_device(np.flatnonzero(inside(mask)), to)
        for layer, state in zip(layers, states, strict=True):
            layer[place] = state.flatten(0, 1)[taken].float()
        rows_done(len(rows))
    return layers


def _means(states: torch.Tensor, groups: Any) -> torch.Tensor:
    """Return [groups, D]: the mean state of each group. groups: int64[M], each number from 0 occurs."""
    import torch

    number = to_device(np.asarray(groups, np.int64), states.device)
    n = int(groups.max()) + 1
    sums = torch.zeros(n, states.shape[1], device=states.device).index_add_(0, number, states)
    counts = torch.bincount(number, minlength=n).clamp(min=1)
    return sums / counts[:, None]
