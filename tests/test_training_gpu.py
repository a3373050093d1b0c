"""Training and evaluation on an accelerator: what differs there. Run with `pytest -m gpu`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from derivlang.evaluation.measures.registry import MEASURES
from derivlang.evaluation.trained import PretrainedRun
from derivlang.training import devices
from derivlang.training.checkpoint import load_model
from derivlang.training.config import ModelConfig
from derivlang.training.devices import device_of
from derivlang.training.encoder import Encoder
from derivlang.training.kernels import FLASH, use_kernels
from derivlang.training.languages import SpecialIds
from derivlang.training.model import build_model, is_tied
from derivlang.training.plan import settings_of
from derivlang.training.speed import made_up_run, steps_per_second
from derivlang.training.trainer import optimizer_of
from tests.evaluations import evaluate, options, rows
from tests.test_evaluate_measures import alignment, heldout, sets_of, values
from tests.test_training_loop import Stop, stopping, torchrun
from tests.tiny_runs import write_run
from tests.training import data_folder, log, network, pair, settings, trained, weights
from tools.bench_train import bench

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no accelerator"),
    pytest.mark.filterwarnings("default"),  # torch's compiler gives advice
]

OBJECTIVES: list[tuple[str, dict[str, Any]]] = [
    ("mlm", {}),
    ("mlm", {"kind": "bert", "tie": False}),
    ("xlm:pairs=0.5", {"kind": "roberta", "accumulate": 2}),
    ("tlm", {"kind": "roberta"}),
    ("dict-mlm", {"kind": "roberta"}),
    ("dict-mlm:variant=input", {}),
    ("dict-mlm:condition=yes", {"kind": "roberta", "tie": False}),
    ("align-mlm", {"kind": "roberta"}),
    ("dict-tlm", {"kind": "roberta"}),
    ("weam", {"kind": "roberta", "tie": False}),
    ("clm", {"kind": "gpt2"}),
    ("clm", {"kind": "llama", "tie": False}),
]


def losses(folder: Path) -> list[float]:
    return [entry["loss"] for entry in log(folder)]


def on_the_processor(patch: pytest.MonkeyPatch) -> None:
    """Runs of this process leave the accelerator alone, from now on."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    patch.setattr("derivlang.training.devices.without_accelerators", lambda: True)


def anywhere() -> None:
    """They may take it again."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)


@contextmanager
def noted(waits: list[str]) -> Iterator[None]:
    """The places that wait for the device, inside."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")
    waits += [f"{w.filename}:{w.lineno}" for w in found if "called a synchronizing" in str(w.message)]


# Speed


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("model", ["tiny", "roberta-8"])
def test_a_model_trains_in_bf16(model: str, compiled: bool) -> None:
    asked = {"model": model, "spec": "trans,inv", "objective": "mlm", "batch_size": 4 if model == "tiny" else 16}
    found, model_config, log_settings = settings_of("made-up", asked)
    assert found.precision == ("bf16" if devices.has_bf16() else "fp32")
    if compiled and not log_settings.compile:
        pytest.skip("there is nothing to compile with")
    result = bench(found, model_config, 2.0, compile=compiled)
    assert result["device"] != "cpu"
    assert math.isfinite(result["tokens_per_second"])
    assert 0 < result["matrix_rate_fraction"] < 1
    assert model != "tiny" or result["peak_memory"] < 300e6  # without the matrices of the rate


@pytest.mark.parametrize(("name", "more"), OBJECTIVES, ids=[f"{o}-{i}" for i, (o, _) in enumerate(OBJECTIVES)])
def test_a_step_waits_for_nothing(name: str, more: dict[str, Any]) -> None:
    device = torch.device("cuda")
    net, source = network(name, more.get("kind", "roberta"), tie=more.get("tie", True))
    use_kernels(net.lm, device, "bf16", compile=False)
    net.to(device)
    optimizer = optimizer_of(net, settings())
    waits: list[str] = []
    for step, (micro,) in enumerate(source.steps(0, 6)):
        if step == 1:  # the first one sets up the libraries
            waits.clear()
        with noted(waits), torch.autocast("cuda", torch.bfloat16):
            total, _ = net(micro.to(device))
        total.backward()  # torch's own kernels
        with noted(waits):
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    assert not waits


