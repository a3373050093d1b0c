"""Strategies and small builders: words, batches, orders, labels; and transforms that insert and delete words.

`Mark`, `Drop` and `DropPunct` stand for what later transforms do: they hold the core to its promise that an order
need be no permutation. They are not registered; `chain("mark:2,inv")` knows their names.
"""

from __future__ import annotations

import itertools
import random
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from derivlang.core.arrays import Bool, Int32, Int64, Ints, lengths_of, offsets_of, positions
from derivlang.core.batch import Batch, build, split_sentences
from derivlang.core.from_table import Splits
from derivlang.core.keys import Draws
from derivlang.core.layers.base import Labels, Layer
from derivlang.core.layers.constituents import PARSE, ConstituentTrees
from derivlang.core.layers.nodes import NODES, Nodes
from derivlang.core.layers.parse import ParsedTags, ParsedTree
from derivlang.core.layers.tree import Tree
from derivlang.core.layers.words import Words
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.schema import Field
from derivlang.core.spec import param
from derivlang.core.takes import Rule
from derivlang.formats.pieces import Splitting
from derivlang.formats.words import Splitter
from derivlang.pipeline import Derivation, Pipeline
from derivlang.transforms.base import Transform

laws = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

# words

END_MARKS = [".", "!", "?", "…", "。", "！", "？", "।", "॥", "؟", "۔", "?!", "!.", "!…"]
ELLIPSES = ["…", "...", "..", ".…"]
CLOSERS = [")", "]", "}", "”", "’", "»", "''"]
QUOTES = ['"', "'"]
PLAIN = ["a", "b", "Hello", "(", "“", "``", "«", ".a", "a.", "...a", "?b", "<unk>", "-", '"a', "'s", ")."]
SCAN_WORDS = END_MARKS + ELLIPSES + CLOSERS + QUOTES * 3 + PLAIN
FEW_WORDS = [
    "a",
    "b",
    "c",
    "d",
    "Welcome",
    "to",
    "ACL",
    "antidisestablishmentarianism",
    "ტო",
    ".",
    "!",
    '"',
    ")",
    "...",
]

any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
any_word = st.one_of(st.sampled_from(FEW_WORDS), any_text)
few_words = st.sampled_from(FEW_WORDS)
scan_words = st.sampled_from(SCAN_WORDS)
seeds = st.integers(0, 2**32)


def units_of(
    words: st.SearchStrategy[str], *, min_size: int = 0, max_units: int = 5
) -> st.SearchStrategy[list[list[str]]]:
    """Some word sequences, empty ones among them if min_size is 0."""
    return st.lists(st.lists(words, min_size=min_size, max_size=12), max_size=max_units)


# batches


def codes_of(words: Sequence[str]) -> tuple[Int32, pa.Array]:
    """Codes and types of words, in the order of first occurrence."""
    flat = pa.array(list(words), pa.string()).dictionary_encode()
    return flat.indices.to_numpy(zero_copy_only=False).astype(np.int32), flat.dictionary


def batch_of(
    units: Sequence[Sequence[str]],
    *,
    layers: Mapping[str, Layer] | None = None,
    running: bool = False,
    split: bool = True,
    rule: Rule = "marks",
) -> Batch:
    """A batch of units, each a record; its arrays are read-only, since nothing may write to its input."""
    codes, types = codes_of([word for unit in units for word in unit])
    n = len(units)
    batch = build(
        codes,
        types,
        offsets_of(np.array([len(unit) for unit in units], np.int64)),
        np.arange(n, dtype=np.int32)[:, None],
        np.arange(n, dtype=np.int64),
        layers=layers,
        running=running,
    )
    return frozen(split_sentences(batch, rule) if split else batch)


def frozen(batch: Batch) -> Batch:
    for array in (batch.words, batch.sentences, batch.tails, batch.units, batch.records, batch.documents, batch.keys):
        array.flags.writeable = False
    return batch


def lists(words: Sequence[Any], offsets: Ints) -> list[list[Any]]:
    """Flat values as one list a row."""
    bounds = offsets.tolist()
    return [list(words[start:stop]) for start, stop in itertools.pairwise(bounds)]


def sentence_lists(batch: Batch) -> list[list[str]]:
    return lists(batch.strings().to_pylist(), batch.sentences)


