"""The settings of a training run. They were chosen on the dev split of UD English-EWT, never on its test split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserConfig:
    """Sizes are numbers of units, rates are shares; the model's card keeps the settings under these names."""

    seed: int = 1
    text: bool = False  # whether words also have vectors from running text; `fit` sets it
    epochs: int = 30
    words_per_step: int = 1200  # of a padded batch
    width: int = 112  # of a word vector
    n_buckets: int = 10240  # for hashed pieces of words
    min_count: int = 2  # a lower-cased word has a vector of its own from this count on
    n_words: int = 16000  # most words with vectors of their own
    text_epochs: int = 1  # passes over the text, guessing masked words, before the treebank
    text_masked: float = 0.2  # share of words masked in these passes
    guessed: int = 5000  # number of different words to guess
    min_text_count: int = 4  # the same as min_count, for a word that only the text has
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


def student(seed: int = 1) -> ParserConfig:
    """Return the settings of a small parser that also learns from the trees of another one, its teacher.

    The teacher's trees are many and consistent, so training needs less noise.
    """
    return ParserConfig(
        seed=seed,
        epochs=6,
        words_per_step=2600,
        cell="light",
        hidden=(128, 160),
        arc=96,
        label=64,
        dropout=0.1,
        masked_sentences=0.1,
        lowered=0.02,
        unstopped=0.03,
        rate=4e-3,
        warm_up=100,
        average=0.995,
    )
