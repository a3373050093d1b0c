"""Fine-tuning and `derivlang evaluate`: the laws of SUP and ZS, cells that are kept, and what a user may get wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from derivlang.core.errors import DataError, DerivlangError, StoreError, UsageError
from derivlang.core.messages import DerivlangWarning
from derivlang.core.seal import sealed
from derivlang.engine.job import Events
from derivlang.evaluation import cell as cells
from derivlang.evaluation import evaluate as evaluating
from derivlang.evaluation import results
from derivlang.evaluation.encoded import request_of
from derivlang.evaluation.examples import Instances, by_length, padded
from derivlang.evaluation.finetune import LabelBatch, TaskModel, batches, fine_tune, predict
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.formulas import value_of
from derivlang.evaluation.measures.registry import MEASURES
from derivlang.evaluation.metrics import UPOS
from derivlang.evaluation.scores import counts_of, read_part
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.tasks.registry import task_of
from derivlang.evaluation.trained import PretrainedRun
from derivlang.training.devices import device_of
from derivlang.training.encoder import Encoder
from tests.commands import run as cli
from tests.evaluations import (
    evaluate,
    fresh_run,
    of_regime,
    options,
    regimes,
    rows,
    stored,
    task_data,
    untouched_run,
    values,
)
from tests.test_evaluate_examples import made
from tests.tiny_runs import MARKS, languages, model_of, save_model, seal, write_run

CPU = torch.device("cpu")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of its own for each test."""
    return fresh_run(tmp_path / "run")


# Batches


def some_instances(lengths: list[int]) -> Instances:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.concatenate([[0, *range(20, 18 + n), 2] for n in lengths]).astype(np.int32)
    n = len(lengths)
    return Instances(ids, offsets, np.zeros(n, np.int64), np.arange(n)[:, None] % 3, np.arange(n + 1), 0 * ids)


def test_an_epoch_has_every_row_once() -> None:
    some = some_instances([2 + i * 7 % 11 for i in range(103)])
    seen = {}
    for seed, epoch in ((1, 0), (1, 1), (2, 0)):
        found = list(batches(some, 8, seed, epoch))
        assert sorted(np.concatenate(found).tolist()) == list(range(103))
        assert sorted(map(len, found)) == [7] + [8] * 12
        seen[seed, epoch] = [rows.tolist() for rows in found]
    assert len({str(value) for value in seen.values()}) == 3
    assert seen[1, 0] == [rows.tolist() for rows in batches(some, 8, 1, 0)]
    spans = [np.ptp(some.lengths[rows]) for rows in found]
    assert np.mean(spans) < 2  # like lengths together


def test_padding_by_hand() -> None:
    some = some_instances([4, 2, 5])
    ids, mask = padded(some.ids, some.offsets, np.array([2, 1]))
    assert ids.tolist() == [[0, 20, 21, 22, 2], [0, 2, 0, 0, 0]]
    assert mask.tolist() == [[True] * 5, [True, True, False, False, False]]
    assert [rows.tolist() for rows in by_length(np.array([5, 2, 3, 9]), 6)] == [[1, 2], [0], [3]]


# Fine-tuning


def few(n: int) -> Instances:
    """Some sentences with their parts of speech."""
    found, _, _ = made("trans,inv", task_of("pos"), 40)
    return found.source.take(np.arange(n))


def classifier(kind: str) -> TaskModel:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        size = languages("trans,inv").size
        return TaskModel(task_of("pos"), Encoder(model_of(kind, size).base_model, MARKS), len(UPOS))


@pytest.mark.parametrize("kind", ["modernbert", "roberta", "bert"])
def test_predictions_do_not_depend_on_the_batch(kind: str) -> None:
    found, _, _ = made("trans,inv", task_of("pos"), 60)
    model = classifier(kind)
    together = predict(model, found.derived, 1)
    model.train(False)
    for row in range(0, found.n_rows, 9):
        a, b = found.derived.label_offsets[row : row + 2]
        with torch.inference_mode():
            rows = np.array([row, int(np.argmax(found.derived.lengths))])
            logits, wide = (model(LabelBatch(found.derived, some, CPU), 1) for some in (rows[:1], rows))
        assert together[a:b, 0].tolist() == logits.argmax(1).tolist()
        assert torch.allclose(logits, wide[: b - a], atol=1e-5)


