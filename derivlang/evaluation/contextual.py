"""Contextual alignment on parallel sentences, layer by layer: of words, and of whole sentences.

    words       share of source words whose most similar word of the derived sentence, by cosine, is their own
    sentences   share of sentences whose most similar one of all, by cosine, is their own; the mean of both directions

A word is the mean of its sub-words' states, a sentence that of all its sub-words (marks left out). Layer 0 is the
embeddings. In percent; the first of equals counts. Sentence retrieval after XTREME's Tatoeba (Hu et al. 2020).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.core.arrays import Int32, lengths_of, spread
from derivlang.evaluation.heldout import Heldout
from derivlang.evaluation.padding import by_length, inside, padded, tokens_on
from derivlang.evaluation.trained import Encoder
from derivlang.training.devices import sent
from derivlang.training.languages import DERIVED, SOURCE

if TYPE_CHECKING:
    import torch


def contextual(encoder: Encoder, text: Heldout) -> list[dict[str, Any]]:
    """[{"layer", "words", "sentences"}, …] over the text's sentences."""
    import torch

    encoder.module.train(False)
    # Words counted through the text, in the source's numbering on both sides.
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
    """Percent. source, derived: [W, D], words in the source's order; offsets: [S + 1], of sentences."""
    import torch

    source, derived = (torch.nn.functional.normalize(states, dim=1) for states in (source, derived))
    hits: Any = 0  # added up on the device, which is asked once
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        found = (source[begin:end] @ derived[begin:end].T).argmax(dim=1)
        hits = hits + (found == torch.arange(end - begin, device=found.device)).sum()
    return 100 * int(hits) / len(source)


def retrieval(source: torch.Tensor, derived: torch.Tensor) -> float:
    """Percent, the mean of both directions. source, derived: [S, D]."""
    import torch

    source, derived = (torch.nn.functional.normalize(states, dim=1) for states in (source, derived))
    cosines = source @ derived.T
    own = torch.arange(len(source), device=cosines.device)
    hits = sum(int((cosines.argmax(dim=side) == own).sum()) for side in (0, 1))
    return 50 * hits / len(source)


def _states(encoder: Encoder, text: Heldout, ids: Int32, language: int) -> list[torch.Tensor]:
    """[M, D] for each layer: states of the sub-words, in the order of `ids`."""
    import torch

    framed, offsets = text.framed(ids)
    lengths = lengths_of(offsets)
    layers: list[torch.Tensor] = []
    for rows in by_length(lengths, tokens_on(encoder.device)):
        block, mask = padded(framed, offsets, rows)
        to = encoder.device
        states = encoder(sent(block, to), sent(mask, to), language, output_hidden_states=True).hidden_states
        if not layers:
            layers = [torch.empty(len(ids), states[0].shape[-1], device=to) for _ in states]
        at = spread(text.offsets[rows], lengths[rows] - 2)
        place, taken = sent(at, to), sent(np.flatnonzero(inside(mask)), to)
        for layer, state in zip(layers, states, strict=True):
            layer[place] = state.flatten(0, 1)[taken].float()
    return layers


def _means(states: torch.Tensor, groups: Any) -> torch.Tensor:
    """[groups, D]: the mean state of each group; groups: int64[M], none of them empty."""
    import torch

    number = sent(np.asarray(groups, np.int64), states.device)
    n = int(groups.max()) + 1
    sums = torch.zeros(n, states.shape[1], device=states.device).index_add_(0, number, states)
    counts = torch.bincount(number, minlength=n).clamp(min=1)
    return sums / counts[:, None]
