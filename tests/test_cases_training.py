"""Pre-training and evaluation as ../shared/cases/README.md has them right: ids, checkpoints made elsewhere, texts."""

from __future__ import annotations

import json
import random
import runpy
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file

from derivlang.training.run_folder import with_hashes
from tests.commands import run

SMALL = "--source demo --vocab-size 300 --steps 4 --batch-size 4 --seq-len 32 --threads 1".split()
MODEL = """
[model]
type = "modernbert"
hidden_size = 16
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 24
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.toml"
    path.write_text(MODEL, "utf-8")
    return path


def record(folder: Path) -> Any:
    return json.loads((folder / "run.json").read_text("utf-8"))


# Ids


@pytest.mark.parametrize(
    ("spec", "rows"),
    [("inv", 300), ("perm:unit=token", 300), ("identity", 300), ("trans:overlap=100,inv", 300), ("trans,inv", 588)],
)
def test_languages_that_share_all_ids_have_one_block(spec: str, rows: int, tmp_path: Path, model: Path) -> None:
    run("pretrain", *SMALL, "--t", spec, "--model", model, "-o", tmp_path / "run")
    assert json.loads((tmp_path / "run" / "model" / "config.json").read_text("utf-8"))["vocab_size"] == rows
    told = run("evaluate", tmp_path / "run", "--measure", "perplexity", "--json").json
    assert told


# Checkpoints of `tests/cases/training/make_checkpoints.py`


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoints, with tokenizers of made-up words, `text.txt` and sentence pairs."""
    folder = tmp_path_factory.mktemp("checkpoints")
    draws = random.Random(1)
    parts = "ba ce di fu gu hal jen kir los mun nat per qua rit sol tev wim yor zan est ing ter".split()
    words = ["".join(draws.choices(parts, k=draws.randint(1, 4))) for _ in range(900)]
    lines = [" ".join(draws.choices(words, k=draws.randint(8, 16))) + " ." for _ in range(500)]
    (folder / "train.txt").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "text.txt").write_text("\n".join(lines[:40]) + "\n", "utf-8")
    for side, some in (("source", lines[:60]), ("derived", lines[60:120])):
        (folder / f"pairs.{side}").write_text("\n".join(some) + "\n", "utf-8")
    script = Path(__file__).parent / "cases" / "training" / "make_checkpoints.py"
    runpy.run_path(str(script))["main"](str(folder / "train.txt"), str(folder))
    return folder


def weights(folder: Path) -> Any:
    return load_file(folder / "model.safetensors")


def trained(checkpoints: Path, name: str, out: Path, *options: object, code: int = 0) -> str:
    """Train a checkpoint for two steps on sentence pairs. Return what was said."""
    given = ["pretrain", "--init", checkpoints / name, "--pairs", checkpoints / "pairs", "--steps", 2]
    return run(*given, "--batch-size", 4, "--pair-length", 60, "--threads", 1, *options, "-o", out, code=code).err


def on_text(checkpoints: Path, name: str, out: Path, *options: object, code: int = 0) -> str:
    """Train a checkpoint for two steps on a text and its inverse. Return what was said."""
    given = ["pretrain", "--init", checkpoints / name, "--source", checkpoints / "text.txt", "--t", "inv", "--steps", 2]
    more = ["--batch-size", 4, "--seq-len", 60, "--pair-length", 60, "--threads", 1]
    return run(*given, *more, *options, "-o", out, code=code).err


def test_positions_after_the_padding_id_are_those_of_transformers(checkpoints: Path, tmp_path: Path) -> None:
    trained(checkpoints, "camembert", tmp_path / "run", "--objective", "tlm", "--weight-decay", 0)
    (name,) = [name for name in weights(checkpoints / "camembert") if name.endswith("position_embeddings.weight")]
    before, after = (weights(folder)[name] for folder in (checkpoints / "camembert", tmp_path / "run" / "model"))
    rows = (before != after).any(dim=1).nonzero().flatten().tolist()
    assert rows == list(range(2, 2 + len(rows)))
    assert 20 < len(rows) <= 32


def test_rows_of_a_checkpoint_fit_its_positions(checkpoints: Path, tmp_path: Path) -> None:
    given = ["evaluate", "--init", checkpoints / "camembert", "--t", "inv", "--source", checkpoints / "text.txt"]
    told = run(*given, "--measure", "perplexity,retrieval", "-o", tmp_path / "e", "--json").json
    assert told["perplexity"]["settings"]["length"] == 64


def test_another_padding_id_is_refused_by_models_that_count_from_it(checkpoints: Path, tmp_path: Path) -> None:
    told = on_text(checkpoints, "camembert-pad3", tmp_path / "r", "--embeddings", "new", "--vocab-size", 60, code=2)
    assert "the model numbers positions from its id of padding, 3; the padding id of the new tokenizer is 1" in told


