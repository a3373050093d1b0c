"""The loop, for every objective: read a step, add up its micro-batches' gradients, update, log, save.

    loader ──Micro──▶ Inputs on the device ──objective──▶ Loss ──backward──▶ clip ──▶ AdamW

Losses come divided by the step's number of hidden positions, so that gradients simply add up; processes average them,
which is multiplied out. The device is asked for numbers when something is logged or saved, never in between.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.core.errors import DataError
from derivlang.core.keys import text_key
from derivlang.store.disk import disk
from derivlang.training import checkpoint
from derivlang.training.checkpoint import Checkpoint
from derivlang.training.devices import sent, within_memory
from derivlang.training.loader import HiddenRows, Loader, Micro
from derivlang.training.model import Model
from derivlang.training.objectives.base import Inputs, Objective, Part
from derivlang.training.processes import accelerator as make_accelerator
from derivlang.training.settings import Settings

if TYPE_CHECKING:
    import torch

LOG = "log.jsonl"


@dataclass(frozen=True, slots=True)
class Watch:
    """What goes on beside the training. log_every, save_every: in steps; save_every None: ten times in all. keep:
    checkpoints. progress: called with (step, entry of the log) when something is logged. compile: let torch compile the
    encoder. tensorboard: a folder, or None."""

    log_every: int = 50
    save_every: int | None = None
    keep: int = 2
    progress: Callable[[int, dict[str, Any]], None] = lambda step, entry: None
    compile: bool = False
    tensorboard: Path | None = None


@within_memory()
def train(
    run: Path,
    settings: Settings,
    lm: Any,
    objective: Objective,
    loader_of: Callable[[int, int], Loader],
    *,
    fingerprint: str,
    begin: Checkpoint | None = None,
    watch: Watch = Watch(),
) -> dict[str, Any]:
    """Train to the last step and leave a checkpoint there; the last log entry, with "subwords" and "seconds".

    loader_of: the loader of (rank, world). begin: a checkpoint to go on from, whose model `lm` is. DataError where the
    loss is no number any more: the last good checkpoint stays. StoreError where the disk is full,
    UsageError where the device's memory is.
    """
    import torch

    accelerator = make_accelerator(settings.precision)
    device, main = accelerator.device, accelerator.is_main_process
    loader = loader_of(accelerator.process_index, accelerator.num_processes)
    net = network_of(lm, objective, loader, language_ids=settings.language_ids, seed=settings.seed)
    if watch.compile:
        lm.base_model.compile()
    optimizer = optimizer_of(net, settings)
    if begin is not None:
        saved = begin.load_training()
        optimizer.load_state_dict(saved["optimizer"])
        if net.state is not None:
            net.state.load_state_dict(saved["objective"])
    net, optimizer = accelerator.prepare(net, optimizer)
    step = begin.step if begin else 0
    meter = _Meter(device, begin.subwords if begin else 0, begin.seconds if begin else 0.0)
    log = _Log(run, step, watch.tensorboard) if main else None
    entry: dict[str, Any] = log.last if log is not None else {}

    def save() -> None:
        if not all(bool(torch.isfinite(p).all()) for p in lm.parameters()):  # by the last update
            raise _not_finite(step, entry, run)
        accelerator.wait_for_everyone()
        if main:
            objective_state = accelerator.unwrap_model(net).state
            checkpoint.save(
                run, lm, optimizer, objective_state,
                step=step, subwords=meter.subwords, seconds=meter.seconds, fingerprint=fingerprint, keep=watch.keep,
            )  # fmt: skip
        accelerator.wait_for_everyone()

    save_every = watch.save_every or max(1, settings.steps // 10)
    steps = loader.steps(step, settings.steps) if device.type == "cpu" else loader.ahead(step, settings.steps)
    try:
        for micros in steps:
            for group in optimizer.param_groups:
                group["lr"] = settings.rate(step)
            # Dropout follows from seed, step and process, so that a run that went on is the run that never stopped.
            torch.manual_seed(int(text_key(f"{settings.seed}|{step}|{accelerator.process_index}")) >> 1)
            for i, micro in enumerate(micros):
                last = i + 1 == len(micros)
                with nullcontext() if last else accelerator.no_sync(net):
                    with accelerator.autocast():
                        total, parts = net(inputs_of(micro, device))
                    accelerator.backward(total * accelerator.num_processes)
                meter.add(total, parts)
            meter.step(accelerator.clip_grad_norm_(net.parameters(), settings.clip), micros[0].subwords)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step += 1
            at_end = step == settings.steps
            if step % watch.log_every == 0 or step % save_every == 0 or at_end:
                entry = meter.entry(step, settings.rate(step - 1), accelerator)
                if not math.isfinite(entry["loss"]) or not math.isfinite(entry["grad_norm"]):
                    raise _not_finite(step, entry, run)
                if log is not None:
                    log.write(entry)
                watch.progress(step, entry)
            if step % save_every == 0 or at_end:
                save()
    finally:
        if log is not None:
            log.close()
        accelerator.end_training()
    return {**entry, "subwords": meter.subwords, "seconds": round(meter.seconds, 3), "processes": loader.world}


def network_of(lm: Any, objective: Objective, loader: Loader, *, language_ids: bool, seed: int) -> Any:
    """A module whose forward is the loss, so that processes share its gradients. seed: of an objective's own layers."""
    import torch

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lm = lm
            self.model = Model(lm, language_ids=language_ids)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                self.state = objective.state(self.model, loader.context)

        def forward(self, inputs: Inputs) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
            loss = objective.loss(self.model, inputs, self.state)
            return loss.total, dict(loss.parts)

    lm.train()
    return Network()


