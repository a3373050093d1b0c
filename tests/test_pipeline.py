"""Pipeline: a spec parses to what it says, its canonical form parses back, and errors say what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import derivlang
from derivlang.core import plugins
from derivlang.core.arrays import Int64
from derivlang.core.batch import Batch, realign
from derivlang.core.errors import DerivlangError, LayerError, UsageError
from derivlang.core.keys import Draws
from derivlang.core.lexicon import TypeMap
from derivlang.core.order import Order
from derivlang.core.policies import Policies
from derivlang.core.spec import key_of, param, quote
from derivlang.pipeline import Pipeline
from derivlang.transforms import registry
from derivlang.transforms.base import Transform
from derivlang.transforms.fitting import labelled_parts, part_hash, streams
from derivlang.transforms.scripts import script_names
from derivlang.transforms.shuffle import Perm
from derivlang.transforms.trans import Trans
from derivlang.transforms.word_order import Inv
from tests.strategies import (
    DropPunct,
    Mark,
    any_word,
    batch_of,
    chain,
    derive,
    few_words,
    gathered,
    laws,
    sentence_lists,
    some_order,
    unit_lists,
    units_of,
)


@dataclass(frozen=True, kw_only=True)
class Toy(Transform):
    """One parameter of each type, for the tests of specs."""

    name = "toy"
    file: str = param("", "a value that may need quotes", positional=True, file=False)
    model: str = param("plain", "another", positional=True, file=False)
    rate: float = param(0.5, "a number", low=0)
    size: int = param(1, "a whole number", low=0)
    loud: bool = param(False, "a switch")
    by: Literal["one", "two"] = param("one", "a choice", draws=False)
    seed: int = param(1, "the seed", low=0)

    def order(self, batch: Batch, draws: Draws) -> Order:
        return super().order(batch, draws)


@pytest.fixture(autouse=True)
def _toy_is_registered() -> Iterator[None]:
    registry.register(Toy)
    yield
    del registry.TRANSFORMS.added["toy"]


_IN_SPECS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
seeds = st.integers(0, 10**12)
transforms = st.one_of(
    st.builds(Inv, final=st.sampled_from(["keep", "move"])),
    st.builds(Perm, window=st.integers(0, 20), seed=seeds),
    st.builds(
        Trans,
        script=st.sampled_from(script_names()),
        overlap=st.integers(0, 100),
        by=st.sampled_from(["type", "frequency", "mass"]),
        seed=seeds,
        table=st.sampled_from([0, 1]),
    ),
    st.builds(
        Toy,
        file=st.one_of(st.text(_IN_SPECS, max_size=8), st.text(' ,:="a', max_size=6)),
        model=st.text(_IN_SPECS, max_size=8),
        rate=st.floats(0, 1e6, allow_nan=False),
        size=st.integers(0, 10**20),
        loud=st.booleans(),
        by=st.sampled_from(["one", "two"]),
    ),
)
pipelines = st.lists(transforms, min_size=1, max_size=4).map(lambda parts: Pipeline(tuple(parts)))


def error_of(spec: str) -> str:
    with pytest.raises(UsageError) as caught:
        Pipeline.parse(spec)
    return str(caught.value)


# round trip


@laws
@given(pipelines)
@example(Pipeline((Toy(rate=0.1 + 0.2),)))
@example(Pipeline((Toy(rate=1234567.0),)))
def test_a_canonical_spec_parses_back(pipeline: Pipeline) -> None:
    assert Pipeline.parse(str(pipeline)) == pipeline
    assert str(Pipeline.parse(str(pipeline))) == str(pipeline)
    assert Pipeline.from_stored(pipeline.stored) == pipeline
    assert Pipeline.from_stored(pipeline.stored).fingerprint() == pipeline.fingerprint()


@laws
@given(pipelines, st.data())
def test_other_spellings_have_the_same_canonical_form(pipeline: Pipeline, data: st.DataObject) -> None:
    """Every parameter named, in any order, with spaces around the marks, defaults written out."""
    parts = []
    for transform in pipeline.transforms:
        space = data.draw(st.sampled_from(["", " "]))
        named = [
            f"{space}{key_of(field)}{space}={quote(_spelled(getattr(transform, field.name)))}"
            for field in fields(transform)
        ]
        parts.append(":".join([f"{space}{transform.name}{space}", *data.draw(st.permutations(named))]))
    again = Pipeline.parse(",".join(parts))
    assert again == pipeline
    assert str(again) == str(pipeline)
    assert again.fingerprint() == pipeline.fingerprint()


def _spelled(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value) if isinstance(value, float) else str(value)


@pytest.mark.parametrize(
    ("spec", "canonical"),
    [
        ("inv", "inv"),
        ("trans,inv", "trans,inv"),
        (" trans , inv ", "trans,inv"),
        ("trans:georgian", "trans"),
        ("trans:script=georgian:overlap=0", "trans"),
        ("trans:greek", "trans:greek"),
        ("trans:script=greek", "trans:greek"),
        ("trans:overlap=25:script=greek", "trans:greek:overlap=25"),
        ("trans:by=frequency:overlap=25", "trans:overlap=25:by=frequency"),
        ("perm:window=3", "perm:window=3"),
        ("perm:window=03", "perm:window=3"),
        ("perm:seed=1", "perm"),
        ("perm:seed=2", "perm:seed=2"),
        ("inv:final=keep,inv:final=move", "inv,inv:final=move"),
        ('"inv"', "inv"),
        ('trans:"greek"', "trans:greek"),
        ('trans:script="greek"', "trans:greek"),
        ("identity", "identity"),
        ('toy:"my grammar.tsv"', "toy:my grammar.tsv"),
        ("toy:my grammar.tsv", "toy:my grammar.tsv"),
        ('toy:"a,b:c=d"', 'toy:"a,b:c=d"'),
        ('toy:"say ""hi"""', 'toy:"say ""hi"""'),
        ('toy:""', "toy"),
        ('toy:a:""', 'toy:a:""'),
        ("toy:file=a=b", 'toy:"a=b"'),
        ("toy:rate=0.50", "toy"),
        ("toy:loud=yes", "toy:loud=yes"),
        ("toy:a:size=2", "toy:a:size=2"),
    ],
)
def test_canonical_forms(spec: str, canonical: str) -> None:
    assert str(Pipeline.parse(spec)) == canonical
    assert str(Pipeline.parse(canonical)) == canonical


