"""Studies as one command: what a recipe plans, that every planned command is one, and a small study end to end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from derivlang.cli.main import main
from derivlang.core.errors import DataError, UsageError
from derivlang.reproduce import run
from derivlang.reproduce.estimate import fine_tuning
from derivlang.reproduce.recipes import OBJECTIVES, PUBLISHED, PlannedRun, Recipe, only, recipe_of
from derivlang.reproduce.run import Place, plan, prepare, reproduce
from derivlang.reproduce.text import join
from derivlang.sources.find import SourceRequest, find
from derivlang.training.objectives.registry import read_objective
from tests.commands import environment

SCALES = ("tiny", "small", "paper")


@pytest.mark.parametrize("scale", SCALES)
def test_cells_have_names_of_their_own_and_readable_objectives(scale: str) -> None:
    recipe = recipe_of("align-mlm", scale, as_published=tuple(PUBLISHED))  # type: ignore[arg-type]
    names = [cell.name for cell in recipe.cells if not cell.name.endswith((".untied.1", ".dict-input.1"))]
    assert len(set(names)) == len(names)
    for cell in recipe.cells:
        read_objective(cell.objective)
        assert not set(cell.name) & set("/:, ")


def test_tiny_has_the_cells_that_are_asked_for() -> None:
    cells = {(c.spec, c.objective, c.seed, c.options) for c in recipe_of("align-mlm", "tiny").cells}
    for spec in ("trans", "trans,inv"):
        assert {(spec, objective, 1, ()) for objective in OBJECTIVES} <= cells
    assert {("trans,syn:fr", objective, 1, ()) for objective in ("mlm", "align-mlm")} <= cells
    assert {("trans,inv", objective, seed, ()) for objective in ("mlm", "align-mlm") for seed in (1, 2)} <= cells
    assert ("trans,inv", "align-mlm", 1, ("--no-tie",)) in cells
    assert ("trans,inv", "dict-mlm:variant=input", 1, ()) in cells


@pytest.mark.parametrize("scale", SCALES)
def test_every_step_is_a_command_that_can_be_typed(scale: str, tmp_path: Path) -> None:
    recipe = recipe_of("align-mlm", scale, as_published=("packing",))  # type: ignore[arg-type]
    for step in plan(recipe, Place(tmp_path, tmp_path), rate=1e6):
        name, *rest = step.arguments
        command: click.Command = import_module(f"derivlang.cli.{name}").command
        if isinstance(command, click.Group):
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context(name, rest, help_option_names=["-h", "--help"])  # click keeps them, for other tests too
    assert [step.name for step in plan(recipe, Place(tmp_path))][-1] == "report"


def test_every_cell_of_a_study_has_the_same_data_dictionary_and_length(tmp_path: Path) -> None:
    recipe = recipe_of("align-mlm", "tiny")
    steps = [s for s in plan(recipe, Place(tmp_path)) if s.name.startswith("pretrain")]
    assert len({s.arguments[s.arguments.index("--tokenizer") + 1] for s in steps}) == 1
    lengths = {("long" in s.name, s.arguments[s.arguments.index("--steps") + 1]) for s in steps}
    assert lengths == {(True, "10500"), (False, "3500")}
    by_spec = {(s.cell.spec, s.arguments[s.arguments.index("--data") + 1]) for s in steps if s.cell}
    assert len(by_spec) == len({spec for spec, _ in by_spec})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: recipe_of("align-mln", "tiny"), "did you mean align-mlm"),
        (lambda: recipe_of("align-mlm", "tiny", steps=0), "must be at least 1"),
        (lambda: recipe_of("align-mlm", "tiny", as_published=("unteid",)), "did you mean untied"),
        (lambda: only(recipe_of("align-mlm", "small"), ("trans.mlm.1", "trans.xml.1")), "trans.xlm.1"),
    ],
)
def test_what_is_no_recipe_is_refused(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=message):
        call()


def test_some_cells_are_chosen_by_name() -> None:
    recipe = recipe_of("align-mlm", "small")
    assert [cell.name for cell in only(recipe, ("trans.mlm.1",)).cells] == ["trans.mlm.1"]
    kept = only(recipe, ("trans-inv.*mlm.2", "trans.xlm.1")).cells
    assert [cell.name for cell in kept] == ["trans.xlm.1", "trans-inv.mlm.2", "trans-inv.align-mlm.2"]


def test_small_cells_take_some_nine_minutes(tmp_path: Path) -> None:
    recipe = recipe_of("align-mlm", "small")
    assert int(recipe.evaluate[recipe.evaluate.index("--seeds") + 1]) >= 3
    steps = plan(recipe, Place(tmp_path), rate=1.1e6)
    for cell in recipe.cells:
        own = [step for step in steps if step.cell is cell]
        most = 12 if cell.objective == "xlm" else 10  # pair rows are half as many again
        assert 8 < sum(step.seconds for step in own) / 60 < most
        assert own[0].tokens == 5000 * 128 * 512 * (1.5 if cell.objective == "xlm" else 1)


def test_fine_tuning_is_estimated_by_its_steps_or_by_its_sub_words() -> None:
    asked = ("--task", "pos", "--seeds", "2", "--epochs", "1", "--batch-size", "10", "--train-examples", "1000")
    assert fine_tuning(asked, 1e12, 0.01) == pytest.approx(2 * 2 * 100 * 0.01, rel=1e-3)
    assert fine_tuning(asked, 1000, 0.0) == pytest.approx(2 * fine_tuning(asked, 2000, 0.0))
    published = ("--task", "pos,ner,xnli", "--seeds", "3")
    assert fine_tuning(published, 1.1e6, 0.015) > 3600


def test_joined_text_is_the_words_of_its_sources(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "train.tokens").write_text(" = One = \n\n A cat sat . It slept . \n", "utf-8")
    (tmp_path / "a" / "dev.tokens").write_text(" A dog ran . \n", "utf-8")
    (tmp_path / "b.txt").write_text("He didn't go.\nShe did.\n", "utf-8")
    words = join([SourceRequest(str(tmp_path / "a")), SourceRequest(str(tmp_path / "b.txt"))], tmp_path / "out")
    lines = (tmp_path / "out" / "train.tokens").read_text("utf-8").splitlines()
    assert lines == ["= One =", "A cat sat . It slept .", "He did n't go .", "She did ."]
    assert (tmp_path / "out" / "valid.tokens").read_text("utf-8") == "A dog ran .\n"
    assert words == {"train": sum(len(line.split()) for line in lines), "validation": 4}
    assert find(SourceRequest(str(tmp_path / "out"))).splits == ["train", "validation"]


def small(tmp_path: Path) -> tuple[Recipe, Place]:
    """A study of two cells on the built-in source."""
    toml = tmp_path / "small.toml"
    toml.write_text(
        '[model]\ntype = "modernbert"\nhidden_size = 16\nnum_hidden_layers = 1\nnum_attention_heads = 2\n'
        "intermediate_size = 16\nglobal_attn_every_n_layers = 1\n\n"
        "[training]\nvocab_size = 300\nseq_len = 32\nbatch_size = 4\nsteps = 3\nlearning_rate = 1e-3\n",
        "utf-8",
    )
    cells = (PlannedRun("a", "trans,inv", "mlm"), PlannedRun("b", "trans,inv", "align-mlm", 2))
    evaluate = ("--task", "none", "--measure", "alignment,perplexity")
    recipe = Recipe("align-mlm", "tiny", "", str(toml), 3, cells, evaluate=evaluate, text=("demo",))
    return recipe, Place(tmp_path / "out")


def test_a_small_study_runs_to_its_report_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, place = small(tmp_path)
    said: list[str] = []
    assert prepare(recipe, place, said.append)["data"] == [str(place.out / "data" / "trans-inv")]
    assert not (place.out / "runs").exists()
    assert reproduce(only(recipe, ("a",)), place, said.append, report=False)["report"] is None
    assert not (place.out / "report").exists()
    weights = (place.out / "runs" / "a" / "model" / "model.safetensors").read_bytes()

    # moved to where the text is not, but for held-out sentences: what is done is not done again
    place = replace(place, out=place.out.rename(tmp_path / "moved"), as_is=True)
    (place.out / "text" / "train.tokens").rename(place.out / "text" / "valid.tokens")
    called: list[str] = []
    call = run._call
    monkeypatch.setattr(run, "_call", lambda step, place: [called.append(step.name), call(step, place)])
    found = reproduce(recipe, place, said.append)
    assert called == ["pretrain b", "evaluate b", "report"]
    assert found["cells"] == 2
    assert (place.out / "report" / "index.html").exists()
    assert (place.out / "runs" / "a" / "model" / "model.safetensors").read_bytes() == weights
    runs = [json.loads((place.out / "runs" / name / "run.json").read_text()) for name in "ab"]
    assert runs[0]["source"] == runs[1]["source"] == "text"
    assert runs[0]["data"] == runs[1]["data"]
    assert runs[0]["dictionary"]["sha256"] == runs[1]["dictionary"]["sha256"]
    assert said.count("text") == said.count("tokenizer") == 1


def test_a_study_that_is_to_end_ends_its_cells(tmp_path: Path) -> None:
    recipe, place = small(tmp_path)
    recipe = replace(recipe, steps=1_000_000, cells=recipe.cells[:1], text=(), source="demo")
    script = (
        "from pathlib import Path, PosixPath\n"
        "from derivlang.cli.options import ends_well\n"
        "from derivlang.reproduce.recipes import PlannedRun, Recipe\n"
        "from derivlang.reproduce.run import Place, reproduce\n"
        f"with ends_well(): reproduce({recipe!r}, {place!r})\n"
    )
    study = subprocess.Popen([sys.executable, "-c", script], env=environment(), stderr=subprocess.PIPE)
    log = place.out / "runs" / "a" / "log.jsonl"
    end = time.monotonic() + 100
    while not (log.exists() and log.stat().st_size):
        assert study.poll() is None, study.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    study.terminate()
    study.communicate(timeout=60)
    assert json.loads((log.parent / "run.json").read_text())["status"] == "stopped"
    size = log.stat().st_size
    time.sleep(0.3)
    assert log.stat().st_size == size


def test_a_text_that_is_not_there_is_named(tmp_path: Path) -> None:
    recipe, place = small(tmp_path)
    with pytest.raises(DataError, match=r"novels.txt is missing"):
        reproduce(replace(recipe, text=("demo", "text/novels.txt")), replace(place, data_dir=tmp_path))


def test_a_task_that_is_not_there_is_named_before_anything_is_trained(tmp_path: Path) -> None:
    recipe, place = small(tmp_path)
    (tmp_path / "xnli").mkdir()
    (tmp_path / "xnli" / "dev.en.tsv").write_text("It rains .\tIt is wet .\tentailment\n", "utf-8")
    with pytest.raises(DataError, match="xnli:en lacks train and test"):
        reproduce(replace(recipe, evaluate=("--task", "none,xnli")), replace(place, data_dir=tmp_path))
    assert not place.out.exists()


def test_what_a_larger_scale_takes_is_told_where_there_is_no_accelerator(tmp_path: Path) -> None:
    arguments = ["reproduce", "align-mlm", "--scale", "small", "-o", str(tmp_path), "--dry-run", "--rate", "2e6"]
    found = CliRunner().invoke(main, [*arguments, "--cells", "trans.mlm.1"])
    assert found.exit_code == 0, found.output
    assert "1 cells" in found.output
    assert "at 2,000,000 sub-words a second" in found.output


def test_a_cell_that_fails_is_named_with_its_log(tmp_path: Path) -> None:
    recipe, place = small(tmp_path)
    bad = replace(recipe, cells=(replace(recipe.cells[0], options=("--warmup", "7")),))
    said: list[str] = []
    with pytest.raises(DataError, match="warmup") as error:
        reproduce(bad, place, said.append)
    assert said[-1] == "a failed, 0 to go"
    assert ".log" in str(error.value)