class Fixed(torch.nn.Module):
    """An encoder whose states are its weights."""

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.states = torch.nn.Parameter(torch.randn(shape))
        self.config = SimpleNamespace(model_type="none", hidden_size=shape[-1], hidden_dropout_prob=0.0, pad_token_id=1)

    @property
    def base_model(self) -> Fixed:
        return self

    def forward(self, **inputs: Any) -> Any:
        return SimpleNamespace(last_hidden_state=self.states)


@pytest.mark.parametrize("name", ["pos", "xnli"])
def test_only_labelled_places_get_a_gradient(name: str) -> None:
    found, _, _ = made("trans,inv", task_of(name), 40, "demo" if name == "pos" else "demo:nli")
    block = LabelBatch(found.derived, np.arange(5), CPU)
    model = TaskModel(task_of(name), Encoder(Fixed((*block.ids.shape, 4)), MARKS), 17)
    loss = model.task.loss(model(block, 1), block.gold)
    loss.backward()
    touched = model.encoder.module.states.grad.abs().sum(-1) > 0
    expected = torch.zeros_like(touched)
    expected[block.row, block.column] = True
    assert torch.equal(touched, expected)
    assert not expected[~block.mask].any()
    # the loss is the mean over the labels
    with torch.no_grad():
        logs = model(block, 1).double().log_softmax(1)
    assert float(loss.detach()) == pytest.approx(-float(np.mean([logs[i, g] for i, g in enumerate(block.gold[:, 0])])))


def weights_of(model: TaskModel) -> list[torch.Tensor]:
    return [one.detach().clone() for one in model.parameters()]


def test_dev_chooses_the_epoch() -> None:
    states: list[list[torch.Tensor]] = []

    def score(model: TaskModel, values: list[float]) -> float:
        states.append(weights_of(model))
        return values[len(states) - 1]

    def tuned(values: list[float]) -> tuple[TaskModel, dict[str, Any]]:
        states.clear()
        settings = FinetuneSettings(epochs=len(values), lr=1e-2, batch_size=8)
        make = partial(classifier, "modernbert")
        return fine_tune(make, few(20), 0, settings, 1, lambda model: score(model, values))

    for on_dev, best in (([1, 3, 2], 2), ([2, 2, 1], 1), ([1, 2, 3], 3), ([5], 1)):
        model, facts = tuned([float(value) for value in on_dev])
        assert facts == {"epoch": best, "dev": on_dev}
        assert all(torch.equal(a, b) for a, b in zip(weights_of(model), states[best - 1], strict=True))
        assert len(on_dev) == 1 or not torch.equal(states[0][0], states[1][0])


def test_a_seed_is_of_its_fine_tuning_alone() -> None:
    settings = FinetuneSettings(epochs=1, lr=1e-2, batch_size=4)

    def tuned(seed: int) -> torch.Tensor:
        base = model_of("roberta", languages("trans,inv").size).base_model
        make = partial(TaskModel, task_of("pos"), Encoder(base, MARKS), 17)
        model, _ = fine_tune(make, few(10), 0, settings, seed, lambda model: 0.0)
        return weights_of(model)[-2]

    torch.manual_seed(3)
    first = torch.rand(1)
    torch.manual_seed(3)
    one = tuned(1)
    assert torch.rand(1) == first
    assert torch.equal(one, tuned(1))
    assert not torch.equal(one, tuned(2))


def test_a_loss_that_is_not_finite() -> None:
    def make() -> TaskModel:
        model = classifier("modernbert")
        with torch.no_grad():
            model.head.layers[-1].weight.fill_(float("inf"))  # type: ignore[index, union-attr, operator]
        return model

    with pytest.raises(DataError, match="not finite in epoch 1"):
        fine_tune(make, few(4), 0, FinetuneSettings(epochs=2), 1, lambda model: 0.0)


# Whole evaluations