def test_a_second_positional_value_does_not_slip_into_the_first_place() -> None:
    """The first is the default and unwritten, so the second must be written with its name."""
    toy = Toy(model="large")
    assert Pipeline.parse(str(toy)).transforms == (toy,)


# errors


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("", ["empty"]),
        ("inv,", ["empty", "'inv,'"]),
        (",inv", ["empty"]),
        ("inv::final=move", ["empty"]),
        ("inv:", ["empty"]),
        ("perm:seed=", ["empty"]),
        ('toy:"open', ["open quote"]),
        ('toy:a"b"', ["quote"]),
        ('toy:"a"b', ["quoted"]),
        ("inverse", ["inverse", "did you mean"]),
        ("zzz", ["zzz", "inv", "perm", "trans"]),
        ("inv:move", ["'move'", "takes none", "final"]),
        ("trans:greek:latin", ["'latin'"]),
        ("trans:greek:script=greek", ["script", "twice"]),
        ("perm:seed=1:seed=1", ["seed", "twice"]),
        ("perm:windows=3", ["windows", "window"]),
        ("perm:window=three", ["window", "'three'", "whole number"]),
        ("perm:window=1.5", ["window", "whole number"]),
        ("perm:window=-1", ["perm:window: must be at least 0, got -1"]),
        ("perm:seed=-1", ["perm:seed: must be at least 0, got -1"]),
        ("trans:overlap=101", ["trans:overlap: must be at most 100, got 101"]),
        ("trans:by=chance", ["type or frequency or mass, got 'chance'"]),
        ("trans:gorgian", ["gorgian", "georgian"]),
        ("inv:final=maybe", ["keep or move, got 'maybe'"]),
        ("toy:loud=true", ["loud", "yes or no"]),
        ("toy:rate=much", ["rate", "a number"]),
        ("toy:rate=-0.1", ["toy:rate: must be at least 0, got -0.1"]),
        ("a=b", ["a=b"]),
    ],
)
def test_bad_specs_say_what_is_wrong(spec: str, words: list[str]) -> None:
    message = error_of(spec)
    for word in words:
        assert word in message
    assert re.search(r"\[[a-z-]+\]", message)


