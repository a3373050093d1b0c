"""Every transform keeps the laws that it declares: a new one is held to them by being registered.

Batches have tags and trees, one tree a sentence or one a unit, so that a transform that needs them finds them. The
sample transforms that insert and delete words (`tests/strategies.py`) are held to the same ones.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pytest

from derivlang.core.arrays import Int32, lengths_of
from derivlang.core.batch import Batch, split_sentences
from derivlang.core.errors import LayerError
from derivlang.core.lexicon import SPECIALS, Lexicon
from derivlang.core.reading import to_batch
from derivlang.core.schema import NLI, Field, Schema, Side
from derivlang.core.to_table import to_table
from derivlang.formats import line_chunks, text
from derivlang.formats.words import Splitter
from derivlang.pipeline import Derivation, Pipeline
from derivlang.transforms import registry
from derivlang.transforms.base import Transform
from derivlang.transforms.registry import find_transform, transform_names
from derivlang.transforms.scripts import script_names
from tests.helpers import make, right, rows, same_rows, undone
from tests.plugin.derivlang_sample.parser import Chain
from tests.strategies import (
    Drop,
    DropPunct,
    Mark,
    annotated,
    batch_of,
    gathered,
    lists,
    sentence_lists,
    split_at_spaces,
    tree_layers,
    unit_lists,
    with_trees,
)

SAMPLES = (Mark, Drop, DropPunct)
_NUMBERS = (0, 1, 2, 3, 25, 50, 100)
_FLOATS = (0.25, 0.5, 1.0, 2.0)
# Parameters of type str: where their values are listed.
_STRINGS: dict[str, Callable[[], list[str]]] = {
    "script": script_names,
    "grammar": lambda: ["fr@N", "fr@V~en@N"],
    "substrate": lambda: ["none", "fr"],
}
# What a transform cannot do without.
_GIVEN = {"lex": {"file": str(Path(__file__).parent / "dictionaries" / "toy.tsv")}}


def settings_of(transform: type[Transform]) -> Iterator[Transform]:
    """The default, each parameter alone at each of some values, and all of them away from their defaults."""
    hints = get_type_hints(transform)
    values: dict[str, list[Any]] = {}
    for parameter, field in zip(transform.parameters(), dataclasses.fields(transform), strict=True):
        name, kind = parameter["name"], hints[parameter["name"]]
        if name == "unit":
            continue  # sub-words, which these batches have not: tests/test_tokenizers_subwords.py
        low, high = field.metadata["low"], field.metadata["high"]
        if name == "table":
            found = [1]  # every script has it
        elif get_args(kind):
            found = list(get_args(kind))
        elif kind is bool:
            found = [False, True]
        elif kind is int:
            found = [n for n in _NUMBERS if (low is None or n >= low) and (high is None or n <= high)]
        elif kind is float:
            found = [n for n in _FLOATS if (low is None or n >= low) and (high is None or n <= high)]
        else:
            found = list(_STRINGS[name]()) if name in _STRINGS else []
        values[name] = [value for value in found if value != parameter["default"]]
    given: dict[str, Any] = dict(_GIVEN.get(transform.name, {}))
    yield transform(**given)
    for name, others in values.items():
        for value in others:
            yield transform(**{**given, name: value})
    if len(values) > 1:
        yield transform(**given, **{name: others[len(others) // 2] for name, others in values.items() if others})


EVERY = [t for cls in [*map(find_transform, transform_names()), *SAMPLES] for t in settings_of(cls)]
every = pytest.mark.parametrize("transform", EVERY, ids=str)
# Plain text has no labels, but a parser gives it tags and trees where heads are needed.
OF_TEXT = [t for t in EVERY if not t.needs or "head" in t.needs]
of_text = pytest.mark.parametrize("transform", OF_TEXT, ids=str)


@pytest.fixture(autouse=True)
def _samples(monkeypatch: pytest.MonkeyPatch) -> None:
    for sample in SAMPLES:
        monkeypatch.setitem(registry.TRANSFORMS.added, sample.name, sample)


UNITS: dict[str, list[list[str]]] = {
    "no units": [],
    "an empty unit": [[]],
    "one word": [["Hello"]],
    "one mark": [["."]],
    "no final mark": ["the cat sat on the mat".split()],
    "all marks": [[".", "!", "?", "…", ".", ".", "?!"]],
    "two sentences": ["He left . She did not !".split()],
    "a closing quote": ['" I go " , he said . " Really ? "'.split()],
    "right to left": ["هل قرأت الكتاب الجديد ؟ نعم .".split(), "שלום עולם , מה שלומך ?".split()],
    "combining": ["Cafe\u0301 nai\u0308ve \u202bمرحبا\u202c 👩‍👩‍👧 .".split(" ")],
    "specials": ["<unk> met [MASK] and <unk> .".split()],
    "odd words": ['a\u00a0b \ufeffc ,:=" 10\u202f000 ≠ ｆｕｌｌ .'.split(" ")],
    "long": [[f"w{n % 40}" for n in range(3000)] + ["."]],
    "repeats": ["the the the the . the the the the .".split()] * 3,
    "empty ones between": [[], ["a", "b", "."], [], ["c"], []],
}
by_case = pytest.mark.parametrize("case", UNITS)
ALL = [unit for units in UNITS.values() for unit in units]
PAIRS = Schema(
    (Side("premise", text="premise"), Side("hypothesis", text="hypothesis")), (Field("label", "value", NLI),)
)


def batch_for(units: list[list[str]], *, running: bool = False, whole_units: bool = False) -> Batch:
    """A batch with tags and trees, one a sentence or one a unit; read-only."""
    return _batch_for(tuple(map(tuple, units)), running, whole_units)


@cache
def _batch_for(units: tuple[tuple[str, ...], ...], running: bool, whole_units: bool) -> Batch:
    return all_frozen(with_trees(batch_of(units, running=running), whole_units=whole_units))


def all_frozen(batch: Batch) -> Batch:
    for value in arrays_in(batch):
        value.flags.writeable = False
    return batch


def arrays_in(thing: Any) -> Iterator[np.ndarray]:
    """All arrays of a dataclass and of what it holds."""
    for field in dataclasses.fields(thing):
        value = getattr(thing, field.name)
        for part in value.values() if isinstance(value, dict) else [value]:
            if isinstance(part, np.ndarray):
                yield part
            elif dataclasses.is_dataclass(part):
                yield from arrays_in(part)


@cache
def reference() -> tuple[pa.Array, np.ndarray]:
    """The types of all cases and their counts."""
    counts = Counter(word for unit in ALL for word in unit)
    return pa.array(list(counts), pa.string()), np.array(list(counts.values()), np.int64)


def lexicon_of(pipeline: Pipeline) -> Lexicon:
    return pipeline.fit(*reference())


def derive(spec: Transform | str, batch: Batch) -> Derivation:
    pipeline = Pipeline((spec,)) if isinstance(spec, Transform) else Pipeline.parse(spec)
    parser = Chain() if pipeline.needs_trees else None
    return pipeline.derive(batch, lexicon_of(pipeline), split=False, parser=parser)


def per_sentence(derived: Derivation) -> list[tuple[list[str], list[int]]]:
    """Derived words and order, from 0 in the sentence, of each sentence."""
    words = sentence_lists(derived.derived)
    starts = np.repeat(derived.source.sentences[:-1], lengths_of(derived.order.sentences))
    local: Int32 = np.where(derived.order.index < 0, -1, derived.order.index - starts)
    return list(zip(words, lists(local.tolist(), derived.order.sentences), strict=True))


# what it declares


@every
def test_it_says_what_it_is(transform: Transform) -> None:
    assert transform.name
    assert transform.name == transform.name.strip().lower()
    assert transform.rule_version >= 1
    assert len(type(transform).summary()) > 10
    assert all(parameter["help"] for parameter in transform.parameters())


@every
def test_its_spec_says_it_again(transform: Transform) -> None:
    spec = str(transform)
    pipeline = Pipeline.parse(spec)
    assert pipeline.transforms == (transform,)
    assert str(pipeline) == spec
    twice = Pipeline.parse(f"{spec},identity,{spec}")
    assert str(twice) == f"{spec},identity,{spec}"
    assert Pipeline.parse(str(twice)).fingerprint() == twice.fingerprint()
    assert twice.fingerprint() != pipeline.fingerprint()


@every
def test_every_parameter_written_out_is_the_same_transform(transform: Transform) -> None:
    written = {f.name: getattr(transform, f.name) for f in dataclasses.fields(transform)}
    text = {k: ("yes" if v else "no") if isinstance(v, bool) else str(v) for k, v in written.items()}
    assert type(transform).from_values([], text) == transform


@pytest.mark.parametrize("name", transform_names())
def test_it_takes_the_bounds_that_it_declares(name: str) -> None:
    transform = find_transform(name)
    for parameter in transform.parameters():
        for bound in (parameter["low"], parameter["high"]):
            if bound is not None:
                given = {**_GIVEN.get(name, {}), parameter["name"]: str(bound)}
                assert transform.from_values([], given)


# the order


@every
@by_case
def test_an_order_stays_in_its_sentence(transform: Transform, case: str) -> None:
    batch = batch_for(UNITS[case])
    result = derive(transform, batch)
    order = result.order.check()
    assert order.n_source == batch.n_words
    assert len(order.sentences) == len(batch.sentences)
    assert (order.tails >= 0).all()
    assert (order.tails <= lengths_of(order.sentences)).all()
    sizes = lengths_of(batch.sentences).tolist()
    for (_, local), size in zip(per_sentence(result), sizes, strict=True):
        assert all(-1 <= place < size for place in local)
    if not transform.has_order:
        assert order.index.tolist() == list(range(batch.n_words))


@every
@by_case
def test_words_stay_a_multiset_where_it_is_a_permutation(transform: Transform, case: str) -> None:
    batch = batch_for(UNITS[case])
    order = Pipeline((transform,)).order(batch)
    words = batch.strings().to_pylist()
    target = lists(gathered(words, order), order.sentences)
    if not transform.is_permutation:
        kept = [Counter(row) for row in target]
        marks = Counter([] if order.inserted is None else order.inserted.to_pylist())
        total = sum(kept, Counter[str]()) - marks
        assert total <= Counter(words)
        return
    assert order.is_permutation
    for source, image in zip(sentence_lists(batch), target, strict=True):
        assert Counter(source) == Counter(image)
    back = order.invert(batch.sentences, batch.tails)
    assert order.then(back).index.tolist() == list(range(batch.n_words))
    assert back.then(order).index.tolist() == list(range(batch.n_words))


@every
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
    if "head" not in transform.needs:
        assert order.index.tolist() == derive(transform, batch_for(ALL)).order.index.tolist() or transform.needs
    alone = [derive(transform, batch_for([unit], whole_units=True)) for unit in ALL]
    assert rows == [row.order.index.tolist() for row in alone]
    assert unit_lists(result.derived) == [unit_lists(row.derived)[0] for row in alone]


@every
@pytest.mark.parametrize("whole_units", [False, True])
def test_every_word_keeps_its_governor(transform: Transform, whole_units: bool) -> None:
    units = [unit for unit in ALL if len(unit) < 100]
    batch = batch_for(units, whole_units=whole_units)
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
    batch = batch_for(ALL)
    result = derive(transform, batch)
    for batch_ in (result.source, result.derived):
        assert len(batch_.layers["upos"].codes) == batch_.n_words  # type: ignore[attr-defined]
    tags = [result.source.layers["upos"].values[c].as_py() for c in result.source.layers["upos"].codes]  # type: ignore[attr-defined]
    moved = [result.derived.layers["upos"].values[c].as_py() for c in result.derived.layers["upos"].codes]  # type: ignore[attr-defined]
    assert moved == ["X" if i < 0 else tags[i] for i in result.order.index.tolist()]


# the lexicon


@every
def test_a_lexicon_has_an_inverse_where_it_says_so(transform: Transform) -> None:
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


@every
def test_special_tokens_stay(transform: Transform) -> None:
    specials = pa.array(SPECIALS)
    assert lexicon_of(Pipeline((transform,))).apply(specials).to_pylist() == list(SPECIALS)


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


@every
def test_a_type_looks_the_same_in_any_vocabulary(transform: Transform) -> None:
    lexicon = lexicon_of(Pipeline((transform,)))
    types = reference()[0]
    image = lexicon.apply(types).to_pylist()
    assert [lexicon.apply(types[i : i + 1])[0].as_py() for i in range(len(types))] == image
    assert lexicon.apply(types[:0]).to_pylist() == []
    assert lexicon.apply(types[3:9]).to_pylist() == image[3:9]


# order and lexicon know nothing of each other


@every
@pytest.mark.parametrize("script", ["trans", "trans:copy", "trans:overlap=25"])
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
    assert unit_lists(one.derived) == unit_lists(two.derived)
    assert one.order.index.tolist() == two.order.index.tolist()
    assert one.derived.sentences.tolist() == two.derived.sentences.tolist()


# a function of the sentence


@every
def test_a_sentence_is_derived_alike_alone_and_among_others(transform: Transform) -> None:
    among = per_sentence(derive(transform, batch_for(ALL)))
    alone = [one for unit in ALL for one in per_sentence(derive(transform, batch_for([unit])))]
    assert among == alone
    backward = [unit for unit in reversed(ALL) if unit]
    turned = per_sentence(derive(transform, batch_for(backward)))
    by_words = {tuple(words): image for words, image in zip(sentence_lists(batch_for(ALL)), among, strict=True)}
    for words, image in zip(sentence_lists(batch_for(backward)), turned, strict=True):
        assert by_words[tuple(words)] == image


@every
def test_running_text_and_records_are_derived_alike(transform: Transform) -> None:
    running = per_sentence(derive(transform, batch_for(ALL, running=True)))
    assert running == per_sentence(derive(transform, batch_for(ALL)))


@every
def test_a_treebank_and_its_parsed_text_are_derived_alike(transform: Transform) -> None:
    """A record for each sentence with its gold tree, and running text with a parser's trees."""
    source = batch_of(ALL, running=True)
    kept = [row for row in sentence_lists(source) if len(sentence_lists(batch_of([row]))) == 1]
    trees = [replace(annotated(row), ranges=[]) for row in kept]
    gold = replace(batch_of(kept), layers=tree_layers([[tree] for tree in trees]))
    text = replace(batch_of(kept, running=True), layers=tree_layers([[tree] for tree in trees], parsed=True))
    side_by_side = batch_of([[word for row in kept for word in row]])
    assert per_sentence(derive(transform, gold)) == per_sentence(derive(transform, text))
    if sentence_lists(side_by_side) == kept:
        side_by_side = replace(side_by_side, layers=tree_layers([trees], parsed=True))
        assert per_sentence(derive(transform, gold)) == per_sentence(derive(transform, side_by_side))


