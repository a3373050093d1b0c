"""DICT-MLM: a masked word is sometimes to be found as its translation.

    variant=label    a word is hidden as in MLM, whole; with probability `rate` its label is a dictionary synonym, if
                     its sub-words have entries. Chaudhary et al. (2020), sections 2.2 and 2.3
    variant=input    each hidden sub-word throws a coin (`rate`). Heads: the *input* becomes the synonym, in the other
                     language, and the label stays; without an entry nothing is hidden, and the label is there to read.
                     Tails: as in MLM. What the released ALIGN-MLM runs under this name

condition=yes tells the prediction which language is wanted: its input is the state and that language's token-type
embedding, side by side, through a layer of its own (section 2.3 there).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from derivlang.core.arrays import Bool, Int64, Ints
from derivlang.core.spec import param
from derivlang.training.data import Rows
from derivlang.training.dictionary import Dictionary
from derivlang.training.masking import Keys, Masked, hidden, replace
from derivlang.training.objectives.base import Context, Inputs, Loss, Need, Objective, masked_loss

if TYPE_CHECKING:
    import torch

    from derivlang.training.model import Model


@dataclass(frozen=True, kw_only=True)
class DictMlm(Objective):
    """Masked words, some to be found as their translations."""

    name = "dict-mlm"
    needs = frozenset({"dictionary"})
    language_ids = True
    rate: int = param(50, "percent of the hidden words that are to be translated", low=0, high=100)
    variant: Literal["label", "input"] = param("label", "the paper's, or that of the released ALIGN-MLM code")
    condition: bool = param(False, "tell the prediction which language is wanted")

    @property
    def requires(self) -> frozenset[Need]:
        return self.needs | {"language-ids"} if self.condition else self.needs

    def mask(self, rows: Rows, keys: Keys, context: Context) -> Masked:
        assert context.dictionary is not None
        if self.variant == "input":
            return self._swapped(rows, keys, context)
        chosen = hidden(rows, keys, context.rate, whole_words=True)
        masked = Masked(replace(rows, chosen, keys, context.vocabulary), rows.language, *_labels(rows, chosen))
        coin = keys.uniform("translate", rows.groups) < self.rate / 100
        able = _whole(rows, self._able(rows, context.dictionary))
        which = (coin & able).ravel()[masked.targets]
        bits = keys.bits("synonym", np.arange(rows.shape[1])[None]).ravel()[masked.targets]
        labels, languages = masked.labels.copy(), masked.label_language.copy()
        labels[which] = context.dictionary.synonyms(labels[which], bits[which])
        languages[which] = 1 - languages[which]
        return Masked(masked.inputs, masked.language, masked.targets, labels, languages)

    @staticmethod
    def _able(rows: Rows, dictionary: Dictionary) -> Bool:
        """bool[B, H]: has a sub-word a translation? One that both languages share is its own."""
        return dictionary.has(rows.ids) & (rows.groups >= 0) & ~rows.shared

    def _swapped(self, rows: Rows, keys: Keys, context: Context) -> Masked:
        assert context.dictionary is not None
        places = np.arange(rows.shape[1])[None]
        chosen = hidden(rows, keys, context.rate)
        coin = keys.uniform("translate", places) < self.rate / 100
        inputs = replace(rows, chosen & ~coin, keys, context.vocabulary)
        language = rows.language.copy()
        swapped = chosen & coin & self._able(rows, context.dictionary)
        inputs[swapped] = context.dictionary.synonyms(rows.ids[swapped], keys.bits("synonym", places)[swapped])
        language[swapped] = 1 - language[swapped]
        return Masked(inputs, language, *_labels(rows, chosen))

    def state(self, model: Model, context: Context) -> torch.nn.Module | None:
        if not self.condition:
            return None
        import torch

        width = model.embeddings.shape[1]
        return torch.nn.Linear(2 * width, width)

    def loss(self, model: Model, inputs: Inputs, state: torch.nn.Module | None) -> Loss:
        import torch

        part, found = inputs.rows, None
        if state is not None:
            hidden_states = model.states(part).flatten(0, 1)[part.targets]
            wanted = model.language_embeddings[part.label_language]
            found = state(torch.cat([hidden_states, wanted], dim=-1))
        loss = masked_loss(model, part, found)
        return Loss(loss, {"mlm": loss.detach()})


def _labels(rows: Rows, chosen: Bool) -> tuple[Int64, Int64, Ints]:
    targets = np.flatnonzero(chosen)
    return targets, rows.ids.ravel()[targets], rows.language.ravel()[targets]


def _whole(rows: Rows, able: Bool) -> Bool:
    """bool[B, H]: is every sub-word of the position's word able."""
    height, width = rows.shape
    word = np.arange(height)[:, None] * (width + 1) + rows.groups + 1  # of a row's marks: one word, never able
    out = np.ones(height * (width + 1), bool)
    np.logical_and.at(out, word.ravel(), able.ravel())
    return np.asarray(out[word])
