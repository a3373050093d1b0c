"""Examples in both languages: labels stay with their words, and rows of both languages hold the same sub-words."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from derivlang.core.batch import Batch, realign
from derivlang.core.errors import DataError, UsageError
from derivlang.core.layers.spans import Spans
from derivlang.core.layers.words import Words
from derivlang.engine.batches import Source
from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.sets import check_sources
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.registry import task_of
from derivlang.lexical.bpe import SPECIAL_TOKENS
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.training.languages import Languages
from tests.tiny_runs import batch, languages

SPECS = ["trans", "trans,inv", "trans,perm:seed=4", "trans:overlap=40,inv", "trans,syn:fr"]
UPOS = tuple("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split())

BEGIN, END = (SPECIAL_TOKENS.index(token) for token in ("<s>", "</s>"))


def classes_of(source: str, task: Task) -> tuple[str, ...]:
    return task.classes(find(SourceRequest(source)))


def made(spec: str, task: Task, length: int = 128, source: str = "demo") -> tuple[Examples, Batch, Languages]:
    found, both = batch(source, "test" if source == "demo:qa" else "train", spec), languages(spec)
    task = task.with_settings(max_length=length)
    return task.examples(task.rows(found, both), classes_of(source, task)), found, both


def rows(instances: Instances) -> list[list[int]]:
    return [instances.ids[a:b].tolist() for a, b in zip(instances.offsets[:-1], instances.offsets[1:], strict=True)]


def labels(instances: Instances) -> list[dict[int, int]]:
    """Of each row: place -> class."""
    offsets = instances.label_offsets
    return [
        dict(zip(instances.at[a:b].tolist(), instances.gold[a:b, 0].tolist(), strict=True))
        for a, b in itertools.pairwise(offsets)
    ]


def back(both: Languages, ids: list[int]) -> list[int]:
    """The source's ids of joint ids."""
    home = {int(joint): i for i, joint in enumerate(both.twin.joint.table())}
    return [i if i < both.tokenizer.size else home[i] for i in ids]


def written(derived: Batch, both: Languages, tags: list[str]) -> tuple[list[list[int]], list[dict[int, str]]]:
    """Rows and labels of a derived batch, by encoding its words one after the other."""
    encoded = both.twin.encode_words(both.tokenizer.encoder, derived.types, derived.words)
    ids, marked = [], []
    for a, b in zip(derived.unit_words[:-1], derived.unit_words[1:], strict=True):
        row, here = [BEGIN], {}
        for word in range(a, b):
            pieces = encoded.ids[encoded.offsets[word] : encoded.offsets[word + 1]].tolist()
            if pieces:
                here[len(row)] = tags[word]
            row += pieces
        ids.append([*row, END])
        marked.append(here)
    return ids, marked


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", ["pos", "ner"])
def test_rows_are_the_derived_text_encoded_with_its_own_tags(spec: str, name: str) -> None:
    found, source, both = made(spec, task_of(name), 512)
    if "overlap" in spec:
        lexicon = both.twin.map
    else:
        (lexicon,) = both.pipeline.fit().steps
    derived = realign(source, both.pipeline.order(source), lexicon.apply(source.types))
    layer = derived.layers[{"pos": "upos", "ner": "ner_tags"}[name]]
    tags = (
        [layer.classes[i] for i in layer.tags(derived.n_words)]
        if isinstance(layer, Spans)
        else [layer.values[i].as_py() for i in layer.codes]  # type: ignore[attr-defined]
    )
    ids, marked = written(derived, both, tags)
    assert rows(found.derived) == ids
    assert [{at: found.classes[c] for at, c in row.items()} for row in labels(found.derived)] == marked
    assert not found.truncated.any()
    assert found.unscored == 0


