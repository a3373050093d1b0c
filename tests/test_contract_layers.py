"""Every kind of layer of the registry keeps the same promises under random orders that insert and delete words.

A kind without a sample here fails: it is an entry of `SAMPLES`.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.cli.options import sentence, templates_of
from derivlang.core.arrow import differs
from derivlang.core.batch import Batch, groups, realign
from derivlang.core.errors import LayerError, UsageError
from derivlang.core.from_table import from_table
from derivlang.core.layers import base as layers
from derivlang.core.layers.answers import ANSWERS
from derivlang.core.layers.base import Labels, Layer, find_layer, layer_kinds
from derivlang.core.layers.nodes import NODES
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.policies import Policies
from derivlang.core.schema import Field, Schema, Side
from derivlang.core.to_table import to_table
from tests.helpers import ROOT
from tests.plugin.derivlang_sample.referents import Referents
from tests.strategies import (
    batch_of,
    conllu_row,
    derive,
    few_words,
    laws,
    scan_words,
    seeds,
    some_brackets,
    some_order,
    units_of,
)

Columns = dict[str, pa.Array]
Rows = list[list[str]]
STRINGS = pa.list_(pa.string())
UPOS = ("NOUN", "VERB", "PUNCT", "X")
TAGS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG")
POLICIES = [
    Policies(),
    Policies(entities="drop", answers="drop"),
    Policies(entities="atomic", answers="atomic", mwt="atomic"),
]


@pytest.fixture(autouse=True, scope="module")
def _sample() -> Iterator[None]:
    """The layer of the sample package is registered in this process."""
    layers.register_layer("referents", Referents)
    yield
    del layers.LAYERS.added["referents"]


@dataclass(frozen=True)
class Sample:
    """columns: of a labelled table, for rows of words. per_word: those with one value a word."""

    fields: tuple[Field, ...]
    columns: Callable[[Rows, random.Random], Columns]
    per_word: tuple[str, ...] = ()
    parsed: bool = False

    @property
    def schema(self) -> Schema:
        return Schema((Side("", words="tokens"),), self.fields, parsed=self.parsed)


def treebank(*names: str) -> Callable[[Rows, random.Random], Columns]:
    """Columns of CoNLL-U sentences."""
    types = {"head": pa.list_(pa.int32()), "mwt": NODES, "empty_nodes": NODES}

    def columns(rows: Rows, rng: random.Random) -> Columns:
        sentences = [conllu_row(row, rng) for row in rows]
        return {name: pa.array([s[name] for s in sentences], types.get(name, STRINGS)) for name in names}

    return columns


def entities(rows: Rows, rng: random.Random) -> Columns:
    def tags(n: int) -> list[str]:
        found: list[str] = []
        while len(found) < n:
            kind = rng.choice(["O", "PER", "ORG"])
            size = min(rng.randint(1, 4), n - len(found))
            found += ["O"] * size if kind == "O" else [f"B-{kind}", *[f"I-{kind}"] * (size - 1)]
        return found

    return {"ner_tags": pa.array([tags(len(row)) for row in rows], STRINGS)}


def answers(rows: Rows, rng: random.Random) -> Columns:
    """Some of them begin or end inside a word, and some overlap."""

    def found(text: str) -> dict[str, list[Any]]:
        begins = [rng.randrange(len(text)) for _ in range(rng.randint(0, 3))] if text else []
        ends = [rng.randint(begin + 1, len(text)) for begin in begins]
        return {"text": [text[b:e] for b, e in zip(begins, ends, strict=True)], "answer_start": begins}

    return {"answers": pa.array([found(" ".join(row)) for row in rows], ANSWERS)}


def values(rows: Rows, rng: random.Random) -> Columns:
    return {"mood": pa.array([rng.choice(["glad", "sad"]) for _ in rows], pa.string())}


def constituents(rows: Rows, rng: random.Random) -> Columns:
    return {"parse": pa.array([some_brackets(row, rng) for row in rows], pa.string())}


def heads(rows: Rows, rng: random.Random) -> Columns:
    """Places of earlier words, so that the words that an order deletes form no cycle."""
    numbers = [[rng.randint(-1, place) for place in range(len(row))] for row in rows]
    return {"refers": pa.array(numbers, pa.list_(pa.int32()))}


def referents(rows: Rows, rng: random.Random) -> Columns:
    numbers = [[rng.randint(0, len(row)) for _ in row] for row in rows]
    return {"refers": pa.array(numbers, pa.list_(pa.int32()))}


TREE = ("head", "deprel", "deps")
SAMPLES = {
    "answers": Sample((Field("answers", "answers"),), answers),
    "constituents": Sample((Field("parse", "constituents"),), constituents),
    "entities": Sample((Field("ner_tags", "entities", TAGS),), entities, ("ner_tags",)),
    "heads": Sample((Field("refers", "heads"),), heads, ("refers",)),
    "misc": Sample((Field("misc", "misc"),), treebank("misc"), ("misc",)),
    "parsed-tags": Sample((), treebank("upos", "head", "deprel"), ("upos",), parsed=True),
    "parsed-tree": Sample((), treebank("upos", "head", "deprel"), ("head", "deprel"), parsed=True),
    "referents": Sample((Field("refers", "referents"),), referents, ("refers",)),
    "tags": Sample(
        (Field("upos", "tags", UPOS), Field("lemmas", "tags", lexical=True)),
        treebank("upos", "lemmas"),
        ("upos", "lemmas"),
    ),
    "tree": Sample((Field("head", "tree", lexical=True),), treebank(*TREE, "mwt", "empty_nodes"), TREE),
    "value": Sample((Field("mood", "value", ("glad", "sad")),), values),
}
every = pytest.mark.parametrize("kind", SAMPLES)
some_rows = units_of(st.one_of(few_words, scan_words))
rates = st.sampled_from([0.0, 0.0, 0.3, 0.9])


def where(row: int, word: int | None) -> str:
    return f"file:{row}" if word is None else f"file:{row}.{word}"


def layers_of(kind: str, labels: Labels) -> dict[str, Layer]:
    return {field.column: find_layer(field.kind).read(field, labels) for field in SAMPLES[kind].schema.layer_fields}


def labelled(kind: str, rows: Rows, seed: int) -> Batch:
    """A batch of the rows with the sample's layers, whose arrays are read-only."""
    batch = batch_of(rows)
    layers = layers_of(kind, Labels(SAMPLES[kind].columns(rows, random.Random(seed)), batch, where))
    for array in (array for layer in layers.values() for array in arrays_in(layer)):
        array.flags.writeable = False
    return replace(batch, layers=layers)


