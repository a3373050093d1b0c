"""Every transform keeps the laws that it declares: a new one is held to them by being registered.

Batches have tags and trees, one tree per sentence or one per unit, so that a transform that needs them finds them. The
sample transforms that insert and delete words (`tests/strategies.py`) are held to the same ones. `tests/transforms.py`
has the settings and the batches: `every` runs a test for each transform with each of its settings.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from derivlang.core.arrays import lengths_of
from derivlang.core.batch import Batch, split_sentences
from derivlang.core.errors import LayerError
from derivlang.core.from_table import to_batch
from derivlang.core.lexicon import SPECIALS, Lexicon
from derivlang.core.schema import NLI, Field, Schema, Side
from derivlang.core.spec import key_of
from derivlang.core.to_table import to_table
from derivlang.formats import opening
from derivlang.formats.words import Splitter
from derivlang.pipeline import Derivation, Pipeline
from derivlang.transforms import registry
from derivlang.transforms.base import Transform
from derivlang.transforms.registry import find_transform, transform_names
from tests.helpers import make, read_text, right, rows, same_rows, undone
from tests.plugin.derivlang_sample.parser import Chain
from tests.strategies import (
    DropPunct,
    annotated,
    batch_of,
    gathered,
    lists,
    sentence_lists,
    split_at_spaces,
    tree_layers,
    unit_lists,
)
from tests.transforms import (
    ALL,
    DISTINCT,
    EVERY,
    GIVEN,
    OF_TEXT,
    SAMPLES,
    UNITS,
    all_frozen,
    batch_for,
    derive,
    derived_all,
    every,
    few,
    keyed,
    keyed_of_text,
    lexical,
    lexicon_of,
    of_trees,
    per_sentence,
    reference,
    sentences_of_all,
)


def in_turn(transforms: list[Transform], others: list[Any]) -> list[tuple[Transform, Any]]:
    """Each transform with one of the others."""
    return list(zip(transforms, itertools.cycle(others), strict=False))


@pytest.fixture(autouse=True)
def _samples(monkeypatch: pytest.MonkeyPatch) -> None:
    for sample in SAMPLES:
        monkeypatch.setitem(registry.TRANSFORMS.added, sample.name, sample)


# what it declares


@every
def test_it_says_what_it_is_and_its_spec_says_it_again(transform: Transform) -> None:
    assert transform.name
    assert transform.name == transform.name.strip().lower()
    assert transform.rule_version >= 1
    assert len(type(transform).summary()) > 10
    assert all(parameter["help"] for parameter in transform.parameters())
    spec = str(transform)
    pipeline = Pipeline.parse(spec)
    assert pipeline.transforms == (transform,)
    assert str(pipeline) == spec
    twice = Pipeline.parse(f"{spec},identity,{spec}")
    assert str(twice) == f"{spec},identity,{spec}"
    assert Pipeline.parse(str(twice)).fingerprint() == twice.fingerprint()
    assert twice.fingerprint() != pipeline.fingerprint()
    # Every parameter written out, too.
    written = {key_of(f): getattr(transform, f.name) for f in dataclasses.fields(transform)}
    text = {k: ("yes" if v else "no") if isinstance(v, bool) else str(v) for k, v in written.items()}
    assert type(transform).from_values([], text) == transform


@pytest.mark.parametrize("name", transform_names())
def test_it_takes_the_bounds_that_it_declares(name: str) -> None:
    transform = find_transform(name)
    for parameter in transform.parameters():
        for bound in {parameter["low"], parameter["high"]} - {None}:
            assert transform.from_values([], {**GIVEN.get(name, {}), parameter["name"]: str(bound)})


# the order


@every
def test_an_order_stays_in_its_sentence(transform: Transform) -> None:
    """And it keeps the words as a multiset, with an inverse, where it is a permutation: for each of the odd texts.

    A sentence is derived alike alone and among others, unless orders are drawn in sequence.
    """
    alone = {tuple(unit): checked(transform, [unit]) for unit in DISTINCT}
    for units in UNITS.values():
        if len(units) != 1:
            checked(transform, units)
    if not transform.keyed:
        return
    among = sentences_of_all(transform)
    assert among == [one for unit in ALL for one in per_sentence(alone[tuple(unit)])]
    backward = [unit for unit in reversed(ALL) if unit]
    turned = per_sentence(derive(transform, batch_for(backward)))
    by_words = {tuple(words): image for words, image in zip(sentence_lists(batch_for(ALL)), among, strict=True)}
    for words, image in zip(sentence_lists(batch_for(backward)), turned, strict=True):
        assert by_words[tuple(words)] == image


def checked(transform: Transform, units: list[list[str]]) -> Derivation:
    batch = batch_for(units)
    result = derive(transform, batch)
    order = result.order.check()
    assert order.n_source == batch.n_words
    assert len(order.sentences) == len(batch.sentences)
    assert (order.tails >= 0).all()
    assert (order.tails <= lengths_of(order.sentences)).all()
    for (_, local), size in zip(per_sentence(result), lengths_of(batch.sentences).tolist(), strict=True):
        assert all(-1 <= place < size for place in local)
    if not transform.has_order:
        assert order.index.tolist() == list(range(batch.n_words))
    words = batch.strings().to_pylist()
    target = lists(gathered(words, order), order.sentences)
    if not transform.is_permutation:
        marks = [] if order.inserted is None else order.inserted.to_pylist()
        assert sum(map(Counter, target), Counter[str]()) - Counter(marks) <= Counter(words)
        return result
    assert order.is_permutation
    for source, image in zip(sentence_lists(batch), target, strict=True):
        assert Counter(source) == Counter(image)
    back = order.invert(batch.sentences, batch.tails)
    assert order.then(back).index.tolist() == list(range(batch.n_words))
    assert back.then(order).index.tolist() == list(range(batch.n_words))
    return result


@keyed
def test_with_a_tree_a_unit_words_stay_in_their_unit(transform: Transform) -> None:
    """Sentences that one tree joins may become one; what is derived is a function of the unit."""
    batch = batch_for(ALL, whole_units=True)
    result = derive(transform, batch)
    order = result.order.check()
    assert len(order.sentences) == len(batch.sentences)
    assert (order.tails >= 0).all()
    assert (order.tails <= lengths_of(order.sentences)).all()
    units = order.sentences[batch.units]
    local = order.index - np.repeat(batch.unit_words[:-1], lengths_of(units))
    rows = lists(np.where(order.index < 0, -1, local).tolist(), units)
    for row, size in zip(rows, lengths_of(batch.unit_words).tolist(), strict=True):
        assert all(-1 <= place < size for place in row)
        if transform.is_permutation:
            assert sorted(row) == list(range(size))
    if transform.is_permutation:
        back = order.invert(batch.sentences, batch.tails)
        assert order.then(back).index.tolist() == list(range(batch.n_words))
    if not transform.needs:
        assert order.index.tolist() == derived_all(transform).order.index.tolist()
    alone = {unit: derive(transform, batch_for([list(unit)], whole_units=True)) for unit in map(tuple, DISTINCT)}
    assert rows == [alone[tuple(unit)].order.index.tolist() for unit in ALL]
    assert unit_lists(result.derived) == [unit_lists(alone[tuple(unit)].derived)[0] for unit in ALL]


@every
def test_every_word_keeps_its_governor(transform: Transform) -> None:
    for whole_units in (False, True):
        check_governors(transform, batch_for([unit for unit in ALL if len(unit) < 100], whole_units=whole_units))


def check_governors(transform: Transform, batch: Batch) -> None:
    result = derive(transform, batch)
    before, after = (b.layers["head"].head.tolist() for b in (result.source, result.derived))  # type: ignore[attr-defined]
    if not transform.is_permutation:
        assert not [h for row in lists(after, result.derived.unit_words) for h in row if not 0 <= h <= len(row)]
        return
    begins = batch.unit_words.tolist()
    for begin, end in itertools.pairwise(begins):  # a permutation: units keep their places
        index = result.order.index[begin:end].tolist()
        place = {word: place for place, word in enumerate(index, start=1)}
        wanted = [place[begin + before[word] - 1] if before[word] else 0 for word in index]
        assert after[begin:end] == wanted


@every
def test_labels_go_with_their_words(transform: Transform) -> None:
    result = derived_all(transform)
    for batch_ in (result.source, result.derived):
        assert len(batch_.layers["upos"].codes) == batch_.n_words  # type: ignore[attr-defined]
    tags = [result.source.layers["upos"].values[c].as_py() for c in result.source.layers["upos"].codes]  # type: ignore[attr-defined]
    moved = [result.derived.layers["upos"].values[c].as_py() for c in result.derived.layers["upos"].codes]  # type: ignore[attr-defined]
    assert moved == ["X" if i < 0 else tags[i] for i in result.order.index.tolist()]


# the lexicon


@lexical
def test_a_lexicon_has_an_inverse_where_it_says_so_and_special_tokens_stay(transform: Transform) -> None:
    pipeline = Pipeline((transform,))
    lexicon = lexicon_of(pipeline)
    assert lexicon.injective == pipeline.injective
    types, _ = reference()
    unseen = pa.array(["zebra", "Zebra", "ZEBRA", "ზებრა", "中文", "\U000f0041", "a", "A", "⟨", "0", "ი"], pa.string())
    both = pa.array(sorted({*types.to_pylist(), *unseen.to_pylist()}), pa.string())
    image = lexicon.apply(both)
    assert len(image) == len(both)
    assert image.null_count == 0
    if pipeline.injective:
        assert len(set(image.to_pylist())) == len(both)
        assert lexicon.invert().apply(image).to_pylist() == both.to_pylist()
        assert lexicon.invert().invert().apply(both).to_pylist() == image.to_pylist()
    assert lexicon.apply(pa.array(SPECIALS)).to_pylist() == list(SPECIALS)


@every
def test_a_saved_lexicon_is_the_same_one(transform: Transform) -> None:
    pipeline = Pipeline((transform,))
    lexicon = lexicon_of(pipeline)
    saved = pipeline.save(lexicon)
    assert (saved is None) == (not transform.saves)
    assert transform.saves or not transform.needs_reference
    again = pipeline.fit(saved=saved)
    types = pa.array([*reference()[0].to_pylist(), "zebra", "ზებრა"], pa.string())
    assert again.apply(types).to_pylist() == lexicon.apply(types).to_pylist()
    assert pipeline.save(again) == saved


@lexical
def test_a_type_looks_the_same_in_any_vocabulary(transform: Transform) -> None:
    lexicon = lexicon_of(Pipeline((transform,)))
    types = reference()[0]
    image = lexicon.apply(types).to_pylist()
    assert [lexicon.apply(types[i : i + 1])[0].as_py() for i in range(len(types))] == image
    assert lexicon.apply(types[:0]).to_pylist() == []
    assert lexicon.apply(types[3:9]).to_pylist() == image[3:9]


# order and lexicon know nothing of each other


@pytest.mark.parametrize(("transform", "script"), in_turn(EVERY, ["trans", "trans:copy", "trans:overlap=25"]), ids=str)
def test_trans_commutes_with_an_order(transform: Transform, script: str) -> None:
    if lexicon_of(Pipeline((transform,))).chooses:
        pytest.skip("its choices go by the places of the words as they reach it")
    if transform.has_lexicon:
        assert not transform.has_order
        other = "inv" if script == "trans" else "perm:window=2" if script == "trans:copy" else "perm"
        first, second = f"{transform},{other}", f"{other},{transform}"
    else:
        first, second = f"{transform},{script}", f"{script},{transform}"
    batch = batch_for(ALL)
    one, two = derive(first, batch), derive(second, batch)
    if transform.is_permutation:
        assert unit_lists(one.derived) == unit_lists(two.derived)
    else:  # an inserted word goes through the transforms after its own
        (ours, kept), (theirs, _) = ((b.derived.strings().to_numpy(False), b.order.index >= 0) for b in (one, two))
        assert ours[kept].tolist() == theirs[kept].tolist()
    assert one.order.index.tolist() == two.order.index.tolist()
    assert one.derived.sentences.tolist() == two.derived.sentences.tolist()


# a function of the sentence


@every
def test_running_text_and_records_are_derived_alike(transform: Transform) -> None:
    running = per_sentence(derive(transform, batch_for(ALL, running=True)))
    assert running == sentences_of_all(transform)


@pytest.fixture(scope="module")
def treebank_and_text() -> tuple[Batch, list[Batch]]:
    """A record for each sentence with its gold tree; running text with a parser's trees, apart and side by side."""
    source = batch_of(ALL, running=True)
    kept = [row for row in sentence_lists(source) if len(sentence_lists(batch_of([row]))) == 1]
    trees = [replace(annotated(row), ranges=[]) for row in kept]
    gold = replace(batch_of(kept), layers=tree_layers([[tree] for tree in trees]))
    text = replace(batch_of(kept, running=True), layers=tree_layers([[tree] for tree in trees], parsed=True))
    side_by_side = batch_of([[word for row in kept for word in row]])
    if sentence_lists(side_by_side) != kept:
        return gold, [text]
    return gold, [text, replace(side_by_side, layers=tree_layers([trees], parsed=True))]


