"""Documents of a test set, what test and train have in common, and the epoch that the derived dev set chooses."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from derivlang.core.batch import Batch
from derivlang.engine.batches import Source
from derivlang.evaluation import cell as cells
from derivlang.evaluation.examples import by_unit, numbered, unit_of, with_documents
from derivlang.evaluation.finetune import TaskModel, fine_tune, predict
from derivlang.evaluation.scores import read_part
from derivlang.evaluation.sets import Sets
from derivlang.evaluation.trained import PretrainedRun
from derivlang.formats import rows as tables
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.training.languages import DERIVED, SOURCE
from tests.evaluations import evaluate, fresh_run, options, rows
from tests.tiny_runs import batch, data_folder

EWT = "ud/UD_English-EWT"
STARTS = {0, 5, 6, 15}  # sentences of the demo's test set that begin a document here
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo with documents in test, and two sentences of train, one of them twice, at its end."""
    folder = data_folder(tmp_path_factory.mktemp("data"))
    train, test = (folder / EWT / f"en_ewt-ud-{name}.conllu" for name in ("train", "test"))
    sentences = test.read_text("utf-8").rstrip("\n").split("\n\n")
    assert len(sentences) == 23
    marked = [f"# newdoc id = d{i}\n{text}" if i in STARTS else text for i, text in enumerate(sentences)]
    first, *_, last = train.read_text("utf-8").rstrip("\n").split("\n\n")
    test.write_text("\n\n".join([*marked, first, last, last]) + "\n\n", "utf-8")
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return fresh_run(tmp_path / "run")


def sets(run: Path, data: Path, name: str, **settings: Any) -> Sets:
    trained = PretrainedRun.load(run)
    asked = options(name, data_dir=data, **settings)
    source = Source.open(trained.languages.pipeline, SourceRequest(asked.tasks[0].sources[0], data_dir=asked.data_dir))
    return Sets.read(trained.languages, asked.tasks[0], [source])


@pytest.mark.parametrize("at_once", [1, 2, 7, 4096])
def test_documents_of_conllu_run_on_from_table_to_table(
    at_once: int, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "ROWS_PER_TABLE", at_once)
    source = Source.open(Pipeline.parse("identity"), SourceRequest("pos", data_dir=data))
    found = np.concatenate([one.documents for one in with_documents(source.batches("test"))])
    numbers = numbered(found)
    assert numbers is not None
    assert numbers.tolist() == [0] * 5 + [1] + [2] * 9 + [3] * 11


def test_rows_that_share_a_premise_are_a_document() -> None:
    """Also where another row stands between them."""
    found = batch("demo:nli", "train")
    records = found.records.copy()
    _, distinct = np.unique(found.unit_keys, return_index=True)
    records[:, 0] = distinct[np.arange(len(records)) % 3]
    shared: Batch = replace(found, records=records)
    (one,) = with_documents([shared])
    numbers = numbered(one.documents)
    assert numbers is not None
    assert numbers.tolist() == [i % 3 for i in range(len(records))]
    assert unit_of(found.sides, numbers) == "premise"


@pytest.mark.parametrize(
    ("documents", "numbers"),
    [([5, 5, 9, 5, 2], [0, 0, 1, 0, 2]), ([-7, 3, -7], [0, 1, 0]), ([4, 4, 4], None), ([3, 1, 2], None), ([1], None)],
)
def test_numbers(documents: list[int], numbers: list[int] | None) -> None:
    found = numbered(np.array(documents))
    assert (None if found is None else found.tolist()) == numbers


def test_what_a_document_is_called() -> None:
    some = np.array([0, 0])
    assert [unit_of(("",), d) for d in (some, None)] == ["document", "sentence"]
    assert [unit_of(sides, some) for sides in (("context", "question"), ("sentence1", "sentence2"))] == [
        "context",
        "first sentence",
    ]
    assert unit_of(("premise", "hypothesis"), None) == "pair"


def test_scores_have_the_counts_of_documents(run: Path, data: Path) -> None:
    found = evaluate(run, options("pos", "xnli", seeds=2, data_dir=data))
    test = found.record["tasks"]["pos"]["test"]
    assert (test["in_train"], test["in_whole_train"]) == (3, 3)
    on_test, on_dev = (
        rows(found, "pos", metric="accuracy", regime="zs", split=split, ft_seed=1)[0] for split in ("test", "dev")
    )
    assert (on_test["unit"], len(on_test["counts"])) == ("document", 2 * 4)
    assert (on_dev["unit"], len(on_dev["counts"])) == ("sentence", 2 * 16)
    assert sum(on_test["counts"][1::2]) + test["unscored"] == test["labels"]
    assert rows(found, "xnli")[0]["unit"] == "premise"


def test_examples_of_train_in_test_are_counted(run: Path, data: Path) -> None:
    """One of the three is not among the examples that are taken."""
    some = sets(run, data, "pos", train_examples=20)
    keys = set(some.train.keys.tolist())
    assert some.numbers["in_train"] == sum(key in keys for key in some.test.keys.tolist()) < 3
    assert some.numbers["in_whole_train"] == 3
    assert some.scored["test"][0].unit == "document"
    assert sets(run, data, "ner").numbers["in_whole_train"] == 0


def test_the_oracle_is_the_epoch_of_the_derived_dev_set(run: Path, data: Path) -> None:
    """Against a fine-tuning that the derived dev set chooses, which is the same up to the choice."""
    trained, found = PretrainedRun.load(run), sets(run, data, "pos", epochs=5, lr=2e-2)
    (task,) = options("pos", epochs=5, lr=2e-2, data_dir=data).tasks
    chosen = set()
    for seed in range(1, 5):
        one = cells.FinetuneCell(trained, task, "zs", seed, found)
        one.make(CPU, [])
        facts, table = read_part(one.path)
        counts = {row["metric"]: row["counts"] for row in table.to_pylist() if row["regime"] == "oracle"}

        def dev_score(model: TaskModel) -> float:
            values = [task.labels(found.dev.derived, v, found.dev.classes)
                      for v in (found.dev.derived.gold, predict(model, found.dev.derived, DERIVED))]  # fmt: skip
            return task.headline().value(task.score(*values)[task.headline().name])

        make = partial(TaskModel, task, trained.encoder(CPU), len(found.train.classes))
        model, other = fine_tune(make, found.train.source, SOURCE, task.settings, seed, dev_score)
        values = [task.labels(found.test.derived, v, found.test.classes)
                  for v in (found.test.derived.gold, predict(model, found.test.derived, DERIVED))]  # fmt: skip
        assert facts["oracle_epoch"] == other["epoch"]
        for name, expected in task.score(*values).items():
            assert counts[name] == by_unit(expected, found.scored["test"][1]).ravel().tolist()
        chosen.add(facts["oracle_epoch"] == facts["epoch"])
    assert False in chosen, "the two dev sets chose alike: nothing was tested"
