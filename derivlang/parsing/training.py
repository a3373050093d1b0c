"""Training a parser: the network in torch, the recipe, and the loop, read from top to bottom.

    word vectors -> BiLSTM, two layers -> tags
                                       -> arcs:   score(d, h) = dep(d) · head(h)
                                       -> labels: low-rank bilinear and linear terms of (d, its head)

A biaffine parser after Dozat and Manning (2017), "Deep Biaffine Attention for Neural Dependency Parsing", made small:
hashed pieces of words instead of a character model, dot products of two learned maps instead of a bilinear form over
arcs, and a rank-limited one over labels, so that plain numpy runs it quickly (`inference.py`). Weights are averaged
exponentially over the steps. What is exported is stored in 8 bits, and the last tenth of the training already sees
them so (`quantised.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of
from derivlang.parsing.base import UPOS
from derivlang.parsing.features import MASK, MASKED, UNSEEN, piece_buckets, word_codes
from derivlang.parsing.model import is_matrix
from derivlang.parsing.normalise import normal_form, normalise
from derivlang.parsing.quantised import WORD_LIMIT, Float32, rounded
from derivlang.parsing.treebank import Text, Treebank
from derivlang.parsing.vectors import context_vectors

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The recipe. Sizes in units, rates in shares; what was chosen on EWT dev, never on test."""

    seed: int = 1
    text: bool = False  # whether words have vectors from running text, too
    epochs: int = 30
    words_per_step: int = 1200  # padded
    width: int = 112  # of a word's vector
    n_buckets: int = 10240
    min_count: int = 2  # of a lower-cased word with a vector of its own
    n_words: int = 16000  # with vectors of their own, at most
    text_epochs: int = 1  # of guessing masked words of the text, before the treebank
    text_masked: float = 0.2  # share of the words masked there
    guessed: int = 5000  # different words to guess
    min_text_count: int = 4  # of a word that is only in the text
    hidden: tuple[int, ...] = (144, 200)  # of each layer, a side
    arc: int = 160
    label: int = 96
    tag_weight: float = 0.3
    dropout: float = 0.33
    unseen: float = 0.3  # a word seen n times counts as unseen with this / (this + n)
    masked_sentences: float = 0.25  # sentences with nearly all their rare words as <unk>
    masked_words: float = 0.03  # rare words as <unk> elsewhere
    lowered: float = 0.04  # sentences in lower case
    unstopped: float = 0.05  # sentences without their last mark
    rate: float = 3e-3
    last_rate: float = 0.02  # of `rate`, at the end of the cosine
    warm_up: int = 200  # steps
    clip: float = 5.0
    average: float = 0.998  # decay of the averaged weights, a step
    rounded: float = 0.1  # last share of the steps, with weights as they will be stored


@dataclass(frozen=True, eq=False)
class Examples:
    """A treebank in the network's terms: vocabulary codes and buckets a type, and the trees.

    code: int32[T]; new: bool[T], words known from text alone; buckets: int32[T, N_PIECES]; count: int32[T] of the
    lower-cased word in training; lower: int32[T], the type in lower case.
    """

    bank: Treebank
    code: Int32
    new: Bool
    buckets: Int32
    count: Int32
    lower: Int32
    deprel: Int32  # [N], codes into the model's relations


@dataclass(slots=True, eq=False)
class Step:
    """One padded batch, time first. B sentences, L words; torch tensors, made by `batches`."""

    code: torch.Tensor  # int64[L, B]
    new: torch.Tensor  # bool[L, B]: words to be read as known from text alone
    buckets: torch.Tensor  # int64[L, B, N_PIECES]
    inside: torch.Tensor  # bool[L, B]
    backward: torch.Tensor  # int64[L, B]: each sentence's words in reverse, padding in place
    upos: torch.Tensor  # int64[L, B]
    head: torch.Tensor  # int64[L, B], 0 = root
    deprel: torch.Tensor  # int64[L, B]


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """What `make_model` needs. weights: float32 by name. vocabulary: codes of words. settings: as they were used."""

    weights: dict[str, Float32]
    vocabulary: dict[str, int]
    relations: tuple[str, ...]
    settings: Settings

    def card(self, language: str) -> dict[str, Any]:
        """What a stored model has to say of itself."""
        return {
            "language": language,
            "tags": list(UPOS),
            "relations": list(self.relations),
            "settings": asdict(self.settings),
        }