@of_trees
def test_a_treebank_and_its_parsed_text_are_derived_alike(
    transform: Transform, treebank_and_text: tuple[Batch, list[Batch]]
) -> None:
    gold, parsed = treebank_and_text
    expected = per_sentence(derive(transform, gold))
    for batch in parsed:
        assert per_sentence(derive(transform, batch)) == expected


PAIRS = Schema(
    (Side("premise", text="premise"), Side("hypothesis", text="hypothesis")), (Field("label", "value", NLI),)
)


PREMISES = ["He left . She stayed !", "the cat sat", "", "One , two ."]
HYPOTHESES = ["the cat sat", "He left . She stayed !", "Yes .", ""]


@pytest.fixture(scope="module")
def pairs() -> Batch:
    table = pa.table({"premise": PREMISES, "hypothesis": HYPOTHESES, "label": ["neutral"] * 4})
    numbers = np.arange(4)
    batch = to_batch(
        table, PAIRS, split_at_spaces, documents=numbers, where=lambda row, word: str(row), counts=Counter()
    )
    return all_frozen(split_sentences(batch))


@keyed_of_text
def test_each_side_of_a_pair_is_derived_by_itself(transform: Transform, pairs: Batch) -> None:
    result = derive(transform, pairs)
    columns = to_table(
        result.source,
        result.derived,
        result.order,
        PAIRS,
        lexicon_of(Pipeline((transform,))),
        has_order=transform.has_order,
    )
    alone = {text: derive(transform, batch_of([text.split()])) for text in {*PREMISES, *HYPOTHESES}}
    for side, texts in (("premise", PREMISES), ("hypothesis", HYPOTHESES)):
        assert columns[f"{side}_source"].to_pylist() == [text.split() for text in texts]
        assert columns[f"{side}_tokens"].to_pylist() == [unit_lists(alone[text].derived)[0] for text in texts]
        assert columns[f"{side}_order"].to_pylist() == [alone[text].order.index.tolist() for text in texts]
    assert columns["label"].to_pylist() == [1] * 4