def save_other_weights(run: Path, kind: str) -> None:
    model = model_of(kind, languages("trans,inv").size)
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(2)
    save_model(run, model)


def test_what_is_written(run: Path) -> None:
    measures = tuple(name for name in MEASURES.built_in if name not in ("regions", "surprisal", "translation"))
    found = evaluate(run, options("pos", seeds=2, measures=measures, pairs=5, sentences=9, epochs=4))
    assert found.record == stored(run)
    assert list(stored(run)) == ["format", "signature", "tasks", "measures"]
    assert found.record["signature"]["spec"] == "trans:table=2,inv"
    assert list(found.record["measures"]) == list(found.columns)[1:] == list(measures)
    entry = found.record["tasks"]["pos"]
    assert list(entry) == ["settings", "test", "scores", "files"]
    assert entry["test"].items() >= {"cut": 0, "unscored": 0, "in_train": 0, "in_whole_train": 0}.items()
    told = {"source": "pos:English-EWT", "epochs": 4, "train": 76, "dev": 16, "test": 23, "max_length": 128}
    assert entry["settings"].items() >= told.items()
    assert [column["name"] for column in found.columns["pos"]] == ["accuracy", "macro_f1", "seqeval_f1"]
    assert regimes(found, "pos") == {"sup", "zs", "source", "oracle"}
    assert regimes(found, "pos", "dev") == {"sup", "zs"}
    for row in (row for row in found.scores.to_pylist() if row["formula"]):
        assert row["value"] == pytest.approx(value_of(row["formula"], counts_of(row["formula"], row["counts"])))
    assert np.mean(values(found, "pos", "sup")) > 30  # of a model that has seen no text: the most frequent tag has 18
    cells = {path.name for path in (run / "evaluation").iterdir()}
    fine_tunings = {f"pos.{regime}.{seed}.parquet" for regime in ("sup", "zs") for seed in (1, 2)}
    assert cells == {*fine_tunings, "pos.chance.parquet", *(f"{name}.parquet" for name in measures)}
    assert cells == {
        file for kind in ("tasks", "measures") for one in found.record[kind].values() for file in one["files"]
    }
    (one,) = rows(found, "pos", metric="accuracy", regime="sup", split="test", ft_seed=1)
    assert (len(one["counts"]), one["unit"]) == (2 * 23, "sentence")
    # no label of the derived dev set has chosen the epoch of ZS: it was the best on the source's
    facts, _ = read_part(run / "evaluation" / "pos.zs.1.parquet")
    assert facts["epoch"] == 1 + int(np.argmax(facts["dev"]))
    assert facts["dev"][facts["epoch"] - 1] != pytest.approx(values(found, "pos", "zs", split="dev")[0])