def build_vocabulary(
    bank: Treebank, text: Treebank | None, s: Settings
) -> tuple[dict[str, int], Counter[str], Float32 | None]:
    """(codes of the lower-cased words, counts in the treebank, vectors float32[n_words, width] from text or None).

    Words seen often enough in the treebank, by falling count; then, of a text, its most frequent others.
    """
    counts = _counts(bank)
    often = sorted((word for word, n in counts.items() if n >= s.min_count), key=lambda word: (-counts[word], word))
    if text is None:
        return {word: i + 2 for i, word in enumerate(often)}, counts, None
    everywhere = counts + _counts(text)
    seen = {*often, MASK}
    others = sorted(
        (word for word, n in everywhere.items() if n >= s.min_text_count and word not in seen),
        key=lambda word: (-everywhere[word], word),
    )
    vocabulary = {word: i + 2 for i, word in enumerate((often + others)[: s.n_words])}
    number = {word: i for i, word in enumerate(everywhere)}
    codes = [
        np.array([number.get(normal_form(word).lower(), 0) for word in part.types.to_pylist()], np.int32)[part.words]
        for part in (bank, text)
    ]
    lines = np.concatenate([bank.sentences, text.sentences[1:] + len(bank.words)])
    rows = [number[word] for word in vocabulary]
    vectors = np.zeros((len(vocabulary) + 2, s.width), np.float32)
    vectors[2:] = context_vectors(np.concatenate(codes), lines, rows, s.width, s.seed)
    return vocabulary, counts, vectors * np.float32(0.3 * s.width**0.5)


def _counts(bank: Treebank) -> Counter[str]:
    counts: Counter[str] = Counter()
    numbers = np.bincount(bank.words, minlength=len(bank.types))
    for word, n in zip(bank.types.to_pylist(), numbers.tolist(), strict=True):
        counts[normal_form(word).lower()] += n
    return counts


def plain_sentences(text: Text) -> Treebank:
    """The text in the parser's spelling, cut after end marks and at most PLAIN_LONGEST words: trees are all 0."""
    normal = normalise(text.words, text.types, text.sentences)
    ends = np.array([form in (".", "!", "?", ";") for form in normal.types])
    first = np.zeros(len(normal.words) + 1, bool)
    first[1:] = ends[normal.words]
    first[normal.sentences] = True
    offsets = [0]
    for end in np.flatnonzero(first)[1:].tolist():
        while end - offsets[-1] > PLAIN_LONGEST:
            offsets.append(offsets[-1] + PLAIN_LONGEST)
        offsets.append(end)
    zero = np.zeros(len(normal.words), np.int32)
    types = pa.array(normal.types, pa.string())
    return Treebank(normal.words, types, np.array(offsets), zero.astype(np.uint8), zero, zero, ("dep",))


def examples(
    bank: Treebank, vocabulary: dict[str, int], counts: Counter[str], relations: tuple[str, ...], s: Settings
) -> Examples:
    """The treebank as the network sees it; a relation that the model does not know counts as `dep`'s code or 0."""
    forms = [normal_form(word) for word in bank.types.to_pylist()]
    place = {form: i for i, form in reversed(list(enumerate(forms)))}
    for low in dict.fromkeys(form.lower() for form in forms):
        if low not in place:
            place[low] = len(forms)
            forms.append(low)
    codes = {name: i for i, name in enumerate(relations)}
    translate = np.array([codes.get(name, codes.get(name.partition(":")[0], 0)) for name in bank.relations], np.int32)
    count = np.array([counts[form.lower()] for form in forms], np.int32)
    code = word_codes(forms, vocabulary)
    return Examples(
        bank,
        code=code,
        new=(code > MASKED) & (count < s.min_count),
        buckets=piece_buckets(forms, s.n_buckets),
        count=count,
        lower=np.array([place[form.lower()] for form in forms], np.int32),
        deprel=translate[bank.deprel],
    )