@laws
@given(st.text(',:="a inv', max_size=12))
def test_any_text_is_a_spec_or_a_usage_error(spec: str) -> None:
    try:
        pipeline = Pipeline.parse(spec)
    except UsageError:
        return
    assert Pipeline.parse(str(pipeline)) == pipeline


@pytest.mark.parametrize("value", ["nan", "inf", "1e999"])
def test_a_number_that_is_none_is_refused(value: str) -> None:
    """nan passes `value < low`, equals not even itself, and would be a language that nobody can make again."""
    error_of(f"toy:rate={value}")


# seeds


def test_a_seed_is_for_transforms_that_state_none() -> None:
    assert str(Pipeline.parse("perm,perm:seed=2,inv,trans", seed=7)) == "perm:seed=7,perm:seed=2,inv,trans:seed=7"
    # inv draws places only for a marker or a part.
    assert str(Pipeline.parse("inv:mark=R,inv:from=random", seed=7)) == "inv:mark=R:seed=7,inv:from=random:seed=7"
    assert Pipeline.parse("perm", seed=1) == Pipeline.parse("perm") == Pipeline.parse("perm:seed=1", seed=5)


# fingerprints


@laws
@given(pipelines, pipelines)
@example(Pipeline((Toy(rate=0.1 + 0.2),)), Pipeline((Toy(rate=0.3),)))
@example(Pipeline((Toy(file="a,b"),)), Pipeline((Toy(file="a"), Toy(file="b"))))
def test_fingerprints_tell_pipelines_apart(one: Pipeline, two: Pipeline) -> None:
    assert re.fullmatch("[0-9a-f]{16}", one.fingerprint())
    assert (one.fingerprint() == two.fingerprint()) == (one == two)


