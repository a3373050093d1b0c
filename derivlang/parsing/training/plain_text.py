"""Pre-training on running text: the layers learn to guess masked words before they see a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from derivlang.parsing.features import MASKED
from derivlang.parsing.normalise import normalise
from derivlang.parsing.training.batches import batches
from derivlang.parsing.training.network import TorchNetwork
from derivlang.parsing.training.vocabulary import EncodedTreebank
from derivlang.parsing.treebank import Text, Treebank

LONGEST = 60  # words of a sentence


def plain_sentences(text: Text, language: str = "en") -> Treebank:
    """Return the normalised text, cut after `.`, `!`, `?`, `;` and after LONGEST words; all tags and heads are 0."""
    normal = normalise(text.words, text.types, text.sentences, language)
    ends = np.array([form in (".", "!", "?", ";") for form in normal.types])
    first = np.zeros(len(normal.words) + 1, bool)
    first[1:] = ends[normal.words]
    first[normal.sentences] = True
    offsets = [0]
    for end in np.flatnonzero(first)[1:].tolist():
        while end - offsets[-1] > LONGEST:
            offsets.append(offsets[-1] + LONGEST)
        offsets.append(end)
    zero = np.zeros(len(normal.words), np.int32)
    types = pa.array(normal.types, pa.string())
    return Treebank(normal.words, types, np.array(offsets), zero.astype(np.uint8), zero, zero, ("dep",))


def pretrain(network: TorchNetwork, text: EncodedTreebank, report: Callable[[str], None]) -> None:
    """Train the network's word vectors and layers to guess masked words; `report` gets a line every 200 steps.

    The loss is the cross-entropy over the `guessed` most frequent words, at the masked words that are among them.
    """
    import torch
    from torch.nn.functional import cross_entropy, linear

    config = network.config
    wide = 2 * config.hidden[-1]
    guess = torch.nn.Parameter(torch.randn(config.guessed, wide) * wide**-0.5)
    bias = torch.nn.Parameter(torch.zeros(config.guessed))
    weights = [w for name, w in network.named.items() if name.startswith(("words", "pieces", "text", "forw", "backw"))]
    optimizer = torch.optim.Adam([*weights, guess, bias], lr=config.rate, betas=(0.9, 0.95), fused=True)
    draws = np.random.default_rng(config.seed)
    plain = replace(config, masked_sentences=0.0, masked_words=0.0, lowered=0.0, unstopped=0.0)
    total = config.text_epochs * sum(1 for _ in batches(text, config, np.random.default_rng(0)))
    number, losses = 0, []
    for _ in range(config.text_epochs):
        for _, batch in batches(text, plain, draws):
            target = batch.code
            masked = torch.from_numpy(draws.random(target.shape) < config.text_masked) & batch.inside
            batch.code = torch.where(masked, MASKED, target)
            batch.buckets = torch.where(masked[:, :, None], 0, batch.buckets)
            asked = masked & (target > MASKED) & (target < config.guessed + 2)  # codes 0 and 1 are not words
            scores = linear(network.states(batch, noise=True)[asked], guess, bias)
            loss = cross_entropy(scores, target[asked] - 2)
            for group in optimizer.param_groups:
                group["lr"] = config.rate * min((number + 1) / config.warm_up, 1.0, 0.1 + 0.9 * (1 - number / total))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, config.clip)
            optimizer.step()
            losses.append(float(loss.detach()))
            number += 1
            if number % 200 == 0 or number == total:
                report(f"text, step {number}/{total}: loss {np.mean(losses):.3f}")
                losses = []