def optimizer_of(net: Any, settings: Settings) -> torch.optim.Optimizer:
    import torch

    learnt = [p for p in net.parameters() if p.requires_grad]
    groups = [  # norms and biases do not decay
        {"params": [p for p in learnt if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in learnt if p.ndim <= 1], "weight_decay": 0.0},
    ]
    betas = settings.beta1, settings.beta2
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, fused=True)


def inputs_of(micro: Micro, device: torch.device) -> Inputs:
    pairs = None if micro.pairs is None else _part(micro.pairs, device)
    return Inputs(_part(micro.rows, device), pairs, micro.share)


def _part(rows: HiddenRows, device: torch.device) -> Part:
    masked = rows.masked
    return Part(
        sent(masked.inputs, device),
        sent(rows.attention, device),
        sent(masked.language.astype(np.int64), device),
        None if rows.positions is None else sent(rows.positions, device),
        sent(masked.targets, device),
        sent(masked.labels, device),
        sent(masked.label_language.astype(np.int64), device),
        rows.total,
    )


class _Meter:
    """Losses added up on the device between log entries, sub-words and seconds."""

    def __init__(self, device: torch.device, subwords: int, seconds: float):
        import torch

        self._torch, self._device = torch, device
        self.subwords, self._before = subwords, seconds
        self._began = self._last = time.perf_counter()
        self._clear()

    def _clear(self) -> None:
        self._sums: dict[str, Any] = {}
        self._counts: Counter[str] = Counter()
        self._seen = 0

    @property
    def seconds(self) -> float:
        return self._before + time.perf_counter() - self._began

    def add(self, total: torch.Tensor, parts: dict[str, torch.Tensor]) -> None:
        for name, value in {"loss": total.detach(), **parts}.items():
            self._sums[name] = self._sums[name] + value.float() if name in self._sums else value.float()

    def step(self, norm: Any, subwords: int) -> None:
        """Once a step: the gradient's norm, and the sub-words of its rows."""
        self._seen += subwords
        self.subwords += subwords
        self._sums["norm"] = self._sums["norm"] + norm if "norm" in self._sums else norm
        self._counts["steps"] += 1

    def entry(self, step: int, rate: float, accelerator: Any) -> dict[str, Any]:
        """The means since the last entry; the only place where the device is waited for."""
        names = list(self._sums)
        values = self._torch.stack([self._torch.as_tensor(self._sums[n], device=self._device).float() for n in names])
        norm = float(values[names.index("norm")])
        values = accelerator.reduce(values, reduction="sum")  # losses are shares of the step's
        found = dict(zip(names, (values / self._counts["steps"]).tolist(), strict=True))
        now = time.perf_counter()
        out = {
            "step": step,
            "tokens": self.subwords,
            "seconds": round(self.seconds, 3),
            "lr": rate,
            "loss": found["loss"],
            "parts": {name: value for name, value in found.items() if name not in ("loss", "norm")},
            "grad_norm": norm / self._counts["steps"],
            "tokens_per_second": round(self._seen / max(now - self._last, 1e-9)),
        }
        self._last = now
        self._clear()
        return out


class _Log:
    """log.jsonl, without the entries after the step that a run goes on from; TensorBoard, where a folder is given.

    last: the entry of that step.
    """

    def __init__(self, run: Path, step: int, tensorboard: Path | None):
        path = run / LOG
        kept = [line for line in _lines(path) if json.loads(line)["step"] <= step]
        with disk(path):
            path.write_text("".join(line + "\n" for line in kept), "utf-8")
            self._file = path.open("a", encoding="utf-8")
        self._path = path
        self.last: dict[str, Any] = json.loads(kept[-1]) if kept else {}
        self._board = None
        if tensorboard is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(tensorboard))

    def write(self, entry: dict[str, Any]) -> None:
        with disk(self._path):
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()
        if self._board is not None:
            flat = {"loss": entry["loss"], "lr": entry["lr"], "tokens_per_second": entry["tokens_per_second"]}
            for name, value in {**flat, **{f"loss/{k}": v for k, v in entry["parts"].items()}}.items():
                self._board.add_scalar(name, value, entry["step"])

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()


def _lines(path: Path) -> list[str]:
    """Whole lines of a log that may have been cut off."""
    if not path.exists():
        return []
    out = []
    for line in path.read_text("utf-8").splitlines():
        try:
            json.loads(line)
        except ValueError:
            break
        out.append(line)
    return out


def _not_finite(step: int, entry: dict[str, Any], run: Path) -> DataError:
    good = checkpoint.newest(run, lambda message: None)
    kept = f"the checkpoint of step {good.step:,} is the last good one" if good else "there is no checkpoint yet"
    return DataError(
        f"the loss or a weight is no number any more by step {step:,} (loss {entry['loss']}, gradient "
        f"{entry['grad_norm']}); "
        f"{kept}",
        where=str(run),
        fix="lower --learning-rate, or raise --warmup",
        id="not-finite",
    )
