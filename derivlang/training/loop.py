"""The training loop of every objective: read a step, accumulate gradients of micro-batches, update, log, save.

    loader ──Step──▶ on the device ──objective──▶ loss ──backward──▶ clip ──▶ AdamW

Each part of a loss is divided by its number in the whole step, so gradients add up. Processes average gradients, so the
loss is multiplied by their number. Only logging and saving synchronise the device.

A checkpoint is written at the last step and, as asked, every `save_every` steps; else at the first log entry that comes
ten minutes after the checkpoint before. A run of 0 steps has one of the untrained model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from derivlang.core.errors import DataError, StoreError
from derivlang.core.keys import text_key
from derivlang.core.parse_errors import parse_errors
from derivlang.formats.progress import steps_done
from derivlang.training import checkpoint
from derivlang.training.batch import Step
from derivlang.training.boards import boards_of
from derivlang.training.checkpoint import Checkpoint
from derivlang.training.devices import within_memory
from derivlang.training.encoder import Encoder
from derivlang.training.kernels import use_kernels
from derivlang.training.loader import Loader
from derivlang.training.log import Meter, TrainingLog
from derivlang.training.loss_module import LossModule
from derivlang.training.processes import Exchange, agreed
from derivlang.training.processes import accelerator as make_accelerator
from derivlang.training.settings import LogSettings, Resolved, TrainingSettings

SAVE_SECONDS = 600.0  # between checkpoints to resume from


@within_memory()
def train(
    run: Path,
    resolved: Resolved,
    lm: Any,
    loader: Loader,
    *,
    fingerprint: str,
    last: Checkpoint | None = None,
    log_settings: LogSettings = LogSettings(),
) -> dict[str, Any]:
    """Train to the last step, save a checkpoint there, and return the last log entry with "subwords" and "seconds".

    It has the "counts" of the whole run, too (doses.py).

    loader: of the whole step. last: the checkpoint to resume, whose model is `lm`. Raise DataError if the loss or a
    weight became NaN or infinite; the last good checkpoint stays. Raise StoreError if the disk is full, UsageError if
    the device's memory is full.
    """
    # Model, loss and optimiser, on the devices of this process
    trainer = Trainer.of(resolved.settings, lm, loader, last, compile=log_settings.compile)
    main = trainer.accelerator.is_main_process

    # Log
    step, n_steps = last.step if last else 0, resolved.steps
    earlier = (last.subwords, last.seconds, last.counts) if last else (0, 0.0, {})
    meter = Meter(trainer.device, *earlier, masks=not loader.objective.causal)
    boards = boards_of(log_settings, run, step, resolved.record()) if main else []
    log = TrainingLog(run, step, boards, None if last is None else last.log) if main else None
    entry: dict[str, Any] = log.last if log is not None else {}

    if main and last is not None:  # a killed process may have left some that it was removing
        checkpoint.remove_old(run, last.folder, log_settings.keep)
    saved = monotonic()
    steps_done(step)

    def save() -> None:
        trainer.accelerator.wait_for_everyone()
        if main:
            checkpoint.save(
                run, lm, trainer.optimizer, trainer.state,
                step=step, subwords=meter.subwords, seconds=meter.seconds, counts=meter.counts,
                fingerprint=fingerprint, keep=log_settings.keep,
            )  # fmt: skip
        trainer.accelerator.wait_for_everyone()

    try:
        if last is None and not n_steps:
            save()
        for micros in trainer.loader.on_device(step, n_steps, trainer.device):
            trainer.update(micros, step, resolved.learning_rate_at(step), meter)
            step += 1
            steps_done(1)  # sent to the device, which may be some steps behind: nothing waits for it here
            logs, saves = step % log_settings.log_every == 0, step == n_steps
            if log_settings.save_every is not None:
                saves |= step % log_settings.save_every == 0
            elif logs:  # only there: the log does not depend on the time, and processes wait for each other there
                saves |= agreed(monotonic() - saved >= SAVE_SECONDS)
            if logs or saves:
                entry = meter.entry(step, resolved.learning_rate_at(step - 1), trainer.accelerator)
                if not math.isfinite(entry["loss"]) or not math.isfinite(entry["grad_norm"]):
                    raise _not_finite(step, entry, run)
                if log is not None:
                    log.write(entry)
                log_settings.logged(step, entry)
            if saves:
                # The loss of a step does not show weights that became NaN in its own update.
                if not all(bool(torch.isfinite(p).all()) for p in lm.parameters()):
                    raise _not_finite(step, entry, run)
                save()
                saved = monotonic()
    finally:
        if log is not None:
            log.close()
        trainer.accelerator.end_training()
    done = {"subwords": meter.subwords, "seconds": round(meter.seconds, 3), "counts": meter.counts}
    return {**entry, **done, "processes": trainer.loader.world}


@dataclass(frozen=True, slots=True, eq=False)
class Trainer:
    """What an update of the weights needs, on one of the processes.

    exchange: with the net, whose forward pass is the loss, and the optimizer. model, state: the encoder and the layers
    of the objective. loader: of this process.
    """

    settings: TrainingSettings
    accelerator: Any
    device: torch.device
    loader: Loader
    exchange: Exchange
    model: Encoder
    state: torch.nn.Module | None

    @property
    def optimizer(self) -> Any:
        return self.exchange.optimizer

    @classmethod
    def of(
        cls, settings: TrainingSettings, lm: Any, loader: Loader, last: Checkpoint | None, *, compile: bool
    ) -> Trainer:
        """Return the trainer of a model, in the state of the checkpoint `last`. loader: of the whole step."""
        accelerator = make_accelerator(settings.precision)
        device, ids = accelerator.device, settings.language_ids
        use_kernels(lm, device, settings.precision, compile=compile)
        net = LossModule(lm, loader.objective, loader.context, language_ids=ids, seed=settings.seed, compile=compile)
        optimizer = optimizer_of(net, settings)
        if last is not None:
            saved = last.load_training()
            with parse_errors(str(last.folder), "checkpoint of this model", error=StoreError, id="checkpoint"):
                optimizer.load_state_dict(saved["optimizer"])
                if net.state is not None:
                    checkpoint.load_state(net.state, saved["objective"])
        exchange = Exchange(accelerator, net, optimizer)
        own = loader.of_process(accelerator.process_index, accelerator.num_processes)
        return cls(settings, accelerator, device, own, exchange, net.model, net.state)

    def _seed(self, seed: int) -> None:
        if self.device.type == "cpu":
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)  # of all devices; without one, it keeps a traceback for later, which takes 0.4 ms

    def update(self, micros: list[Step], step: int, learning_rate: float, meter: Meter) -> None:
        """Update the weights by the gradients of a step, which `meter` counts. micros: its micro-batches, there."""
        exchange, optimizer, objective = self.exchange, self.optimizer, self.loader.objective
        for group in optimizer.param_groups:
            group["lr"] = learning_rate
        # Seed dropout by seed, step and process, so that a resumed run equals an uninterrupted one; in 63 bits,
        # since torch takes signed numbers.
        self._seed(int(text_key(f"{self.settings.seed}|{step}|{self.loader.rank}")) >> 1)
        with torch.no_grad():
            objective.before_step(self.model, self.state, step)
        for i, micro in enumerate(micros):
            with exchange.part_of_step(last=i + 1 == len(micros)):
                with exchange.autocast():
                    total, parts = exchange.net(micro)
                exchange.backward(total)
            meter.add(total, parts)
        meter.step(exchange.clip(self.settings.clip), micros[0].counts)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            objective.after_step(self.model, self.state, step)


def optimizer_of(net: LossModule, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Return AdamW over the trainable weights, without weight decay for norms and biases."""
    learnt = [p for p in net.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in learnt if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in learnt if p.ndim <= 1], "weight_decay": 0.0},
    ]
    betas = settings.beta1, settings.beta2
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, fused=True)


def _not_finite(step: int, entry: dict[str, Any], run: Path) -> DataError:
    good = checkpoint.newest(run, lambda message: None)
    kept = f"the checkpoint of step {good.step:,} is the last good one" if good else "there is no checkpoint yet"
    return DataError(
        f"the loss or a weight became NaN or infinite by step {step:,} (loss {entry['loss']}, gradient "
        f"{entry['grad_norm']}); "
        f"{kept}",
        where=str(run),
        fix="lower --learning-rate, or raise --warmup",
        id="not-finite",
    )