def arrays_in(thing: Any) -> Iterator[np.ndarray]:
    for field in fields(thing):
        value = getattr(thing, field.name)
        if isinstance(value, np.ndarray):
            yield value
        elif is_dataclass(value):
            yield from arrays_in(value)


def written(batch: Batch) -> dict[str, list[Any]]:
    columns = {name: column for layer in batch.layers.values() for name, column in layer.columns(batch).items()}
    assert all(len(column) == batch.n_records for column in columns.values())
    return {name: column.to_pylist() for name, column in columns.items()}


def test_every_kind_has_a_sample() -> None:
    assert set(SAMPLES) == set(layer_kinds())
    assert all(issubclass(find_layer(kind), Layer) for kind in SAMPLES)
    with pytest.raises(UsageError, match="there is no layer 'tag'; did you mean tags"):
        find_layer("tag")


@every
@laws
@given(some_rows, seeds, seeds, rates, rates, st.sampled_from(POLICIES))
def test_the_source_and_the_derived_labels_are_read_back_from_rows(
    kind: str, rows: Rows, seed: int, shuffle: int, insert: float, delete: float, policies: Policies
) -> None:
    schema, batch = SAMPLES[kind].schema, labelled(kind, rows, seed)
    order = some_order(batch.sentences, shuffle, insert=insert, delete=delete)
    derived = realign(batch, order, policies=policies)
    exact = order.is_permutation
    columns = to_table(batch, derived, order, schema, Lexicon(), has_order=True, exact=exact, policies=policies)
    source, image, _ = from_table(pa.table(columns), schema, Lexicon())
    assert written(source) == written(batch)
    assert written(image) == written(derived)


@laws
@given(st.lists(st.tuples(*[st.lists(few_words, max_size=6)] * 2), max_size=4), seeds, seeds)
def test_a_parser_s_labels_of_both_sides_are_read_back(
    pairs: list[tuple[list[str], ...]], seed: int, shuffle: int
) -> None:
    rows = [pair[side] for side in range(2) for pair in pairs]
    schema = Schema((Side("premise", text="premise"), Side("hypothesis", text="hypothesis")), parsed=True)
    records = np.arange(len(rows), dtype=np.int32).reshape(2, -1).T.copy()
    batch = replace(batch_of(rows), records=records, documents=np.arange(len(pairs)), sides=("premise", "hypothesis"))
    found = SAMPLES["parsed-tree"].columns(rows, random.Random(seed))
    table = {
        f"{side}_{name}": column.slice(number * len(pairs), len(pairs))
        for name, column in found.items()
        for number, side in enumerate(batch.sides)
    }
    layers = layers_of("parsed-tree", Labels(table, batch, where))
    order = some_order(batch.sentences, shuffle)
    batch = replace(batch, layers=layers)
    derived = realign(batch, order)
    columns = to_table(batch, derived, order, schema, Lexicon(), has_order=True, exact=True)
    source, image, _ = from_table(pa.table(columns), schema, Lexicon())
    assert written(source) == written(batch) == {name: column.to_pylist() for name, column in table.items()}
    assert written(image) == written(derived)


