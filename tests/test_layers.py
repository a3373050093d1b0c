"""Labels follow their words: each kind of layer is held to a plain reference under random orders, words inserted and
deleted among them; and composing, then moving, is moving in turn."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrow import string_array
from derivlang.core.batch import Batch, groups, realign, split_sentences
from derivlang.core.errors import LayerError
from derivlang.core.from_table import to_batch
from derivlang.core.gaps import Gaps
from derivlang.core.layers.answers import ANSWERS, Answers
from derivlang.core.layers.base import Layer, Realignment
from derivlang.core.layers.deps import Deps, read_deps
from derivlang.core.layers.misc import Misc
from derivlang.core.layers.nodes import NODES, Nodes
from derivlang.core.layers.spans import Spans
from derivlang.core.layers.tag_schemes import complete_classes
from derivlang.core.layers.tree import Tree
from derivlang.core.layers.words import Values, Words
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.policies import Policies
from derivlang.core.schema import Field, Schema, Side
from derivlang.formats.words import Splitter
from derivlang.pipeline import Pipeline
from derivlang.syntax.parts import contract
from tests import reference
from tests.helpers import read_text
from tests.strategies import (
    Drop,
    DropPunct,
    Mark,
    batch_of,
    bio_tags,
    conllu_row,
    derive,
    few_words,
    gathered,
    laws,
    lists,
    node_line,
    scan_words,
    seeds,
    sentence_lists,
    some_order,
    split_at_spaces,
    unit_lists,
    units_of,
)

CLASSES = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG")
units = units_of(st.one_of(few_words, scan_words))
rates = st.sampled_from([0.0, 0.0, 0.3, 0.7])


def column(layer: Layer, batch: Batch, name: str) -> list[Any]:
    values: list[Any] = layer.columns(batch)[name].to_pylist()
    return values


def where(row: int, word: int | None) -> str:
    return f"row {row}"


def local_orders(batch: Batch, order: Order) -> list[list[int]]:
    """The order of each unit, from 0, -1 where a word is inserted."""
    rows = lists(order.index.tolist(), order.sentences[batch.units])
    starts = batch.unit_words[:-1].tolist()
    return [[i - start if i >= 0 else -1 for i in row] for row, start in zip(rows, starts, strict=True)]


def local_marks(batch: Batch, order: Order) -> list[list[int]]:
    """The words that each unit's insertions mark, from 0 in the unit."""
    marks = iter([] if order.anchors is None else order.anchors.tolist())
    starts = batch.unit_words[:-1].tolist()
    return [
        [next(marks) - start for i in row if i < 0]
        for row, start in zip(local_orders(batch, order), starts, strict=True)
    ]


# word tags


@laws
@given(units, st.data(), seeds, rates, rates)
def test_word_tags_move_with_their_words(
    rows: list[list[str]], data: st.DataObject, seed: int, insert: float, delete: float
) -> None:
    n = sum(len(row) for row in rows)
    tags = data.draw(st.lists(st.sampled_from(["NOUN", "VERB", "X"]), min_size=n, max_size=n))
    numbers = list(range(n))
    layers = {
        "upos": Words.of("upos", pa.array(tags, pa.string()), filler="X"),
        "lemmas": Words.of("lemmas", pa.array([f"l{i}" for i in numbers], pa.string()), filler="_"),
        "numbers": Words.of("numbers", pa.array(numbers, pa.int64())),
    }
    batch = batch_of(rows, layers=layers)
    order = some_order(batch.sentences, seed, insert=insert, delete=delete)
    out = realign(batch, order)
    assert out.strings().to_pylist() == gathered([word for row in rows for word in row], order)
    for name, values, filler in (
        ("upos", tags, "X"),
        ("lemmas", [f"l{i}" for i in numbers], "_"),
        ("numbers", numbers, None),
    ):
        expected = [values[i] if i >= 0 else filler for i in order.index.tolist()]
        assert column(out.layers[name], out, name) == lists(expected, out.unit_words)


def test_word_tags_with_nulls_keep_them() -> None:
    layer = Words.of("lemmas", pa.array(["x", None, "y"], pa.string()), filler="_")
    batch = batch_of([["a", "b", "c"]], layers={"lemmas": layer})
    assert column(layer, batch, "lemmas") == [["x", None, "y"]]
    out = realign(batch, Pipeline.parse("inv").order(batch))
    assert column(out.layers["lemmas"], out, "lemmas") == [["y", None, "x"]]


def test_class_labels_of_inserted_words() -> None:
    layer = Words("upos", np.array([1, 0], np.int32), pa.array(["NOUN", "X"]), "X", ("NOUN", "X"))
    batch = batch_of([["a", "b"]], layers={"upos": layer})
    assert column(layer, batch, "upos") == [[1, 0]]
    out = realign(batch, Mark().order(batch, Mark().stream(0)))
    assert column(out.layers["upos"], out, "upos") == [[1, 1, 0]]


def test_notes_on_white_space_are_removed_and_never_moved() -> None:
    values = ["SpaceAfter=No", "Gloss=a|SpaceAfter=No", "_", "Gloss=b", "SpacesAfter=\\n|Gloss=c|SpacesBefore=\\s"]
    layer = Misc.of("misc", pa.array(values), filler="_")
    batch = batch_of([["a", "b", "c", "d", "e"]], layers={"misc": layer})
    out = realign(batch, Pipeline.parse("inv").order(batch))
    assert column(out.layers["misc"], out, "misc") == [["Gloss=c", "Gloss=b", "_", "Gloss=a", "_"]]


# entities