class Network:
    """The network's weights and its forward pass. No dropout unless `noise` is given.

    `named` are the weights under the names of the stored model.
    """

    def __init__(
        self, s: Settings, n_words: int, n_tags: int, n_relations: int, vectors: Float32 | None = None
    ) -> None:
        import torch
        from torch import nn

        self.settings = s
        wide = 2 * s.hidden[-1]

        def normal(*shape: int, std: float) -> torch.Tensor:
            return nn.Parameter(torch.randn(*shape) * std)

        def linear(outputs: int, inputs: int) -> torch.Tensor:
            return normal(outputs, inputs, std=inputs**-0.5)

        self.named: dict[str, torch.Tensor] = {
            "words": normal(n_words, s.width, std=0.3),
            "pieces": normal(s.n_buckets, s.width, std=0.5),
        }
        self.vectors = None if vectors is None else torch.from_numpy(vectors)
        if vectors is not None:
            self.named["words"].data *= 0.3
            self.named["text_map"] = nn.Parameter(torch.eye(s.width))
            self.named["text_only"] = nn.Parameter(torch.zeros(s.width))
        for layer, hidden in enumerate(s.hidden):
            for side in ("forward", "backward"):
                name = f"{side}{layer}"
                self.named[f"{name}.input"] = linear(4 * hidden, 2 * s.hidden[layer - 1] if layer else s.width)
                recurrent = torch.cat([nn.init.orthogonal_(torch.empty(hidden, hidden)) for _ in range(4)])
                self.named[f"{name}.state"] = nn.Parameter(recurrent)
                bias = torch.zeros(4 * hidden)
                bias[hidden : 2 * hidden] = 1.0  # forget gates begin open
                self.named[f"{name}.bias"] = nn.Parameter(bias)
        for name, outputs in (("tag", n_tags), ("arc_dep", s.arc), ("arc_head", s.arc)):
            self.named[name] = linear(outputs, wide)
            self.named[f"{name}.bias"] = nn.Parameter(torch.zeros(outputs))
        self.named["arc_root"] = normal(1, s.arc, std=0.1)
        for name in ("label_dep", "label_head"):
            self.named[name] = linear(s.label, wide)
            self.named[f"{name}.bias"] = nn.Parameter(torch.zeros(s.label))
        self.named["label_root"] = normal(1, s.label, std=0.1)
        self.named["label"] = linear(n_relations, 3 * s.label)
        self.named["label.bias"] = nn.Parameter(torch.zeros(n_relations))

    def exported(self, new: Bool) -> dict[str, Float32]:
        """The weights by the names of a stored model, each word's parts added up. new: bool[n_words]."""
        out = {name: w.detach().numpy().copy() for name, w in self.named.items()}
        if self.vectors is not None:
            words, only = out["words"], out.pop("text_only")
            words[new] = only
            words += self.vectors.numpy() @ out.pop("text_map")
        return out

    def states(self, step: Step, noise: bool) -> torch.Tensor:
        """float[L, B, 2 * hidden[-1]]: each word in its sentence."""
        import torch
        from torch.nn.functional import embedding

        w, s = self.named, self.settings
        x = embedding(step.code, w["words"])
        if self.vectors is not None:
            x = torch.where(step.new[:, :, None], w["text_only"], x)
            x = x + embedding(step.code, self.vectors) @ w["text_map"]
        x = x + embedding(step.buckets, w["pieces"]).mean(2)
        x = x.clamp(-WORD_LIMIT, WORD_LIMIT)
        if noise:
            x = x * _mask(x, s.dropout)
        back = step.backward[:, :, None]
        for layer, hidden in enumerate(s.hidden):
            zero = x.new_zeros(1, x.shape[1], hidden)
            sides = []
            for side in ("forward", "backward"):
                name = f"{side}{layer}"
                weights = [
                    w[f"{name}.input"],
                    w[f"{name}.state"],
                    w[f"{name}.bias"],
                    torch.zeros_like(w[f"{name}.bias"]),
                ]
                given = x if side == "forward" else x.gather(0, back.expand(-1, -1, x.shape[2]))
                out = torch.lstm(given, (zero, zero), weights, True, 1, 0.0, True, False, False)[0]
                sides.append(out if side == "forward" else out.gather(0, back.expand(-1, -1, hidden)))
            x = torch.cat(sides, 2)
            if noise:
                x = x * _mask(x, s.dropout)
        return x

    def scores(self, step: Step, noise: bool) -> tuple[torch.Tensor, torch.Tensor, Callable[..., torch.Tensor]]:
        """(tags float[L, B, 17], arcs float[B, L, 1 + L], labels of given heads).

        Column 0 of the arcs is the root; the last result maps int64[L, B] heads to float[L, B, R].
        """
        import torch
        from torch.nn.functional import linear

        w, s = self.named, self.settings
        x = self.states(step, noise)
        n, b = step.code.shape

        def project(name: str) -> torch.Tensor:
            y = torch.tanh(linear(x, w[name], w[f"{name}.bias"]))
            return y * _mask(y, s.dropout) if noise else y

        tags = linear(x, w["tag"], w["tag.bias"])
        root = torch.tanh(w["arc_root"]).expand(b, 1, s.arc)
        heads = torch.cat([root, project("arc_head").transpose(0, 1)], 1)
        arcs = project("arc_dep").transpose(0, 1) @ heads.transpose(1, 2) * ARC_SCALE
        outside = torch.cat([step.inside.new_zeros(b, 1), ~step.inside.T], 1)
        arcs = arcs.masked_fill(outside[:, None, :], -1e4)
        dep = project("label_dep")
        root = torch.tanh(w["label_root"]).expand(b, s.label)[None]
        heads = torch.cat([root, project("label_head")], 0)

        def labels(head: torch.Tensor) -> torch.Tensor:
            at = heads.gather(0, head[:, :, None].expand(n, b, s.label))
            return linear(torch.cat([dep * at, dep, at], 2), w["label"], w["label.bias"])

        return tags, arcs, labels

    def loss(self, step: Step) -> torch.Tensor:
        """A word's mean cross-entropy over its head, relation and (weighted) tag."""
        from torch.nn.functional import cross_entropy

        tags, arcs, labels = self.scores(step, noise=True)
        inside = step.inside
        arc = cross_entropy(arcs.transpose(0, 1)[inside], step.head[inside])
        label = cross_entropy(labels(step.head)[inside], step.deprel[inside])
        tag = cross_entropy(tags[inside], step.upos[inside])
        return arc + label + self.settings.tag_weight * tag