@pytest.mark.parametrize("spec", ["trans,inv", "trans,perm", "trans,syn:fr", "trans,inv:unit=token"])
@pytest.mark.parametrize("name", ["pos", "ner"])
@pytest.mark.parametrize("length", [8, 13, 30])
def test_a_row_is_cut_before_a_word_and_labels_stay_with_their_words(spec: str, name: str, length: int) -> None:
    """Besides what rows of every task promise in test_contract_tasks.py."""
    cut, _, both = made(spec, task_of(name), length)
    whole, _, _ = made(spec, task_of(name), 512)
    assert cut.truncated.any()
    for i, (ours, full) in enumerate(zip(rows(cut.source), rows(whole.source), strict=True)):
        assert ours[:-1] == full[: len(ours) - 1]
        assert cut.truncated[i] == (len(ours) < len(full))
        # what follows the cut begins a word, unless the first word fills the row
        special_ids = {at for at in labels(whole.source)[i]} | {len(full) - 1}
        assert len(ours) - 1 in special_ids or len(labels(cut.source)[i]) == 1
    if name == "ner":
        for row in [*labels(cut.source), *labels(cut.derived)]:
            tags = ["O", *(cut.classes[c] for _, c in sorted(row.items()))]
            assert all(not b.startswith("I-") or a[1:] == b[1:] for a, b in itertools.pairwise(tags)), tags
    else:
        for i, (gold, moved) in enumerate(zip(labels(cut.source), labels(cut.derived), strict=True)):
            ours, theirs = rows(cut.source)[i], back(both, rows(cut.derived)[i])
            assert sorted((ours[at], c) for at, c in gold.items()) == sorted((theirs[at], c) for at, c in moved.items())


@pytest.mark.parametrize("spec", [*SPECS, "trans,inv:unit=token"])
@pytest.mark.parametrize("name", ["pos", "ner", "dep"])
def test_the_labels_of_a_causal_model_are_at_last_subwords(spec: str, name: str) -> None:
    task = task_of(name)
    assert isinstance(task, Task)
    first, source, both = made(spec, task, 512)
    last, _, _ = made(spec, replace(task, last=True), 512)
    assert last.unscored == first.unscored == 0
    every = both.parallel(source)
    starts = every.offsets[source.unit_words]
    for side, ours, theirs in ((every.source, first.source, last.source), (every.derived, first.derived, last.derived)):
        assert rows(ours) == rows(theirs)
        owner, gold = every.words(side), iter(zip(ours.gold.tolist(), theirs.gold.tolist(), strict=True))
        for start, end, at in zip(starts[:-1], starts[1:], theirs.by_row(theirs.at.tolist()), strict=True):
            words = owner[start:end].tolist()
            place = {word: number + 1 for number, word in enumerate(words)}  # the last one stays
            assert at == sorted(place.values())
            where = {0: 0} | {words.index(word) + 1: number for word, number in place.items()}
            for _ in at:
                one, other = next(gold)
                if name == "dep" and "token" not in spec:
                    one[0] = where[one[0]]
                assert one == other or "token" in spec


@pytest.mark.parametrize("name", ["pos", "ner", "dep"])
def test_a_row_that_is_cut_has_the_same_labels_for_a_causal_model(name: str) -> None:
    task = task_of(name)
    assert isinstance(task, Task)
    for length in (8, 9, 14):
        first, last = (made("trans,perm", replace(task, last=end), length)[0] for end in (False, True))
        assert first.unscored == last.unscored > 0
        for ours, theirs in ((first.source, last.source), (first.derived, last.derived)):
            assert rows(ours) == rows(theirs)
            assert (theirs.at >= ours.at).all()
            assert (theirs.at < np.repeat(theirs.lengths - 1, np.diff(theirs.label_offsets))).all()
            assert np.array_equal(ours.gold[:, -1], theirs.gold[:, -1])


def test_entities_that_an_order_takes_apart_are_several() -> None:
    found, _, _ = made("trans,perm:seed=4", task_of("ner"))
    begins = [i for i, name in enumerate(found.classes) if name.startswith("B-")]
    count = [np.isin(side.gold, begins).sum() for side in (found.source, found.derived)]
    assert count[1] > count[0] > 0


@pytest.mark.parametrize("length", [8, 12, 17, 128])
@pytest.mark.parametrize("spec", ["trans,inv", "trans,perm", "trans:overlap=40,inv"])
def test_pairs(spec: str, length: int) -> None:
    found, source, both = made(spec, task_of("xnli"), length, "demo:nli")
    ours = both.parallel(source)
    offsets = ours.offsets[source.unit_words]
    assert found.n_rows == source.n_records
    for r, (left, right) in enumerate(zip(rows(found.source), rows(found.derived), strict=True)):
        assert len(left) <= length
        assert len(left) == len(right)
        assert (left[0], left[-1], right[0], right[-1]) == (BEGIN, END, BEGIN, END)
        middle = left.index(END)
        assert right.index(END) == middle
        sides = (left[1:middle], right[1:middle]), (left[middle + 1 : -1], right[middle + 1 : -1])
        full = [ours.source.ids[offsets[u] : offsets[u + 1]].tolist() for u in source.records[r]]
        for (a, b), text in zip(sides, full, strict=True):
            assert a == text[: len(a)]
            assert Counter(a) == Counter(back(both, b))
        assert bool(found.truncated[r]) == (sum(map(len, full)) > length - 3)
        if found.truncated[r]:  # the shorter side loses nothing that the longer one could
            spared = min(full, key=len)
            assert len(spared) > (length - 3) // 2 or spared in [side[0] for side in sides]
    assert labels(found.derived) == [{0: c} for c in found.source.gold[:, 0].tolist()]