def test_a_missing_layer_is_named() -> None:
    with pytest.raises(LayerError, match="drop-punct needs upos"):
        Pipeline((DropPunct(),)).derive(batch_of([["a", "."]]), Lexicon(), split=False)


@every
def test_a_set_without_layers(transform: Transform) -> None:
    batch = batch_of(ALL)
    if transform.needs:
        with pytest.raises(LayerError, match=r"\[needs-layer\]"):
            Pipeline((transform,)).derive(batch, lexicon_of(Pipeline((transform,))), split=False)
    else:
        assert per_sentence(derive(transform, batch)) == sentences_of_all(transform)


# the same rows for any size of what is read at once, and of what is written to one file


TEXT = "\n".join(" ".join(unit).replace("\ufeff", "") for unit in ALL if len(unit) < 100) + "\n\n \nlast line , cut"


def rows_read(path: Path, transform: Transform, batch_words: int) -> dict[str, list[Any]]:
    pipeline = Pipeline((transform,)).begin()
    lexicon = pipeline.fit(*reference())
    out: dict[str, list[Any]] = {}
    for batch in read_text(path, Splitter("space"), batch_words=batch_words):
        result = pipeline.derive(batch, lexicon, parser=Chain() if pipeline.needs_trees else None)
        columns = to_table(
            result.source,
            result.derived,
            result.order,
            Schema((Side(),), (), running=True),
            lexicon,
            has_order=pipeline.has_order,
        )
        for name, column in columns.items():
            out.setdefault(name, []).extend(column.to_pylist())
    return out