def test_fingerprints_change_with_the_rule_version_and_the_lexicon(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline.parse("inv,trans:overlap=25")
    before = pipeline.fingerprint("a lexicon")
    assert pipeline.fingerprint("another") != before != pipeline.fingerprint()
    assert pipeline.fingerprint("a lexicon") == before
    monkeypatch.setattr(Inv, "rule_version", 2)
    assert pipeline.fingerprint("a lexicon") != before


def test_the_fingerprint_is_pinned() -> None:
    """It is in every manifest: it changes with the spec and the rules alone, not with the package."""
    assert Pipeline.parse("trans,inv").fingerprint() == Pipeline.parse("trans:script=georgian,inv").fingerprint()
    assert Pipeline.parse("trans,inv").fingerprint() == PINNED


PINNED = "f1e5f328a0537a30"


def test_the_hashed_parts_are_labelled() -> None:
    parts = [labelled_parts(t) for t in Pipeline.parse("trans:greek:overlap=20,perm:window=3,inv").transforms]
    assert parts == [
        ["transform=trans", "trans.overlap=20", "trans.script=greek", "trans.table=2", "rule=1"],
        ["transform=perm", "perm.window=3", "rule=1"],
        ["transform=inv", "rule=1"],
    ]


def test_a_parameter_with_a_line_break_is_one_part() -> None:
    one, two = Toy(file="a\nrule=2"), Toy(file="a")
    assert part_hash(one) != part_hash(two)


def test_a_pipeline_prints_as_a_tree() -> None:
    pipeline = Pipeline.parse("trans,perm:window=3,inv")
    hashes = [part_hash(transform)[:7] for transform in pipeline.transforms]
    assert repr(pipeline).splitlines() == [
        f"Pipeline {pipeline.fingerprint()[:7]}",
        f"├── trans          {hashes[0]}",
        f"├── perm:window=3  {hashes[1]}",
        f"└── inv            {hashes[2]}",
    ]
    assert repr(Pipeline(())).startswith("Pipeline ")


def test_a_tree_without_the_file_of_a_part() -> None:
    assert repr(Pipeline.parse("lex:there-is-none.tsv,inv")).splitlines()[0] == "Pipeline ?"


# streams


def test_streams_depend_on_what_draws_depend_on() -> None:
    names = [
        draws.name for _, draws in streams(Pipeline.parse("perm,inv,perm,trans:greek:overlap=5,perm:seed=2").transforms)
    ]
    assert names == [
        "perm|window=0,seed=1|rule=1|occurrence=0",
        "inv|seed=1|rule=1|occurrence=0",
        "perm|window=0,seed=1|rule=1|occurrence=1",
        "trans|seed=1|rule=1|occurrence=0",
        "perm|window=0,seed=2|rule=1|occurrence=2",
    ]
    assert Toy(by="two").stream(0) == Toy().stream(0)
    assert Toy(rate=0.1 + 0.2).stream(0) != Toy(rate=0.3).stream(0)
    assert Toy(file="a,model=b", model="c").stream(0) != Toy(file="a", model="b,model=c").stream(0)


# what a pipeline does


@laws
@given(
    units_of(st.one_of(few_words, any_word)),
    st.sampled_from(["inv", "mark:2", "skip", "skip:2"]),
    st.sampled_from(["inv", "perm", "perm:window=2", "mark", "skip:4", "inv:final=move"]),
)
def test_a_pipeline_is_its_transforms_in_turn(rows: list[list[str]], first: str, second: str) -> None:
    """Keys are of the source words throughout. (perm after perm is left out: the second draws as the second.)"""
    batch = batch_of(rows)
    both, one = derive(f"{first},{second}", batch), derive(first, batch)
    two = derive(second, one.derived)
    assert sentence_lists(both.derived) == sentence_lists(two.derived)
    assert both.derived.tails.tolist() == two.derived.tails.tolist()
    assert both.order.index.tolist() == one.order.then(two.order).index.tolist()
    assert both.derived.keys.tolist() == batch.keys.tolist()
    assert chain(first).then(chain(second)) == chain(f"{first},{second}")


@laws
@given(units_of(few_words))
def test_derive_splits_sentences_unless_they_are_known(rows: list[list[str]]) -> None:
    whole = batch_of(rows, split=False)
    pipeline = Pipeline.parse("inv")
    cut = pipeline.derive(whole, pipeline.fit())
    assert sentence_lists(cut.source) == sentence_lists(batch_of(rows))
    again = pipeline.derive(cut.derived, pipeline.fit(), split=False)
    assert unit_lists(again.derived) == unit_lists(whole)
    unit = pipeline.derive(whole, pipeline.fit(), rule="unit")
    assert sentence_lists(unit.source) == sentence_lists(batch_of(rows, rule="unit"))


def test_what_a_pipeline_declares() -> None:
    assert Pipeline.parse("trans,inv").has_order
    assert not Pipeline.parse("trans,identity").has_order
    assert Pipeline.parse("trans,inv").is_permutation
    assert not chain("inv,mark").is_permutation
    assert not chain("skip").is_permutation
    assert Pipeline.parse("trans").injective
    assert Pipeline.parse("inv,trans:overlap=1").needs_counts()
    assert not Pipeline.parse("trans:overlap=100,trans").needs_counts()


def test_a_missing_layer_is_named() -> None:
    batch = batch_of([["a", "."]])
    with pytest.raises(LayerError, match="drop-punct needs upos"):
        Pipeline((DropPunct(),)).order(batch)


def test_transforms_see_source_words_in_the_order_so_far() -> None:
    seen: list[list[list[str]]] = []

    @dataclass(frozen=True, kw_only=True)
    class Look(Transform):
        """Looks."""

        name = "look"

        def order(self, batch: Batch, draws: Draws) -> Order:
            seen.append(sentence_lists(batch))
            return Order.identity(batch.sentences, batch.tails)

    pipeline = Pipeline((Trans(), Inv(), Look(), Mark(), Look()))
    pipeline.derive(batch_of([["a", "b", "."]]), pipeline.fit())
    assert seen == [[["b", "a", "."]], [["🅁", "b", "a", "."]]]


@laws
@given(units_of(few_words, min_size=1), st.integers(0, 1000))
def test_inserted_words_are_outside_the_lexicon(rows: list[list[str]], seed: int) -> None:
    batch = batch_of(rows)
    order = some_order(batch.sentences, seed, insert=0.5, delete=0.3, marker="a")
    lexicon = Pipeline.parse("trans").fit()
    out = realign(batch, order, lexicon.apply(batch.types))
    image = dict(zip(batch.types.to_pylist(), lexicon.apply(batch.types).to_pylist(), strict=True))
    expected = gathered([image[word] for row in sentence_lists(batch) for word in row], order)
    assert out.strings().to_pylist() == expected
    assert len(set(out.types.to_pylist())) == len(out.types)


def test_a_marker_that_is_a_word_of_the_text_too() -> None:
    """Types stay distinct: a duplicate in the dictionary makes Parquet fall back to plain."""
    batch = batch_of([["a", "b", "."], ["c", "."]])
    out = Pipeline((Mark(marker="b"),)).derive(batch, Pipeline.parse("identity").fit(), split=False).derived
    assert sentence_lists(out) == [["b", "a", "b", "."], ["b", "c", "."]]
    assert sorted(out.types.to_pylist()) == [".", "a", "b", "c"]


def test_empty_batches() -> None:
    for spec in ("inv", "perm", "perm:window=2", "trans,inv", "mark", "skip", "mark,skip,inv", "identity"):
        for n in range(3):
            rows: list[list[str]] = [[] for _ in range(n)]
            out = derive(spec, batch_of(rows))
            assert sentence_lists(out.derived) == []
            assert unit_lists(out.derived) == rows
            assert out.order.check().n_derived == 0


def test_policies_without_groups_change_nothing() -> None:
    batch = batch_of([["a", "b", "c", "."]])
    policies = Policies(entities="atomic", answers="atomic", mwt="atomic")
    pipeline = Pipeline.parse("perm")
    assert pipeline.order(batch, policies).index.tolist() == pipeline.order(batch).index.tolist()


def test_parameters_are_described() -> None:
    rows = Trans.parameters()
    assert [row["name"] for row in rows] == ["script", "offset", "clones", "overlap", "by", "seed", "table"]
    assert rows[4]["type"] == "type|frequency|mass"
    assert all(row["help"] for row in rows)
    assert Trans.summary() == "Transliteration: every word type in another script, one to one."


def test_plug_ins_are_transforms(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name, value = "odd", "somewhere:thing"

        def load(self) -> object:
            return np.zeros

    monkeypatch.setattr(plugins, "plug_ins", lambda group: {"odd": Point()})
    with pytest.raises(UsageError, match="plug-in"):
        Pipeline.parse("odd")
    assert "odd" in registry.transform_names()


def test_counts_of_a_reference_may_be_any_integers() -> None:
    types = pa.array(["a", "b", "c", "d"])
    one = Pipeline.parse("trans:overlap=50:by=frequency").fit(types, np.array([4, 3, 2, 1], np.int32))
    two = Pipeline.parse("trans:overlap=50:by=frequency").fit(types, np.array([4, 3, 2, 1], np.uint64))
    assert one.apply(types).to_pylist() == two.apply(types).to_pylist() == ["a", "b", "ც", "დ"]


@dataclass(frozen=True, slots=True)
class Upper:
    """Every type in capitals."""

    injective: bool = False

    def apply(self, types: pa.Array) -> pa.Array:
        return pc.utf8_upper(types)

    def invert(self) -> TypeMap:
        raise NotImplementedError

    def state(self) -> str:
        return "upper\n"


@dataclass(frozen=True, kw_only=True)
class Shout(Transform):
    """It saves what it was fitted with, and its author forgot `load`."""

    name = "shout"
    injective = False
    saves = True

    def fit(self, types: pa.Array, counts: Int64, draws: Draws) -> TypeMap:
        return Upper()


def test_a_saved_lexicon_that_its_transform_cannot_load() -> None:
    pipeline = Pipeline((Shout(),))
    lexicon = pipeline.fit()
    assert lexicon.apply(pa.array(["a"])).to_pylist() == ["A"]
    with pytest.raises(UsageError, match=r"shout saves what it was fitted with, but has no `load` \[plug-in\]"):
        pipeline.fit(saved=pipeline.save(lexicon))


_WITHOUT = SimpleNamespace(apply=pc.utf8_upper, injective=True, state=lambda: None)


def map_of(apply: Callable[[pa.Array], Any], *, injective: bool = True) -> Any:
    """A map of another package; its inverse is itself."""
    found = SimpleNamespace(apply=apply, injective=injective, state=lambda: None)
    found.invert = lambda: found
    return found


@pytest.mark.parametrize(
    ("map_", "message"),
    [
        (map_of(pc.utf8_lower), "has no inverse: it takes 'A' to 'a', and that back to 'a'"),
        (
            map_of(lambda types: pc.binary_join_element_wise(types, "x", "")),
            "takes 'A' to 'Ax', and that back to 'Axx'",
        ),
        (map_of(lambda types: types[:1]), "no Arrow array of strings, one for each type"),
        (map_of(lambda types: types.to_pylist()), "no Arrow array of strings"),
        (map_of(lambda types: pc.if_else(pc.equal(types, "A"), None, types)), "one for each type, none empty or null"),
        (map_of(lambda types: pc.if_else(pc.equal(types, "A"), "", types), injective=False), "none empty"),
        (map_of(lambda types: {}["x"]), "`<lambda>` of the transform mapped failed: KeyError: 'x'"),
        (_WITHOUT, "returned SimpleNamespace, not a TypeMap: it has no invert"),
        (None, "returned NoneType, not a TypeMap: it has no apply, injective, invert, state"),
    ],
)
def test_a_wrong_map_of_another_package_is_refused(map_: Any, message: str) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Mapped(Transform):
        """The map of its test."""

        name = "mapped"

        def fit(self, types: pa.Array, counts: Int64, draws: Draws) -> TypeMap:
            return cast("TypeMap", map_)

    types = pa.array(["A", "b"])
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        Pipeline((Mapped(),)).fit(types, np.ones(2, np.int64)).apply(types)
    assert caught.value.id == "plug-in"


@dataclass(frozen=True, kw_only=True)
class Saving(Transform):
    """An order that says it is saved, and has nothing to save."""

    name = "saving"
    saves = True


def test_an_order_that_cannot_be_fitted() -> None:
    with pytest.raises(UsageError, match=r"saving saves what it was fitted with, but has no `fit` \[plug-in\]"):
        Pipeline((Saving(),)).fit()


@pytest.mark.parametrize("spec", ["inv", "trans,trans:copy,inv"])
def test_a_lexicon_of_another_pipeline(spec: str) -> None:
    lexicon = Pipeline.parse("trans").fit()
    types, counts = pa.array(["a"]), np.ones(1, np.int64)
    pipeline = Pipeline.parse(spec)
    with pytest.raises(UsageError, match=r"the lexicon has 1 maps, but [02] transforms .* \[other-lexicon\]"):
        pipeline.warnings(lexicon, types, counts)
    with pytest.raises(UsageError, match=r"\[other-lexicon\]"):
        pipeline.save(lexicon)


# orders of other packages


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([0, 0, 2, 3], "the order of wrong is wrong: an order must take each source word at most once"),
        ([3, 2, 1, 0], "into another sentence"),
        ([0, 1, 2], "must fit"),
        ([0.0, 1.0, 2.0, 3.0], "wrong returned no Order of NumPy arrays of whole numbers"),
        (range(4), "wrong returned no Order of NumPy arrays of whole numbers"),
        (None, "wrong returned no Order of NumPy arrays of whole numbers"),
    ],
)
def test_a_wrong_order_of_another_package_is_refused(index: Sequence[float] | None, message: str) -> None:
    class Wrong(Toy):
        """An order that breaks the contract."""

        name = "wrong"

        def order(self, batch: Batch, draws: Draws) -> Order:
            assert batch.sentences.tolist() == [0, 2, 4]
            if index is None:
                return cast("Order", None)
            places: Any = np.array(index) if isinstance(index, list) else index
            return Order(places, batch.sentences, batch.tails, batch.n_words)

    registry.register(Wrong)
    try:
        with pytest.raises(DerivlangError, match=message):
            derivlang.derive("a . b .", "wrong", words="space")
    finally:
        del registry.TRANSFORMS.added["wrong"]


def test_a_field_that_is_no_parameter_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Plain(Toy):
        """A field without `param`."""

        more: int = 1

    with pytest.raises(UsageError, match=r"the field more is not declared as a parameter"):
        Plain.from_values([], {})
