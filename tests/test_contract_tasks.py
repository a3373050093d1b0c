"""Every task of the registry keeps the same promises; a new one is tested by being registered.

Its name without a set must find files in the folder that `data_folder` makes; otherwise `name_of` adds a set.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
import torch

import derivlang
from derivlang.core.batch import Batch, realign
from derivlang.core.errors import DataError
from derivlang.engine.batches import Source
from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.finetune import TaskModel, fine_tune, predict
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.tasks.base import PairTask, Task
from derivlang.evaluation.tasks.registry import TASKS, register_task, task_of, tuned_tasks
from derivlang.formats.base import FORMATS
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.training.encoder import Encoder
from tests.evaluations import evaluate, of_regime, options
from tests.plugin.derivlang_sample.blocks import FORMAT
from tests.plugin.derivlang_sample.tasks import Mood
from tests.tiny_runs import MARKS, data_folder, languages, model_of, write_run

SAME = "trans:overlap=100"  # a derived language that is the source
KINDS = sorted({*tuned_tasks(), Mood.kind})
CPU = torch.device("cpu")


@pytest.fixture(autouse=True, scope="module")
def _sample() -> Iterator[None]:
    """The task of the sample package and the format of its sets are registered in this process."""
    register_task(Mood)
    FORMATS.add("blocks", FORMAT)
    yield
    del TASKS.added[Mood.kind], FORMATS.added["blocks"]


@cache
def data() -> Path:
    folder = data_folder(Path(mkdtemp(prefix="derivlang-tests-")) / "data")
    (folder / "moods").mkdir()
    moods = [f"words: {word} {other} .\nmood: {mood}\n\n" for word, mood in (("fine", "glad"), ("poor", "sad"))
             for other in ("day", "night", "work", "food", "talk")]  # fmt: skip
    for split in ("train", "dev", "test"):
        (folder / "moods" / f"{split}.blocks").write_text("".join(moods), "utf-8")
    return folder


def name_of(kind: str) -> str:
    return f"mood:{data()}/moods" if kind == Mood.kind else kind


def task(kind: str) -> Task:
    found = task_of(name_of(kind))
    assert isinstance(found, Task)
    return found


@cache
def batch(kind: str, split: str = "train") -> Batch:
    request = SourceRequest(task(kind).sources[0], data_dir=data())
    (found,) = Source.open(Pipeline.parse("identity"), request).batches(split)
    return found


def classes(kind: str) -> tuple[str, ...]:
    return task(kind).classes(find(SourceRequest(task(kind).sources[0], data_dir=data())))


@cache
def made(kind: str, spec: str, length: int = 512) -> Examples:
    asked = task(kind).with_settings(max_length=length)
    return asked.examples(asked.rows(batch(kind), languages(spec)), classes(kind))


def same(one: Instances, other: Instances) -> None:
    for name in ("ids", "offsets", "at", "gold", "label_offsets", "words"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.parametrize("kind", KINDS)
def test_it_declares_itself(kind: str) -> None:
    found = tuned_tasks()[kind]
    assert found.kind == kind
    assert found.summary().endswith(".")
    names = [column.name for column in found.columns]
    assert len(set(names)) == len(names)
    assert [column.headline for column in found.columns].count(True) == 1
    assert len(inspect.getsource(inspect.getmodule(found)).splitlines()) <= 250  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", ["inv", "perm:seed=4", "syn:fr"])
@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_the_derived_language_are_labels_realigned(kind: str, spec: str) -> None:
    """The words keep their forms here, so a derived batch is a batch of the source language."""
    if spec == "syn:fr" and not hasattr(batch(kind).layers.get("head"), "deprel"):
        pytest.skip("there are no trees")
    source, derived = replace(batch(kind), gaps=None), languages(f"{SAME},{spec}")  # a derived batch has no gaps
    moved = realign(source, derived.pipeline.order(source))
    ours = task(kind).examples(task(kind).rows(source, derived), classes(kind)).derived
    same(ours, task(kind).examples(task(kind).rows(moved, languages(SAME)), classes(kind)).source)
    assert not np.array_equal(ours.ids, made(kind, SAME).source.ids)


@pytest.mark.parametrize("kind", KINDS)
def test_the_languages_are_one_under_identity(kind: str) -> None:
    """Mixed pairs, too: tasks whose rows have two sides have them; others cannot."""
    plain = made(kind, SAME)
    same(plain.source, plain.derived)
    assert plain.n_rows == len(plain.keys) == plain.source.n_rows > 5
    assert not plain.truncated.any()
    assert isinstance(task(kind), PairTask) == (batch(kind).records.shape[1] == 2)
    asked = task(kind).with_settings(max_length=512)
    if isinstance(asked, PairTask):
        found = asked.examples(asked.rows(batch(kind), languages(SAME)).mixed(), classes(kind))
        for side in (found.source, found.derived):
            same(side, plain.source)
            assert set(side.languages.tolist()) == {0, 1}  # type: ignore[union-attr]


@pytest.mark.parametrize("length", [12, 20, 40])
@pytest.mark.parametrize("spec", ["trans,inv", "trans,perm", "trans,inv:unit=token"])
@pytest.mark.parametrize("kind", KINDS)
def test_cut_rows_hold_the_same_in_both_languages(kind: str, spec: str, length: int) -> None:
    cut, whole = made(kind, spec, length), made(kind, spec)
    table = languages(spec).twin.joint.table()
    for side in (cut.source, cut.derived):
        assert side.lengths.max(initial=0) <= length
        assert len(side.gold) + cut.unscored == len(whole.source.gold) + whole.unscored
    a, b = (
        [Counter(ids[start:end].tolist()) for start, end in zip(side.offsets[:-1], side.offsets[1:], strict=True)]
        for side, ids in ((cut.source, table[cut.source.ids]), (cut.derived, cut.derived.ids))
    )
    marks = {int(table[i]) for i in range(5)} | set(range(5))
    assert [{i: n for i, n in row.items() if i not in marks} for row in a] == [
        {i: n for i, n in row.items() if i not in marks} for row in b
    ]


@pytest.mark.parametrize("model_type", ["modernbert", "gpt2"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_five_examples(kind: str, model_type: str) -> None:
    causal = model_type == "gpt2"
    if causal and not task(kind).causal:
        pytest.skip("it needs an encoder")
    asked = replace(task(kind).with_settings(lr=1e-2, max_length=60 if causal else 512), last=causal)
    few = asked.examples(asked.rows(batch(kind), languages("trans,inv")), classes(kind)).first(5)
    settings = FinetuneSettings(epochs=80, lr=1e-2, batch_size=8)

    def make() -> TaskModel:
        encoder = Encoder(model_of(model_type, languages("trans,inv").size).base_model, MARKS)
        return TaskModel(asked, encoder, len(few.classes))

    rising = iter(range(999))  # the first of equal dev scores would choose the first epoch
    model, _ = fine_tune(make, few.derived, 1, settings, 1, lambda model: next(rising))
    guessed = predict(model, few.derived, 1)
    assert guessed.shape == few.derived.gold.shape
    counts = asked.score(*(asked.labels(few.derived, v, few.classes) for v in (few.derived.gold, guessed)))
    assert asked.headline().value(counts[asked.headline().name]) > 95


@pytest.mark.parametrize("freeze", ["", "embeddings", "encoder", "layers=0", "embeddings,encoder"])
def test_frozen_parts_stay_as_they_were(freeze: str) -> None:
    asked = task("pos").with_settings(lr=1e-2, freeze=freeze)
    few = asked.examples(asked.rows(batch("pos"), languages("trans,inv")), classes("pos")).first(5)
    encoder = Encoder(model_of("modernbert", languages("trans,inv").size).base_model, MARKS)
    before = {name: value.clone() for name, value in encoder.module.state_dict().items()}
    made = TaskModel(asked, encoder, len(few.classes))
    fine_tune(lambda: made, few.derived, 1, FinetuneSettings(epochs=2, lr=1e-2), 1, lambda model: 0.0)
    moved = {name for name, value in encoder.module.state_dict().items() if not torch.equal(value, before[name])}
    of_embeddings = {name for name in moved if "tok_embeddings" in name}
    of_layers = {name for name in moved if name.startswith("layers.0")}
    parts = freeze.split(",")
    assert bool(of_embeddings) == ("embeddings" not in parts)
    assert bool(of_layers) == (not {"encoder", "layers=0"} & set(parts))
    assert bool(moved) == (not {"embeddings", "encoder"} <= set(parts))


@pytest.mark.parametrize("kind", KINDS)
def test_gold_labels_are_right_and_chance_is_a_score(kind: str) -> None:
    found, asked = made(kind, "trans,inv"), task(kind)
    gold = asked.labels(found.derived, found.derived.gold, found.classes)
    assert [len(row) for row in gold] == np.diff(found.derived.label_offsets).tolist()
    for column in asked.columns:
        assert column.value(asked.score(gold, gold)[column.name]) == 100
    by_chance = asked.chance(found.derived, found.derived, found.classes)
    assert set(by_chance) == {column.name for column in asked.columns if column.chance}
    for column in asked.columns:
        if column.chance:
            assert len(by_chance[column.name]) == found.n_rows
            assert 0 < column.value(by_chance[column.name]) < 100


@pytest.mark.filterwarnings("ignore:.* are in no row")  # the rows are short
@pytest.mark.parametrize("kind", KINDS)
def test_its_results_are_read_again_and_reported(kind: str, tmp_path: Path) -> None:
    """Under identity, where SUP and ZS are one."""
    run = write_run(tmp_path, SAME, fingerprint="0", steps=1)
    asked = options(name_of(kind), max_length=60, data_dir=data())
    (quick,) = asked.tasks
    found = evaluate(run, asked)
    sup, zs, source = (of_regime(found, quick.label, regime) for regime in ("sup", "zs", "source"))
    assert sup == zs == source
    assert [metric for metric, *_ in sup] == [column.name for column in quick.columns]
    assert of_regime(found, quick.label, "sup", "dev") == of_regime(found, quick.label, "zs", "dev")
    frame = derivlang.scores(run)
    assert frame["value"].tolist() == found.scores["value"].to_pylist()
    assert frame.attrs["columns"] == {quick.label: [column.record() for column in quick.columns]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_set_without_labels_is_one_clear_message(kind: str, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("One line.\n", "utf-8")
    request = SourceRequest(str(tmp_path))
    (found,) = Source.open(Pipeline.parse("identity"), request).batches("train")
    for call in (
        lambda: task(kind).classes(find(request)),
        lambda: task(kind).examples(task(kind).rows(found, languages(SAME)), classes(kind)),
    ):
        with pytest.raises(DataError, match=f"no labels of the task {kind}, which needs a") as caught:
            call()
        assert caught.value.id == "no-labels"


def test_the_help_page_names_the_defaults_of_the_built_in_tasks() -> None:
    for field in ("epochs", "lr", "max_length"):
        shown = FinetuneSettings.__dataclass_fields__[field].metadata["setting"]["unset"]
        usual, *others = shown.split("; ")
        found = {
            kind: value for names, _, value in (one.partition(": ") for one in others) for kind in names.split(" and ")
        }
        for kind in set(tuned_tasks()) & set(TASKS.built_in):
            assert float(found.get(kind, usual)) == getattr(tuned_tasks()[kind].defaults, field), kind
