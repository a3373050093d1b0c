"""DICT-MLM: the model predicts the translations of some masked words.

    variant=label    words are masked whole; with probability `rate` the label of a masked word is a dictionary synonym.
                     Source: Chaudhary et al. (2020), sections 2.2 and 2.3
    variant=input    with probability `rate`, the *input* of a chosen sub-word is its synonym in the other language, and
                     the label stays. Otherwise as in MLM. The released ALIGN-MLM code has this variant under the name
                     DICT-MLM

    among=entries    words are chosen among those that have a dictionary entry (section 2.2): of them the run's share of
                     masks, so fewer sub-words are masked than with MLM
    among=all        words are chosen among all; those without an entry are predicted as in MLM, but with variant=input,
                     as in the released code, such a sub-word often stays as it is and predicts itself

    as=paper is variant=label:among=entries, the default; as=align-mlm is variant=input:among=all, the baseline of Tang
    et al. (2022), appendix G.4: any sub-word is chosen, and replaced if it has an entry

A word has an entry if each of its sub-words has one; sub-words that both languages share have none. Of a dictionary of
words (--language, --dictionary), a word has those entries whose translation has as many sub-words, and is translated as
a whole; both variants then mask words whole. With either variant the log has the dose: the share of masked positions
whose label or input is a translation.

condition=yes gives the prediction the language to predict: its input is the state concatenated with that language's
embedding, passed through a linear layer (section 2.3 there).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from derivlang.core.errors import DataError, UsageError
from derivlang.core.spec import param
from derivlang.training.batch import Step, SubwordRows
from derivlang.training.masking import Keys, choose_masked, whole_words, with_masks
from derivlang.training.objectives.base import Context, Loss, LossPart, Objective, masked_part
from derivlang.training.translations import Translations

if TYPE_CHECKING:
    import torch

    from derivlang.training.config import ModelConfig
    from derivlang.training.encoder import Encoder
    from derivlang.training.settings import TrainingSettings


@dataclass(frozen=True, kw_only=True)
class DictMlm(Objective):
    """Masked words, some predicted as their translations."""

    name = "dict-mlm"
    language_ids = True
    translates = True
    dictionary = "entries"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"variant": "label", "among": "entries"},  # Chaudhary et al. (2020), section 2.2
        "align-mlm": {"variant": "input", "among": "all"},  # Tang et al. (2022), appendix G.4
    }
    rate: int = param(50, "percentage of the masked words to translate", low=0, high=100)
    variant: Literal["label", "input"] = param("label", "variant: the paper's, or the released ALIGN-MLM code's")
    among: Literal["entries", "all"] = param("entries", "words to choose from: those with an entry, or all")
    condition: bool = param(False, "whether the prediction gets the label's language")

    def check(self, settings: TrainingSettings, model_config: ModelConfig) -> None:
        check_conditioning(settings, condition=self.condition)

    def mask(self, stream: str, rows: SubwordRows, keys: Keys, context: Context) -> SubwordRows:
        dictionary: Translations = context.dictionary
        by_label, able = self.variant == "label", dictionary.able(rows)
        if by_label:
            able = whole_words(rows, able)
        chosen = choose_masked(rows, keys, context.rate, whole_words=by_label or dictionary.spelling is not None)
        if self.among == "entries":
            chosen &= able
        positions = dictionary.positions(rows)
        coin = keys.uniform("translate", rows.word_ids if by_label else positions) < self.rate / 100
        bits, at = keys.bits("synonym", positions), chosen & coin & able
        inputs = with_masks(rows, chosen if by_label else chosen & ~coin, keys, context.vocabulary)
        out = rows.predicting(np.flatnonzero(chosen), inputs)
        if by_label:
            which = at.ravel()[out.targets]
            out.labels[which], out.label_language[which] = dictionary.translate_rows(rows, at, bits)
            return out
        language = rows.language.copy()
        inputs[at], language[at] = dictionary.translate_rows(rows, at, bits)
        return replace(out, language=language)

    def state(self, model: Encoder, context: Context) -> torch.nn.Module | None:
        if not len(context.dictionary.images):
            raise DataError(
                "no word has as many sub-words as its translation, so none can be replaced",
                where="--dictionary",
                fix="give a larger dictionary, or a tokenizer with more entries",
                id="no-entry",
            )
        return conditioning(model) if self.condition else None

    def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:
        return {"mlm": conditioned_part(model, micro["rows"], state)}


def check_conditioning(settings: TrainingSettings, *, condition: bool) -> None:
    """Raise UsageError if the prediction is to get a language that the model does not."""
    if condition and not settings.language_ids:
        raise UsageError(
            f"{settings.objective} needs language ids",
            where="--objective",
            fix="leave out --no-language-ids",
            id="needs-language-ids",
        )


def conditioning(model: Encoder) -> torch.nn.Module:
    """Return the layer from a state and a language embedding, float[n, 2d], to the state to predict from."""
    import torch

    width = model.embeddings.shape[1]
    return torch.nn.Linear(2 * width, width)


def conditioned_part(model: Encoder, batch: SubwordRows, layer: torch.nn.Module | None) -> LossPart:
    """Return the cross-entropy at the masked positions, given the language of each label; None: not given."""
    import torch

    if layer is None:
        return masked_part(model, batch)
    states = model.states(batch).flatten(0, 1)[batch.targets]
    wanted = model.language_embeddings[batch.label_language]
    return masked_part(model, batch, layer(torch.cat([states, wanted], dim=-1)))