def test_the_first_examples_are_a_keyed_ranking() -> None:
    found, _, _ = made("trans,inv", task_of("pos"))
    few, more = found.first(7), found.first(20)
    assert (few.n_rows, more.n_rows, found.first(found.n_rows).n_rows) == (7, 20, found.n_rows)
    assert (
        set(map(tuple, rows(few.source))) <= set(map(tuple, rows(more.source))) <= set(map(tuple, rows(found.source)))
    )
    number = {tuple(row): i for i, row in enumerate(rows(found.source))}
    for ours, theirs in zip(rows(more.source), rows(more.derived), strict=True):
        assert theirs == rows(found.derived)[number[tuple(ours)]]
    assert rows(few.source) != rows(found.source)[:7]


def test_a_word_without_a_tag_is_not_asked_for() -> None:
    source = batch()
    layer = source.layers["upos"]
    assert isinstance(layer, Words)
    codes = layer.codes.copy()
    codes[:3] = layer.values.to_pylist().index("_")
    without = replace(source, layers={**source.layers, "upos": replace(layer, codes=codes)})
    both = languages("trans,inv")
    task = task_of("pos")
    found, whole = (task.examples(task.rows(b, both), UPOS) for b in (without, source))  # type: ignore[attr-defined]
    assert len(found.source.gold) == len(found.derived.gold) == len(whole.source.gold) - 3
    assert found.unscored == whole.unscored


def test_a_pair_without_a_label_is_left_out() -> None:
    source = batch("demo:nli")
    layer = source.layers["label"]
    values = layer.values.to_pylist()  # type: ignore[attr-defined]
    column = pa.array([-1, None, *values[2:]], pa.int64())
    without = replace(source, layers={"label": replace(layer, values=column)})  # type: ignore[type-var]
    task = task_of("xnli")
    found = task.examples(task.rows(without, languages("trans")), ("e", "n", "c"))  # type: ignore[attr-defined]
    assert found.n_rows == len(found.keys) == source.n_records - 2
    assert found.source.gold[:, 0].tolist() == values[2:]


# Heads, answers


@pytest.mark.parametrize("length", [14, 200])
def test_heads_are_positions_in_the_row(length: int) -> None:
    found, source, both = made("trans,inv", task_of("dep"), length)
    tree = source.layers["head"]
    relations = tree.deprel.values.to_pylist()  # type: ignore[attr-defined]
    encoded = both.tokenizer.encoder.batch(source)
    missing = 0
    for r, (a, b) in enumerate(itertools.pairwise(source.unit_words)):
        begins = {word: 1 + encoded.offsets[word] - encoded.offsets[a] for word in range(a, b)}
        there = {word: at for word, at in begins.items() if at < found.source.lengths[r] - 1}
        expected = {}
        for word, at in there.items():
            head = tree.head[word]  # type: ignore[attr-defined]
            if head == 0 or a + head - 1 in there:
                name = relations[tree.deprel.codes[word]].partition(":")[0]  # type: ignore[attr-defined]
                expected[at] = (0 if head == 0 else there[a + head - 1], name)
        missing += b - a - len(expected)
        here = slice(*found.source.label_offsets[r : r + 2])
        gold = [(head, found.classes[relation]) for head, relation in found.source.gold[here].tolist()]
        assert dict(zip(found.source.at[here].tolist(), gold, strict=True)) == expected
        words = found.source.words[slice(*found.source.offsets[r : r + 2])]  # type: ignore[index]
        assert np.flatnonzero(words >= 0).tolist() == [0, *there.values()]
    assert found.unscored == missing
    assert (missing > 0) == (length == 14)


def test_a_relation_that_ud_does_not_have() -> None:
    source = batch()
    tree = source.layers["head"]
    odd = replace(tree.deprel, values=pa.array(["dobj"] * len(tree.deprel.values)))  # type: ignore[attr-defined]
    other = replace(source, layers={"head": replace(tree, deprel=odd)})  # type: ignore[type-var, call-arg]
    task: Any = task_of("dep")
    with pytest.raises(DataError, match="'dobj' is not one of the 37"):
        task.examples(task.rows(other, languages("trans")), task.classes(find(SourceRequest("demo"))))