def with_entities(rows: list[list[str]], tags: list[list[str]], *, split: bool = True) -> Batch:
    flat = np.array([CLASSES.index(tag) for row in tags for tag in row], np.int32)
    offsets = np.cumsum([0, *(len(row) for row in rows)])
    return batch_of(rows, layers={"ner_tags": Spans.from_tags("ner_tags", flat, CLASSES, offsets)}, split=split)


def tags_of(batch: Batch) -> list[list[str]]:
    return [[CLASSES[tag] for tag in row] for row in column(batch.layers["ner_tags"], batch, "ner_tags")]


@st.composite
def tagged_units(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    rows = draw(units)
    return rows, [draw(bio_tags(len(row))) for row in rows]


@laws
@given(tagged_units(), seeds, rates, rates, st.sampled_from(["split", "drop"]))
def test_entities_are_the_reference_s(
    tagged: tuple[list[list[str]], list[list[str]]], seed: int, insert: float, delete: float, policy: Any
) -> None:
    rows, tags = tagged
    batch = with_entities(rows, tags)
    order = some_order(batch.sentences, seed, insert=insert, delete=delete)
    counts: Counter[str] = Counter()
    out = realign(batch, order, policies=Policies(entities=policy), counts=counts)
    indices = local_orders(batch, order)
    expected = [reference.entities(*pair, policy) for pair in zip(tags, indices, strict=True)]
    assert tags_of(out) == expected
    spans = [
        (set(words), index)
        for row, index in zip(tags, indices, strict=True)
        for _, words in reference.entity_spans(row)
    ]
    deleted = sum(not (words & set(index)) for words, index in spans)
    broken = sum(
        len(set(reference.answer(words, index) or ()) and [i for i in index if i in words])
        > (
            (found := reference.answer(words, index)) is not None
            and sum(i in words for i in index[found[0] : found[1]])
        )
        for words, index in spans
    )
    assert counts == Counter(
        {
            f"ner_tags-{policy if policy == 'split' else 'dropped'}": broken,
            "ner_tags-deleted": deleted,
            "ner_tags-total": len(spans),
        }
    )


@laws
@given(tagged_units(), seeds)
def test_every_word_keeps_its_entity_type(tagged: tuple[list[list[str]], list[list[str]]], seed: int) -> None:
    rows, tags = tagged
    batch = with_entities(rows, tags)
    order = some_order(batch.sentences, seed)
    kinds = [tag[2:] for row in tags for tag in row]
    moved = [tag[2:] for row in tags_of(realign(batch, order)) for tag in row]
    assert moved == [kinds[i] for i in order.index.tolist()]
    dropped = [tag[2:] for row in tags_of(realign(batch, order, policies=Policies(entities="drop"))) for tag in row]
    assert all(tag in ("", kind) for tag, kind in zip(dropped, moved, strict=True))


@pytest.mark.parametrize(
    ("words", "tags", "spec", "expected"),
    [
        ("visit Acme Inc .", "O B-ORG I-ORG I-ORG", "inv", "B-ORG I-ORG O B-ORG"),
        ("Ann Lee met Bo .", "B-PER I-PER O B-PER O", "inv", "B-PER O B-PER I-PER O"),
        ("a b c d", "B-PER I-PER B-PER I-PER", "inv", "B-PER I-PER B-PER I-PER"),  # neighbours stay two
        ("a b c d", "B-PER B-PER B-PER I-PER", "inv", "B-PER I-PER B-PER B-PER"),
        ("a b", "B-PER I-PER", "mark", "O B-PER I-PER"),
        ("a b", "B-PER I-PER", "mark:2", "B-PER I-PER I-PER"),  # a marker breaks no entity
        ("a b", "B-PER B-PER", "mark:2", "B-PER O B-PER"),
        ("a b c d", "B-PER I-PER I-PER B-PER", "skip:2", "B-PER I-PER"),
        ("a b", "O B-PER", "skip:2", "O"),
    ],
)
def test_entity_examples(words: str, tags: str, spec: str, expected: str) -> None:
    batch = with_entities([words.split()], [tags.split()])
    assert tags_of(derive(spec, batch).derived) == [expected.split()]


def test_a_dropped_entity_is_counted_and_gone() -> None:
    batch = with_entities([["visit", "Acme", "Inc", "."]], [["O", "B-ORG", "I-ORG", "I-ORG"]])
    counts: Counter[str] = Counter()
    order = Pipeline.parse("inv").order(batch)
    out = realign(batch, order, policies=Policies(entities="drop"), counts=counts)
    assert tags_of(out) == [["O", "O", "O", "O"]]
    assert counts == {"ner_tags-dropped": 1, "ner_tags-total": 1}


@pytest.mark.parametrize(
    ("tags", "repaired", "n", "word"),
    [
        (["I-PER", "O"], ["B-PER", "O"], 1, 0),
        (["O", "I-PER", "I-PER"], ["O", "B-PER", "I-PER"], 1, 1),
        (["B-PER", "I-ORG", "I-ORG"], ["B-PER", "B-ORG", "I-ORG"], 1, 1),
        (["B-PER", "O", "I-PER"], ["B-PER", "O", "B-PER"], 1, 2),
        (["B-PER", "E-PER", "I-PER"], ["B-PER", "I-PER", "B-PER"], 2, 1),
    ],
)
def test_ill_formed_tags(tags: list[str], repaired: list[str], n: int, word: int) -> None:
    classes = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "E-PER")
    codes, offsets = np.array([classes.index(tag) for tag in tags], np.int32), np.array([0, len(tags)])
    codes.flags.writeable = False
    with pytest.raises(LayerError, match="ill-formed-tags") as caught:
        Spans.from_tags("ner_tags", codes, classes, offsets, where=lambda at: f"file:{at}")
    assert str(caught.value).startswith(f"file:{word}:")
    counts: Counter[str] = Counter()
    spans = Spans.from_tags("ner_tags", codes, classes, offsets, repair=True, counts=counts)
    assert [classes[tag] for tag in spans.tags(len(tags))] == repaired
    assert counts == {"ner_tags-repaired": n}