def unit_lists(batch: Batch) -> list[list[str]]:
    return lists(batch.strings().to_pylist(), batch.unit_words)


def gathered(values: Sequence[Any], order: Order) -> list[Any]:
    """An order applied by its definition: `inserted` at each -1, in turn."""
    inserted = iter([] if order.inserted is None else order.inserted.to_pylist())
    return [values[i] if i >= 0 else next(inserted) for i in order.index.tolist()]


# orders


def some_order(sentences: Int64, seed: int, *, insert: float = 0.0, delete: float = 0.0, marker: str = "+") -> Order:
    """An order that permutes each sentence and inserts and deletes words at these rates."""
    rng = random.Random(seed)
    index: list[int] = []
    marks: list[int] = []
    lengths = []
    tails = []
    bounds = sentences.tolist()
    for start, stop in itertools.pairwise(bounds):
        words = [i for i in range(start, stop) if rng.random() >= delete]
        rng.shuffle(words)
        row: list[int] = []
        for word in words:
            if rng.random() < insert:
                row.append(-1)
                marks.append(rng.randrange(start, stop))
            row.append(word)
        index += row
        lengths.append(len(row))
        tails.append(rng.randint(0, len(row)))
    names = pa.array([f"{marker}{k}" for k in range(len(marks))], pa.string())
    return Order(
        np.array(index, np.int32),
        offsets_of(np.array(lengths, np.int64)),
        np.array(tails, np.int32),
        int(sentences[-1]),
        names if marks else None,
        np.array(marks, np.int32) if marks else None,
    )


@st.composite
def some_sentences(draw: st.DrawFn) -> Int64:
    """Word offsets of some sentences, empty ones among them."""
    return offsets_of(np.array(draw(st.lists(st.integers(0, 8), max_size=5)), np.int64))


# labels


@st.composite
def bio_tags(draw: st.DrawFn, length: int) -> list[str]:
    """A well-formed IOB2 sequence of two types; neighbours of one type are frequent."""
    tags: list[str] = []
    while len(tags) < length:
        kind = draw(st.sampled_from(["O", "PER", "ORG"]))
        size = min(draw(st.integers(1, 4)), length - len(tags))
        tags += ["O"] * size if kind == "O" else [f"B-{kind}", *[f"I-{kind}"] * (size - 1)]
    return tags


def some_brackets(words: Sequence[str], rng: random.Random, tags: Sequence[str] = ()) -> str:
    """A random tree over words, as derivlang writes it. tags: the constituent of each word; without, some have none."""

    def text(begin: int, end: int, label: str) -> str:
        parts = []
        while begin < end:
            stop = rng.randint(begin + 1, end)
            label_ = rng.choice(["S", "VP", "NP", "NP-SBJ", "PP", "SBAR", "X"])
            if stop == begin + 1:
                word = words[begin].replace("(", "-LRB-").replace(")", "-RRB-")
                word = re.sub(r"[\t\n\v\f\r ]", "\u00a0", word)
                parts.append(f"({tags[begin]} {word})" if tags else f"(X {word})" if rng.random() < 0.5 else word)
            else:
                parts.append(text(begin, stop, label_))
            begin = stop
        return f"({label} {' '.join(parts)})"

    return text(0, len(words), "S") if words else ""


def some_tree(length: int, rng: random.Random) -> list[int]:
    """Heads, 1-based, 0 = root, of a tree over `length` words; crossing arcs are as likely as any."""
    words = list(range(length))
    rng.shuffle(words)
    heads = [0] * length
    for k, word in enumerate(words[1:], start=1):
        heads[word] = words[rng.randrange(k)] + 1
    return heads


def some_ranges(length: int, rng: random.Random) -> list[tuple[int, int]]:
    """First and last word (1-based) of some multiword tokens, apart and ascending."""
    out, at = [], 1
    while at < length:
        if rng.random() < 0.4:
            last = min(length, at + rng.randint(1, 2))
            out.append((at, last))
            at = last
        at += 1
    return out