@pytest.mark.parametrize(
    ("kind", "more"),
    [("roberta", {}), ("bert", {}), ("gpt2", {}), ("llama", {"num_key_value_heads": 2})],
    ids=["roberta", "bert", "gpt2", "llama"],
)
def test_the_flash_kernel_sees_what_masks_leave(kind: str, more: dict[str, Any]) -> None:
    """In bfloat16 it is as near to 32-bit floats as the kernel with a mask, at all lengths of rows."""
    device, ids = torch.device("cuda"), SpecialIds(0, 1, 2, 4)
    size = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256}
    config = ModelConfig("made-up", kind, {**size, "max_position_embeddings": 80, **more}, {})
    lm = build_model(config, 300, 64, ids, tie=True, language_ids=False, seed=1).to(device).eval()
    model = Encoder(lm, ids)
    lengths = torch.tensor([64, 1, 2, 63, 17, 64, 33, 8], device=device)
    attention = torch.arange(64, device=device) < lengths[:, None]
    inputs = torch.randint(12, 300, attention.shape, generator=torch.Generator().manual_seed(1)).to(device)
    weights = torch.randn(*attention.shape, 128, device=device) * attention[..., None]

    def states_and_gradient(precision: str) -> tuple[torch.Tensor, torch.Tensor]:
        lm.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            states = model(inputs, attention, 0).float()
        (states * weights).sum().backward()
        return states[attention].detach(), lm.get_input_embeddings().weight.grad.clone()

    exact, masked = states_and_gradient("fp32"), states_and_gradient("bf16")
    use_kernels(lm, device, "bf16", compile=False)
    assert lm.config._attn_implementation == FLASH
    for one, other, wanted in zip(states_and_gradient("bf16"), masked, exact, strict=True):
        assert (one - wanted).norm() < 1.3 * (other - wanted).norm() < 0.03 * wanted.norm()


# Runs


@pytest.mark.parametrize(("name", "more"), OBJECTIVES, ids=[f"{o}-{i}" for i, (o, _) in enumerate(OBJECTIVES)])
def test_an_objective_trains_as_on_a_processor(
    name: str, more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {**more, "steps": 12, "log_every": 1, "save_every": 4}
    for precision in ("fp32", "bf16"):
        trained(tmp_path / precision, name, precision=precision, **more)
    with monkeypatch.context() as patch:
        on_the_processor(patch)
        trained(tmp_path / "cpu", name, precision="fp32", **more)
    anywhere()
    assert losses(tmp_path / "fp32") == pytest.approx(losses(tmp_path / "cpu"), rel=2e-3, abs=5e-3)
    assert losses(tmp_path / "bf16") == pytest.approx(losses(tmp_path / "cpu"), rel=0.02, abs=0.02)
    assert {p.dtype for p in load_model(tmp_path / "bf16" / "model").parameters()} == {torch.float32}


@pytest.mark.parametrize("compiled", [False, True])
def test_a_run_goes_on_from_its_checkpoint(compiled: bool, tmp_path: Path) -> None:
    if compiled and not devices.can_compile():
        pytest.skip("there is nothing to compile with")
    more = {"kind": "roberta", "steps": 12, "log_every": 1, "save_every": 4, "compile": compiled}
    for name in ("align-mlm", "dict-mlm:condition=yes"):
        whole, stopped = tmp_path / f"{name}-whole", tmp_path / f"{name}-stopped"
        trained(whole, name, precision="bf16", **more)
        with pytest.raises(Stop):
            trained(stopped, name, precision="bf16", logged=stopping(6), **more)
        trained(stopped, name, precision="bf16", resume=True, **more)
        assert losses(stopped) == pytest.approx(losses(whole), rel=0.01, abs=0.01)
        assert weights(stopped / "model").keys() == weights(whole / "model").keys()


def test_encoder_and_head_are_compiled_once(tmp_path: Path) -> None:
    """For each shape of rows and each kind of loss, whatever the number of hidden positions."""
    import torch._dynamo as dynamo

    if not devices.can_compile():
        pytest.skip("there is nothing to compile with")
    for name, most in (("mlm", 1 + 1), ("xlm:pairs=0.5", 3 + 2)):
        dynamo.reset()
        dynamo.utils.counters.clear()
        more = {"kind": "roberta", "dropout": 0.1, "steps": 30, "log_every": 30, "save_every": 30}
        trained(tmp_path / name, name, precision="bf16", compile=True, **more)
        assert 1 <= dynamo.utils.counters["stats"]["unique_graphs"] <= most
        assert not dynamo.utils.counters["graph_break"]


def test_the_command_takes_the_accelerator(tmp_path: Path) -> None:
    from derivlang.cli.pretrain import command

    def allocations() -> int:
        return int(torch.cuda.memory_stats().get("allocation.all.allocated", 0))

    before = allocations()
    arguments = ["--source", "demo", "--t", "trans,inv", "--vocab-size", "300", "--steps", "20"]
    command.main([*arguments, "-o", str(tmp_path / "run")], standalone_mode=False)
    assert (tmp_path / "run" / "model" / "model.safetensors").exists()
    assert allocations() > before


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two accelerators")
def test_two_accelerators_train_what_one_does(tmp_path: Path) -> None:
    pair()
    wanted = [
        "--data", data_folder(), "--objective", "xlm:pairs=0.5", "--steps", 8, "--log-every", 1, "--precision", "fp32",
        "--no-compile", "-o",
    ]  # fmt: skip
    done = torchrun(tmp_path, *wanted, "two", warnings="default")
    assert done.returncode == 0, done.stderr
    trained(tmp_path / "one", "xlm:pairs=0.5", kind="roberta", steps=8, log_every=1)
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=0.01)


