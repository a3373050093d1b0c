"""Training on an accelerator: what differs there. Run with `pytest -m gpu`."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from derivlang.training.bench import Plan, bench
from derivlang.training.model import is_tied
from derivlang.training.start import settings_of

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no accelerator")]


@pytest.mark.parametrize("model", ["tiny", "roberta-8"])
def test_a_model_trains_in_bf16(model: str) -> None:
    options = {"model": model, "spec": "trans,inv", "objective": "mlm", "batch_size": 16}
    settings, design, _ = settings_of("made-up", options)
    assert settings.precision == "bf16"
    found = bench(settings, design, Plan(seconds=2.0))
    assert found["device"] != "cpu"
    assert math.isfinite(found["tokens_per_second"])
    assert 0 < found["matrix_rate_fraction"] < 1


@pytest.mark.parametrize("tie", [True, False])
def test_tying_holds_on_the_device(tie: bool) -> None:
    from derivlang.training.data import Marks
    from derivlang.training.model import Design

    lm = Design.read("tiny").build(600, 32, Marks(0, 1, 2, 4), tie=tie, language_ids=False, seed=1)
    assert is_tied(lm.to("cuda")) == tie
    assert is_tied(lm.to("cpu")) == tie


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    from derivlang.cli.pretrain import command

    arguments = ["--source", "demo", "--t", "trans,inv", "--vocab-size", "300", "--steps", "20", "-o", str(tmp_path)]
    command.main([*arguments, "--save-every", "10"], standalone_mode=False)
    command.main([*arguments, "--resume"], standalone_mode=False)
    assert (tmp_path / "model" / "model.safetensors").exists()