def conllu_row(words: Sequence[str], rng: random.Random) -> dict[str, Any]:
    """A sentence as `formats.conllu.read` gives it, with all that CoNLL-U can hold."""
    n = len(words)
    heads = some_tree(n, rng)
    ranges = some_ranges(n, rng)
    empty = [
        (after, minor)
        for after in range(n + 1)
        if n and rng.random() < 0.2
        for minor in range(1, rng.randint(1, 2) + 1)
    ]
    nodes = [(i, 0) for i in range(1, n + 1)] + empty

    def name(node: tuple[int, int]) -> str:
        return f"{node[0]}.{node[1]}" if node[1] else str(node[0])

    def enhanced() -> str:
        if rng.random() < 0.3:
            return "_"
        chosen = sorted(rng.sample([(0, 0), *nodes], min(len(nodes) + 1, rng.randint(1, 3))))
        return "|".join(
            f"{name(node)}:{'root' if node == (0, 0) else rng.choice(['nsubj', 'conj:and'])}" for node in chosen
        )

    return {
        "idx": f"s{rng.randrange(100)}",
        "tokens": list(words),
        "lemmas": [word.lower() for word in words],
        "upos": [rng.choice(["NOUN", "VERB", "PUNCT", "X"]) for _ in words],
        "xpos": ["_" if rng.random() < 0.5 else "NN" for _ in words],
        "feats": [rng.choice(["_", "Number=Sing", "Case=Nom|Number=Plur"]) for _ in words],
        "head": heads,
        "deprel": ["root" if head == 0 else rng.choice(["nsubj", "obj", "punct"]) for head in heads],
        "deps": [enhanced() for _ in words],
        "misc": [
            rng.choice(["_", "SpaceAfter=No", "Gloss=x|SpaceAfter=No", "Gloss=y", "SpacesAfter=\\n", some_note(n, rng)])
            for _ in words
        ],
        "mwt": [node_line(f"{first}-{last}", "fused", "_") for first, last in ranges],
        "empty_nodes": [node_line(name(node), "gone", enhanced()) for node in empty],
    }


def some_note(n: int, rng: random.Random) -> str:
    """A note of MISC that holds for the order of n words."""
    first, second = (rng.randint(1, n) for _ in range(2))
    return rng.choice(
        [
            f"CopyOf={first}",
            f"Gloss=x|CxnElt={first}:If.Clause,{second}:If.Then",
            f"PARSEME:MWE={first}:VID;{second}",
            f"PARSEME:MWE={first}",
            f"Entity=(e{first}-person)",
            "NamedEntity=B-PER",
            "NamedEntity=Yes",
        ]
    )


def node_line(id: str, form: str, deps: str) -> dict[str, str]:
    fields = dict.fromkeys(("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"), "_")
    return {**fields, "id": id, "form": form, "deps": deps}


# trees

_OPEN_TAGS = ["NOUN", "VERB", "ADJ", "PROPN", "ADP", "DET", "ADV", "AUX", "PRON", "NUM", "SYM", "CCONJ", "PART", "X"]
_RELATIONS = [
    *["nsubj", "obj", "obl", "nmod", "det", "case", "amod", "advmod", "mark", "cc", "conj", "nummod"],
    *["aux:pass", "advmod:emph", "nmod:poss", "acl:relcl", "compound:prt", "compound", "fixed", "flat", "flat:name"],
    *["goeswith", "appos", "parataxis", "dep"],
]


def is_mark(word: str) -> bool:
    """Is a word all punctuation, as a tagger sees it?"""
    return all(unicodedata.category(c).startswith("P") or c == "`" for c in word) or word in ("-LRB-", "-RRB-")


def some_tags(words: Sequence[str], rng: random.Random) -> list[str]:
    """UPOS: PUNCT on marks (seldom anything else), NUM on digits, else any."""

    def tag(word: str) -> str:
        if is_mark(word):
            return "PUNCT" if rng.random() < 0.9 else rng.choice(["SYM", "X"])
        if word[0].isdigit():
            return "NUM"
        return rng.choice(_OPEN_TAGS) if rng.random() < 0.97 else "PUNCT"

    return [tag(word) for word in words]


def some_heads(tags: Sequence[str], rng: random.Random) -> list[int]:
    """Heads, 1-based, 0 = root: half of the time without crossing arcs, punctuation mostly without dependents."""
    heads = some_tree(len(tags), rng) if rng.random() < 0.5 else _projective(len(tags), rng)
    if rng.random() < 0.8:
        for place, head in enumerate(heads):
            while head and tags[head - 1] == "PUNCT" and heads[head - 1]:
                head = heads[head - 1]
            heads[place] = head
    return heads


