"""Controls of a pre-trained model: the untrained one, alignment alone, and embeddings copied from word to word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import derivlang
from derivlang.core.errors import UsageError
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.pipeline import Pipeline
from derivlang.training.config import ModelConfig
from derivlang.training.languages import Languages, load
from derivlang.training.model import build_model
from tests.commands import run
from tests.training import weights

SMALL = ("--source", "demo", "--vocab-size", 300, "--seq-len", 32, "--threads", 1)
TOML = '[model]\ntype = "modernbert"\nhidden_size = 16\nnum_hidden_layers = 1\nnum_attention_heads = 2\n'
STUDY = """
[study]
source = "demo"
model = "{model}"
[cell]
t = "trans,inv"
steps = 0
vocab-size = 300
seq-len = 32
[factors]
seed = [1]
"""


def pretrained(out: Path, *options: Any, t: str = "trans,inv") -> dict[str, torch.Tensor]:
    """The weights of a run."""
    run("pretrain", *SMALL, "--t", t, *options, "-o", out)
    return weights(out / "model")


def languages(out: Path, t: str = "trans,inv") -> Languages:
    return load(out, Pipeline.parse(t))


def embeddings(found: dict[str, torch.Tensor]) -> torch.Tensor:
    """The input embeddings of tiny: float[V, d]."""
    (name,) = (name for name in found if "tok_embeddings" in name)
    return found[name]


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("untrained") / "run"
    pretrained(out, "--steps", 0)
    return out


def test_no_steps_give_the_untrained_model(untrained: Path) -> None:
    both = languages(untrained)
    config = ModelConfig.read("tiny")
    new = build_model(config, both.size, 32, both.special_ids, tie=True, language_ids=False, seed=1).state_dict()
    found = weights(untrained / "model")
    assert found
    assert all(torch.equal(value, new[name]) for name, value in found.items())
    record = json.loads((untrained / "run.json").read_text("utf-8"))
    assert (record["status"], record["steps"], record["step"], record["settings"]["steps"]) == ("done", 0, 0, 0)


def test_no_steps_from_python_toml_and_a_study(untrained: Path, tmp_path: Path) -> None:
    found = weights(untrained / "model")
    made = derivlang.pretrain("demo", "trans,inv", tmp_path / "python", steps=0, vocab_size=300, seq_len=32)
    assert made.record["steps"] == 0
    of_python = weights(tmp_path / "python" / "model")
    assert all(torch.equal(of_python[name], value) for name, value in found.items())
    model = tmp_path / "own.toml"
    model.write_text(f"{TOML}[training]\nsteps = 0\n", "utf-8")
    of_file = pretrained(tmp_path / "file", "--model", model)
    assert json.loads((tmp_path / "file" / "run.json").read_text("utf-8"))["steps"] == 0
    study = tmp_path / "none.toml"
    study.write_text(STUDY.format(model=model), "utf-8")
    run("study", study, "-o", tmp_path / "study")
    (recorded,) = (tmp_path / "study").glob("**/run.json")
    assert json.loads(recorded.read_text("utf-8"))["steps"] == 0
    of_study = weights(recorded.parent / "model")
    assert of_file
    assert all(torch.equal(of_study[name], value) for name, value in of_file.items())


def test_a_run_of_no_steps_is_resumed_and_evaluated_like_any_other(untrained: Path) -> None:
    before = (untrained / "run.json").read_bytes()
    assert "0 steps" in run("pretrain", *SMALL, "--t", "trans,inv", "--steps", 0, "--resume", "-o", untrained).out
    assert (untrained / "run.json").read_bytes() == before
    assert "alignment" in run("evaluate", untrained, "--measure", "alignment").out


def test_a_duration_is_asked_for_if_the_model_has_none(tmp_path: Path) -> None:
    model = tmp_path / "own.toml"
    model.write_text(TOML, "utf-8")
    asked = (*SMALL, "--t", "trans", "--model", model, "-o", tmp_path / "run")
    assert "--steps: the model" in run("pretrain", *asked, code=2).err
    run("pretrain", *asked, "--tokens", 100)


def test_only_alignment_trains_the_pairs_alone(untrained: Path, tmp_path: Path) -> None:
    before = weights(untrained / "model")
    after = pretrained(tmp_path / "run", "--steps", 5, "--objective", "align-mlm:only=align", "--dict-coverage", 50)
    changed = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert [name for name in changed if "tok_embeddings" not in name] == []
    pairs = [line.split("\t")[:2] for line in (tmp_path / "run" / "dictionary.tsv").read_text("utf-8").splitlines()]
    rows = (embeddings(after) != embeddings(before)).any(dim=1)
    assert 0 < int(rows.sum()) <= 2 * len(pairs)
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text("utf-8").splitlines()]
    assert set(log[-1]["parts"]) == {"align"}


@pytest.mark.parametrize("options", [(), ("--no-tie",), ("--model", "tiny-gpt", "--objective", "clm")])
def test_copied_embeddings_are_the_sources(options: tuple[str, ...], tmp_path: Path) -> None:
    found = pretrained(tmp_path / "run", "--steps", 0, "--embeddings", "copy", *options)
    other = pretrained(tmp_path / "other", "--steps", 0, *options)
    both = languages(tmp_path / "run")
    source, derived = (torch.from_numpy(own).long() for own in both.own)
    of_words = [name for name, value in found.items() if value.shape[0] == both.size]
    assert of_words
    for name in of_words:
        assert torch.equal(found[name][derived], found[name][source])
        assert torch.equal(found[name][source], other[name][source])
    assert all(torch.equal(value, other[name]) for name, value in found.items() if name not in of_words)


def test_copied_embeddings_of_a_run(untrained: Path, tmp_path: Path) -> None:
    found = embeddings(pretrained(tmp_path / "run", "--steps", 0, "--embeddings", "copy", "--init", untrained))
    source, derived = (torch.from_numpy(own).long() for own in languages(untrained).own)
    before = embeddings(weights(untrained / "model"))
    assert torch.equal(found[derived], before[source])
    assert torch.equal(found[source], before[source])
    trained = embeddings(pretrained(tmp_path / "trained", "--steps", 3, "--embeddings", "copy"))
    assert not torch.equal(trained[derived], trained[source])  # only the beginning is shared


def test_copied_embeddings_need_twins(tmp_path: Path) -> None:
    refused = run("pretrain", *SMALL, "--t", "trans", "--tokenizer-for", "each", "--steps", 0, "--embeddings", "copy",
                  "-o", tmp_path / "run", code=2).err  # fmt: skip
    assert "--embeddings copy: the derived language has a tokenizer of its own" in refused
    assert not (tmp_path / "run" / "run.json").exists()


def test_the_course_of_the_learning_rate() -> None:
    usual = FinetuneSettings(lr=1.0)
    assert [usual.learning_rate_at(step, 4) for step in range(4)] == [1, 0.75, 0.5, 0.25]
    warm = FinetuneSettings(lr=1.0, warmup=0.4)
    assert [warm.learning_rate_at(step, 5) for step in range(5)] == pytest.approx([1 / 2, 1, 1, 2 / 3, 1 / 3])
    constant = FinetuneSettings(lr=1.0, warmup=0.4, schedule="constant")
    assert [constant.learning_rate_at(step, 5) for step in range(5)] == [0.5, 1, 1, 1, 1]
    for wrong in ({"warmup": 1.0}, {"warmup": -0.1}, {"weight_decay": -1.0}, {"schedule": "cosine"}):
        with pytest.raises(UsageError, match=f"--{next(iter(wrong)).replace('_', '-')}"):
            FinetuneSettings(**wrong)  # type: ignore[arg-type]


def test_fine_tuning_has_a_warm_up_a_decay_and_a_schedule(untrained: Path) -> None:
    def scores(*options: Any) -> tuple[Any, Any]:
        told = run("evaluate", untrained, "--task", "pos:demo", "--measure", "none", "--seeds", 1, "--epochs", 2,
                   "--lr", 2e-2, "--json", *options).out  # fmt: skip
        task = json.loads(told)["pos:demo"]
        return task["settings"], task["scores"]

    usual, before = scores()
    assert not {"warmup", "schedule", "weight_decay"} & set(usual)
    for option, value in {"warmup": 0.5, "schedule": "constant", "weight_decay": 0.5}.items():
        settings, after = scores(f"--{option.replace('_', '-')}", value, "--force")
        assert settings[option] == value
        assert after != before
    refused = run("evaluate", untrained, "--task", "pos:demo", "--schedule", "cosine", code=2).err
    assert "--schedule: must be linear or constant, got 'cosine'" in refused