@pytest.mark.filterwarnings("ignore:.* are in no row")  # the rows are short
def test_an_evaluation_goes_on_where_it_was(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = options("pos", "xnli", seeds=2, max_length=40)
    started: list[str] = []
    stopped: list[bool] = []

    finish = cells.FinetuneCell.make

    def make(cell: cells.FinetuneCell, *given: Any) -> None:
        started.append(f"{cell.task.name} {cell.regime} {cell.seed}")
        if len(started) == 4 and not stopped:
            stopped.append(True)
            raise KeyboardInterrupt
        finish(cell, *given)

    monkeypatch.setattr(cells.FinetuneCell, "make", make)
    with pytest.raises(KeyboardInterrupt):
        evaluate(run, asked)
    assert not (run / "evaluation.json").exists()
    assert len(list((run / "evaluation").iterdir())) == 3
    first = (run / "evaluation" / "pos.sup.1.parquet").stat().st_mtime_ns
    started.clear()
    found = evaluate(run, asked)
    assert started == ["pos zs 2", *(f"xnli {regime} {seed}" for regime in ("sup", "zs") for seed in (1, 2))]
    assert (run / "evaluation" / "pos.sup.1.parquet").stat().st_mtime_ns == first
    # a damaged cell is made again; the numbers are those of a run without interruption
    (run / "evaluation" / "pos.sup.1.parquet").write_bytes(b"PAR1 cut off")
    with pytest.warns(DerivlangWarning, match=r"pos\.sup\.1\.parquet was cut off .* the fine-tuning is made again"):
        assert evaluate(run, asked).scores == found.scores
    monkeypatch.setattr(cells, "fine_tune", None)  # nothing is left to be done
    assert evaluate(run, asked).record == found.record == stored(run)
    fresh = run.parent / "fresh"
    shutil.copytree(run, fresh, ignore=shutil.ignore_patterns("evaluation*"))
    monkeypatch.undo()
    assert evaluate(fresh, asked).scores == found.scores


def test_what_is_there_stays_unless_it_is_of_something_else(run: Path) -> None:
    pos = evaluate(run, options("pos")).record["tasks"]["pos"]
    both = evaluate(run, options("xnli", regimes=("zs",), measures=("alignment",)))
    assert both.record["tasks"]["pos"] == pos
    assert set(both.columns) == {"xnli", "alignment"}
    assert regimes(both, "xnli") == {"zs", "source"}
    assert regimes(evaluate(run, options("xnli", regimes=("sup",))), "xnli") == {"sup", "zs", "source"}
    # other settings, other numbers
    with pytest.raises(StoreError, match=r"pos was fine-tuned with other settings: lr is 0\.005, not 0\.0001"):
        evaluate(run, options("pos", "ner", lr=1e-4, regimes=("zs",)))
    with pytest.raises(StoreError, match="train_examples was not given, and is 20 now"):
        evaluate(run, options("pos", train_examples=20, regimes=("sup",)))
    assert evaluate(run, options("pos", regimes=("sup",))).record["tasks"]["pos"] == pos
    other = evaluate(run, options("pos", lr=1e-4, regimes=("sup",), force=True))
    assert regimes(other, "pos") == {"sup"}
    assert other.record["tasks"]["pos"]["settings"]["lr"] == 1e-4
    assert "alignment" in other.record["measures"]
    names = ("pos.v2.chance.parquet", "pos.zs.²1.parquet", "pos.v2.sup.1.parquet")
    others = {run / "evaluation" / name for name in names}
    for path in others:  # of tasks such as pos.v2
        path.touch()
    evaluate(run, options("pos", lr=1e-4, regimes=("sup",)))
    assert all(path.exists() for path in others)
    for path in others:
        path.unlink()
    left = sorted(path.name for path in (run / "evaluation").glob("pos*"))
    assert left == ["pos.chance.parquet", "pos.sup.1.parquet"]
    # another model
    save_other_weights(run, "modernbert")
    with pytest.raises(StoreError, match="is of another state of the run: its weights are others"):
        evaluate(run, options("pos", regimes=("sup",), lr=1e-4))
    assert stored(run) == other.record
    again = evaluate(run, options("pos", regimes=("sup",), lr=1e-4, force=True))
    assert not again.record["measures"]
    assert list(again.record["tasks"]) == ["pos"]
    assert again.record["tasks"] != other.record["tasks"]
    assert not (run / "evaluation" / "alignment.parquet").exists()


def test_results_that_another_process_adds_stay(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finetuned = evaluating.finetuned

    def meanwhile(*arguments: Any) -> dict[str, Any]:
        found = finetuned(*arguments)
        monkeypatch.undo()
        evaluate(run, options("ner", regimes=("sup",), measures=("links",), pairs=9))
        return found

    monkeypatch.setattr(evaluating, "finetuned", meanwhile)
    found = evaluate(run, options("pos", regimes=("sup",), measures=("perplexity",)))
    assert found.record == stored(run)
    assert set(found.record["measures"]) == {"links", "perplexity"}
    assert set(found.record["tasks"]) == {"pos", "ner"}
    assert set(found.columns) == {"pos", "perplexity"}
    assert not list(run.glob(".*"))


def test_a_causal_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", kind="gpt2")
    warnings: list[str] = []
    asked = options(measures=("alignment", "contextual", "perplexity", "surprisal"))
    found = evaluate(run, asked, Events(warn=warnings.append))
    assert list(found.record["measures"]) == list(asked.measures)
    assert not warnings
    files = {path.name for path in (run / "evaluation").glob("surprisal*")}
    assert files == {"surprisal.derived.parquet", "surprisal.source.parquet", "surprisal.parquet"}
    assert files == set(found.record["measures"]["surprisal"]["files"])
    # files of other weights do not stay
    save_other_weights(run, "gpt2")
    evaluate(run, options(measures=("perplexity",), force=True))
    assert [path.name for path in (run / "evaluation").iterdir()] == ["perplexity.parquet"]


def test_tasks_of_a_causal_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", kind="gpt2")
    for freeze in ("embeddings,encoder", ""):
        record = evaluate(run, options("pos", "xnli", freeze=freeze, max_length=60, force=True)).record
        assert record["tasks"]["pos"]["settings"]["word"] == "last"
        assert "word" not in record["tasks"]["xnli"]["settings"]
    with pytest.raises(UsageError, match="qa needs an encoder") as error:
        evaluate(run, options("pos", "qa"))
    assert error.value.id == "causal-model"


def test_a_run_that_has_not_seen_the_source_is_not_fine_tuned_on_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", settings={"languages": "derived"})
    warnings: list[str] = []
    found = evaluate(run, options("pos", regimes=("sup", "zs")), Events(warn=warnings.append))
    assert regimes(found, "pos") == {"sup"}
    (told,) = warnings
    assert told.endswith("was trained only on the derived language (--languages derived), so regimes that fine-tune on "
                         "the source are left out: zs")  # fmt: skip
    with pytest.raises(UsageError, match="not fine-tuned on the source") as error:
        evaluate(run, options("pos", regimes=("zs",)))
    assert error.value.id == "unseen-source"
    evaluate(run, options(measures=("perplexity",), regimes=("zs",)), Events(warn=warnings.append))
    begun = write_run(tmp_path / "begun", settings={"languages": "derived"}, init={"run": "a", "weights": "0"})
    for seen in (begun, write_run(tmp_path / "source", settings={"languages": "source"})):
        assert "zs" in regimes(evaluate(seen, options("pos"), Events(warn=warnings.append)), "pos")
    assert len(warnings) == 1


def test_a_masked_model_has_no_surprisal(run: Path) -> None:
    warnings: list[str] = []
    found = evaluate(run, options(measures=("alignment", "surprisal")), Events(warn=warnings.append))
    assert warnings == ["surprisal needs a causal language model, so there is none of this modernbert"]
    assert list(found.record["measures"]) == ["alignment"]
    assert [path.name for path in (run / "evaluation").iterdir()] == ["alignment.parquet"]


def test_the_first_examples(run: Path) -> None:
    asked = options("ner", train_examples=10, dev_examples=7, regimes=("sup",))
    settings = evaluate(run, asked).record["tasks"]["ner"]["settings"]
    assert (settings["train"], settings["dev"], settings["test"]) == (10, 7, 23)


def test_a_regime_that_lacks_seeds_is_left_out_with_a_warning(run: Path) -> None:
    warnings: list[str] = []
    few = {"epochs": 1, "train_examples": 5}
    evaluate(run, options("pos", seeds=1, regimes=("zs",), measures=(), **few))
    asked = options("pos", seeds=2, regimes=("sup",), measures=(), **few)
    found = evaluate(run, asked, Events(warn=warnings.append))
    assert regimes(found, "pos") == {"sup"}
    assert warnings == ["pos has no score of zs, as 1 of 2 fine-tunings are there: --regime zs makes the others"]
    found = evaluate(run, options("pos", seeds=2, regimes=("zs",), measures=(), **few))
    assert {"sup", "zs"} <= regimes(found, "pos")


def test_orders_that_need_trees(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "trans,syn:fr")
    asked = options("pos", "ner", "xnli", measures=("contextual",), parses=tmp_path / "parses")
    found = evaluate(run, asked)
    assert set(found.record["tasks"]) == {"pos", "ner", "xnli"}
    assert rows(found, "contextual", metric="words", layer=0, regime="")[0]["value"] > 0


def test_language_ids_reach_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"model": {"name": "roberta", "language_ids": True}}
    run = write_run(tmp_path, "trans:overlap=100", kind="roberta", **facts)
    seen: list[int] = []
    call = Encoder.__call__

    def spy(self: Encoder, ids: torch.Tensor, mask: torch.Tensor, language: int, **more: Any) -> Any:
        seen.append(language)
        assert self.language_ids
        return call(self, ids, mask, language, **more)

    monkeypatch.setattr(Encoder, "__call__", spy)
    found = evaluate(run, options("pos", max_length=60))
    assert set(seen) == {0, 1}
    assert of_regime(found, "pos", "sup") != of_regime(found, "pos", "source")  # one text, told as two languages


# The command line


def test_the_command_as_scripts_call_it(run: Path) -> None:
    words = ["--task", "pos", "--seeds", 1, "--epochs", 1, "--lr", "5e-3", "--data-dir", task_data(), "--device", "cpu"]
    found = cli("evaluate", run, *words, "--regime", "sup,zs", "--pairs", 5, "--sentences", 5, "--json")
    assert found.err == ""
    assert list(found.json) == ["pos", "alignment", "contextual", "retrieval", "links", "perplexity"]
    assert {"sup", "zs"} <= {row["regime"] for row in found.json["pos"]["scores"]}
    assert {"all", "heldout"} <= {row["metric"] for row in found.json["alignment"]["scores"]}
    told = cli("evaluate", run, *words, "--measure", "alignment").out
    assert "SUP - ZS" in told
    assert "outside the dictionary" in told
    assert list(cli("evaluate", run, "--measure", "alignment", "--json").json) == ["alignment"]


def write_pairs(folder: Path, head: str, labels: tuple[str, ...]) -> None:
    folder.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        rows = [f"{folder.parent.name} {split} {i} sleeps .\tIt sleeps .\t{label}" for i, label in enumerate(labels)]
        (folder / f"{split}.tsv").write_text("\n".join([head, *rows, ""]), "utf-8")


def test_pairs_of_a_file_of_a_users_own(run: Path, tmp_path: Path) -> None:
    """A TSV file does not list its labels, and they are those of the task; others are one message."""
    words = ["--regime", "sup", "--seeds", 1, "--epochs", 1, "--measure", "none", "--device", "cpu"]
    write_pairs(tmp_path / "mine", "sentence1\tsentence2\tlabel", ("0", "1", "1", "-"))
    found = cli("evaluate", run, "--task", f"pawsx:{tmp_path}/mine", *words, "--json").json
    (entry,) = (entry for name, entry in found.items() if name.startswith("pawsx:mine-"))
    assert entry["settings"]["test"] == 3  # `-` is no label
    write_pairs(tmp_path / "other", "sentence1\tsentence2\tlabel", ("0", "7"))
    told = cli("evaluate", run, "--task", f"pawsx:{tmp_path}/other", *words, code=1).err
    assert told.startswith(
        "derivlang: label is '7', which is not one of 0, 1 [unknown-label]\n  write one of these names"
    )
    write_pairs(tmp_path / "bare", "One sentence that is far too long to be the name of a column\tb\t0", ("0",))
    told = cli("evaluate", run, "--task", f"pawsx:{tmp_path}/bare", *words, code=1).err
    assert "[no-columns]\n  give the file a header row" in told


def test_two_folders_of_one_relative_name_are_two_sets(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--task", "xnli:./set", "--regime", "sup", "--seeds", 1, "--epochs", 1, "--measure", "none", "--json"]
    found = []
    for name in ("a", "b", "a"):
        if not (tmp_path / name).exists():
            write_pairs(tmp_path / name / "set", "premise\thypothesis\tlabel", ("entailment", "neutral"))
        monkeypatch.chdir(tmp_path / name)
        found.append(cli("evaluate", run, *words).json["xnli:./set"]["settings"])
    assert found[0] == found[2]
    assert {**found[0], "data": ""} == {**found[1], "data": ""}
    assert found[0] != found[1]


def test_each_task_has_its_own_number(run: Path) -> None:
    words = ["--task", "xnli,pos", "--epochs", "1,2", "--lr", "1e-3", "--train-examples", "20,10", "--seeds", 1]
    words += ["--regime", "sup", "--measure", "none", "--data-dir", task_data(), "--json"]
    found = cli("evaluate", run, *words).json
    settings = [found[task]["settings"] for task in ("xnli", "pos")]
    assert [(s["epochs"], s["lr"], s["train"]) for s in settings] == [(1, 1e-3, 20), (2, 1e-3, 10)]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--task", "poss"], "did you mean pos"),
        (["--regime", "sup,zero"], "there are: cs, sup, zs"),
        (["--measure", "perplex"], "did you mean perplexity"),
        (["--task", "none", "--measure", "none"], "nothing to evaluate"),
        (["--task", "pos", "--seeds", 0], "--seeds: must be at least 1, got 0"),
        (["--pairs", 0], "--pairs"),
        (["--task", "pos,pos"], "a task is named twice"),
        (["--task", ","], "names nothing"),
        (["--task", "pos", "--lr", 0], "--lr"),
        (["--task", "pos", "--train-examples", 77], "pos has only 76"),
        (["--task", "pos", "--dev-examples", 17], "--dev-examples: pos has only 16 examples, got 17"),
        (["--task", "pos", "--max-length", 99999], "--max-length"),
        (["--task", "pos,ner", "--epochs", "1,2,3"], "--epochs: 3 numbers for 2 tasks"),
        (["--task", "pos,ner", "--epochs", "1,"], "--epochs: must be a whole number"),
        (["--device", "quantum"], "no device 'quantum'"),
    ],
)
def test_options_that_cannot_be_used(words: list[str], told: str) -> None:
    error = cli("evaluate", untouched_run(), *words, "--data-dir", task_data(), code=2).err
    assert told in error
    assert error.count("\n") <= 3


