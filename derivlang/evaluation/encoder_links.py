"""Word links of two texts by the states of an encoder: a run's, or a checkpoint's that was trained elsewhere.

    words ─▶ sub-words ─▶ encoder ─▶ states of one layer ─mean─▶ a state a word ─cosine─▶ [I, J] ─METHODS─▶ links

A run reads the source in its source language and the target in its derived language; the tokenizer of a checkpoint
reads both. The sentences of a pair are encoded apart, as in Jalili Sabet et al. (2020) and Chi et al. (2021, §3.2).
Words of which the model sees no state, or only a part, have no links: those without sub-words, and those at the end of
a sentence that is longer than the model's rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from derivlang.align.bitext import Bitext
from derivlang.align.lexical import Floats
from derivlang.align.links import Links
from derivlang.align.similarity import METHODS, cosine, usual_layer
from derivlang.core.arrays import Bool, Int32, Int64, lengths_of, offsets_of, owners
from derivlang.core.errors import UsageError
from derivlang.core.messages import warn
from derivlang.evaluation.padding import by_length, framed, inside, padded, tokens_on
from derivlang.evaluation.trained import PretrainedRun
from derivlang.formats.progress import rows_done, stage
from derivlang.parsing.device import device_of
from derivlang.training.checkpoint import run_and_step
from derivlang.training.devices import to_device
from derivlang.training.encoder import Encoder
from derivlang.training.foreign import checkpoint_folder
from derivlang.training.languages import DERIVED, SOURCE, Languages
from derivlang.training.languages.base import unknown_warning
from derivlang.training.processes import use_threads

_PAIRS = 256  # sentence pairs whose states are in memory at once


@dataclass(frozen=True, slots=True, eq=False)
class LinkEncoder:
    """An encoder of words. layer: whose states are taken; 0 is the embeddings. longest: sub-words of a row."""

    languages: Languages
    model: Encoder
    layer: int
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
        model.module.train(False)
        return cls(trained.languages, model, usual_layer(n_layers) if layer is None else layer, trained.longest)

    def links(self, bitext: Bitext, method: str = "ot", warn: Callable[[str], None] = warn) -> tuple[Links, int]:
        """Return (the links of a bitext, the number of sentences of both sides that were cut).

        method: a name of METHODS. warn: called if sentences were cut, or if the tokenizer hardly knows a side.
        """
        with stage("dividing words into sub-words", None):
            source = self._side(bitext.source, bitext.source_offsets, bitext.source_types, SOURCE)
            target = self._side(bitext.target, bitext.target_offsets, bitext.target_types, DERIVED)
        for name, side in (("source", source), ("target", target)):
            share = self.languages.unknown_percent(side.ids)
            if told := unknown_warning(share, f"the {name}", "the tokenizer of the encoder"):
                warn(told)
            if side.n_cut:
                warn(
                    f"{side.n_cut:,} sentences of the {name} are longer than the {self.longest:,} sub-words of the "
                    "model's rows; the words behind have no links"
                )
        found: list[tuple[Int64, Int64, Int64]] = [(np.zeros(0, np.int64),) * 3]
        with stage("encoding and aligning", "rows", len(bitext)), torch.inference_mode():
            for begin in range(0, len(bitext), _PAIRS):
                end = min(begin + _PAIRS, len(bitext))
                states = [self._states(side, begin, end) for side in (source, target)]
                for row in range(begin, end):
                    words = [side.words(row) for side in (source, target)]
                    if min(map(len, words)):
                        ours, theirs = (
                            own[at - side.offsets[begin]]
                            for own, at, side in zip(states, words, (source, target), strict=True)
                        )
                        i, j = METHODS[method](cosine(ours, theirs).astype(np.float64)).nonzero()
                        places = words[0][i] - source.offsets[row], words[1][j] - target.offsets[row]
                        found.append((np.full(len(i), row), *places))
                rows_done(end - begin)
        rows, ours, theirs = (np.concatenate(column) for column in zip(*found, strict=True))
        links = Links.of(rows, ours.astype(np.int32), theirs.astype(np.int32), len(bitext))
        return links, source.n_cut + target.n_cut

    def _side(self, codes: Int32, offsets: Int64, types: list[str], language: int) -> _Side:
        encoded = self.languages.encode(pa.array(types, pa.string()), codes, offsets, language)
        # The last sub-word of each word, counted from 1 in its sentence: words of 2 and 3 sub-words have 2 and 5.
        ends = encoded.offsets[1:] - encoded.offsets[offsets[:-1]][owners(offsets)]
        inside_row = ends <= self.longest - 2
        sizes = np.where(inside_row, lengths_of(encoded.offsets), 0)
        ids = encoded.ids[np.repeat(inside_row, lengths_of(encoded.offsets))]
        n_cut = len(np.unique(owners(offsets)[~inside_row]))
        return _Side(language, ids, offsets_of(sizes), offsets, sizes > 0, n_cut)

    def _states(self, side: _Side, begin: int, end: int) -> Floats:
        """Return the mean state of each word of some sentences, [W, D]; zeros for a word without sub-words."""
        to = self.model.device
        words = side.offsets[begin : end + 1]
        subwords = side.subwords[words[0] : words[-1] + 1]
        within = side.subwords[words] - subwords[0]
        whole, offsets = framed(side.ids[subwords[0] : subwords[-1]], within, self.model.marks)
        word = owners(subwords - subwords[0])
        sums = torch.zeros(len(subwords) - 1, self.model.module.config.hidden_size, device=to)
        lengths = lengths_of(within)
        rows = np.flatnonzero(lengths)
        for some in by_length(lengths[rows] + 2, tokens_on(to)):
            block, mask = padded(whole, offsets, rows[some])
            states = self.model(to_device(block, to), to_device(mask, to), side.language, layer=self.layer)
            states = states.flatten(0, 1)[to_device(np.flatnonzero(inside(mask)), to)].float()
            owner = np.concatenate([word[within[row] : within[row + 1]] for row in rows[some]]).astype(np.int64)
            sums.index_add_(0, to_device(owner, to), states)
        return np.asarray(sums.cpu().numpy() / np.maximum(lengths_of(subwords), 1)[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One side of a bitext as the encoder reads it.

    ids: int32[M], sub-words of the words that fit into rows. subwords: int64[N + 1], those of each word. offsets:
    int64[S + 1], words of each sentence. linkable: bool[N], words with sub-words in a row. n_cut: sentences that do not
    fit.
    """

    language: int
    ids: Int32
    subwords: Int64
    offsets: Int64
    linkable: Bool
    n_cut: int

    def words(self, row: int) -> Int64:
        """Return the words of a sentence that can have links."""
        begin = int(self.offsets[row])
        return np.flatnonzero(self.linkable[begin : self.offsets[row + 1]]) + begin
