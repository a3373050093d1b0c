"""The settings of a training run. They were chosen on the dev split of UD English-EWT, never on its test split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserConfig:
    """Sizes are numbers of units, rates are shares; the model's card keeps the settings under these names."""

    seed: int = 1
    epochs: int = 30
    words_per_step: int = 1200  # of a padded batch
    width: int = 112  # of a word vector
    n_buckets: int = 10240  # for hashed pieces of words
    min_count: int = 2  # a lower-cased word has a vector of its own from this count on
    hidden: tuple[int, ...] = (144, 200)  # width of each LSTM layer, per direction
    cell: Literal["lstm", "light"] = "lstm"  # of the layers, `inference.py`
    arc: int = 160
    label: int = 96
    tag_weight: float = 0.3
    dropout: float = 0.33
    unseen: float = 0.3  # a word seen n times is read as unseen with probability unseen / (unseen + n)
    masked_sentences: float = 0.25  # sentences in which nearly all rare words are read as <unk>
    masked_words: float = 0.03  # rare words read as <unk> in the other sentences
    lowered: float = 0.04  # sentences in lower case
    unstopped: float = 0.05  # sentences without their final punctuation mark
    rate: float = 3e-3  # peak learning rate
    last_rate: float = 0.02  # learning rate at the end of the cosine, as a share of `rate`
    warm_up: int = 200  # steps
    clip: float = 5.0  # norm of the gradients
    average: float = 0.998  # decay of the averaged weights, per step
    rounded: float = 0.1  # last share of the steps, computed with weights rounded as the stored model rounds them