PLAIN_LONGEST = 60  # words of a sentence of plain text
ARC_SCALE = 0.25


def _mask(x: torch.Tensor, dropout: float) -> torch.Tensor:
    """One dropout mask a sentence, for all its words."""
    return x.new_empty(1, *x.shape[1:]).bernoulli_(1 - dropout) / (1 - dropout)


def batches(data: Examples, s: Settings, draws: np.random.Generator | None) -> Iterator[tuple[Int64, Step]]:
    """(sentences, batch) of some `words_per_step`, sentences of like length together; noise and order from `draws`."""
    lengths = lengths_of(data.bank.sentences)
    jitter = 0.0 if draws is None else draws.random(len(lengths)) * 3
    order = np.argsort(lengths + jitter, kind="stable")
    order = order[lengths[order] > 0]
    groups: list[list[int]] = []
    group: list[int] = []
    longest = 0
    for number in order.tolist():
        longest = max(longest, int(lengths[number]))
        if group and longest * (len(group) + 1) > s.words_per_step:
            groups.append(group)
            group, longest = [], int(lengths[number])
        group.append(number)
    groups.append(group)
    turn = range(len(groups)) if draws is None else draws.permutation(len(groups)).tolist()
    for number in turn:
        chosen = np.array(groups[number], np.int64)
        yield chosen, _step(data, s, chosen, draws)


