"""What a run says of itself is what was written: no changed value, and no other file, is believed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derivlang.core.errors import DerivlangError, StoreError
from derivlang.evaluation.collect import scores, verify_run
from derivlang.evaluation.scores import SCHEMA, read_part
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.tasks.registry import task_of
from derivlang.evaluation.trained import PretrainedRun
from derivlang.training.begun_from import model_of
from derivlang.training.checkpoint import newest
from derivlang.training.run_folder import read
from tests.commands import run as cli
from tests.evaluations import evaluate
from tests.leaves import changes
from tests.tiny_runs import data_folder as task_data
from tests.tiny_runs import seal
from tests.training import data_folder, trained

OPTIONS = {"measures": ("alignment",), "pairs": 9, "sentences": 9, "threads": 1, "device": "cpu"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two checkpoints and an evaluation of a task and of a measure."""
    folder = tmp_path_factory.mktemp("runs")
    trained(folder / "run", steps=6, save_every=3)
    task = task_of("pos").with_settings(epochs=1, lr=1e-2, batch_size=8, max_length=64)
    asked = EvaluateOptions(tasks=(task,), seeds=1, regimes=("sup",), data_dir=task_data(folder / "data"), **OPTIONS)
    evaluate(folder / "run", asked)
    evaluate(folder / "run", EvaluateOptions(**OPTIONS), step=3)
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


# Who believes a run. Each is called with its folder.
READERS: dict[str, Callable[[Path], object]] = {
    "evaluate": lambda run: PretrainedRun.load(run),
    "report": scores,
    "--init": lambda run: model_of(str(run)),
    "--resume": lambda run: trained(run, steps=6, save_every=3, resume=True),
}


def unnoticed(path: Path, check: Callable[[], object]) -> list[str]:
    """The changes of a record that a reader accepts."""
    found = json.loads(path.read_text("utf-8"))
    check()
    passed, tried = [], 0
    for name, other in changes(found):
        path.write_text(json.dumps(other), "utf-8")
        tried += 1
        try:
            check()
        except DerivlangError as error:
            assert path.name in str(error)  # noqa: PT017 (either may happen)
            continue
        passed.append(name)
    assert tried > 20
    return passed


@pytest.mark.parametrize("reader", ["evaluate", "report", "--init"])
def test_every_changed_leaf_of_a_run_is_noticed(reader: str, run: Path) -> None:
    assert unnoticed(run / "run.json", lambda: READERS[reader](run)) == []


def test_every_changed_leaf_of_a_run_to_resume_is_noticed(run: Path) -> None:
    """By what `--resume` reads first; the run itself would take too long for each."""
    assert unnoticed(run / "run.json", lambda: read(run)) == []
    with pytest.raises(StoreError, match=r"run\.json"):
        READERS["--resume"](run)


@pytest.mark.parametrize("name", ["evaluation.json", "evaluation/step-00000003.json"])
def test_every_changed_leaf_of_an_evaluation_is_noticed(name: str, run: Path) -> None:
    assert unnoticed(run / name, lambda: scores(run)) == []


def test_an_evaluation_that_was_changed_is_not_added_to(run: Path) -> None:
    path = run / "evaluation.json"
    path.write_text(path.read_text("utf-8").replace('"seed": 1', '"seed": 2'), "utf-8")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"evaluation\.json: .*a value was changed after it was written"):
        evaluate(run, EvaluateOptions(**OPTIONS))
    assert path.read_bytes() == before


def test_every_changed_leaf_of_a_checkpoint_is_noticed(run: Path) -> None:
    """The one before is taken then."""
    path = run / "checkpoints" / "step-00000006" / "state.json"
    for name, other in changes(json.loads(path.read_text("utf-8"))):
        path.write_text(json.dumps(other), "utf-8")
        found = newest(run, lambda message: None)
        assert found is not None
        assert found.step == 3, name