def edit(file: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    file.write_text(json.dumps(change(json.loads(file.read_text("utf-8")))), "utf-8")


def without_a_tensor(weights: Path) -> None:
    tensors = load_file(weights)
    del tensors[max(tensors)]
    save_file(tensors, weights, {"format": "pt"})


RECORD, WEIGHTS, RECIPE = "run.json", "model/model.safetensors", "twin/derivlang-tokenizer.json"
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no run": (lambda run: (run / RECORD).unlink(), "there is no run.json"),
    "no json": (lambda run: (run / RECORD).write_text("{", "utf-8"), r"this is not a valid run\.json"),
    "unfinished": (lambda run: edit(run / RECORD, lambda told: told | {"status": "training"}), "not finished"),
    "no source": (
        lambda run: edit(run / RECORD, lambda told: {name: told[name] for name in told if name != "source"}),
        "lacks source",
    ),
    "no token types": (
        lambda run: edit(run / RECORD, lambda told: told | {"model": {"language_ids": True}}),
        "but the model has none",
    ),
    "no model": (lambda run: shutil.rmtree(run / "model"), "model: is missing"),
    "cut model": (
        lambda run: (run / WEIGHTS).write_bytes((run / WEIGHTS).read_bytes()[:-100]),
        "this is not a valid model",
    ),
    "cut config": (lambda run: (run / "model" / "config.json").write_text("{", "utf-8"), "not a valid JSON"),
    "other weights": (lambda run: without_a_tensor(run / WEIGHTS), "lacks 1 of the model's weights"),
    "other vocabulary": (lambda run: save_model(run, model_of("modernbert", 123)), "123 rows of embeddings"),
    "other twin": (
        lambda run: edit(run / RECIPE, lambda told: sealed(told | {"of": "0"})),
        "is another twin: it is of another tokenizer",
    ),
    "no twin": (lambda run: shutil.rmtree(run / "twin"), "no such folder"),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_run_that_cannot_be_used(how: str, run: Path) -> None:
    damage, told = DAMAGES[how]
    damage(run)
    if how not in ("no run", "no json"):
        seal(run)
    with pytest.raises(StoreError, match=told):
        evaluate(run, options(measures=("alignment",)))


@pytest.mark.parametrize("value", [None, True, 10**400, "text", "\ud800", [], [{}], {"x": 1}], ids=ascii)
@pytest.mark.parametrize("field", ["format", "status", "spec", "source", "model", "settings", "fingerprint", "reading"])
def test_a_record_with_a_field_of_another_kind(field: str, value: object, run: Path) -> None:
    """It loads, or there is one error of derivlang."""
    edit(run / RECORD, lambda told: sealed(told | {field: value}))
    try:
        trained = PretrainedRun.load(run)
        request_of("demo", EvaluateOptions(), trained.facts.get("reading"))
    except DerivlangError as error:
        assert len(str(error)) < 1000  # noqa: PT017 (either may happen)


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"signature": ' + "1" * 5000, '{"signature": {}, "format": 2, "tasks": []}', "{}"]
)
def test_an_evaluation_that_no_parser_takes(content: str, run: Path) -> None:
    (run / "evaluation.json").write_text(content, "utf-8")
    with pytest.raises(StoreError, match=r"this is not a valid evaluation\.json") as refused:
        evaluate(run, options(measures=("alignment",)))
    assert refused.value.fix == "evaluate the run again: derivlang evaluate RUN --force"
    with pytest.warns(DerivlangWarning, match=r"evaluation\.json is replaced: this is not a valid"):
        evaluate(run, options(measures=("alignment",), force=True))
    assert results.read(run / "evaluation.json")["measures"].keys() == {"alignment"}


