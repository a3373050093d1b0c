"""A treebank in the codes of words that have vectors of their own, and padded batches of sentences of like length.

The noise of training makes the parser robust: some words are read as unseen or as `<unk>`, some sentences are in lower
case or lack their final punctuation mark. `ParserConfig` has the rates.

The settings of a training run. They were chosen on the dev split of UD English-EWT, never on its test split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of
from derivlang.parsing.base import UPOS
from derivlang.parsing.features import MASKED, UNSEEN, piece_buckets, word_codes
from derivlang.parsing.normalise import normal_form
from derivlang.parsing.treebank import Treebank

if TYPE_CHECKING:
    import torch
from typing import Literal


@dataclass(frozen=True, eq=False)
class EncodedTreebank:
    """A treebank whose T types are given as the network reads them.

    code: int32[T], codes in the vocabulary. buckets: int32[T, N_PIECES]. count: int32[T], occurrences of the
    lower-cased type in training. lower: int32[T], the lower-cased type. deprel: int32[N], codes into the model's
    relations.
    """

    bank: Treebank
    code: Int32
    buckets: Int32
    count: Int32
    lower: Int32
    deprel: Int32

    def as_unseen(self, code: Int32, chosen: Bool, draws: np.random.Generator) -> Int32:
        """Return the codes of words, int32[L, B], with UNSEEN in place of the chosen ones, bool[L, B]."""
        return np.where(chosen, UNSEEN, code)


def build_vocabulary(bank: Treebank, config: ParserConfig) -> tuple[dict[str, int], Counter[str]]:
    """Return (the code of each frequent word of a treebank, the count of each of its words), both lower-cased.

    The most frequent word has code 2; codes 0 and 1 are UNSEEN and MASKED.
    """
    counts = word_counts(bank)
    often = sorted(
        (word for word, n in counts.items() if n >= config.min_count), key=lambda word: (-counts[word], word)
    )
    return {word: i + 2 for i, word in enumerate(often)}, counts


def encode_treebank(
    bank: Treebank, vocabulary: dict[str, int], counts: Counter[str], relations: tuple[str, ...], config: ParserConfig
) -> EncodedTreebank:
    """Encode a treebank.

    A relation with an unknown subtype counts as the relation without it, any other unknown relation as code 0.
    """
    forms = [normal_form(word) for word in bank.types.to_pylist()]
    first = {form: i for i, form in reversed(list(enumerate(forms)))}
    for low in dict.fromkeys(form.lower() for form in forms):
        if low not in first:
            first[low] = len(forms)
            forms.append(low)
    codes = {name: i for i, name in enumerate(relations)}
    translate = np.array([codes.get(name, codes.get(name.partition(":")[0], 0)) for name in bank.relations], np.int32)
    count = np.array([counts[form.lower()] for form in forms], np.int32)
    return EncodedTreebank(
        bank,
        code=word_codes(forms, vocabulary),
        buckets=piece_buckets(forms, config.n_buckets),
        count=count,
        lower=np.array([first[form.lower()] for form in forms], np.int32),
        deprel=translate[bank.deprel],
    )


def word_counts(bank: Treebank) -> Counter[str]:
    """Count the lower-cased words of a treebank."""
    counts: Counter[str] = Counter()
    numbers = np.bincount(bank.words, minlength=len(bank.types))
    for word, n in zip(bank.types.to_pylist(), numbers.tolist(), strict=True):
        counts[normal_form(word).lower()] += n
    return counts


@dataclass(slots=True, eq=False)
class PaddedBatch:
    """B sentences of at most L words, as torch tensors with time first.

    Two sentences, `She reads .` and `Yes !`, in int64[L, B]:

        code      [[She, Yes], [reads, !], [., She]]      padding is the first word of the corpus
        inside    [[1, 1], [1, 1], [1, 0]]
        backward  [[2, 1], [1, 0], [0, 2]]                row of the word that a right-to-left pass reads at each step
        head      [[2, 0], [0, 1], [2, 0]]
    """

    code: torch.Tensor  # int64[L, B]
    buckets: torch.Tensor  # int64[L, B, N_PIECES]
    inside: torch.Tensor  # bool[L, B]
    backward: torch.Tensor  # int64[L, B]
    upos: torch.Tensor  # int64[L, B]
    head: torch.Tensor  # int64[L, B], 1-based in the sentence, 0 = root
    deprel: torch.Tensor  # int64[L, B]


def batches(
    data: EncodedTreebank, config: ParserConfig, draws: np.random.Generator | None
) -> Iterator[tuple[Int64, PaddedBatch]]:
    """Yield (numbers of the sentences, batch) for batches of at most `words_per_step` padded words.

    draws: the generator of noise and order; None for batches by rising length without noise.
    """
    lengths = lengths_of(data.bank.sentences)
    jitter = 0.0 if draws is None else draws.random(len(lengths)) * 3  # so that batches differ between epochs
    order = np.argsort(lengths + jitter, kind="stable")
    order = order[lengths[order] > 0]
    groups: list[list[int]] = []
    group: list[int] = []
    longest = 0
    for number in order.tolist():
        longest = max(longest, int(lengths[number]))
        if group and longest * (len(group) + 1) > config.words_per_step:
            groups.append(group)
            group, longest = [], int(lengths[number])
        group.append(number)
    groups.append(group)
    turn = range(len(groups)) if draws is None else draws.permutation(len(groups)).tolist()
    for number in turn:
        chosen = np.array(groups[number], np.int64)
        yield chosen, _padded(data, config, chosen, draws)


def _padded(
    data: EncodedTreebank, config: ParserConfig, chosen: Int64, draws: np.random.Generator | None
) -> PaddedBatch:
    """Return the batch of the chosen sentences."""
    import torch

    bank = data.bank
    start, length = bank.sentences[chosen], lengths_of(bank.sentences)[chosen]
    if draws is not None:
        length = length - _unstopped(bank, start, length, draws.random(len(chosen)) < config.unstopped)
    at = np.arange(int(length.max()))[:, None]
    inside = at < length[None, :]
    position = np.where(inside, start[None, :] + at, 0)
    types = bank.words[position]
    code, buckets = data.code[types], data.buckets[types]
    if draws is not None:
        low = (draws.random(len(chosen)) < config.lowered)[None, :]
        types = np.where(low, data.lower[types], types)
        code, buckets, count = data.code[types], data.buckets[types], data.count[types]
        unseen = draws.random(code.shape) < config.unseen / np.maximum(config.unseen + count, 1e-9)
        code = data.as_unseen(code, unseen, draws)
        masked = _masked(config, count, draws)
        code = np.where(masked, MASKED, code)
        buckets = np.where(masked[:, :, None], 0, buckets)
    backward = np.where(inside, length[None, :] - 1 - at, at)
    return PaddedBatch(
        code=torch.from_numpy(code.astype(np.int64)),
        buckets=torch.from_numpy(buckets.astype(np.int64)),
        inside=torch.from_numpy(inside),
        backward=torch.from_numpy(backward),
        upos=torch.from_numpy(bank.upos[position].astype(np.int64)),
        head=torch.from_numpy(np.where(inside, bank.head[position], 0).astype(np.int64)),
        deprel=torch.from_numpy(data.deprel[position].astype(np.int64)),
    )


def _masked(config: ParserConfig, count: Int32, draws: np.random.Generator) -> Bool:
    """Return bool[L, B]: the words read as `<unk>`, as in corpora with a closed vocabulary.

    In some sentences these are nearly all words seen at most k times (k from 1 to 3), elsewhere a few rare words.
    """
    n = count.shape[1]
    most = np.where(draws.random(n) < config.masked_sentences, draws.choice(np.array([1, 1, 2, 3]), n), 0)
    share = np.where(most > 0, 0.95, config.masked_words)[None, :]
    rare = count <= np.maximum(most, 2)[None, :]
    return np.asarray(rare & (draws.random(count.shape) < share))


def _unstopped(bank: Treebank, start: Int64, length: Int64, chosen: Bool) -> Int64:
    """Return int64[B], 1 where the last word is left out: a punctuation mark without dependents, not the root."""
    out = np.zeros(len(start), np.int64)
    for i in np.flatnonzero(chosen & (length > 2)):
        last = start[i] + length[i] - 1
        heads = bank.head[start[i] : start[i] + length[i]]
        out[i] = bank.upos[last] == UPOS.index("PUNCT") and heads[-1] != 0 and not (heads == length[i]).any()
    return out


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