def _projective(length: int, rng: random.Random) -> list[int]:
    """Heads, 1-based, 0 = root, of a tree in which no two arcs cross."""
    heads = [0] * length
    ranges = [(0, length, 0, True)]  # words from, to; their head; are they one subtree
    while ranges:
        low, high, head, one = ranges.pop()
        if low < high:
            cut = high if one else rng.randint(low + 1, high)  # the end of the first subtree
            top = rng.randrange(low, cut)
            heads[top] = head
            ranges += [(low, top, top + 1, False), (top + 1, cut, top + 1, False), (cut, high, head, False)]
    return heads


def some_relations(tags: Sequence[str], heads: Sequence[int], rng: random.Random) -> list[str]:
    return [
        "root" if head == 0 else "punct" if tag == "PUNCT" else rng.choice(_RELATIONS)
        for tag, head in zip(tags, heads, strict=True)
    ]


@dataclass(frozen=True)
class Annotated:
    """Words with tags, heads (1-based, 0 = root), relations and multiword tokens (first and last word, 1-based)."""

    words: list[str]
    tags: list[str]
    heads: list[int]
    relations: list[str]
    ranges: list[tuple[int, int]]


def annotated(words: Sequence[str], seed: int = 0) -> Annotated:
    """What a parser could find: a function of the words and the seed."""
    return _annotated(tuple(words), seed)


@cache
def _annotated(words: tuple[str, ...], seed: int) -> Annotated:
    rng = random.Random(f"{seed} {' '.join(words)}")
    tags = some_tags(words, rng)
    heads = some_heads(tags, rng)
    ranges = some_ranges(len(words), rng) if rng.random() < 0.3 else []
    return Annotated(list(words), tags, heads, some_relations(tags, heads, rng), ranges)


def tree_layers(units: Sequence[Sequence[Annotated]], *, parsed: bool = False) -> dict[str, Layer]:
    """Layers `upos` and `head` of units, each some trees one after the other. parsed: as a parser gives them."""
    tags: list[str] = []
    heads: list[int] = []
    relations: list[str] = []
    nodes: list[list[dict[str, str]]] = []
    offsets = [0]
    for unit in units:
        begin = len(tags)
        nodes.append([])
        for tree in unit:
            shift = len(tags) - begin
            for first, last in tree.ranges:
                nodes[-1].append(node_line(f"{first + shift}-{last + shift}", "fused", "_"))
            heads += [head + shift if head else 0 for head in tree.heads]
            tags += tree.tags
            relations += tree.relations
        offsets.append(len(tags))
    words, heads_of = (ParsedTags, ParsedTree) if parsed else (Words, Tree)
    relation = words.of("deprel", pa.array(relations, pa.string()), filler="dep")
    mwt = None if parsed else Nodes.read(pa.array(nodes, NODES), np.array(offsets), "-")
    return {
        "upos": words.of("upos", pa.array(tags, pa.string()), filler="X"),
        "head": heads_of(np.array(heads, np.int32), relation, mwt=mwt),
    }


def with_trees(batch: Batch, *, seed: int = 0, whole_units: bool = False) -> Batch:
    """A batch whose sentences are split, with tags, features, lemmas and trees: one a sentence, or one a unit."""
    rows = lists(batch.strings().to_pylist(), batch.unit_words if whole_units else batch.sentences)
    trees = [annotated(row, seed) for row in rows]
    units = [[tree] for tree in trees] if whole_units else lists(trees, batch.units)
    words = [(word, tag) for tree in trees for word, tag in zip(tree.words, tree.tags, strict=True)]
    further = {
        "lemmas": Words.of("lemmas", pa.array([_lemma(word) for word, _ in words], pa.string()), "_", lexical=True),
        "feats": Words.of("feats", pa.array([_features(*pair) for pair in words], pa.string()), "_"),
    }
    layers = {**batch.layers, **tree_layers(units), **further, PARSE: _constituents(batch, rows)}
    return replace(batch, layers=layers)