@pytest.mark.parametrize("reader", READERS)
def test_weights_of_another_step_are_refused(reader: str, run: Path) -> None:
    model = run / "model" / "model.safetensors"
    shutil.copy(run / "checkpoints" / "step-00000003" / "model" / "model.safetensors", model)
    with pytest.raises(StoreError) as error:
        READERS[reader](run)
    assert f"{model}: was changed since the run was made [damaged]" in str(error.value)
    assert f"remove {run / 'model'}: the same `derivlang pretrain` command with --resume writes it again" in str(
        error.value
    )


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["model/config.json", "tokenizer/tokenizer.json", "twin/tokenizer.json",
                                  "dictionary.tsv", "log.jsonl"])  # fmt: skip
def test_other_files_of_a_run_are_refused(reader: str, name: str, run: Path) -> None:
    """Each that evaluation or a report reads; the message names it."""
    (run / name).write_bytes((run / name).read_bytes() + b" ")
    with pytest.raises(StoreError) as error:
        READERS[reader](run)
    assert f"{run / name}: was changed since the run was made" in str(error.value)


@pytest.mark.parametrize("name", ["model/adapter_config.json", "tokenizer/added_tokens.json"])
def test_files_that_a_loader_would_read_unasked_are_refused(name: str, run: Path) -> None:
    (run / name).write_text("{}", "utf-8")
    with pytest.raises(StoreError, match="was added: it is not a file of the run"):
        PretrainedRun.load(run)
    (run / name).rename((run / name).with_name("NOTES.md"))  # as those who publish a model write
    PretrainedRun.load(run)


def test_a_missing_model_is_written_again_from_the_last_checkpoint(run: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in (run / "model").iterdir()}
    shutil.rmtree(run / "model")
    for reader in ("evaluate", "--init"):
        with pytest.raises(StoreError, match="is missing") as error:
            READERS[reader](run)
        assert error.value.id == "no-model"
        assert "command with --resume writes it again from the last checkpoint" in str(error.value)
    told: list[str] = []
    scores(run, warn=told.append)  # its numbers are there
    assert told == [
        f"model/ is missing in {run}; the same `derivlang pretrain` command with --resume writes it again from the "
        "last checkpoint"
    ]
    record = (run / "run.json").read_bytes()
    trained(run, steps=6, save_every=3, resume=True)
    assert {path.name: path.read_bytes() for path in (run / "model").iterdir()} == before
    assert (run / "run.json").read_bytes() == record
    shutil.rmtree(run / "model")
    shutil.rmtree(run / "checkpoints" / "step-00000006")
    told.clear()
    scores(run, warn=told.append)  # both were removed to save space
    assert not told
    with pytest.raises(StoreError, match="restore it, or make the run again"):
        READERS["evaluate"](run)
    with pytest.raises(StoreError, match="there is no checkpoint of step 6"):
        trained(run, steps=6, save_every=3, resume=True)


def stopped(run: Path) -> None:
    """As if the run had been stopped after its last checkpoint."""
    shutil.rmtree(run / "model")
    record = {name: value for name, value in read(run).items() if name not in ("result", "weights", "files")}
    (run / "run.json").write_text(json.dumps({**record, "status": "stopped"}), "utf-8")
    seal(run)


@pytest.mark.parametrize("status", ["done", "stopped"])
def test_a_copy_that_a_run_has_lost_is_copied_again(run: Path, tmp_path: Path, status: str) -> None:
    trained(tmp_path / "aligned", "align-mlm", steps=2, save_every=1)  # with a dictionary
    data = Path(shutil.copytree(data_folder(), tmp_path / "data"))
    for folder, asked in ((run, ("mlm", 6, 3)), (tmp_path / "aligned", ("align-mlm", 2, 1))):
        if status == "stopped":
            stopped(folder)
        copies = [name for name in read(folder)["files"] if not name.startswith(("model/", "log"))]
        assert {"tokenizer/derivlang-tokenizer.json", "tokenizer/words.parquet", "twin/tokenizer.json"} < {*copies}
        record = (folder / "run.json").read_bytes()
        whole = {name: (folder / name).read_bytes() for name in copies}
        told: list[str] = []
        for name in copies:
            (folder / name).unlink()
        objective, steps, save_every = asked
        again = {"steps": steps, "save_every": save_every, "resume": True, "data": data, "warn": told.append}
        trained(folder, objective, **again)
        assert {name: (folder / name).read_bytes() for name in copies} == whole
        assert {f"{folder / name} was missing, and was copied again" for name in copies} <= {*told}
        assert status == "stopped" or (folder / "run.json").read_bytes() == record
    assert "dictionary.tsv" in copies


