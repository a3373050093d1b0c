"""What an accelerator would refuse, and what it would be kept waiting by, without one; bfloat16; compiled encoders."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from derivlang.core.errors import UsageError
from derivlang.evaluation.finetune import TaskModel, fine_tune, predict
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.measures.registry import MEASURES
from derivlang.evaluation.tasks.registry import task_of
from derivlang.evaluation.trained import PretrainedRun
from derivlang.training import devices, encoder, trainer
from derivlang.training import run_folder as runs
from derivlang.training.batch import Step
from derivlang.training.encoder import Encoder
from derivlang.training.objectives import registry
from derivlang.training.objectives.base import Loss, Objective
from derivlang.training.plan import settings_of
from derivlang.training.trainer import optimizer_of, train
from tests.elsewhere import HERE, Elsewhere, Held, fused
from tests.test_evaluate_examples import made
from tests.test_evaluate_measures import alignment, heldout, sets_of, values
from tests.test_training_loop import Stop, same, same_runs, state, stopping
from tests.tiny_runs import write_run
from tests.training import log, network, settings, trained, weights

__all__ = ["fused"]

CPU = torch.device("cpu")
MASK = "masking_utils.py"  # transformers looks for padding in each forward pass, unless it is compiled


def besides_masks(device: Elsewhere) -> Counter[str]:
    """The places where the device was waited for, once the list is cleared."""
    found = Counter(place for place in device.waits if not place.startswith(MASK))
    device.waits.clear()
    return found


# The pretended device


def test_the_device_refuses_what_is_elsewhere_and_notes_what_waits() -> None:
    near = torch.arange(4.0)
    with Elsewhere() as device:
        far = near.pin_memory().to(HERE, non_blocking=True)
        assert (far.device, type(far * 2), (far * 2 + 1).device) == (HERE, Held, HERE)
        assert not device.waits
        for wrong in (lambda: far + near, lambda: far[torch.tensor([0])], lambda: torch.cat([far, near])):
            with pytest.raises(RuntimeError, match="on two devices"):
                wrong()
        for waits in (
            lambda: near.to(HERE, non_blocking=True),  # not pinned
            lambda: far.sum().item(),
            lambda: far[far > 1],
            lambda: bool(far.any()),
            lambda: far.cpu(),
        ):
            waits()
            assert len(device.waits) == 1, device.waits
            device.waits.clear()
        with torch.inference_mode():
            assert far[torch.tensor([3, 0]).pin_memory().to(HERE, non_blocking=True)].tolist() == [3, 0]
    with pytest.raises(RuntimeError, match="outside"):
        far + 1


def test_arrays_of_all_kinds_are_sent_in_one_piece() -> None:
    arrays = {
        "mask": np.array([[True, False, True]]),
        "ids": np.arange(12).reshape(3, 4)[:, ::2],
        "none": np.zeros((0, 5), np.int64),
        "small": np.array([7], np.int8),
        "real": np.array([0.5, 2.5], np.float32),
    }
    with Elsewhere() as device:
        far = devices.arrays_to_device(arrays, HERE)
        assert not device.waits
        assert all(type(tensor) is Held for tensor in far.values())
        assert devices.to_device(arrays["none"], HERE).cpu().shape == (0, 5)
        for name, array in arrays.items():
            there = far[name].cpu()
            assert there.shape == array.shape
            assert np.array_equal(there.numpy(), array)
            assert there.dtype == torch.from_numpy(np.ascontiguousarray(array)).dtype


# Training

STEPS = [
    ("mlm", "modernbert", True),
    ("mlm", "bert", False),
    ("xlm:pairs=0.5", "roberta", True),
    ("tlm", "bert", True),
    ("dict-mlm", "roberta", True),
    ("dict-mlm:variant=input", "modernbert", True),
    ("dict-mlm:condition=yes", "roberta", False),
    ("align-mlm", "roberta", False),
    ("dict-tlm:condition=yes", "bert", True),
    ("weam", "roberta", False),
    ("weam:links=hmm", "modernbert", True),
    ("ppa", "roberta", True),
    ("xlm-align", "modernbert", True),
    ("clm", "gpt2", True),
    ("clm", "llama", False),
]


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize(("name", "kind", "tie"), STEPS)
def test_a_step_elsewhere_is_a_step_here(name: str, kind: str, tie: bool) -> None:
    made = []
    for place, bf16 in ((CPU, False), (HERE, False), (CPU, True)):
        net, source = network(name, kind, tie=tie)
        ((micro,),) = source.steps(0, 1)
        with Elsewhere() as device:
            optimizer = optimizer_of(net.to(place), settings())
            device.waits.clear()
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                total, parts = net(micro.to(place))
            total.backward()
            norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            grads = [p.grad.clone() for p in net.parameters() if p.grad is not None]
            optimizer.step()
            assert not besides_masks(device)
            made.append([[t.detach().cpu() for t in some] for some in ((total, norm, *parts.values()), grads)])
            assert {p.device for p in net.parameters()} == {place}
    torch.testing.assert_close(made[0], made[1], rtol=1e-4, atol=1e-6)
    assert {t.dtype for t in made[2][0]} == {torch.float32}
    torch.testing.assert_close(made[0][0], made[2][0], rtol=0.01, atol=1e-3)


@dataclass
class Saved:
    """What a run on the pretended device leaves."""

    device: Elsewhere
    weights: dict[str, torch.Tensor]


@pytest.fixture
def elsewhere(fused: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Saved]:
    """`trained` on the pretended device. Its checkpoints, which torch writes from any device, are not written."""
    real = trainer.accelerator_of

    def accelerator(*options: Any) -> Any:
        found = real(*options)
        found.state.device = HERE
        return found

    def run(folder: Path, *names: str, **options: Any) -> Saved:
        device, kept = Elsewhere(), {}

        def there(*args: Any, **more: Any) -> Any:
            with device:
                return train(*args, **more)

        def save(run: Path, lm: Any, *_: Any, **more: Any) -> None:
            kept.update({name: value.held.clone() for name, value in lm.state_dict().items()})

        with monkeypatch.context() as patch:
            patch.setattr("derivlang.training.trainer.accelerator_of", accelerator)
            patch.setattr("derivlang.training.run.train", there)
            patch.setattr("derivlang.training.loader.ahead", lambda items, most: items)  # the device is of one thread
            patch.setattr("derivlang.training.run_folder.finish", lambda *_: None)
            patch.setattr("derivlang.training.checkpoint.save", save)
            trained(folder, *names, **options)
        return Saved(device, kept)

    return run


def test_a_run_elsewhere_goes_on_and_is_waited_for_by_its_log_alone(
    elsewhere: Callable[..., Saved], tmp_path: Path
) -> None:
    name = "xlm:pairs=0.5"
    options: dict[str, Any] = {"kind": "roberta", "dropout": 0.1, "accumulate": 2, "steps": 6}
    trained(tmp_path / "whole", name, **options)
    with pytest.raises(Stop):
        trained(tmp_path / "run", name, logged=stopping(4), **options)
    found = elsewhere(tmp_path / "run", name, resume=True, **options)
    whole = weights(tmp_path / "whole" / "model")
    assert same(whole, {key: found.weights[key] for key in whole})
    assert [entry["loss"] for entry in log(tmp_path / "run")] == [entry["loss"] for entry in log(tmp_path / "whole")]
    waits = []
    for steps in (2, 4):
        options |= {"steps": steps, "log_every": 99, "save_every": 99}
        waits.append(besides_masks(elsewhere(tmp_path / f"{steps}", name, **options).device))
    assert waits[0] == waits[1]


def test_a_full_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Large(Objective):
        """Too large."""

        name = "large"

        def loss(self, model: Encoder, micro: Step, state: torch.nn.Module | None) -> Loss:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB. GPU 0 has …")

    monkeypatch.setattr(registry.OBJECTIVES, "added", {"large": Large})
    with pytest.raises(UsageError, match="memory is full: CUDA out of memory") as error:
        trained(tmp_path / "run", "large")
    assert "--accumulate" in str(error.value)
    assert runs.read(tmp_path / "run")["status"] == "stopped"


def test_processes_wait_for_the_first_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr("accelerate.PartialState", lambda **options: given.update(options))
    devices.processes()
    assert given["timeout"].total_seconds() > 10 * 3600


# Precision


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("xlm:pairs=0.5", {"kind": "roberta", "tie": False}),
        ("align-mlm", {"kind": "bert", "dropout": 0.1}),
        ("ppa:queue=20", {"kind": "roberta", "dropout": 0.1}),
    ],
)
def test_bfloat16_is_near_and_goes_on_bit_by_bit(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    options = {**options, "steps": 10, "log_every": 1, "save_every": 4}
    for precision in ("fp32", "bf16"):
        trained(tmp_path / precision, name, precision=precision, **options)
    near, far = ([entry["loss"] for entry in log(tmp_path / p)] for p in ("fp32", "bf16"))
    assert near != far
    assert far == pytest.approx(near, rel=0.01)
    kept = [state(tmp_path / "bf16", 10)["optimizer"]["state"], weights(tmp_path / "bf16" / "model")]
    assert {t.dtype for t in torch.utils._pytree.tree_leaves(kept)} == {torch.float32}
    with pytest.raises(Stop):
        trained(tmp_path / "run", name, precision="bf16", logged=stopping(6), **options)
    trained(tmp_path / "run", name, precision="bf16", resume=True, **options)
    same_runs(tmp_path / "bf16", tmp_path / "run", 10)


# Compiled


@pytest.mark.filterwarnings(
    "ignore:The .grad attribute"
)  # hidden by torch's compiler, but not where warnings are errors
@pytest.mark.parametrize(
    ("name", "options", "most", "stops"),
    [
        ("mlm", {"precision": "bf16", "tie": False}, 1 + 1, False),
        (
            "xlm:pairs=0.5",
            {"kind": "roberta", "dropout": 0.1, "accumulate": 2, "batch_size": 12},
            3 + 2,
            True,
        ),  # rows; pairs, of two sizes; each mean, the sum
        ("ppa:queue=20", {"kind": "roberta"}, 2 + 1, False),  # pairs; sides
        ("xlm-align", {"kind": "roberta"}, 3 + 1, False),  # rows; pairs; pairs with all layers
    ],
)
def test_encoder_and_head_are_compiled_once(
    name: str, options: dict[str, Any], most: int, stops: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the number of hidden positions; and it is saved like any other, and goes on like any other (stops)."""
    import torch._dynamo as dynamo

    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    encoder._compiled_cross_entropy.cache_clear()
    dynamo.reset()
    dynamo.utils.counters.clear()
    options = {**options, "steps": 8}
    trained(tmp_path / "plain", name, **options)
    if stops:
        with pytest.raises(Stop):
            trained(tmp_path / "run", name, compile=True, logged=stopping(6), **options)
    else:
        trained(tmp_path / "run", name, compile=True, **options)
    assert 1 <= len(graphs) <= most
    assert not dynamo.utils.counters["graph_break"]
    if stops:
        trained(tmp_path / "run", name, compile=True, resume=True, **options)
    same_runs(tmp_path / "plain", tmp_path / "run", 8)
    dynamo.reset()