@of_text
def test_each_side_of_a_pair_is_derived_by_itself(transform: Transform) -> None:
    premises = ["He left . She stayed !", "the cat sat", "", "One , two ."]
    hypotheses = ["the cat sat", "He left . She stayed !", "Yes .", ""]
    table = pa.table({"premise": premises, "hypothesis": hypotheses, "label": ["neutral"] * 4})
    batch = split_sentences(
        to_batch(
            table,
            PAIRS,
            split_at_spaces,
            documents=np.arange(4),
            where=lambda row, word: str(row),
            counts=Counter(),
        )
    )
    result = derive(transform, all_frozen(batch))
    columns = to_table(
        result.source,
        result.derived,
        result.order,
        PAIRS,
        lexicon_of(Pipeline((transform,))),
        has_order=transform.has_order,
    )
    for side, texts in (("premise", premises), ("hypothesis", hypotheses)):
        for row, sentence in enumerate(texts):
            alone = derive(transform, batch_of([sentence.split()]))
            assert columns[f"{side}_source"][row].as_py() == sentence.split()
            assert columns[f"{side}_tokens"][row].as_py() == unit_lists(alone.derived)[0]
            assert columns[f"{side}_order"][row].as_py() == alone.order.index.tolist()
    assert columns["label"].to_pylist() == [1] * 4


