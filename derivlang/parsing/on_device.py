"""A parser on a device of torch.

A device may compute with other bits than numpy (`torch_backend.py` has the reasons). So a network that is put on a
device scores a batch of random words there and with numpy. If all scores have the same bits, the parser is the same
one, and its parses may replace the CPU's and the reverse. If not, it has a fingerprint of its own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from derivlang.core.errors import UsageError
from derivlang.parsing.base import Parser
from derivlang.parsing.bundled import ModelParser
from derivlang.parsing.cuts import LONGEST
from derivlang.parsing.device import device_of, record
from derivlang.parsing.inference import Network
from derivlang.parsing.packed import PackedSentences
from derivlang.parsing.quantised import WORD_GRID, WORD_LIMIT


def on_device(parser: Parser, name: str) -> ModelParser:
    """Return the parser with its network on a device.

    Raises UsageError parser-device if it is not a model of derivlang, and as `device_of`.
    """
    if not isinstance(parser, ModelParser):
        raise UsageError(
            f"the parser {parser.name!r} is not a model of derivlang, and only such a model runs on a device",
            where="--device",
            fix="leave --device out; Stanza takes a GPU by itself",
            id="parser-device",
        )
    device = device_of(name)
    from derivlang.parsing.torch_backend import TorchBackend

    network = Network(parser.model, TorchBackend(device))
    return replace(parser, network=network, device=record(name), is_exact=same_scores(parser.network, network))


def same_scores(one: Network, other: Network) -> bool:
    """Return whether two networks of one model give random words the same scores, to the last bit."""
    draws = np.random.default_rng(1)
    lengths = np.sort(draws.integers(1, LONGEST + 1, 100))[::-1]
    packed, n = PackedSentences.of(lengths), int(lengths.sum())
    most = WORD_GRID * WORD_LIMIT
    width = one.vectors(["a"]).shape[1]
    # Small vectors leave the curves unsaturated; the largest ones give the largest sums.
    sizes = draws.choice([WORD_GRID / 4, WORD_GRID, 4 * most], (n, 1))
    vectors = np.clip(np.rint(draws.normal(0, sizes, (n, width))), -most, most).astype(np.float32)
    head_row = draws.integers(-1, n, n)
    outputs = []
    for network in (one, other):
        with network.backend.computing():
            scores = network.scores(vectors, np.arange(n), packed)
            arrays = [scores.tags, scores.arcs, scores.dep, scores.head, network.labels(scores, head_row)]
            outputs.append([network.backend.numpy(array) for array in arrays])
    return all(np.array_equal(a, b) for a, b in zip(*outputs, strict=True))
