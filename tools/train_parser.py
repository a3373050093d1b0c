"""Train a parser on a treebank and on plain text, as the two parsers of the package are trained.

    python tools/train_parser.py UD_English-EWT --text wiki.train.tokens -o english
    python tools/train_parser.py UD_English-EWT --text wiki.train.tokens --teacher english -o english-light

Without a teacher, words also have vectors from the text (`word_vectors.py`), and the layers learn to guess masked words
of the text before they see a tree. A word that the vocabulary has from the text only is read as `text_only` in place of
a vector of its own; its code is N + the word's, for N words in all. With a teacher, a larger parser, the new one is
smaller and faster: it takes over the teacher's words, word vectors and relations, and learns from the treebank and from
the trees that the teacher gives the text.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch.nn.functional import cross_entropy, embedding, linear
from word_vectors import context_vectors

from derivlang.core.arrays import Bool, Float32, Int32, lengths_of, offsets_of, take_rows
from derivlang.parsing.base import UPOS
from derivlang.parsing.bundled import ModelParser
from derivlang.parsing.features import MASK, MASKED, UNSEEN
from derivlang.parsing.model import save_model
from derivlang.parsing.normalise import normal_form, normalise
from derivlang.parsing.registry import find_parser
from derivlang.parsing.training.batches import (
    EncodedTreebank,
    ParserConfig,
    batches,
    build_vocabulary,
    encode_treebank,
    word_counts,
)
from derivlang.parsing.training.fit import TorchNetwork, TrainedParser, train_network
from derivlang.parsing.treebank import Treebank
from derivlang.sources.treebank import find_treebank
from derivlang.training.parser import Inputs, arithmetic, scored_model

Report = Callable[[str], None]
LONGEST = 60  # words of a sentence of the text
COPIES = 4  # of the treebank: its trees are correct, the teacher's are nearly correct
SHORTEST = 3  # words; the teacher gives no trees to shorter sentences of the text


@dataclass(frozen=True, slots=True, kw_only=True)
class TextConfig(ParserConfig):
    """The settings of a parser with words from a text."""

    n_words: int = 16000  # most words with vectors of their own
    text_epochs: int = 1  # passes over the text, guessing masked words, before the treebank
    text_masked: float = 0.2  # share of words masked in these passes
    guessed: int = 5000  # number of different words to guess
    min_text_count: int = 4  # the same as min_count, for a word that only the text has


# The teacher's trees are many and consistent, so training needs less noise.
STUDENT = ParserConfig(
    epochs=6, words_per_step=2600, cell="light", hidden=(128, 160), arc=96, label=64, dropout=0.1, masked_sentences=0.1,
    lowered=0.02, unstopped=0.03, rate=4e-3, warm_up=100, average=0.995,
)  # fmt: skip


def read_text(path: Path, language: str) -> Treebank:
    """Read words between spaces, normalised and cut after `.`, `!`, `?`, `;` and LONGEST words, and at line ends.

    All tags and heads are 0.
    """
    lines = [words for line in path.read_text("utf-8").splitlines() if (words := line.split())]
    flat = pa.array([word for words in lines for word in words], pa.string()).dictionary_encode()
    codes = flat.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    normal = normalise(codes, flat.dictionary, offsets_of(np.array([len(words) for words in lines])), language)
    ends = np.array([form in (".", "!", "?", ";") for form in normal.types])
    first = np.zeros(len(normal.words) + 1, bool)
    first[1:] = ends[normal.words]
    first[normal.sentences] = True
    offsets = [0]
    for end in np.flatnonzero(first)[1:].tolist():
        offsets += [*range(offsets[-1] + LONGEST, end, LONGEST), end]
    zero = np.zeros(len(normal.words), np.int32)
    types = pa.array(normal.types, pa.string())
    return Treebank(normal.words, types, np.array(offsets), zero.astype(np.uint8), zero, zero, ("dep",))


@dataclass(frozen=True, eq=False)
class TextTreebank(EncodedTreebank):
    """A treebank in codes with and without a vector of the word's own. n_words: N."""

    n_words: int

    @classmethod
    def of(cls, bank: Treebank, vocabulary: dict[str, int], counts: Counter[str], names: tuple[str, ...],
           config: TextConfig) -> TextTreebank:  # fmt: skip
        """Encode a treebank. names: the relations of the parser."""
        data, n = encode_treebank(bank, vocabulary, counts, names, config), len(vocabulary) + 2
        of_text = (data.code > MASKED) & (data.count < config.min_count)
        return cls(**(vars(data) | {"code": np.where(of_text, data.code + n, data.code)}), n_words=n)

    def as_unseen(self, code: Int32, chosen: Bool, draws: np.random.Generator) -> Int32:
        """Read half of the chosen words as unseen in the text, too, the others as seen in the text only."""
        entirely = draws.random(code.shape) < 0.5
        of_text = np.where((code > MASKED) & (code < self.n_words), code + self.n_words, code)
        return np.where(chosen, np.where(entirely, UNSEEN, of_text), code)