@every
@laws
@given(some_rows, seeds, seeds)
def test_what_may_not_change_is_restored_by_the_inverse(kind: str, rows: Rows, seed: int, shuffle: int) -> None:
    batch = labelled(kind, rows, seed)
    same = Order.identity(batch.sentences, batch.tails)
    order = some_order(batch.sentences, shuffle)
    there = realign(realign(batch, order), order.invert(batch.sentences, batch.tails))
    for has_order, back in ((False, realign(batch, same)), (True, there)):
        for name, layer in batch.layers.items():
            if layer.changes in (("words", "never") if has_order else ("order", "words", "never")):
                for column, found in layer.columns(batch).items():
                    assert not differs(found, back.layers[name].columns(back)[column]).any()


@every
@laws
@given(some_rows, seeds, st.sampled_from(["inv", "perm", "mark:2,inv", "skip:2"]))
def test_a_row_has_the_labels_that_it_has_alone(kind: str, rows: Rows, seed: int, spec: str) -> None:
    batch = labelled(kind, rows, seed)
    together, table = written(derive(spec, batch).derived), SAMPLES[kind].columns(rows, random.Random(seed))
    for number, row in enumerate(rows):
        labels = Labels({name: column.slice(number, 1) for name, column in table.items()}, batch_of([row]), where)
        alone = derive(spec, replace(batch_of([row]), layers=layers_of(kind, labels))).derived
        assert written(alone) == {name: column[number : number + 1] for name, column in together.items()}


@every
@laws
@given(some_rows, seeds, seeds, rates, rates, st.sampled_from(POLICIES))
def test_what_is_counted_is_declared(
    kind: str, rows: Rows, seed: int, shuffle: int, insert: float, delete: float, policies: Policies
) -> None:
    batch, counts = labelled(kind, rows, seed), Counter[str]()
    realign(batch, some_order(batch.sentences, shuffle, insert=insert, delete=delete), policies=policies, counts=counts)
    declared = {name.format(n) for n, layer in batch.layers.items() for name in layer.losses}
    assert set(counts) <= declared


@every
def test_losses_are_in_the_documentation(kind: str) -> None:
    table = (ROOT / "docs" / "reference" / "counts.md").read_text("utf-8")
    names = {"entities": "ner_tags", "answers": "answers", "constituents": "parse"}
    for name in find_layer(kind).losses:
        if kind != "referents":
            notes = "^{}-.*-dropped" if kind == "misc" else "^misc-.*-dropped"
            name = re.sub(notes, "misc-KEY-dropped", name)
            assert f"| `{name.format(names.get(kind))}` | " in table


@every
def test_every_loss_reads_as_a_sentence(kind: str) -> None:
    for name, template in templates_of([Field("cited", kind)]).items():
        one, many = (sentence(name, count, {name: template}) for count in (1, 2345))
        assert one.startswith("1 ")
        assert many.startswith("2,345 ")
        assert one[2:] != many[6:]
        assert not set("[]|{}") & set(one + many)


@every
@laws
@given(some_rows, seeds)
def test_groups_are_made_by_policies_alone(kind: str, rows: Rows, seed: int) -> None:
    batch = labelled(kind, rows, seed)
    assert groups(batch, Policies()) is None
    found = groups(batch, Policies(entities="atomic", answers="atomic", mwt="atomic"))
    assert found is None or set(batch.unit_words.tolist()) <= set(found.tolist())  # none goes beyond its unit


@pytest.mark.parametrize(("kind", "column"), [(kind, name) for kind in SAMPLES for name in SAMPLES[kind].per_word])
@pytest.mark.parametrize("change", [lambda row: row[:-1], lambda row: [*row, *row[:1]], lambda row: None])
def test_a_row_with_more_or_fewer_values_than_words_is_refused(kind: str, column: str, change: Any) -> None:
    rows = [["a", "b", "."], ["c", "d"]]
    table = SAMPLES[kind].columns(rows, random.Random(0))
    first, second = table[column].to_pylist()
    table[column] = pa.array([first, change(second)], table[column].type)
    for place, message in ((where, "file:1: 2 words but"), (None, f"2 words but .* in {column}")):
        labels = Labels(table, batch_of(rows), place)
        with pytest.raises(LayerError, match=message) as caught:
            layers_of(kind, labels)
        assert caught.value.id == "label-length"
