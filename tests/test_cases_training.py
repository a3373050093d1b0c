"""Pre-training and evaluation as ../shared/cases/README.md has them right: ids, checkpoints made elsewhere, texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