def test_an_entity_does_not_go_on_from_one_unit_to_the_next() -> None:
    codes = np.array([1, 2, 2], np.int32)
    with pytest.raises(LayerError, match="ill-formed-tags"):
        Spans.from_tags("ner_tags", codes, CLASSES, np.array([0, 2, 3]))
    spans = Spans.from_tags("ner_tags", codes, CLASSES, np.array([0, 3]))
    assert (spans.start.tolist(), spans.end.tolist()) == ([0], [3])
    empty = Spans.from_tags("ner_tags", codes, CLASSES, np.array([0, 0, 3, 3]))
    assert empty.tags(3).tolist() == [1, 2, 2]


def test_classes_without_a_b_or_an_i_of_some_type() -> None:
    """A set whose entities of a type are all of one word may not name its I-."""
    classes = ("O", "B-PER")
    spans = Spans.from_tags("ner_tags", np.array([1], np.int32), classes, np.array([0, 1]))
    assert [classes[tag] for tag in spans.tags(1)] == ["B-PER"]


def test_complete_classes() -> None:
    assert complete_classes(["O", "B-LOC", "I-PER"]) == ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
    assert complete_classes(["O"]) == complete_classes([]) == ("O",)
    assert complete_classes(["B-MISC", "B-DATE"]) == ("O", "B-DATE", "I-DATE", "B-MISC", "I-MISC")


# groups that count as one word


def contracted(row: list[str], spans: list[tuple[int, int]]) -> tuple[list[str], list[int]]:
    """A unit with each (first, last) as one word, and the word offsets of its groups."""
    inside = {word for first, last in spans for word in range(first + 1, last + 1)}
    offsets = [word for word in range(len(row)) if word not in inside] + [len(row)]
    return [" ".join(row[a:b]) for a, b in itertools.pairwise(offsets)], offsets