@pytest.mark.parametrize("transform", few(OF_TEXT), ids=str)
def test_the_same_rows_for_any_size_of_reading(
    transform: Transform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tokens"
    path.write_text(TEXT, "utf-8")
    whole = rows_read(path, transform, 1 << 20)
    for size in (1, 7, 40):
        assert rows_read(path, transform, size) == whole
    for piece in (16, 50, 333):
        monkeypatch.setattr(opening, "BLOCK", piece)
        assert rows_read(path, transform, 10) == whole


def one_each(transforms: list[Transform]) -> list[Transform]:
    """One setting of each: in turn the default, and the last, in which all parameters are others."""
    names = list(dict.fromkeys(t.name for t in transforms))
    settings = [[t for t in transforms if t.name == name] for name in names]
    return [found[-(number % 2)] for number, found in enumerate(settings)]


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(("transform", "size"), in_turn(one_each(OF_TEXT), [1, 1, 20, 20]), ids=str)
def test_the_same_rows_for_any_size_of_shards(transform: Transform, size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.tokens"
    path.write_bytes(TEXT.encode())
    parser = "chain" if "head" in transform.needs else None
    whole = make(str(transform), path, tmp_path / "whole", parser=parser)
    right(whole)
    assert undone(whole) == TEXT.encode()
    cut = make(str(transform), path, tmp_path / "cut", shard_tokens=size, parser=parser)
    same_rows(rows(cut), rows(whole))
    right(cut)
    assert undone(cut) == TEXT.encode()