def test_a_copy_that_cannot_be_made_again_is_named(run: Path, tmp_path: Path) -> None:
    stopped(run)
    data = Path(shutil.copytree(data_folder(), tmp_path / "data"))
    (run / "tokenizer" / "words.parquet").unlink()
    (words,) = (data / name / "words.parquet" for name in read(run)["folders"] if name.startswith("tokenizer-"))
    words.write_bytes(b"other")
    before = {path.name: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(StoreError, match="is missing or was cut off") as error:
        trained(run, steps=6, save_every=3, resume=True, data=data)
    assert error.value.where == str(words)
    assert {path.name: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_counts_that_were_changed_are_in_no_report(run: Path) -> None:
    """Right numbers of other units: the score of the task stays, its interval would not."""
    path = run / "evaluation" / "pos.sup.1.parquet"
    table = pq.read_table(path)
    counts = [None if one is None else one[::-1] for one in table["counts"].to_pylist()]
    place = table.column_names.index("counts")
    pq.write_table(
        table.set_column(place, table.schema.field("counts"), pa.array(counts, SCHEMA.field("counts").type)), path
    )
    with pytest.raises(StoreError, match=r"pos\.sup\.1\.parquet: .*since it was evaluated"):
        scores(run)
    with pytest.raises(StoreError, match="a value was changed after it was written"):
        read_part(path)
    assert "evaluation/pos.sup.1.parquet" in {problem["file"] for problem in verify_run(run)["problems"]}


def test_a_log_that_was_changed_before_a_checkpoint_is_written_again(run: Path) -> None:
    """What comes after the checkpoint may be cut off."""
    shutil.rmtree(run / "checkpoints" / "step-00000006")
    shutil.rmtree(run / "model")
    record = json.loads((run / "run.json").read_text("utf-8"))
    from derivlang.training import run_folder

    text = (run / "log.jsonl").read_text("utf-8")
    losses = [json.loads(line)["loss"] for line in text.splitlines()]
    for other, n in ((text.replace('"step": 2', '"step": 1'), 1), (text[:-20], 0), ("", 1)):
        run_folder.write(run, record | {"status": "stopped"})
        (run / "log.jsonl").write_text(other, "utf-8")
        told: list[str] = []
        trained(run, steps=6, save_every=3, resume=True, warn=told.append)
        assert len(told) == n
        assert verify_run(run)["ok"]
        assert [json.loads(line)["loss"] for line in (run / "log.jsonl").read_text().splitlines()] == losses
        shutil.rmtree(run / "checkpoints" / "step-00000006")
        shutil.rmtree(run / "model")


def test_verify_names_what_is_damaged_or_missing(run: Path) -> None:
    listed = len(read(run)["files"])
    told = cli("verify", run).out
    assert told == f"{run}: {listed + 1} files, 2 checkpoints, 2 evaluations checked, nothing is wrong\n"
    (run / "twin" / "tokenizer.json").unlink()
    (run / "dictionary.tsv").write_text("source\tderived\n", "utf-8")
    weights = run / "checkpoints" / "step-00000003" / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    (run / "evaluation" / "pos.sup.1.parquet").unlink()
    lines = cli("verify", run, code=1).out.splitlines()
    size = weights.stat().st_size
    assert lines == [
        f"dictionary.tsv: was cut off (15 of {read(run)['files']['dictionary.tsv'][0]:,} bytes)",
        "twin/tokenizer.json: is missing",
        f"checkpoints/step-00000003: model/model.safetensors was cut off ({size:,} of {size + 1:,} bytes)",
        "evaluation/pos.sup.1.parquet: is missing",
        f"{run}: {listed + 1} files, 2 checkpoints, 2 evaluations checked, 4 wrong",
    ]
    found = cli("verify", run, "--json", code=1).json
    assert [problem["file"] for problem in found["problems"]] == [line.partition(": ")[0] for line in lines[:-1]]
    (run / "run.json").write_text("{", "utf-8")
    assert "run.json: this is not a valid run.json" in cli("verify", run, code=1).out