def _step(data: Examples, s: Settings, chosen: Int64, draws: np.random.Generator | None) -> Step:
    import torch

    bank = data.bank
    start, length = bank.sentences[chosen], lengths_of(bank.sentences)[chosen]
    if draws is not None:
        length = length - _unstopped(bank, start, length, draws.random(len(chosen)) < s.unstopped)
    at = np.arange(int(length.max()))[:, None]
    inside = at < length[None, :]
    place = np.where(inside, start[None, :] + at, 0)
    types = bank.words[place]
    code, buckets, new = data.code[types], data.buckets[types], data.new[types]
    if draws is not None:
        low = (draws.random(len(chosen)) < s.lowered)[None, :]
        types = np.where(low, data.lower[types], types)
        code, buckets, count = data.code[types], data.buckets[types], data.count[types]
        unseen = draws.random(code.shape) < s.unseen / np.maximum(s.unseen + count, 1e-9)
        entirely = draws.random(code.shape) < 0.5
        new = data.new[types] | (unseen & ~entirely)
        code = np.where(unseen & (entirely | (not s.text)), UNSEEN, code)
        masked = _masked(s, count, draws)
        code = np.where(masked, MASKED, code)
        buckets = np.where(masked[:, :, None], 0, buckets)
    backward = np.where(inside, length[None, :] - 1 - at, at)
    return Step(
        code=torch.from_numpy(code.astype(np.int64)),
        buckets=torch.from_numpy(buckets.astype(np.int64)),
        inside=torch.from_numpy(inside),
        backward=torch.from_numpy(backward),
        new=torch.from_numpy(new & (code > MASKED)),
        upos=torch.from_numpy(bank.upos[place].astype(np.int64)),
        head=torch.from_numpy(np.where(inside, bank.head[place], 0).astype(np.int64)),
        deprel=torch.from_numpy(data.deprel[place].astype(np.int64)),
    )


def _masked(s: Settings, count: Int32, draws: np.random.Generator) -> Bool:
    """bool[L, B]: words to be read as <unk>, as corpora with a closed vocabulary have them.

    In some sentences nearly every word seen at most k times (k of 1 to 3), elsewhere a rare word now and then.
    """
    n = count.shape[1]
    most = np.where(draws.random(n) < s.masked_sentences, draws.choice(np.array([1, 1, 2, 3]), n), 0)
    share = np.where(most > 0, 0.95, s.masked_words)[None, :]
    rare = count <= np.maximum(most, 2)[None, :]
    return np.asarray(rare & (draws.random(count.shape) < share))


def _unstopped(bank: Treebank, start: Int64, length: Int64, chosen: Bool) -> Int64:
    """int64[B], 0 or 1: whether the last word goes; only a mark that nothing hangs from, and not a sentence's all."""
    out = np.zeros(len(start), np.int64)
    for i in np.flatnonzero(chosen & (length > 2)):
        last = start[i] + length[i] - 1
        heads = bank.head[start[i] : start[i] + length[i]]
        out[i] = bank.upos[last] == UPOS.index("PUNCT") and heads[-1] != 0 and not (heads == length[i]).any()
    return out


def pretrain(network: Network, text: Examples, report: Callable[[str], None]) -> None:
    """Teaches the LSTMs plain text before they see a tree: to tell which word stands where `<unk>` is read.

    A share of the words is masked; the loss is the cross-entropy over the treebank's most frequent words, where the
    masked word is one of them.
    """
    import torch
    from torch.nn.functional import cross_entropy, linear

    s = network.settings
    wide = 2 * s.hidden[-1]
    guess = torch.nn.Parameter(torch.randn(s.guessed, wide) * wide**-0.5)
    bias = torch.nn.Parameter(torch.zeros(s.guessed))
    weights = [w for name, w in network.named.items() if name.startswith(("words", "pieces", "text", "forw", "backw"))]
    optimizer = torch.optim.Adam([*weights, guess, bias], lr=s.rate, betas=(0.9, 0.95), fused=True)
    draws = np.random.default_rng(s.seed)
    plain = replace(s, masked_sentences=0.0, masked_words=0.0, lowered=0.0, unstopped=0.0)
    total = s.text_epochs * sum(1 for _ in batches(text, s, np.random.default_rng(0)))
    number, losses = 0, []
    for _ in range(s.text_epochs):
        for _, step in batches(text, plain, draws):
            target = step.code
            masked = torch.from_numpy(draws.random(target.shape) < s.text_masked) & step.inside
            step.code = torch.where(masked, MASKED, target)
            step.buckets = torch.where(masked[:, :, None], 0, step.buckets)
            asked = masked & (target > MASKED) & (target < s.guessed + 2)
            scores = linear(network.states(step, noise=True)[asked], guess, bias)
            loss = cross_entropy(scores, target[asked] - 2)
            for group in optimizer.param_groups:
                group["lr"] = s.rate * min((number + 1) / s.warm_up, 1.0, 0.1 + 0.9 * (1 - number / total))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, s.clip)
            optimizer.step()
            losses.append(float(loss.detach()))
            number += 1
            if number % 200 == 0 or number == total:
                report(f"text, step {number}/{total}: loss {np.mean(losses):.3f}")
                losses = []