def expected_atomic(row: list[str], spans: list[tuple[int, int]], spec: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Order and sentences (word offsets) of a unit whose spans are one word to both."""
    joined, offsets = contracted(row, spans)
    order: list[int] = []
    cuts = []
    for s in reference.sentences(joined):
        words = joined[s.start : s.end]
        cuts.append((offsets[s.start], offsets[s.end]))
        source = row[offsets[s.start] : offsets[s.end]]  # the sentence's key is of its words
        if spec == "inv":
            local = reference.inv(len(words), s.tail)
        else:
            local = reference.perm(words, s.tail, window=2 if "window" in spec else 0, source=source)
        for group in local:
            order += range(offsets[s.start + group], offsets[s.start + group + 1])
    return order, cuts


@laws
@given(tagged_units(), st.sampled_from(["inv", "perm", "perm:window=2"]))
def test_atomic_entities_stay_whole(tagged: tuple[list[list[str]], list[list[str]]], spec: str) -> None:
    rows, tags = tagged
    batch = with_entities(rows, tags, split=False)
    counts: Counter[str] = Counter()
    found = Pipeline.parse(spec).derive(batch, Lexicon(), policies=Policies(entities="atomic"), counts=counts)
    indices = local_orders(found.source, found.order.check())
    cuts = lists(
        list(zip(found.source.sentences[:-1].tolist(), found.source.sentences[1:].tolist(), strict=True)),
        found.source.units,
    )
    for row, tag, index, cut, start in zip(rows, tags, indices, cuts, found.source.unit_words.tolist(), strict=False):
        spans = [(words[0], words[-1]) for _, words in reference.entity_spans(tag)]
        order, sentences = expected_atomic(row, spans, spec)
        assert [(a - start, b - start) for a, b in cut] == sentences
        assert index == order
        for first, last in spans:
            at = index.index(first)
            assert index[at : at + last - first + 1] == list(range(first, last + 1))
    kinds = [Counter(kind for kind, _ in reference.entity_spans(row)) for row in tags]
    assert [Counter(kind for kind, _ in reference.entity_spans(row)) for row in tags_of(found.derived)] == kinds
    assert counts == Counter({"ner_tags-total": sum(kind.total() for kind in kinds)})
    assert found.derived.tails.tolist() == found.source.tails.tolist()


@laws
@given(tagged_units())
def test_atomic_without_long_entities_is_the_free_order(tagged: tuple[list[list[str]], list[list[str]]]) -> None:
    rows, _ = tagged
    batch = with_entities(rows, [["B-PER"] * len(row) for row in rows])
    assert groups(batch, Policies(entities="atomic")) is None
    pipeline = Pipeline.parse("perm")
    assert pipeline.order(batch, Policies(entities="atomic")).index.tolist() == pipeline.order(batch).index.tolist()


def test_atomic_with_words_inserted_and_deleted() -> None:
    batch = with_entities([["a", "b", "c", "d", "e", "."]], [["O", "B-PER", "I-PER", "O", "O", "O"]])
    atomic = Policies(entities="atomic")
    marked = Pipeline((Mark(word=2),)).derive(batch, Lexicon(), policies=atomic)
    assert sentence_lists(marked.derived) == [["a", "🅁", "b", "c", "d", "e", "."]]
    assert tags_of(marked.derived) == [["O", "O", "B-PER", "I-PER", "O", "O", "O"]]
    dropped = Pipeline((Drop(every=2),)).derive(batch, Lexicon(), policies=atomic)
    assert sentence_lists(dropped.derived) == [["a", "d", "."]]  # the entity is one word, and the second
    assert marked.derived.tails.tolist() == dropped.derived.tails.tolist() == [1]


def test_stored_sentences_that_end_inside_a_group_are_not_silently_moved() -> None:
    """split=False (derived output read as a source) with groups that its sentences do not know."""
    batch = with_entities([["a", ".", "b", "c", "."]], [["B-PER", "I-PER", "I-PER", "O", "O"]])
    assert batch.sentences.tolist() == [0, 2, 5]
    atomic = Policies(entities="atomic")
    try:
        found = Pipeline.parse("inv").derive(batch, Lexicon(), policies=atomic, split=False)
    except LayerError:
        return
    assert found.order.sentences.tolist() == found.source.sentences.tolist()
    index = found.order.check().index.tolist()
    at = index.index(0)
    assert index[at : at + 3] == [0, 1, 2]


# trees


def is_tree(head: list[int]) -> bool:
    def depth(word: int) -> int:
        for steps in range(len(head) + 1):
            if head[word] == 0:
                return steps
            word = head[word] - 1
        raise AssertionError("a cycle")

    return sum(h == 0 for h in head) == (1 if head else 0) and all(depth(word) >= 0 for word in range(len(head)))


def deps_of(texts: pa.Array, n_words: int) -> Deps:
    """DEPS of words of sentences of n words."""
    deps = read_deps(texts, np.full(len(texts), n_words))
    assert isinstance(deps, Deps)
    return deps


def tree_batch(rows: list[list[str]], seed: int) -> tuple[Batch, list[dict[str, Any]]]:
    """Units with random trees, multiword tokens, empty nodes, enhanced dependencies."""
    rng = random.Random(seed)
    sentences = [conllu_row(row, rng) for row in rows]
    offsets = np.cumsum([0, *(len(row) for row in rows)])

    def flat(name: str) -> list[Any]:
        return [value for sentence in sentences for value in sentence[name]]

    tree = Tree(
        np.array(flat("head"), np.int32),
        Words.of("deprel", pa.array(flat("deprel"), pa.string()), filler="dep"),
        deps_of(string_array(flat("deps")), len(flat("deps"))),
        Nodes.read(pa.array([s["mwt"] for s in sentences], NODES), offsets, "-"),
        Nodes.read(pa.array([s["empty_nodes"] for s in sentences], NODES), offsets, "."),
    )
    upos = Words.of("upos", pa.array(flat("upos"), pa.string()), filler="X")
    return batch_of(rows, layers={"head": tree, "upos": upos}), sentences


@laws
@given(units, seeds, seeds, rates, rates)
def test_trees_are_the_reference_s_and_stay_trees(
    rows: list[list[str]], seed: int, shuffle: int, insert: float, delete: float
) -> None:
    batch, sentences = tree_batch(rows, seed)
    order = some_order(batch.sentences, shuffle, insert=insert, delete=delete)
    out = realign(batch, order)
    heads = column(out.layers["head"], out, "head")
    rels = column(out.layers["head"], out, "deprel")
    for sentence, index, marks, head, rel in zip(
        sentences, local_orders(batch, order), local_marks(batch, order), heads, rels, strict=True
    ):
        assert head == reference.heads(sentence["head"], index, marks)
        assert is_tree(head)
        kept = [sentence["deprel"][i] if i >= 0 else "dep" for i in index]
        became = [h == 0 and (i < 0 or sentence["head"][i] != 0) for h, i in zip(head, index, strict=True)]
        assert rel == ["root" if new else old for new, old in zip(became, kept, strict=True)]


@laws
@given(units, seeds, seeds)
def test_every_word_keeps_its_governor(rows: list[list[str]], seed: int, shuffle: int) -> None:
    batch, sentences = tree_batch(rows, seed)
    order = some_order(batch.sentences, shuffle)
    out = realign(batch, order)
    for sentence, index, head in zip(
        sentences, local_orders(batch, order), column(out.layers["head"], out, "head"), strict=True
    ):
        for place, word in enumerate(index):
            governor = sentence["head"][word]
            assert (index[head[place] - 1] + 1 if head[place] else 0) == governor


@laws
@given(units, seeds, seeds, rates, rates)
def test_multiword_tokens_stay_while_adjacent_and_in_order(
    rows: list[list[str]], seed: int, shuffle: int, insert: float, delete: float
) -> None:
    batch, sentences = tree_batch(rows, seed)
    order = some_order(batch.sentences, shuffle, insert=insert, delete=delete)
    counts: Counter[str] = Counter()
    out = realign(batch, order, counts=counts)
    dissolved = 0
    for sentence, index, found in zip(
        sentences, local_orders(batch, order), column(out.layers["head"], out, "mwt"), strict=True
    ):
        expected = []
        for node in sentence["mwt"]:
            first, last = (int(n) - 1 for n in node["id"].split("-"))
            at = index.index(first) if first in index else -1
            if at >= 0 and index[at : at + last - first + 1] == list(range(first, last + 1)):
                expected.append((at + 1, at + 1 + last - first))
            else:
                dissolved += 1
        assert found == [{**sentence["mwt"][0], "id": f"{a}-{b}"} for a, b in sorted(expected)]
    assert counts["mwt-dissolved"] + counts["mwt-deleted"] == dissolved


@laws
@given(units, seeds, seeds, rates, rates)
def test_empty_nodes_and_enhanced_dependencies_are_renumbered(
    rows: list[list[str]], seed: int, shuffle: int, insert: float, delete: float
) -> None:
    batch, sentences = tree_batch(rows, seed)
    order = some_order(batch.sentences, shuffle, insert=insert, delete=delete)
    counts: Counter[str] = Counter()
    out = realign(batch, order, counts=counts)
    gone = 0
    for sentence, index, found, deps, head, relations in zip(
        sentences,
        local_orders(batch, order),
        *(column(out.layers["head"], out, name) for name in ("empty_nodes", "deps", "head", "deprel")),
        strict=True,
    ):
        numbers = {str(word + 1): str(place + 1) for place, word in enumerate(index) if word >= 0}
        for node in sentence["empty_nodes"]:
            after, minor = node["id"].split(".")
            if after == "0" or after in numbers:
                numbers[node["id"]] = f"{numbers.get(after, '0')}.{minor}"
            else:
                gone += 1
        source = {str(number): text for number, text in enumerate(sentence["deps"], 1)}
        source |= {node["id"]: node["deps"] for node in sentence["empty_nodes"]}
        came = {str(place): None for place in range(1, len(index) + 1)} | {new: old for old, new in numbers.items()}
        own = {str(place): f"{h}:{r}" for place, (h, r) in enumerate(zip(head, relations, strict=True), 1)}
        root = str(head.index(0) + 1) if head else "0"
        expected = reference.connected(
            source,
            {id: "_" if old is None else reference.enhanced(source[old], numbers) for id, old in came.items()},
            came if head else {},  # a sentence without words has no graph
            {id: own.get(id, f"{root}:dep") for id in came},
        )
        nodes = [
            {**node, "id": numbers[node["id"]], "deps": expected[numbers[node["id"]]]}
            for node in sentence["empty_nodes"]
            if node["id"] in numbers
        ]
        nodes.sort(key=lambda node: [int(n) for n in node["id"].split(".")])
        assert found == nodes
        assert deps == [expected[str(place)] for place in range(1, len(index) + 1)]
    assert counts["empty-nodes-dropped"] == gone


@laws
@given(units, seeds, st.sampled_from(["inv", "perm"]))
def test_atomic_multiword_tokens_stay_whole(rows: list[list[str]], seed: int, spec: str) -> None:
    batch, sentences = tree_batch(rows, seed)
    counts: Counter[str] = Counter()
    found = Pipeline.parse(spec).derive(batch, Lexicon(), policies=Policies(mwt="atomic"), counts=counts)
    assert not counts
    for row, sentence, index, mwt in zip(
        rows,
        sentences,
        local_orders(found.source, found.order),
        column(found.derived.layers["head"], found.derived, "mwt"),
        strict=True,
    ):
        spans = [tuple(int(n) - 1 for n in node["id"].split("-")) for node in sentence["mwt"]]
        assert index == expected_atomic(row, spans, spec)[0]  # type: ignore[arg-type]
        assert len(mwt) == len(spans)


def test_a_deleted_word_s_dependents_go_to_its_head() -> None:
    #                 the  cat  that  slept  .        heads: cat slept.. , root = cat
    head = np.array([2, 0, 4, 2, 2], np.int32)
    deprel = Words.of("deprel", pa.array(["det", "root", "nsubj", "acl", "punct"]), filler="dep")
    upos = Words.of("upos", pa.array(["DET", "NOUN", "PRON", "PUNCT", "PUNCT"]), filler="X")
    batch = batch_of([["the", "cat", "that", "slept", "."]], layers={"head": Tree(head, deprel), "upos": upos})
    out = Pipeline((DropPunct(),)).derive(batch, Lexicon()).derived
    assert sentence_lists(out) == [["the", "cat", "that"]]
    assert column(out.layers["head"], out, "head") == [[2, 0, 2]]
    assert column(out.layers["head"], out, "deprel") == [["det", "root", "nsubj"]]
    assert column(out.layers["upos"], out, "upos") == [["DET", "NOUN", "PRON"]]


def test_deleted_words_that_govern_each_other_are_refused() -> None:
    """Heads of an undone language need not form trees."""
    head, deprel = np.array([0, 4, 1, 2], np.int32), Words.of("deprel", pa.array(["x"] * 4), filler="dep")
    batch = batch_of([["a", "b", "c", "d"]], layers={"head": Tree(head, deprel)})
    with pytest.raises(LayerError, match="the heads of deleted words form a cycle"):
        Pipeline((Drop(every=2),)).derive(batch, Lexicon())


def test_a_group_that_crosses_sentences_is_refused() -> None:
    with pytest.raises(LayerError, match="a sentence ends inside a group"):
        contract(batch_of([["a", "b", "."], ["c"]]), np.array([0, 1, 4]))


def test_a_deleted_root_leaves_a_tree_whose_root_is_called_root() -> None:
    head = np.array([2, 0, 2], np.int32)
    deprel = Words.of("deprel", pa.array(["nsubj", "root", "obj"]), filler="dep")
    batch = batch_of([["a", "b", "c"]], layers={"head": Tree(head, deprel)})
    out = Pipeline((Drop(every=2),)).derive(batch, Lexicon()).derived
    assert column(out.layers["head"], out, "head") == [[0, 1]]
    assert column(out.layers["head"], out, "deprel")[0][0] == "root"


def test_an_inserted_word_hangs_under_the_word_that_it_marks() -> None:
    head = np.array([2, 0, 2], np.int32)
    deprel = Words.of("deprel", pa.array(["nsubj", "root", "obj"]), filler="dep")
    batch = batch_of(
        [["a", "b", "c"]],
        layers={"head": Tree(head, deprel, deps_of(string_array(["2:nsubj", "0:root", "1:x|2:obj"]), 3))},
    )
    out = Pipeline((Mark(word=3), Pipeline.parse("inv").transforms[0])).derive(batch, Lexicon()).derived
    assert sentence_lists(out) == [["c", "🅁", "b", "a"]]
    assert column(out.layers["head"], out, "head") == [[3, 1, 0, 3]]
    assert column(out.layers["head"], out, "deprel") == [["obj", "dep", "root", "nsubj"]]
    assert column(out.layers["head"], out, "deps") == [["3:obj|4:x", "1:dep", "0:root", "3:nsubj"]]


# answers


@st.composite
def contexts_with_answers(draw: st.DrawFn) -> tuple[list[list[str]], list[tuple[int, list[tuple[int, int]]]]]:
    """Contexts, and questions: (context, [(begin, stop) in code points of its text])."""
    rows = draw(units_of(st.one_of(few_words, scan_words), min_size=1))
    questions = []
    for unit, row in enumerate(rows):
        size = len(" ".join(row))
        for _ in range(draw(st.integers(0, 2))):
            begins = draw(st.lists(st.integers(0, size - 1), max_size=3))
            spans = [(b, draw(st.integers(b + 1, size))) for b in begins]
            questions.append((unit, [(b, s) for b, s in spans if " ".join(row)[b:s].strip()]))  # a blank one is none
    return rows, questions


def answer_batch(
    rows: list[list[str]], questions: list[tuple[int, list[tuple[int, int]]]], counts: Counter[str]
) -> Batch:
    batch = batch_of(rows)
    records = np.array([[unit] for unit, _ in questions], np.int32).reshape(-1, 1)
    batch = replace(batch, records=records, documents=np.arange(len(records)))
    given = pa.array(
        [
            {"text": [" ".join(rows[u])[b:s] for b, s in found], "answer_start": [b for b, _ in found]}
            for u, found in questions
        ],
        ANSWERS,
    )
    return replace(batch, layers={"answers": Answers.of("answers", given, batch, 0, counts)})


def covered(row: list[str], begin: int, stop: int) -> list[int]:
    """The words that a span touches."""
    at, words = 0, []
    for i, word in enumerate(row):
        if at < stop and at + len(word) > begin:
            words.append(i)
        at += len(word) + 1
    return words


@laws
@given(contexts_with_answers(), seeds, rates, rates, st.sampled_from(["split", "drop"]))
def test_answers_are_the_reference_s(
    found: tuple[list[list[str]], list[tuple[int, list[tuple[int, int]]]]],
    seed: int,
    insert: float,
    delete: float,
    policy: Any,
) -> None:
    rows, questions = found
    counts: Counter[str] = Counter()
    batch = answer_batch(rows, questions, counts)
    spans = [(u, b, s, covered(rows[u], b, s)) for u, answers in questions for b, s in answers]
    starts = [np.cumsum([0, *(len(word) + 1 for word in row)]) for row in rows]
    widened = sum((b, s) != (starts[u][w[0]], starts[u][w[-1] + 1] - 1) for u, b, s, w in spans)
    assert counts["answers-widened"] == widened
    order = some_order(batch.sentences, seed, insert=insert, delete=delete)
    out = realign(batch, order, policies=Policies(answers=policy))
    texts = [" ".join(row) for row in unit_lists(out)]
    indices = local_orders(batch, order)
    for (unit, answers), answer in zip(questions, column(out.layers["answers"], out, "answers"), strict=True):
        expected = []
        for begin, stop in answers:
            run = reference.answer(covered(rows[unit], begin, stop), indices[unit], policy)
            if run is not None:
                words = unit_lists(out)[unit]
                at = sum(len(word) + 1 for word in words[: run[0]])
                expected.append((at, " ".join(words[run[0] : run[1]])))
        assert list(zip(answer["answer_start"], answer["text"], strict=True)) == expected
        for start, text_ in zip(answer["answer_start"], answer["text"], strict=True):
            assert texts[unit][start : start + len(text_)] == text_


@laws
@given(contexts_with_answers(), st.sampled_from(["inv", "perm"]))
def test_atomic_answers_stay_whole(
    found: tuple[list[list[str]], list[tuple[int, list[tuple[int, int]]]]], spec: str
) -> None:
    rows, questions = found
    batch = answer_batch(rows, questions, Counter())
    counts: Counter[str] = Counter()
    out = Pipeline.parse(spec).derive(batch, Lexicon(), policies=Policies(answers="atomic"), counts=counts)
    for index, unit in zip(local_orders(out.source, out.order.check()), range(len(rows)), strict=True):
        # Questions that follow each other and have the same context, in one unit or in several, share its groups.
        runs = [[u for u, _ in run] for _, run in itertools.groupby(questions, key=lambda question: rows[question[0]])]
        near = {unit}.union(*(run for run in runs if unit in run))
        spans = [covered(rows[unit], b, s) for u, answers in questions if u in near for b, s in answers]
        order, _ = expected_atomic(rows[unit], [(w[0], w[-1]) for w in spans], spec)
        assert index == order
    texts = [" ".join(row) for row in unit_lists(out.derived)]
    for (unit, answers), answer in zip(
        questions, column(out.derived.layers["answers"], out.derived, "answers"), strict=True
    ):
        assert len(answer["text"]) == len(answers)
        for (b, s), start, text_ in zip(answers, answer["answer_start"], answer["text"], strict=True):
            assert texts[unit][start : start + len(text_)] == text_
            assert set(covered(rows[unit], b, s)) <= set(range(len(rows[unit])))


def test_an_answer_that_is_cut_keeps_its_longest_run_and_is_counted() -> None:
    batch = answer_batch([["a", "b", "c", ".", "d", "e"]], [(0, [(0, 9)])], Counter())
    assert column(batch.layers["answers"], batch, "answers") == [{"text": ["a b c . d"], "answer_start": [0]}]
    order = Pipeline.parse("inv").order(batch)
    for policy, expected in (("split", ["c b a ."]), ("drop", [])):
        counts: Counter[str] = Counter()
        out = realign(batch, order, policies=Policies(answers=policy), counts=counts)  # type: ignore[arg-type]
        assert sentence_lists(out) == [["c", "b", "a", "."], ["e", "d"]]
        assert column(out.layers["answers"], out, "answers")[0]["text"] == expected
        assert counts == {"answers-cut" if policy == "split" else "answers-dropped": 1}


def test_inserted_words_do_not_make_a_run_of_an_answer_longer() -> None:
    """Of two runs of two of its words each, the first is kept, though the second has a marker in it."""
    batch = answer_batch([["a", "b", "c", "d", "x"]], [(0, [(0, 7)])], Counter())
    index = np.array([0, 1, 4, 2, -1, 3], np.int32)
    order = Order(index, np.array([0, 6]), np.zeros(1, np.int32), 5, pa.array(["+"]), np.array([3], np.int32))
    out = realign(batch, order.check())
    assert sentence_lists(out) == [["a", "b", "x", "c", "+", "d"]]
    assert column(out.layers["answers"], out, "answers") == [{"text": ["a b"], "answer_start": [0]}]


SQUAD = Schema((Side("context", text="context"), Side("question", text="question")), (Field("answers", "answers"),))


def squad_batch(context: str, answers: list[str], question: str = "Why ?") -> Batch:
    table = pa.table(
        {
            "context": [context],
            "question": [question],
            "answers": pa.array(
                [{"text": answers, "answer_start": [context.index(answer) for answer in answers]}], ANSWERS
            ),
        }
    )
    return to_batch(table, SQUAD, split_at_spaces, documents=np.zeros(1, np.int64), where=where, counts=Counter())


def test_no_sentence_ends_inside_an_atomic_answer_not_even_at_a_line_end() -> None:
    batch = squad_batch("one two\nthree four", ["two\nthree"])
    free = Pipeline.parse("inv").derive(batch, Lexicon())
    assert sentence_lists(free.source)[:2] == [["one", "two"], ["three", "four"]]
    found = Pipeline.parse("inv").derive(batch, Lexicon(), policies=Policies(answers="atomic"))
    assert sentence_lists(found.source)[0] == ["one", "two", "three", "four"]
    assert unit_lists(found.derived)[0] == ["four", "two", "three", "one"]
    assert column(found.derived.layers["answers"], found.derived, "answers")[0]["text"] == ["two three"]


def test_answers_in_raw_text_with_gaps() -> None:
    context = " \n one  two\tthree\u00a0x four . \n five "
    batch = squad_batch(context, ["two\tthree", "our", "x four . \n five"])
    layer = batch.layers["answers"]
    assert isinstance(layer, Answers)
    assert [(a, b) for a, b in zip(layer.start.tolist(), layer.end.tolist(), strict=True)] == [(1, 3), (3, 4), (2, 6)]
    assert column(layer, batch, "answers")[0]["text"] == ["two\tthree", "our", "x four . \n five"]
    out = Pipeline.parse("inv").derive(batch, Lexicon()).derived
    text_ = out.texts()[0].as_py()
    assert text_ == "four three\u00a0x two one . five"
    moved = column(out.layers["answers"], out, "answers")[0]
    assert moved["text"] == ["three\u00a0x two", "four", "four three\u00a0x"]
    assert [text_[a : a + len(t)] for a, t in zip(moved["answer_start"], moved["text"], strict=True)] == moved["text"]


# composition and undo


def all_layers(rows: list[list[str]], tags: list[list[str]], seed: int) -> Batch:
    batch, _ = tree_batch(rows, seed)
    ids = Values("id", pa.array([f"r{i}" for i in range(len(rows))], pa.string()))
    return replace(batch, layers={**batch.layers, **with_entities(rows, tags).layers, "id": ids})


def everything(batch: Batch) -> dict[str, Any]:
    out: dict[str, Any] = {
        "words": unit_lists(batch),
        "sentences": sentence_lists(batch),
        "tails": batch.tails.tolist(),
    }
    for layer in batch.layers.values():
        out |= {name: values.to_pylist() for name, values in layer.columns(batch).items()}
    return out


@laws
@given(tagged_units(), seeds, seeds, rates)
def test_the_inverse_restores_words_tags_trees(
    tagged: tuple[list[list[str]], list[list[str]]], seed: int, shuffle: int, insert: float
) -> None:
    """All but entities taken apart (one becomes several) and multiword tokens dissolved: `source_<label>` has those."""
    batch = all_layers(*tagged, seed)
    order = some_order(batch.sentences, shuffle, insert=insert)
    back = everything(realign(realign(batch, order), order.invert(batch.sentences, batch.tails)))
    source = everything(batch)
    for name in set(source) - {"ner_tags", "mwt"}:
        assert back[name] == source[name]


@laws
@given(tagged_units(), seeds, seeds, seeds, st.sampled_from([(0.0, 0.0), (0.5, 0.0), (0.0, 0.5)]))
def test_composing_then_moving_is_moving_in_turn(
    tagged: tuple[list[list[str]], list[list[str]]], seed: int, one: int, two: int, insert: tuple[float, float]
) -> None:
    """Both insert: left out, for a mark on a mark hangs, when composed, under the word that this one marks."""
    batch = all_layers(*tagged, seed)
    first = some_order(batch.sentences, one, insert=insert[0], marker="+")
    second = some_order(first.sentences, two, insert=insert[1], marker="*")
    at_once = everything(realign(batch, first.then(second)))
    in_turn = everything(realign(realign(batch, first), second))
    for name in set(at_once) - {"ner_tags", "mwt"}:  # what the first takes apart stays apart
        assert at_once[name] == in_turn[name]


def test_an_empty_node_of_a_sentence_that_lost_all_its_words() -> None:
    nodes = Nodes.read(pa.array([[node_line("0.1", "gone", "_")], []], NODES), np.array([0, 1, 1]), ".")
    deprel = Words.of("deprel", pa.array(["root"]), filler="dep")
    batch = batch_of([["a"], []], layers={"head": Tree(np.zeros(1, np.int32), deprel, None, None, nodes)})
    out = Pipeline((Drop(every=1),)).derive(batch, Lexicon()).derived
    assert unit_lists(out) == [[], []]
    again = Pipeline.parse("inv").derive(out, Lexicon(), split=False).derived
    assert [node["id"] for node in column(again.layers["head"], again, "empty_nodes")[0]] == ["0.1"]


@laws
@given(tagged_units(), seeds, seeds, seeds)
def test_words_and_tags_compose_with_deletions_too(
    tagged: tuple[list[list[str]], list[list[str]]], seed: int, one: int, two: int
) -> None:
    batch = all_layers(*tagged, seed)
    first = some_order(batch.sentences, one, insert=0.3, delete=0.3, marker="+")
    if not first.n_derived:
        return  # see the test before
    second = some_order(first.sentences, two, insert=0.3, delete=0.3, marker="*")
    at_once = everything(realign(batch, first.then(second)))
    in_turn = everything(realign(realign(batch, first), second))
    for name in ("words", "sentences", "tails", "upos", "id"):  # deprel: which word becomes the root depends on the way
        assert at_once[name] == in_turn[name]


def test_a_move_starts_with_no_counts() -> None:
    batch = batch_of([["a"]])
    order = Order.identity(batch.sentences, batch.tails)
    assert Realignment(batch, order).counts == {}
    assert Realignment(batch, order).counts is not Realignment(batch, order).counts


# gaps


whites = st.text(st.sampled_from(" \t\n\u3000"), max_size=3)


@st.composite
def raw_texts(draw: st.DrawFn) -> list[str]:
    rows = draw(units_of(st.sampled_from(["a", "Bc", "é", ".", '"', "𝕎"])))
    return [
        draw(whites).replace("\u3000", "") + "".join(word + " " + draw(whites).replace("\u3000", "") for word in row)
        for row in rows
    ]


@laws
@given(raw_texts())
def test_gaps_spell_the_text_and_their_column_reads_back(texts: list[str]) -> None:
    table = pa.table({"text": pa.array(texts, pa.string())})
    schema = Schema((Side("", text="text"),))
    batch = to_batch(table, schema, split_at_spaces, documents=np.arange(len(texts)), where=where, counts=Counter())
    shared = batch.records[:, 0].tolist()
    assert batch.gaps is not None
    assert [batch.texts().to_pylist()[unit] for unit in shared] == texts
    for row, unit in zip(texts, shared, strict=True):
        assert unit_lists(batch)[unit] == row.split()
    starts = lists(batch.word_starts().tolist(), batch.unit_words)
    for unit, words in enumerate(unit_lists(batch)):
        row = batch.texts().to_pylist()[unit]
        assert [row[at : at + len(word)] for at, word in zip(starts[unit], words, strict=True)] == words
    again = Gaps.read(batch.gaps.column(batch.unit_words, batch.lines), batch.unit_words, batch.lines)
    assert replace(batch, gaps=again).texts().equals(batch.texts())
    cut = split_sentences(batch)
    assert all("\n" not in gap for gap in gaps_inside_sentences(cut))


def gaps_inside_sentences(batch: Batch) -> list[str]:
    """The white space before every word that begins no sentence."""
    assert batch.gaps is not None
    before = batch.gaps.before(batch.unit_words)
    first = set(batch.sentences.tolist())
    return [batch.gaps.strings[int(code)].as_py() for word, code in enumerate(before) if word not in first]


@pytest.mark.parametrize(
    "content",
    [
        "a b .\n",
        "a . b . c\nd\n",
        "a . b",
        "\n\n a  b .  c \n \n\n= d =\n",
        "a\tb . ! c\r\nd\n\n\n",
        '" a . " b\n" c\n',
    ],
)
def test_lines_of_running_text_become_sentences_and_keep_their_gaps(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.txt").write_bytes(content.encode())
    (batch,) = read_text(tmp_path / "x.txt", Splitter("space"))
    cut = split_sentences(batch)
    assert "".join(cut.texts().to_pylist()) == content
    assert cut.n_records == len(cut.tails) == len(cut.units) - 1
    assert cut.gaps is not None
    stored = cut.gaps.column(cut.unit_words, cut.lines)
    again = Gaps.read(stored, cut.unit_words, cut.lines)
    assert "".join(replace(cut, gaps=again).texts().to_pylist()) == content
    if content == "a . b . c\nd\n":
        assert stored.to_pylist() == [[], [], [], []]  # the usual goes without saying


def test_any_number_of_tags_is_numbered_once() -> None:
    """Quadratic work would take minutes: 100,000 types of entities."""
    kinds = [f"T{i}" for i in range(100_000)]
    classes = ("O", *(f"{prefix}-{kind}" for kind in kinds for prefix in "BI"))
    tags = np.arange(1, len(classes), 2, dtype=np.int32)
    spans = Spans.from_tags("ner_tags", tags, classes, np.array([0, len(tags)]))
    assert spans.types == tuple(kinds)
    assert spans.tags(len(tags)).tolist() == tags.tolist()
