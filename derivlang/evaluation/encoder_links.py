"""Word links of two texts by the states of an encoder: a run's, or a checkpoint's that was trained elsewhere.

    words ─▶ sub-words ─▶ encoder ─▶ states of one layer ─mean─▶ a state per word ─cosine─▶ [I, J] ─METHODS─▶ links

A run reads the source in its source language and the target in its derived language; the tokenizer of a checkpoint
reads both. The sentences of a pair are encoded apart, as in Jalili Sabet et al. (2020) and Chi et al. (2021, §3.2).
Words without a whole state in the model have no links: words without sub-words, and words at the end of
a sentence that is longer than the model's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch

from derivlang.align.bitext import Bitext, WordLists
from derivlang.align.lexical import Floats
from derivlang.align.links import Links
from derivlang.align.similarity import METHODS, cosine, usual_layer
from derivlang.core.arrays import Int64, expand_ranges, lengths_of, offsets_of, owners, positions
from derivlang.core.errors import UsageError
from derivlang.core.messages import warn
from derivlang.evaluation.examples import framed
from derivlang.evaluation.measures.states import StateRows, mean_states
from derivlang.evaluation.trained import PretrainedRun
from derivlang.formats.progress import stage
from derivlang.training.begun_from import checkpoint_folder
from derivlang.training.checkpoint import run_and_step
from derivlang.training.devices import device_of, use_threads
from derivlang.training.encoder import Encoder
from derivlang.training.languages import DERIVED, SOURCE, Languages
from derivlang.training.languages.readers import unknown_warning

_PAIRS = 256  # sentence pairs whose states are in memory at once


@dataclass(frozen=True, slots=True, eq=False)
class LinkEncoder:
    """An encoder of words. layer: whose states are taken; 0 is the embeddings, None means all. longest: sub-words of a
    row."""

    languages: Languages
    model: Encoder
    layer: int | None
    longest: int

    @classmethod
    def load(cls, name: str, layer: int | None = None, device: str | None = None) -> LinkEncoder:
        """Return the encoder of RUN, RUN@STEP, the FOLDER of a checkpoint, or hub:NAME.

        layer: None: 8/12 of the depth, rounded. Raise UsageError `layer` if there is no such layer, StoreError if the
        model or its tokenizer cannot be read.
        """
        elsewhere = checkpoint_folder(name)
        trained = (
            PretrainedRun.load(*run_and_step(Path(name)))
            if elsewhere is None
            else PretrainedRun.of_checkpoint(elsewhere)
        )
        n_layers = int(trained.config.num_hidden_layers)
        if layer is not None and layer > n_layers:
            raise UsageError(
                f"there is no layer {layer}: {name} has the layers 0, its embeddings, to {n_layers}",
                where="--layer",
                fix=f"give a number from 0 to {n_layers}",
                id="layer",
            )
        use_threads(None, trained.config.hidden_size)
        model = trained.encoder(device_of(device))
        return cls(trained.languages, model, usual_layer(n_layers) if layer is None else layer, trained.longest)

    def links(self, bitext: Bitext, method: str = "ot", warn: Callable[[str], None] = warn) -> tuple[Links, int]:
        """Return (the links of a bitext in the layer, the number of sentences of both sides that were cut).

        method: a name of METHODS. warn: called if sentences were cut, or if the tokenizer hardly knows a side.
        """
        found, n_cut = self.by_layer(bitext, [method], warn)
        return next(iter(found.values())), n_cut

    def sentences(self, bitext: Bitext, warn: Callable[[str], None] = warn) -> list[list[list[torch.Tensor]]]:
        """Return by side the mean state of each sentence and the state of its `<s>`, by layer, [S, D] each.

        A pair of which a side has no sub-words is left out.
        """
        sides = self._sides(bitext, warn)
        kept = np.logical_and(*(lengths_of(side.rows.offsets) > 2 for side in sides))
        number = np.where(kept, np.cumsum(kept) - 1, -1)
        found = []
        for rows in (side.rows for side in sides):
            sentence, first = number[owners(rows.offsets)], np.full(len(rows.ids), -1, np.int64)
            first[rows.offsets[:-1]] = number
            inside = np.ones(len(rows.ids), bool)
            inside[rows.offsets[:-1]] = inside[rows.offsets[1:] - 1] = False
            found.append(mean_states(self.model, rows._replace(groupings=(np.where(inside, sentence, -1), first))))
        return found

    def by_layer(
        self, bitext: Bitext, methods: Sequence[str], warn: Callable[[str], None] = warn
    ) -> tuple[dict[tuple[int, str], Links], int]:
        """Return what `links` does, by layer and method."""
        source, target = self._sides(bitext, warn)
        nothing = (np.zeros(0, np.int64),) * 3
        parts: dict[tuple[int, str], list[tuple[Int64, Int64, Int64]]] = {}
        with stage("encoding and aligning", "rows", 2 * len(bitext)), torch.inference_mode():
            for begin in range(0, len(bitext), _PAIRS):
                end = min(begin + _PAIRS, len(bitext))
                states = [self._states(side, begin, end) for side in (source, target)]
                for (layer, sides), method in product(enumerate(zip(*states, strict=True), self.layer or 0), methods):
                    found = parts.setdefault((layer, method), [nothing])
                    for row, (ours, theirs) in enumerate(zip(*sides, strict=True), begin):
                        if len(ours) and len(theirs):
                            i, j = METHODS[method](cosine(ours, theirs).astype(np.float64)).nonzero()
                            places = source.places[source.offsets[row] + i], target.places[target.offsets[row] + j]
                            found.append((np.full(len(i), row), *places))
        links = {}
        for place, some in parts.items():
            rows, ours, theirs = (np.concatenate(column) for column in zip(*some, strict=True))
            links[place] = Links.of(rows, ours.astype(np.int32), theirs.astype(np.int32), len(bitext))
        return links, source.n_cut + target.n_cut

    def _sides(self, bitext: Bitext, warn: Callable[[str], None]) -> tuple[_Side, _Side]:
        with stage("dividing words into sub-words", None):
            return (
                _Side(self, "source", bitext.source, warn),
                _Side(self, "target", bitext.target, warn),
            )

    def _states(self, side: _Side, begin: int, end: int) -> list[list[Floats]]:
        """Return by layer the states of the words of each of some sentences, [W, D]."""
        rows, first, last = side.rows, *side.rows.offsets[[begin, end]]
        of_word = rows.groupings[0][first:last]
        groups = np.where(of_word < 0, -1, of_word - side.offsets[begin])
        some = StateRows(
            rows.ids[first:last], rows.language[first:last], rows.offsets[begin : end + 1] - first, (groups,)
        )
        (layers,) = mean_states(self.model, some, self.layer)
        at = side.offsets[begin + 1 : end] - side.offsets[begin]
        return [np.split(states.cpu().numpy(), at) for states in layers]


class _Side:
    """One side of a bitext as the encoder reads it.

    rows: a row for each sentence, whose groups are the W words that have sub-words in it. places: int32[W], the place
    of each word in its sentence. offsets: int64[S + 1], these words of each sentence. n_cut: sentences that do not fit.
    """

    def __init__(self, encoder: LinkEncoder, name: str, words: WordLists, warn: Callable[[str], None]):
        language, offsets = {"source": SOURCE, "target": DERIVED}[name], words.offsets
        encoded = encoder.languages.readers[language].tokenizer.encode(words.types, words.codes, offsets)
        # The last sub-word of each word, counted from 1 in its sentence: words of 2 and 3 sub-words have 2 and 5.
        ends = encoded.offsets[1:] - encoded.offsets[offsets[:-1]][owners(offsets)]
        inside_row = ends <= encoder.longest - 2
        sizes = np.where(inside_row, lengths_of(encoded.offsets), 0)
        ids = encoded.ids[np.repeat(inside_row, lengths_of(encoded.offsets))]
        self.n_cut = len(np.unique(owners(offsets)[~inside_row]))
        if told := unknown_warning(
            encoder.languages.unknown_percent(ids), f"the {name}", "the tokenizer of the encoder"
        ):
            warn(told)
        if self.n_cut:
            warn(
                f"{self.n_cut:,} sentences of the {name} are longer than the {encoder.longest:,} sub-words of the "
                "model's rows; the words behind have no links"
            )
        linkable = sizes > 0
        within = offsets_of(sizes)[offsets]
        whole, row_offsets = framed(ids, within, encoder.model.special_ids)
        of_word = np.full(len(whole), -1, np.int64)
        of_word[expand_ranges(row_offsets[:-1] + 1, lengths_of(within))] = owners(offsets_of(sizes[linkable]))
        self.rows = StateRows(whole, np.full(len(whole), language, np.int32), row_offsets, (of_word,))
        self.places, self.offsets = positions(offsets)[linkable], offsets_of(linkable)[offsets]