def test_trees_of_a_parser_are_no_labels() -> None:
    (corpus,) = (Source.open(Pipeline.parse("syn:fr"), SourceRequest("demo:nli"), splits=("test",)).corpus,)
    assert corpus.schema.has_trees
    with pytest.raises(DataError, match="no labels of the task dep"):
        task_of("dep").classes(corpus)


def test_the_best_span_does_not_end_before_it_starts() -> None:
    torch.manual_seed(1)
    scores = torch.randn(50, 9, 2)
    scores[:, [0, 4, 8]] = -torch.inf
    for one, (start, end) in zip(scores, task_of("qa").decode(scores).tolist(), strict=True):
        pairs = {(i, j): float(one[i, 0] + one[j, 1]) for i in range(9) for j in range(i, 9)}
        assert pairs[start, end] == max(pairs.values()) > -np.inf


# Sources


@pytest.mark.parametrize("name", ["pos:demo", "ner:demo", "dep:demo", "xnli:demo:nli", "xnli:demo:nli+demo:nli"])
def test_sources_are_checked_without_their_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of(name)
    corpora = [find(SourceRequest(source)) for source in task.sources]

    def read(*args: object, **options: object) -> None:
        raise AssertionError("a row was read")

    monkeypatch.setattr(Source, "batches", read)
    parts, classes = check_sources(task, corpora)
    assert {split: (len(corpora) - 1 if split == "test" else 0) for split in parts} == {
        split: number for split, (number, _) in parts.items()
    }
    assert classes == task.classes(corpora[0])


def test_sources_that_do_not_fit_a_task() -> None:
    """A split that is missing, labels that are missing, and two sets with different labels."""

    def told(name: str, *sources: str) -> str:
        with pytest.raises(DataError) as error:
            check_sources(task_of(name), [find(SourceRequest(source)) for source in sources])
        return str(error.value.id)

    assert told("qa", "demo:qa") == "missing-split"
    assert told("pos", "demo:nli") == "no-labels"
    with pytest.raises(DataError, match=r"the lists `tokens` and `upos` .* in JSON lines"):
        check_sources(task_of("pos"), [find(SourceRequest("demo:nli"))])
    assert told("xnli", "demo") == "no-labels"
    assert told("xnli", "demo:nli", "demo") == "no-labels"


# Tasks


def test_tasks_by_name() -> None:
    sources = {
        "pos": ("pos:English-EWT",),
        "pos:French-GSD": ("pos:French-GSD",),
        "xnli:en+data/my.tsv": ("xnli:en", "data/my.tsv"),
        "pos:demo": ("demo",),
        "xnli:demo:nli": ("demo:nli",),
    }
    for name, expected in sources.items():
        assert task_of(name).sources == expected
        assert task_of(name).label == name
    assert task_of("pos:a/b").file_name == "pos-a-b"
    assert task_of("xnli").settings == FinetuneSettings(epochs=5, lr=2e-5, batch_size=32, max_length=128)
    assert task_of("ner").with_settings(lr=1e-3, epochs=None).settings == FinetuneSettings(epochs=10, lr=1e-3)


def test_labels_have_no_absolute_path() -> None:
    here, there = (task_of(f"pos:/{folder}/sets+English-EWT").label for folder in ("a/b", "c"))
    assert here != there
    assert here.startswith("pos:sets-")
    assert here.endswith("+English-EWT")
    assert task_of(here).label == here
    assert task_of("pos:/a/b/../b/sets/").label == task_of("pos:/a/b/sets").label


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("poss", "did you mean pos"),
        ("pos:", "no set"),
        ("pos:a+", "no set"),
        ("pos:a+b+c", "two sets"),
        ("blimp", "'blimp' names no set"),
        ("z", "there are: blimp, dep, "),
    ],
)
def test_names_that_are_no_task(name: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        task_of(name)


@pytest.mark.parametrize(
    "changes",
    [{"epochs": 0}, {"lr": 0.0}, {"lr": float("nan")}, {"batch_size": 0}, {"max_length": 7}, {"train_examples": 0}],
)
def test_settings_out_of_range(changes: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(changes)).replace("_", "-")):
        task_of("pos").with_settings(**changes)