def a_gpu(patch: pytest.MonkeyPatch, folder: Path, *, capability: tuple[int, int], triton: bool, headers: bool) -> None:
    """This machine, as if it had a GPU."""
    patch.setattr(torch.cuda, "is_available", lambda: True)
    patch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    patch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or capability >= (8, 0)
    )
    patch.setattr(devices, "find_spec", lambda name: triton or None)
    (folder / "Python.h").touch() if headers else None
    patch.setattr(devices.sysconfig, "get_config_h_filename", lambda: str(folder / "pyconfig.h"))
    patch.setattr(devices.shutil, "which", lambda name: name if name == "gcc" else None)


@pytest.mark.parametrize(
    ("capability", "triton", "headers", "precision", "compiled"),
    [
        ((9, 0), True, True, "bf16", True),
        ((7, 5), True, True, "fp32", True),
        ((6, 1), True, True, "fp32", False),
        ((8, 0), False, True, "bf16", False),
        ((8, 0), True, False, "bf16", False),
    ],
)
def test_what_a_gpu_cannot_do_is_not_the_default(
    capability: tuple[int, int], triton: bool, headers: bool, precision: str, compiled: bool,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    a_gpu(monkeypatch, tmp_path, capability=capability, triton=triton, headers=headers)
    asked = {"model": "tiny", "spec": "trans", "objective": "mlm"}
    found, _, log_settings = settings_of("demo", asked)
    assert (found.precision, log_settings.compile) == (precision, compiled)
    found, _, log_settings = settings_of("demo", {**asked, "precision": "bf16", "compile": True})
    assert (found.precision, log_settings.compile) == ("bf16", True)


# Evaluation


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> PretrainedRun:
    folder = tmp_path_factory.mktemp("run") / "run"
    return PretrainedRun.load(
        write_run(folder, kind="roberta", dictionary=40, model={"name": "r", "language_ids": True})
    )


def there(model: Encoder) -> Encoder:
    return replace(model, module=copy.deepcopy(model.module).to(HERE))


def test_measures_elsewhere(run: PretrainedRun) -> None:
    near, text = run.language_model(CPU), heldout("trans,inv", 12)
    with Elsewhere() as device:
        far = there(near)
        assert alignment(run, far) == alignment(run, near)
        device.waits.clear()
        layers = 3
        # However many sentences there are: perplexity waits for a batch of either language.
        for name, waits in (("perplexity", 2), ("contextual", 2 * layers), ("retrieval", 2 * layers)):
            measure = MEASURES.find(name)
            assert values(measure, far, sets_of(text)) == values(measure, near, sets_of(text))
            assert sum(besides_masks(device).values()) == waits


@pytest.mark.usefixtures("fused")
def test_fine_tuning_elsewhere_is_waited_for_once_an_epoch(run: PretrainedRun) -> None:
    found, _, _ = made("trans,inv", task_of("pos"), 40)
    some, near = found.derived.take(np.arange(20)), run.encoder(CPU)
    tuned, waits = [], []
    for size in (5, 10):
        make: Any = partial(FinetuneSettings, lr=1e-2, batch_size=size)
        for place in (CPU, HERE):
            with Elsewhere() as device:

                def classifier(place: torch.device = place) -> TaskModel:
                    encoder = there(near) if place == HERE else replace(near, module=copy.deepcopy(near.module))
                    return TaskModel(task_of("xnli"), encoder, 17)

                model, facts = fine_tune(classifier, some, 1, make(epochs=2), 1, lambda model: 1.0)
                waits.append(besides_masks(device))
                tuned.append(([p.detach().cpu() for p in model.parameters()], facts, predict(model, some, 1).tolist()))
    assert same(tuned[0], tuned[1])
    assert same(tuned[2], tuned[3])
    assert waits[1] == waits[3]
    assert not waits[0]
