"""Documents of a test set, what test and train have in common, and the epoch that the derived dev set chooses."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from derivlang.core.batch import Batch
from derivlang.core.seal import sealed
from derivlang.engine.batches import Source
from derivlang.evaluation import cell as cells
from derivlang.evaluation.documents import numbered, unit_of, with_documents
from derivlang.evaluation.evaluate import evaluate, request_of
from derivlang.evaluation.finetune import TaskModel, fine_tune, predict
from derivlang.evaluation.resample import by_document, summary
from derivlang.evaluation.sets import Sets
from derivlang.evaluation.tasks.registry import task_of
from derivlang.evaluation.trained import PretrainedRun
from derivlang.formats import rows
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.training.languages import DERIVED, SOURCE
from tests.test_evaluate_runs import options
from tests.tiny_runs import batch, data_folder, write_run

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


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run"), "trans,inv")


@pytest.fixture
def run(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "run", ignore=shutil.ignore_patterns("evaluation*"))
    return tmp_path / "run"


def sets(run: Path, data: Path, name: str, **settings: Any) -> Sets:
    trained = PretrainedRun.load(run)
    asked = options(data, name, **settings)
    source = Source.open(trained.languages.pipeline, request_of(asked.tasks[0].sources[0], asked))
    return Sets.read(trained.languages, asked.tasks[0], [source])


@pytest.mark.parametrize("at_once", [1, 2, 7, 4096])
def test_documents_of_conllu_run_on_from_table_to_table(
    at_once: int, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "ROWS_PER_TABLE", at_once)
    source = Source.open(Pipeline.parse("identity"), SourceRequest("pos", data))
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


def test_documents_reach_the_results_without_a_new_fine_tuning(
    run: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = options(data, "pos", "xnli", seeds=2)
    found = evaluate(run, asked)
    entry = found["tasks"]["pos"]
    assert entry["test"] == {"unit": "document", "units": 4, "labels": entry["test"]["labels"],
                             "in_train": 3, "in_whole_train": 3}  # fmt: skip
    path = run / "evaluation" / "pos.documents.npz"
    with np.load(path) as stored, np.load(run / "evaluation" / "pos.zs.1.npz") as one:
        documents, dev = stored["test"], stored["dev"]
        assert len(documents) == len(one["accuracy"]) == 26
        assert dev.tolist() == list(range(16))  # no documents in dev
        assert one["accuracy"][:, 1].sum() + entry["settings"]["unscored"] == entry["test"]["labels"]
    metric = task_of("pos").main_metric
    counts = [np.load(run / "evaluation" / f"pos.zs.{seed}.npz")["accuracy"] for seed in (1, 2)]
    assert entry["zs"]["accuracy"] == summary([by_document(one, documents) for one in counts], metric.score)
    # as an earlier version left it
    path.unlink()
    told = json.loads((run / "evaluation.json").read_text("utf-8"))
    for task in told["tasks"].values():
        del task["test"], task["files"]
    (run / "evaluation.json").write_text(json.dumps(sealed(told)), "utf-8")
    monkeypatch.setattr(cells, "fine_tune", None)
    assert evaluate(run, asked) == found
    assert path.exists()


def test_examples_of_train_in_test_are_counted(run: Path, data: Path) -> None:
    """One of the three is not among the examples that are taken."""
    some = sets(run, data, "pos", train_examples=20)
    keys = set(some.train.keys.tolist())
    assert some.in_train == sum(key in keys for key in some.test.keys.tolist()) < 3
    assert some.in_whole_train == 3
    assert some.unit == "document"
    assert sets(run, data, "ner").in_whole_train == 0


def test_the_oracle_is_the_epoch_of_the_derived_dev_set(run: Path, data: Path) -> None:
    """Against a fine-tuning that the derived dev set chooses, which is the same up to the choice."""
    trained, found = PretrainedRun.load(run), sets(run, data, "pos", epochs=5, lr=2e-2)
    (task,) = options(data, "pos", epochs=5, lr=2e-2).tasks
    chosen = set()
    for seed in range(1, 5):
        one = cells.FinetuneCell(trained, task, "zs", seed, found.key, found.words)
        one.make(found, CPU)
        counts = one.counts()
        assert counts is not None
        facts = json.loads(str(np.load(one.path)["facts"]))

        def dev_score(model: TaskModel) -> float:
            values = [task.labels(found.dev.derived, v, found.dev.classes)
                      for v in (found.dev.derived.gold, predict(model, found.dev.derived, DERIVED))]  # fmt: skip
            return task.main_metric.value(task.score(*values)[task.headline])

        make = partial(TaskModel.of, task, trained.encoder(CPU), len(found.train.classes))
        model, other = fine_tune(make, found.train.source, SOURCE, task.settings, seed, dev_score)
        values = [task.labels(found.test.derived, v, found.test.classes)
                  for v in (found.test.derived.gold, predict(model, found.test.derived, DERIVED))]  # fmt: skip
        assert facts["oracle_epoch"] == other["epoch"]
        for name, expected in task.score(*values).items():
            assert (counts[f"oracle_{name}"] == expected).all()
        chosen.add(facts["oracle_epoch"] == facts["epoch"])
    assert False in chosen, "the two dev sets chose alike: nothing was tested"


def test_an_oracle_of_an_earlier_version_is_not_known(run: Path, data: Path) -> None:
    asked = options(data, "pos", epochs=2)
    assert "oracle" in evaluate(run, asked)["tasks"]["pos"]
    path = run / "evaluation" / "pos.zs.1.npz"
    with np.load(path) as arrays:
        older = {name: array for name, array in arrays.items() if not name.startswith("oracle_")}
    facts = json.loads(str(older["facts"]))
    del facts["sha256"]
    np.savez(path, **{**older, "facts": np.array(json.dumps(facts))})
    found = evaluate(run, asked)["tasks"]["pos"]
    assert "oracle" not in found
    assert "zs" in found