class TextNetwork(TorchNetwork):
    """A network whose word vectors are sums of trained ones and of mapped ones from the text.

    vectors: float32[N, width]. of_text: bool[N], words that the vocabulary has from the text only.
    """

    tables = ("words", "pieces", "text_map")

    def __init__(self, config: TextConfig, n_relations: int, vectors: Float32, of_text: Bool) -> None:
        super().__init__(config, len(vectors), len(UPOS), n_relations)
        self.vectors, self.of_text = torch.from_numpy(vectors), of_text
        self.named["words"].data *= 0.3
        self.named["text_map"] = torch.nn.Parameter(torch.eye(config.width))
        self.named["text_only"] = torch.nn.Parameter(torch.zeros(config.width))

    def words(self, code: torch.Tensor) -> torch.Tensor:
        """Return the vectors of words, float[L, B, width]; code: int64[L, B], from 0 to 2 N - 1."""
        word = code % len(self.vectors)
        own = torch.where((code == word)[:, :, None], super().words(word), self.named["text_only"])
        return own + embedding(word, self.vectors) @ self.named["text_map"]

    def exported(self) -> dict[str, Float32]:
        """Return the weights by the names of a stored model, the parts of each word vector added up."""
        out = super().exported()
        out["words"][self.of_text] = out.pop("text_only")
        out["words"] += self.vectors.numpy() @ out.pop("text_map")
        return out


def text_vocabulary(bank: Treebank, text: Treebank, config: TextConfig) -> tuple[dict[str, int], Counter[str], Float32]:
    """Return (codes of lower-cased words, their counts in the treebank, vectors from text float32[N, width]).

    The vocabulary has the frequent words of the treebank by falling count, then the most frequent other words of the
    text.
    """
    often, counts = build_vocabulary(bank, config)
    everywhere = counts + word_counts(text)
    others = sorted(
        (word for word, n in everywhere.items() if n >= config.min_text_count and word not in {*often, MASK}),
        key=lambda word: (-everywhere[word], word),
    )
    vocabulary = {word: i + 2 for i, word in enumerate([*often, *others][: config.n_words])}
    number = {word: i for i, word in enumerate(everywhere)}
    codes = [
        np.array([number.get(normal_form(word).lower(), 0) for word in part.types.to_pylist()], np.int32)[part.words]
        for part in (bank, text)
    ]
    lines = np.concatenate([bank.sentences, text.sentences[1:] + len(bank.words)])
    rows = [number[word] for word in vocabulary]
    vectors = np.zeros((len(vocabulary) + 2, config.width), np.float32)
    vectors[2:] = context_vectors(np.concatenate(codes), lines, rows, config.width, config.seed)
    return vocabulary, counts, vectors * np.float32(0.3 * config.width**0.5)


def guess_words(network: TextNetwork, text: TextTreebank, config: TextConfig, report: Report) -> None:
    """Train the network's word vectors and layers to guess masked words; `report` gets a line every 200 steps.

    The loss is the cross-entropy over the `guessed` most frequent words, at the masked words that are among them.
    """
    wide = 2 * config.hidden[-1]
    guess = torch.nn.Parameter(torch.randn(config.guessed, wide) * wide**-0.5)
    bias = torch.nn.Parameter(torch.zeros(config.guessed))
    weights = [w for name, w in network.named.items() if name.startswith(("words", "pieces", "text", "forw", "backw"))]
    optimizer = torch.optim.Adam([*weights, guess, bias], lr=config.rate, betas=(0.9, 0.95), fused=True)
    draws = np.random.default_rng(config.seed)
    plain = replace(config, masked_sentences=0.0, masked_words=0.0, lowered=0.0, unstopped=0.0)
    total = config.text_epochs * sum(1 for _ in batches(text, config, np.random.default_rng(0)))
    number, losses = 0, []
    for _ in range(config.text_epochs):
        for _, batch in batches(text, plain, draws):
            target = batch.code % text.n_words
            masked = torch.from_numpy(draws.random(target.shape) < config.text_masked) & batch.inside
            batch.code = torch.where(masked, MASKED, batch.code)
            batch.buckets = torch.where(masked[:, :, None], 0, batch.buckets)
            asked = masked & (target > MASKED) & (target < config.guessed + 2)  # codes 0 and 1 are not words
            scores = linear(network.states(batch, noise=True)[asked], guess, bias)
            loss = cross_entropy(scores, target[asked] - 2)
            for group in optimizer.param_groups:
                group["lr"] = config.rate * min((number + 1) / config.warm_up, 1.0, 0.1 + 0.9 * (1 - number / total))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, config.clip)
            optimizer.step()
            losses.append(float(loss.detach()))
            number += 1
            if number % 200 == 0 or number == total:
                report(f"text, step {number}/{total}: loss {np.mean(losses):.3f}")
                losses = []