def _constituents(batch: Batch, rows: list[list[str]]) -> ConstituentTrees:
    """Trees with tags, one a row: functions of its words, as of a parser."""
    found, done = iter(rows), 0
    texts = []
    for end in batch.unit_words[1:].tolist():
        trees = []
        while done < end:
            row = next(found)
            rng = random.Random(repr(row))
            tags = [rng.choice(["DT", "JJ", "NN", "NNS", "VBZ", "VBP", "IN", "CD", "WP", "."]) for _ in row]
            trees.append(some_brackets(row, rng, tags))
            done += len(row)
        texts.append(" ".join(filter(None, trees)))
    return ConstituentTrees.read(Field(PARSE, "constituents"), Labels({PARSE: pa.array(texts, pa.string())}, batch))


def _lemma(word: str) -> str:
    return "_" if word == "the" else word.lower().removesuffix("s")


def _features(word: str, tag: str) -> str:
    number = "Number=Plur" if word.endswith("s") else "Number=Sing"
    verb = f"Mood=Ind|{number}|Person=3|Tense=Pres|VerbForm=Fin"
    return verb if tag == "VERB" else number if tag in ("NOUN", "PROPN") else "_"


# transforms


@dataclass(frozen=True, kw_only=True)
class Mark(Transform):
    """A marker word before the k-th word of every sentence, or before its last if it is shorter."""

    name = "mark"
    is_permutation = False
    word: int = param(1, "before which word, from 1", positional=True, draws=False, low=1)
    marker: str = param("🅁", "the marker", draws=False, file=False)

    def order(self, batch: Batch, draws: Draws) -> Order:
        lengths = lengths_of(batch.sentences)
        full = lengths > 0
        place = np.minimum(self.word, lengths) - 1
        marked = (batch.sentences[:-1] + place)[full]
        index = np.insert(np.arange(batch.n_words, dtype=np.int32), marked, -1).astype(np.int32)
        inside_tail = full & (place > lengths - batch.tails)
        return Order(
            index,
            offsets_of(lengths + full),
            (batch.tails + inside_tail).astype(np.int32),
            batch.n_words,
            pa.array([self.marker] * len(marked), pa.string()),
            marked.astype(np.int32),
        ).check()


@dataclass(frozen=True, kw_only=True)
class Drop(Transform):
    """Every k-th word of a sentence is deleted."""

    name = "skip"
    is_permutation = False
    every: int = param(3, "which words", positional=True, draws=False, low=1)

    def order(self, batch: Batch, draws: Draws) -> Order:
        return without(batch, (positions(batch.sentences) + 1) % self.every == 0)


@dataclass(frozen=True, kw_only=True)
class DropPunct(Transform):
    """Words of UPOS PUNCT are deleted."""

    name = "drop-punct"
    needs = ("upos",)
    is_permutation = False

    def order(self, batch: Batch, draws: Draws) -> Order:
        upos = batch.layers["upos"]
        assert isinstance(upos, Words)
        return without(batch, np.array([value == "PUNCT" for value in upos.values.to_pylist()], bool)[upos.codes])


def without(batch: Batch, gone: Bool) -> Order:
    """The order that deletes these words."""
    kept = offsets_of(~gone)
    tail_start = batch.sentences[1:] - batch.tails
    tails = kept[batch.sentences[1:]] - kept[tail_start]
    index = np.flatnonzero(~gone).astype(np.int32)
    return Order(index, kept[batch.sentences], tails.astype(np.int32), batch.n_words).check()


_LOCAL = {cls.name: cls for cls in (Mark, Drop, DropPunct)}


def chain(spec: str) -> Pipeline:
    """`Pipeline.parse`, with the transforms of this file known by name."""
    transforms: list[Transform] = []
    for part in spec.split(","):
        name, *values = part.split(":")
        if name in _LOCAL:
            transforms.append(_LOCAL[name].from_values(values, {}))
        else:
            transforms += Pipeline.parse(part).transforms
    return Pipeline(tuple(transforms))


def derive(spec: str, batch: Batch, lexicon: Lexicon | None = None) -> Derivation:
    """A batch whose sentences are split, derived."""
    pipeline = chain(spec)
    return pipeline.derive(batch, pipeline.fit() if lexicon is None else lexicon, split=False)


# raw text


def split_at_spaces(texts: pa.StringArray, place: object = None) -> Splits:
    """The words and gaps of some texts, divided at white space."""
    return Splitting(Splitter("space")).texts(texts)