def test_ids_with_gaps(checkpoints: Path, tmp_path: Path) -> None:
    on_text(checkpoints, "bert-gaps", tmp_path / "p", "--embeddings", "permute", "--learning-rate", 1e-12)
    name = "bert.embeddings.word_embeddings.weight"
    before, after = (weights(folder)[name] for folder in (checkpoints / "bert-gaps", tmp_path / "p" / "model"))
    moved = (before - after).abs().amax(dim=1) > 1e-4
    gaps, special = set(range(300, 420, 4)), set(range(5))
    assert set((~moved).nonzero().flatten().tolist()) - gaps - special == set()
    assert not moved[sorted(gaps | special)].any()
    on_text(checkpoints, "bert-gaps", tmp_path / "w", "--objective", "weam:links=hmm")
    assert record(tmp_path / "w")["status"] == "done"


def test_words_that_share_a_sub_word_are_counted(checkpoints: Path, tmp_path: Path) -> None:
    found = {}
    for spec in ("identity", "inv"):
        given = ["evaluate", "--init", checkpoints / "llama", "--t", spec, "--source", checkpoints / "text.txt"]
        told = run(*given, "--measure", "perplexity,surprisal", "-o", tmp_path / spec, "--json").json
        bits = {score["regime"]: score["value"] for score in told["perplexity"]["scores"] if score["metric"] == "bits"}
        sides = [pq.read_table(tmp_path / spec / "evaluation" / f"surprisal.{side}.parquet").to_pylist()
                 for side in ("source", "derived")]  # fmt: skip
        text = {line for line in (checkpoints / "text.txt").read_text("utf-8").splitlines()}
        for source, derived in zip(*sides, strict=True):
            assert " ".join(source["words"]) in text
            assert sorted(source["words"]) == sorted(derived["words"])
            for row in (source, derived):
                assert sum(row["bits"]) + row["end"] == pytest.approx(row["total"], rel=1e-5)
                assert len(row["words"]) == len(row["bits"])
        assert any(0 in row["bits"] for row in sides[0])  # of words that begin inside a sub-word
        words = sum(len(row["words"]) for row in sides[0])
        assert bits["source"] == pytest.approx(sum(row["total"] for row in sides[0]) / words)
        found[spec] = bits["source"], words
    assert found["identity"] == found["inv"]


def test_a_model_that_ignores_positions_is_not_trained_with_a_reset(checkpoints: Path, tmp_path: Path) -> None:
    given = ["evaluate", "--init", checkpoints / "deberta", "--t", "inv", "--source", checkpoints / "text.txt"]
    assert run(*given, "--measure", "perplexity", "-o", tmp_path / "e", "--json").json["perplexity"]
    told = trained(checkpoints, "deberta", tmp_path / "reset", "--objective", "tlm", code=2)
    assert "numbers its positions itself" in told
    assert not (tmp_path / "reset" / "run.json").exists()
    trained(checkpoints, "deberta", tmp_path / "without", "--objective", "tlm:reset=no")


# Checkpoints of a run


def test_what_a_killed_process_left_of_old_checkpoints_is_removed(tmp_path: Path, model: Path) -> None:
    given = ["pretrain", *SMALL, "--t", "inv", "--model", model, "-o", tmp_path / "run", "--save-every", 1]
    run(*given, "--keep", 4)
    folder = tmp_path / "run" / "checkpoints"
    record_path = tmp_path / "run" / "run.json"
    record_path.write_text(json.dumps(with_hashes(tmp_path / "run", {**record(tmp_path / "run"), "status": "stopped"})))
    (folder / "step-00000002" / "state.json").unlink()  # removed first
    (folder / "step-00000001" / "notes.txt").write_text("mine", "utf-8")
    (folder / ".step-00000003.derivlang").mkdir()
    run(*given, "--keep", 2, "--resume")
    assert sorted(path.name for path in folder.iterdir()) == ["step-00000001", "step-00000003", "step-00000004"]
    assert [path.name for path in (folder / "step-00000001").iterdir()] == ["notes.txt"]


# Texts


@pytest.mark.parametrize("texts", ["both", "each"])
def test_another_text_of_the_derived_language_is_read_by_tokenizers(texts: str, tmp_path: Path, model: Path) -> None:
    """Its letters are in no text of the source, so a tokenizer that has not read it knows none of them."""
    draws = random.Random(1)
    words = ["".join(draws.choices("абвгдежзиклмнопрстуф", k=draws.randint(2, 7))) for _ in range(200)]
    lines = [" ".join(draws.choices(words, k=8)) + " ." for _ in range(100)]
    (tmp_path / "ru.txt").write_text("\n".join(lines) + "\n", "utf-8")
    given = ["pretrain", *SMALL[:2], *SMALL[4:], "--vocab-size", 200, "--t", "identity", "--tokenizer-for", texts]
    told = run(*given, "--model", model, "--derived-source", tmp_path / "ru.txt", "-o", tmp_path / "run").err
    assert "unknown" not in told
    data = tmp_path / "run" / "data"
    recipes = [json.loads(path.read_text("utf-8")) for path in data.glob("*/data.json")]
    assert [recipe["unknown_percent"][1] for recipe in recipes if "ru.txt" in recipe["source"]] == [0]
    run(*given, "--model", model, "-o", tmp_path / "other", "--data", data)
    tokenizers = [json.loads((tmp_path / name / "run.json").read_text("utf-8"))["folders"] for name in ("run", "other")]
    assert not {*tokenizers[0]} >= {*tokenizers[1]}