def fit_with_text(train: Treebank, text: Treebank, config: TextConfig, report: Report = print) -> TrainedParser:
    """Train a parser on a treebank, with words from a text."""
    torch.manual_seed(config.seed)
    vocabulary, counts, vectors = text_vocabulary(train, text, config)
    of_text = np.array([False, False, *(counts[word] < config.min_count for word in vocabulary)])
    network = TextNetwork(config, len(train.relations), vectors, of_text)
    data, plain = (TextTreebank.of(bank, vocabulary, counts, train.relations, config) for bank in (train, text))
    guess_words(network, plain, config, report)
    train_network(network, data, report)
    return TrainedParser(network.exported(), vocabulary, train.relations, config)


def fit_student(
    train: Treebank, text: Treebank, teacher: ModelParser, config: ParserConfig,
    report: Report = print,
) -> TrainedParser:  # fmt: skip
    """Train a parser on the trees of a treebank and on its teacher's trees of a text."""
    torch.manual_seed(config.seed)
    model = teacher.model
    n_buckets, width = model.matrices["pieces"].shape
    config = replace(config, n_buckets=n_buckets, width=width)
    vocabulary = {word: i + 2 for i, word in enumerate(model.vocabulary)}
    bank = taught(train, text, teacher)
    counts = word_counts(bank)
    data = encode_treebank(bank, vocabulary, counts, model.relations, config)
    network = TorchNetwork(config, len(vocabulary) + 2, len(UPOS), len(model.relations))
    for name in ("words", "pieces"):  # training does not change them
        network.named[name] = torch.from_numpy(model.matrices[name] * model.floats[f"{name}.scale"][:, None])
    train_network(network, data, report)
    return TrainedParser(network.exported(), vocabulary, model.relations, config)


def taught(train: Treebank, text: Treebank, teacher: ModelParser) -> Treebank:
    """Return the treebank, COPIES times, and the sentences of the text with the teacher's trees."""
    place, sentences = take_rows(text.sentences, np.flatnonzero(lengths_of(text.sentences) >= SHORTEST))
    words = text.words[place]
    parses = teacher.parse(words, text.types, sentences)
    parsed = Treebank(words, text.types, sentences, parses.upos, parses.head, parses.deprel, parses.relations)
    banks = [train] * COPIES + [parsed]
    types, relations = (
        list(dict.fromkeys(name for bank in banks for name in names(bank)))
        for names in (lambda bank: bank.types.to_pylist(), lambda bank: bank.relations)
    )
    type_code, relation_code = ({name: i for i, name in enumerate(names)} for names in (types, relations))
    return Treebank(
        words=np.concatenate([np.array([type_code[w] for w in b.types.to_pylist()], np.int32)[b.words] for b in banks]),
        types=pa.array(types, pa.string()),
        sentences=offsets_of(np.concatenate([lengths_of(bank.sentences) for bank in banks])),
        upos=np.concatenate([bank.upos for bank in banks]),
        head=np.concatenate([bank.head for bank in banks]),
        deprel=np.concatenate([np.array([relation_code[r] for r in b.relations], np.int32)[b.deprel] for b in banks]),
        relations=tuple(relations),
    )


def main() -> None:
    """Train a parser and write its folder."""
    parser = argparse.ArgumentParser(description="Train a parser on a treebank and on plain text.")
    parser.add_argument("treebank", type=Path, help="CoNLL-U file or folder of a treebank")
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--text", type=Path, required=True, help="running text, words between spaces")
    parser.add_argument("--teacher", help="parser of derivlang whose trees of the text a smaller one learns")
    parser.add_argument("--language", default="en", help="code of the language")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, help="passes over the treebank; 30, with a teacher 6")
    parser.add_argument("--score", type=Path, action="append", default=[], help="another treebank to score at the end")
    parser.add_argument("--licence", default="", help="licence of treebank and text, for the model card")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    asked = parser.parse_args()
    teacher = find_parser(asked.teacher, asked.language) if asked.teacher else None
    config = replace(STUDENT if teacher else TextConfig(), seed=asked.seed)
    config = replace(config, epochs=asked.epochs or config.epochs)
    inputs = Inputs.of(find_treebank(asked.treebank, None), asked.score, None)
    trees, text = inputs.trees(), read_text(asked.text, asked.language)
    train = trees.get(inputs.files.get("train", Path()))
    text_hash = {asked.text.name: hashlib.sha256(asked.text.read_bytes()).hexdigest()}
    card = {
        "language": asked.language,
        "name": asked.out.name,
        "licence": asked.licence,
        "trained_on": inputs.hashes([inputs.files["train"]]) | text_hash,
        **({"teacher": {"name": teacher.name, "fingerprint": teacher.fingerprint}} if teacher else {}),
        "threads": asked.threads,
        "scored_on": inputs.hashes([*inputs.held_out, *inputs.others]),
    }
    with arithmetic(asked.threads):
        trained = fit_student(train, text, teacher, config) if teacher else fit_with_text(train, text, config)
    save_model(scored_model(trained, card, inputs, trees), asked.out)


if __name__ == "__main__":
    main()
