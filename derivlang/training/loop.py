"""The training loop of every objective: read a step, accumulate gradients of micro-batches, update, log, save.

    loader ──MicroBatch──▶ on the device ──objective──▶ loss ──backward──▶ clip ──▶ AdamW

Each part of a loss is divided by its number in the whole step, so gradients add up. Processes average gradients, so the
loss is multiplied by their number. Only logging and saving synchronise the device.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from derivlang.core.errors import DataError, StoreError
from derivlang.core.keys import text_key
from derivlang.core.parse_errors import parse_errors
from derivlang.formats.progress import steps_done
from derivlang.store.disk import disk
from derivlang.training import checkpoint
from derivlang.training.batch import StepCounts
from derivlang.training.checkpoint import Checkpoint
from derivlang.training.devices import within_memory
from derivlang.training.loader import Loader
from derivlang.training.loss_module import LossModule, optimizer_of
from derivlang.training.objectives.base import Objective
from derivlang.training.processes import accelerator as make_accelerator
from derivlang.training.settings import LogSettings, TrainingSettings

LOG = "log.jsonl"


@within_memory()
def train(
    run: Path,
    settings: TrainingSettings,
    lm: Any,
    objective: Objective,
    loader_of: Callable[[int, int], Loader],
    *,
    fingerprint: str,
    begin: Checkpoint | None = None,
    watch: LogSettings = LogSettings(),
) -> dict[str, Any]:
    """Train to the last step, save a checkpoint there, and return the last log entry with "subwords" and "seconds".

    loader_of: the loader of (rank, world). begin: the checkpoint to resume, whose model is `lm`. Raise DataError if the
    loss or a weight became NaN or infinite; the last good checkpoint stays. Raise StoreError if the disk is full,
    UsageError if the device's memory is full.
    """
    accelerator = make_accelerator(settings.precision)
    device, main = accelerator.device, accelerator.is_main_process
    loader = loader_of(accelerator.process_index, accelerator.num_processes)
    net: Any = LossModule(lm, objective, loader.context, language_ids=settings.language_ids, seed=settings.seed)
    if watch.compile:
        lm.base_model.compile()
    optimizer = optimizer_of(net, settings)
    if begin is not None:
        saved = begin.load_training()
        with parse_errors(str(begin.folder), "checkpoint of this model", error=StoreError, id="checkpoint"):
            optimizer.load_state_dict(saved["optimizer"])
            if net.state is not None:
                net.state.load_state_dict(saved["objective"])
    model, state = net.model, net.state
    net, optimizer = accelerator.prepare(net, optimizer)
    step = begin.step if begin else 0
    meter = _Meter(device, begin.subwords if begin else 0, begin.seconds if begin else 0.0, masks=not objective.causal)
    log = _Log(run, step, watch.tensorboard) if main else None
    entry: dict[str, Any] = log.last if log is not None else {}

    def save() -> None:
        # The loss of a step does not show weights that became NaN in its own update.
        if not all(bool(torch.isfinite(p).all()) for p in lm.parameters()):
            raise _not_finite(step, entry, run)
        accelerator.wait_for_everyone()
        if main:
            checkpoint.save(
                run, lm, optimizer, state,
                step=step, subwords=meter.subwords, seconds=meter.seconds, fingerprint=fingerprint, keep=watch.keep,
            )  # fmt: skip
        accelerator.wait_for_everyone()

    save_every = watch.save_every or max(1, settings.steps // 10)
    steps = loader.steps(step, settings.steps) if device.type == "cpu" else loader.ahead(step, settings.steps)
    steps_done(step)
    try:
        for micros in steps:
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate_at(step)
            # Seed dropout by seed, step and process, so that a resumed run equals an uninterrupted one; in 63 bits,
            # since torch takes signed numbers.
            torch.manual_seed(int(text_key(f"{settings.seed}|{step}|{accelerator.process_index}")) >> 1)
            with torch.no_grad():
                objective.before_step(model, state, step)
            for i, micro in enumerate(micros):
                last = i + 1 == len(micros)  # processes exchange gradients only at the last micro-batch
                with nullcontext() if last else accelerator.no_sync(net):
                    with accelerator.autocast():
                        total, parts = net(micro.to(device))
                    accelerator.backward(total * accelerator.num_processes)
                meter.add(total, parts)
            meter.step(accelerator.clip_grad_norm_(net.parameters(), settings.clip), micros[0].counts)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            with torch.no_grad():
                objective.after_step(model, state, step)
            step += 1
            steps_done(1)  # sent to the device, which may be some steps behind: nothing waits for it here
            at_end = step == settings.steps
            if step % watch.log_every == 0 or step % save_every == 0 or at_end:
                entry = meter.entry(step, settings.learning_rate_at(step - 1), accelerator)
                if not math.isfinite(entry["loss"]) or not math.isfinite(entry["grad_norm"]):
                    raise _not_finite(step, entry, run)
                if log is not None:
                    log.write(entry)
                watch.logged(step, entry)
            if step % save_every == 0 or at_end:
                save()
    finally:
        if log is not None:
            log.close()
        accelerator.end_training()
    return {**entry, "subwords": meter.subwords, "seconds": round(meter.seconds, 3), "processes": loader.world}


class _Meter:
    """Accumulate losses on the device between log entries; count sub-words and time. masks: whether any are masked."""

    def __init__(self, device: torch.device, subwords: int, seconds: float, *, masks: bool = True):
        self._device, self._masks = device, masks
        self.subwords, self._before = subwords, seconds
        self._began = self._last = time.perf_counter()
        self._clear()

    def _clear(self) -> None:
        self._sums: dict[str, Any] = {}
        self._steps: Counter[str] = Counter()  # of each part: streams may be absent from some steps
        self._seen: Counter[str] = Counter()
        self._masked = self._translated = 0
        self._here: set[str] = set()

    @property
    def seconds(self) -> float:
        """The seconds of training so far, with those of earlier sessions."""
        return self._before + time.perf_counter() - self._began

    def add(self, total: torch.Tensor, parts: dict[str, torch.Tensor]) -> None:
        """Add the losses of a micro-batch."""
        for name, value in {"loss": total.detach(), **parts}.items():
            self._sums[name] = self._sums[name] + value.float() if name in self._sums else value.float()
            self._here.add(name)

    def step(self, norm: Any, counts: StepCounts) -> None:
        """Add the gradient norm and the counts of a step."""
        self._seen.update(counts.subwords)
        self.subwords += sum(counts.subwords.values())
        self._masked += counts.masked
        self._translated += counts.translated
        self._sums["norm"] = self._sums["norm"] + norm if "norm" in self._sums else norm
        self._steps.update({*self._here, "norm"})
        self._here.clear()

    def entry(self, step: int, rate: float, accelerator: Any) -> dict[str, Any]:
        """Return the log entry with the means since the last entry. Only this method synchronises the device."""
        names = list(self._sums)
        values = torch.stack([torch.as_tensor(self._sums[n], device=self._device).float() for n in names])
        norm = float(values[names.index("norm")])
        values = accelerator.reduce(values, reduction="sum")  # each process has its part of the step's loss
        steps = torch.tensor([self._steps[n] for n in names], dtype=values.dtype)
        found = dict(zip(names, (values.cpu() / steps).tolist(), strict=True))
        now = time.perf_counter()
        seen = sum(self._seen.values())
        out = {
            "step": step,
            "tokens": self.subwords,
            "seconds": round(self.seconds, 3),
            "lr": rate,
            "loss": found["loss"],
            "parts": {name: value for name, value in found.items() if name not in ("loss", "norm")},
            "grad_norm": norm / self._steps["norm"],
            "tokens_per_second": round(seen / max(now - self._last, 1e-9)),
            "tokens_per_step": {name: round(n / self._steps["norm"], 1) for name, n in self._seen.items()},
        }
        if self._masks:
            out["masked_percent"] = round(100 * self._masked / max(seen, 1), 2)
        if self._translated:
            out["translated_percent"] = round(100 * self._translated / self._masked, 2)
        self._last = now
        self._clear()
        return out


class _Log:
    """The log of a run in log.jsonl and, if a folder is given, in TensorBoard.

    Entries after the step at which a run resumes are removed. last: the last remaining entry.
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
    """Return the valid lines of a log up to the first damaged one, as the last may be cut off."""
    if not path.exists():
        return []
    out = []
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            with parse_errors(str(path), "log"):
                _ = json.loads(line)["step"] <= 0
        except DataError:
            break
        out.append(line)
    return out


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