@every
def test_its_arguments_are_left_untouched(transform: Transform) -> None:
    batch = batch_for(ALL)
    before = [array.copy() for array in arrays_in(batch)]
    types, counts = reference()
    counts.flags.writeable = False
    derive(transform, batch)
    assert all((a == b).all() for a, b in zip(before, arrays_in(batch), strict=True))
    assert batch.types.to_pylist() == batch_for(ALL).types.to_pylist()
    assert len(types) == len(counts)


def test_a_missing_layer_is_named() -> None:
    with pytest.raises(LayerError, match="drop-punct needs upos"):
        Pipeline((DropPunct(),)).derive(batch_of([["a", "."]]), Lexicon(), split=False)


@every
def test_a_set_without_layers(transform: Transform) -> None:
    batch = batch_of(ALL)
    if transform.needs:
        with pytest.raises(LayerError, match=r"\[needs-layer\]"):
            Pipeline((transform,)).order(batch)
    else:
        assert per_sentence(derive(transform, batch)) == per_sentence(derive(transform, batch_for(ALL)))


# the same rows for any size of what is read at once, and of what is written to one file


TEXT = "\n".join(" ".join(unit).replace("\ufeff", "") for unit in ALL if len(unit) < 100) + "\n\n \nlast line , cut"


def rows_read(path: Path, transform: Transform, batch_words: int) -> dict[str, list[Any]]:
    pipeline = Pipeline((transform,))
    lexicon = lexicon_of(pipeline)
    out: dict[str, list[Any]] = {}
    for batch in text.read(path, Splitter("space"), batch_words=batch_words):
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