def evaluate(network: Network, data: Examples) -> dict[str, float]:
    """UPOS, UAS, LAS (percent; full relations) with greedy heads: a quick look while training."""
    import torch

    right = np.zeros(4)
    with torch.no_grad():
        for _, step in batches(data, network.settings, None):
            tags, arcs, labels = network.scores(step, noise=False)
            head = arcs.argmax(2).T
            same = (head == step.head) & step.inside
            label = (labels(head).argmax(2) == step.deprel) & same
            tag = (tags.argmax(2) == step.upos) & step.inside
            right += [int(step.inside.sum()), int(tag.sum()), int(same.sum()), int(label.sum())]
    return {name: 100 * n / right[0] for name, n in zip(("UPOS", "UAS", "LAS"), right[1:], strict=True)}


def fit(
    train: Treebank,
    dev: Treebank | None,
    settings: Settings = Settings(),
    text: Text | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Trained:
    """Train on a treebank, with the help of a text. The result holds the averaged weights.

    `report` gets a line an epoch.

    Deterministic for a seed on one machine and one thread. No wall-clock enters, so it may be stopped and continued.
    """
    import torch

    s = replace(settings, text=text is not None)
    torch.manual_seed(s.seed)
    draws = np.random.default_rng(s.seed)
    plain = None if text is None else plain_sentences(text)
    vocabulary, counts, vectors = build_vocabulary(train, plain, s)
    data = examples(train, vocabulary, counts, train.relations, s)
    held_out = None if dev is None else examples(dev, vocabulary, counts, train.relations, s)
    network = Network(s, len(vocabulary) + 2, len(UPOS), len(train.relations), vectors)
    names, weights = list(network.named), list(network.named.values())
    report(f"{train.n_sentences:,} sentences, {sum(w.numel() for w in weights):,} weights")
    if plain is not None and s.text_epochs:
        pretrain(network, examples(plain, vocabulary, counts, train.relations, s), report)
    average = [w.detach().clone() for w in weights]
    exact: list[Any] = []  # the weights behind the rounded ones
    optimizer = torch.optim.Adam(weights, lr=s.rate, betas=(0.9, 0.95), fused=True)
    per_epoch = sum(1 for _ in batches(data, s, np.random.default_rng(0)))
    total, number = per_epoch * s.epochs, 0
    for epoch in range(s.epochs):
        losses = []
        for _, step in batches(data, s, draws):
            done = min(number / total, 1.0)
            warm = min((number + 1) / s.warm_up, 1.0)
            cosine = s.last_rate + (1 - s.last_rate) * 0.5 * (1 + math.cos(math.pi * done))
            for group in optimizer.param_groups:
                group["lr"] = s.rate * warm * cosine
            if done >= 1 - s.rounded:  # straight-through: gradients at the rounded weights move the exact ones
                exact = [w.detach().clone() for w in weights]
                for name, w in zip(names, weights, strict=True):
                    if is_matrix(name, w) and name not in ("words", "pieces", "text_map"):
                        w.data.copy_(rounded(w.data))
            loss = network.loss(step)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, s.clip)
            if exact:
                for w, kept in zip(weights, exact, strict=True):
                    w.data.copy_(kept)
            optimizer.step()
            decay = min(s.average, (1 + number) / (10 + number))
            with torch.no_grad():
                torch._foreach_lerp_(average, [w.detach() for w in weights], 1 - decay)
            losses.append(float(loss.detach()))
            number += 1
        line = f"epoch {epoch + 1}/{s.epochs}: loss {np.mean(losses):.3f}"
        if held_out is not None:
            kept = [w.detach().clone() for w in weights]
            _set(weights, average)
            found = evaluate(network, held_out)
            _set(weights, kept)
            line += "; dev " + ", ".join(f"{name} {value:.2f}" for name, value in found.items())
        report(line)
    _set(weights, average)
    codes = np.fromiter((counts[word] < s.min_count for word in vocabulary), bool, len(vocabulary))
    return Trained(network.exported(np.concatenate([[False, False], codes])), vocabulary, train.relations, s)


def _set(weights: list[torch.Tensor], values: list[torch.Tensor]) -> None:
    for w, value in zip(weights, values, strict=True):
        w.data.copy_(value)
