"""DICT-MLM: the model predicts the translations of some masked words.

    variant=label    whole words are masked as in MLM; with probability `rate` the label is a dictionary synonym, if all
                     sub-words have entries. Source: Chaudhary et al. (2020), sections 2.2 and 2.3
    variant=input    with probability `rate`, the *input* of a chosen sub-word is its synonym in the other language, and
                     the label stays; without an entry the input stays as well. Otherwise as in MLM. The released
                     ALIGN-MLM code has this variant under the name DICT-MLM

condition=yes tells the prediction which language to predict: its input is the state concatenated with that language's
token-type embedding, passed through a linear layer (section 2.3 there).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from derivlang.core.arrays import Bool, Int64, Ints
from derivlang.core.spec import param
from derivlang.training.data import SubwordRows
from derivlang.training.dictionary import JointDictionary
from derivlang.training.inputs import Inputs
from derivlang.training.masking import Keys, Masked, choose_masked, replace
from derivlang.training.objectives.base import Context, Loss, Need, Objective, masked_loss

if TYPE_CHECKING:
    import torch

    from derivlang.training.model import LanguageModel


@dataclass(frozen=True, kw_only=True)
class DictMlm(Objective):
    """Masked words, some predicted as their translations."""

    name = "dict-mlm"
    needs = frozenset({"dictionary"})
    language_ids = True
    rate: int = param(50, "percentage of the masked words to translate", low=0, high=100)
    variant: Literal["label", "input"] = param("label", "variant: the paper's, or that of the released ALIGN-MLM code")
    condition: bool = param(False, "whether the prediction gets the label's language")

    @property
    def requires(self) -> frozenset[Need]:
        return self.needs | {"language-ids"} if self.condition else self.needs

    def mask(self, rows: SubwordRows, keys: Keys, context: Context) -> Masked:
        assert context.dictionary is not None
        if self.variant == "input":
            return self._swapped(rows, keys, context)
        chosen = choose_masked(rows, keys, context.rate, whole_words=True)
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
    def _able(rows: SubwordRows, dictionary: JointDictionary) -> Bool:
        """Return bool[B, H]: the sub-words with a translation. Shared sub-words are their own translation."""
        return dictionary.has(rows.ids) & (rows.groups >= 0) & ~rows.shared

    def _swapped(self, rows: SubwordRows, keys: Keys, context: Context) -> Masked:
        assert context.dictionary is not None
        places = np.arange(rows.shape[1])[None]
        chosen = choose_masked(rows, keys, context.rate)
        coin = keys.uniform("translate", places) < self.rate / 100
        inputs = replace(rows, chosen & ~coin, keys, context.vocabulary)
        language = rows.language.copy()
        swapped = chosen & coin & self._able(rows, context.dictionary)
        inputs[swapped] = context.dictionary.synonyms(rows.ids[swapped], keys.bits("synonym", places)[swapped])
        language[swapped] = 1 - language[swapped]
        return Masked(inputs, language, *_labels(rows, chosen))

    def state(self, model: LanguageModel, context: Context) -> torch.nn.Module | None:
        if not self.condition:
            return None
        import torch

        width = model.embeddings.shape[1]
        return torch.nn.Linear(2 * width, width)

    def loss(self, model: LanguageModel, inputs: Inputs, state: torch.nn.Module | None) -> Loss:
        import torch

        part, found = inputs.rows, None
        if state is not None:
            hidden_states = model.states(part).flatten(0, 1)[part.targets]
            wanted = model.language_embeddings[part.label_language]
            found = state(torch.cat([hidden_states, wanted], dim=-1))
        loss = masked_loss(model, part, found)
        return Loss(loss, {"mlm": loss.detach()})


def _labels(rows: SubwordRows, chosen: Bool) -> tuple[Int64, Int64, Ints]:
    targets = np.flatnonzero(chosen)
    return targets, rows.ids.ravel()[targets], rows.language.ravel()[targets]


def _whole(rows: SubwordRows, able: Bool) -> Bool:
    """Return bool[B, H]: whether every sub-word of the position's word is able.

    Words of all rows get distinct numbers, row * (H + 1) + word id + 1. Special ids and padding have word id -1 and
    form one word a row, which is never able.
    """
    height, width = rows.shape
    word = np.arange(height)[:, None] * (width + 1) + rows.groups + 1
    out = np.ones(height * (width + 1), bool)
    np.logical_and.at(out, word.ravel(), able.ravel())
    return np.asarray(out[word])