@of_text
def test_the_same_rows_for_any_size_of_reading(
    transform: Transform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tokens"
    path.write_text(TEXT, "utf-8")
    whole = rows_read(path, transform, 1 << 20)
    for size in (1, 7, 40):
        assert rows_read(path, transform, size) == whole
    for piece in (16, 50, 333):
        monkeypatch.setattr(line_chunks, "BLOCK", piece)
        assert rows_read(path, transform, 10) == whole


def few(transforms: list[Transform]) -> list[Transform]:
    """The default and the last setting of each."""
    first = {t.name: t for t in reversed(transforms)}
    last = {t.name: t for t in transforms}
    return list(dict.fromkeys([*first.values(), *last.values()]))


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize("transform", few(OF_TEXT), ids=str)
def test_the_same_rows_for_any_size_of_shards(transform: Transform, tmp_path: Path) -> None:
    path = tmp_path / "a.tokens"
    path.write_bytes(TEXT.encode())
    parser = "chain" if "head" in transform.needs else None
    whole = make(str(transform), path, tmp_path / "whole", parser=parser)
    right(whole)
    assert undone(whole) == TEXT.encode()
    for size in (1, 20):
        cut = make(str(transform), path, tmp_path / f"cut{size}", shard_tokens=size, parser=parser)
        same_rows(rows(cut), rows(whole))
        right(cut)
        assert undone(cut) == TEXT.encode()