@pytest.mark.parametrize("tie", [True, False])
def test_tying_holds_on_the_device(tie: bool) -> None:
    lm = build_model(ModelConfig.read("tiny"), 600, 32, SpecialIds(0, 1, 2, 4), tie=tie, language_ids=False, seed=1)
    assert is_tied(lm.to("cuda")) == tie
    assert is_tied(lm.to("cpu")) == tie


def test_a_full_memory_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    from derivlang.core.errors import UsageError

    asked = {"model": "tiny", "spec": "trans", "objective": "mlm", "batch_size": 1 << 8, "vocab_size": 100_000}
    found, model_config, _ = settings_of("made-up", asked)
    torch.cuda.set_per_process_memory_fraction(0.001)
    try:
        with pytest.raises(UsageError, match="memory is full"):
            steps_per_second(*made_up_run(found, model_config, compile=False), found, 0.1)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()


# Evaluation


@pytest.mark.parametrize("kind", ["modernbert", "roberta"])
def test_measures_are_those_of_a_processor(kind: str, tmp_path: Path) -> None:
    run, text = PretrainedRun.load(write_run(tmp_path / "run", kind=kind, dictionary=40)), heldout("trans,inv", 20)
    far, near = (run.language_model(device_of(name)) for name in ("cuda", "cpu"))
    assert alignment(run, far) == pytest.approx(alignment(run, near), abs=0.5)
    for name in ("contextual", "retrieval", "links", "perplexity"):
        ours, theirs = (values(MEASURES.find(name), model, sets_of(text)) for model in (far, near))
        close = {"rel": 0.02} if name == "perplexity" else {"abs": 15}  # shares of few words, in bfloat16
        assert ours == pytest.approx(theirs, **close), name


def test_an_evaluation(tmp_path: Path) -> None:
    found = {}
    for device in ("cuda", "cpu"):
        run = write_run(tmp_path / device, kind="roberta")
        asked = options("pos", "ner", "xnli", max_length=60, device=device, measures=("alignment",))
        found[device] = evaluate(run, asked)
    accuracy = {"task": "pos", "metric": "accuracy", "regime": "sup", "split": "test"}
    for where, close in ((accuracy, 10), ({"task": "alignment", "metric": "all", "regime": "", "group": ""}, 0.5)):
        (far,), (near,) = (rows(found[device], **where) for device in ("cuda", "cpu"))
        assert far["value"] == pytest.approx(near["value"], abs=close)