def test_data_that_is_not_there(run: Path, tmp_path: Path) -> None:
    assert (
        "source pos:English-EWT was not found"
        in cli("evaluate", run, "--task", "pos", "--data-dir", tmp_path, code=1).err
    )
    lacking = tmp_path / "data"
    shutil.copytree(task_data(), lacking)
    (lacking / "xnli" / "dev.en.tsv").unlink()
    assert "lacks validation" in cli("evaluate", run, "--task", "xnli", "--data-dir", lacking, code=1).err
    assert cli("evaluate", tmp_path / "nothing", code=1).err.count("\n") <= 3


def test_rows_that_the_model_has_no_positions_for(tmp_path: Path) -> None:
    run = write_run(tmp_path, kind="roberta")
    assert PretrainedRun.load(run).longest == 64
    found = evaluate(run, options("pos", regimes=("sup",)))
    assert found.record["tasks"]["pos"]["settings"]["max_length"] == 64


def test_devices() -> None:
    assert device_of("cpu") == CPU
    assert device_of(None).type in ("cpu", "cuda")


def write_words(folder: Path, tagged: Mapping[str, str]) -> Path:
    """A set with the sentences `dogs` and `cats` in each split. tagged: split -> the words that have a tag."""
    folder.mkdir()
    for split in ("train", "dev", "test"):
        tags = {word: "NOUN" if word in tagged.get(split, "dogs cats") else "_" for word in ("dogs", "cats")}
        words = (f"1\t{word}\t_\t{tag}\t_\t_\t0\troot\t_\t_\n\n" for word, tag in tags.items())
        (folder / f"{split}.conllu").write_text("".join(words), "utf-8")
    return folder


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_split_whose_words_have_no_tag(split: str, run: Path, tmp_path: Path) -> None:
    folder = write_words(tmp_path / "set", {split: ""})
    with pytest.raises(DataError, match=f"has no labelled example in {split.replace('dev', 'validation')} "):
        evaluate(run, options(f"pos:{folder}"))


def test_examples_without_a_label(run: Path, tmp_path: Path) -> None:
    """Of two sentences of train, one has a tag. The first example by the ranking is the same one each time."""
    told = []
    for tagged in ("dogs", "cats"):
        folder = write_words(tmp_path / tagged, {"train": tagged})
        words = ("evaluate", run, "--task", f"pos:{folder}", "--train-examples", "1", "--epochs", "1", "--seeds", "1")
        told.append(cli(*words, "--regime", "sup", "--measure", "none", code=None).err)
    (wrong,) = [text for text in told if "no-examples" in text]
    assert "has no labelled example in train among the 1 of --train-examples" in wrong
    assert "give a larger --train-examples" in wrong
