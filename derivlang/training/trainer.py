"""The training of every objective: read a step, accumulate gradients of micro-batches, update, log, save.

    loader ──Step──▶ on the device ──LossModule──▶ loss ──backward──▶ clip ──▶ AdamW

Each part of a loss is divided by its number in the whole step, so gradients add up. Processes average gradients, so the
loss is multiplied by their number. Only logging and saving synchronise the device. `accelerate` has the processes, the
precision and the experiment trackers.

A checkpoint is written at the last step and, as asked, every `save_every` steps; else at the first log entry that comes
ten minutes after the checkpoint before. A run of 0 steps has one of the untrained model.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from derivlang.core.errors import DataError
from derivlang.core.keys import text_key
from derivlang.core.plugins import is_own, plug_in_errors
from derivlang.formats.progress import steps_done
from derivlang.training import checkpoint
from derivlang.training.batch import OF, SOME, Step
from derivlang.training.checkpoint import Checkpoint
from derivlang.training.devices import processes, within_memory, without_accelerators
from derivlang.training.doses import percentages, tokens_of
from derivlang.training.encoder import Encoder
from derivlang.training.kernels import use_kernels
from derivlang.training.loader import Loader
from derivlang.training.objectives.base import Context, LossPart, Objective, Share, check_parts
from derivlang.training.record import record_of
from derivlang.training.settings import SessionSettings, TrainingSettings

SAVE_SECONDS = 600.0  # between checkpoints to resume from
_OF_NOTHING = "; a mean over nothing is NaN, as of a language in a micro-batch that has only rows of the other"


@within_memory()
def train(
    run: Path,
    settings: TrainingSettings,
    lm: Any,
    loader: Loader,
    *,
    fingerprint: str,
    last: Checkpoint | None = None,
    options: SessionSettings = SessionSettings(),
) -> dict[str, Any]:
    """Train to the last step, save a checkpoint there, and return the last log entry with "subwords" and "seconds".

    It has the "counts" of the whole run, too (doses.py).

    loader: of the whole step. last: the checkpoint to resume, whose model is `lm`. Raise DataError if the loss or a
    weight became NaN or infinite; the last good checkpoint stays. Raise StoreError if the disk is full, UsageError if
    the device's memory is full.
    """
    from accelerate.utils import broadcast_object_list

    with _tracking():
        trackers = trackers_of(options.tracker, run)
    trainer = Trainer(settings, lm, loader, last, trackers, compile=bool(options.compile))
    accelerator, progress = trainer.accelerator, Progress(last, masks=not loader.objective.causal)
    main, step, n_steps = accelerator.is_main_process, 0 if last is None else last.step, settings.steps or 0
    with _tracking():
        accelerator.init_trackers(run.resolve().name, record_of(settings))
    if main:
        checkpoint.write_log(run, progress.log)
        checkpoint.remove_old(run, options.keep, step)  # a killed process may have left some that it was removing
    saved = monotonic()
    steps_done(step)

    def save() -> None:
        accelerator.wait_for_everyone()
        if main:
            state = {"step": step, **progress.state(), "fingerprint": fingerprint}
            checkpoint.save(run, lm, trainer.optimizer, trainer.net.state, state, keep=options.keep)
        accelerator.wait_for_everyone()

    try:
        if last is None and not n_steps:
            save()
        for micros in trainer.loader.on_device(step, n_steps, accelerator.device):
            rate = settings.learning_rate_at(step)
            trainer.update(micros, step, rate, progress)
            step += 1
            steps_done(1)  # sent to the device, which may be some steps behind: nothing waits for it here
            logs, saves = step % options.log_every == 0, step == n_steps
            if options.save_every is not None:
                saves |= step % options.save_every == 0
            elif logs:  # only there: the log does not depend on the time, and processes wait for each other there
                saves |= broadcast_object_list([monotonic() - saved >= SAVE_SECONDS])[0]
            if logs or saves:
                entry = progress.entry(step, rate, accelerator)
                if not math.isfinite(entry["loss"]) or not math.isfinite(entry["grad_norm"]):
                    raise _not_finite(entry, run, loader.objective)
                progress.log.append(entry)
                if main:
                    checkpoint.add_to_log(run, entry)
                with _tracking():
                    accelerator.log(figures_of(entry), step)
                options.logged(step, entry)
            if saves:
                # The loss of a step does not show weights that became NaN in its own update.
                if not all(bool(torch.isfinite(p).all()) for p in lm.parameters()):
                    raise _not_finite(entry, run, loader.objective)
                save()
                saved = monotonic()
    finally:
        accelerator.end_training()
    state = progress.state()
    return {**(state.pop("log") or [{}])[-1], **state}


class Trainer:
    """What an update of the weights needs, on one of the processes: in the state of the checkpoint `last`.

    loader: of the whole step. trackers: of `accelerate`.
    """

    def __init__(
        self,
        settings: TrainingSettings,
        lm: Any,
        loader: Loader,
        last: Checkpoint | None = None,
        trackers: list[Any] | None = None,
        *,
        compile: bool = False,
    ):
        self.settings, self.accelerator = settings, accelerator_of(settings.precision, trackers)
        use_kernels(lm, self.accelerator.device, settings.precision, compile=compile)
        options: Any = {"language_ids": settings.language_ids, "seed": settings.seed, "compile": compile}
        self.net = LossModule(lm, loader.objective, loader.context, **options)
        self._net = self.accelerator.prepare(self.net)  # on the device; computes in the precision; exchanges gradients
        self.optimizer, self._weights = optimizer_of(self.net, settings), list(self.net.parameters())
        if last is not None:
            last.restore(self.optimizer, self.net.state)
        rank, world = self.accelerator.process_index, self.accelerator.num_processes
        self.loader = replace(loader, rank=rank, world=world)

    def update(self, micros: list[Step], step: int, learning_rate: float, progress: Progress) -> None:
        """Update the weights by the gradients of a step, and count it. micros: its micro-batches, on the device."""
        accelerator, net, objective = self.accelerator, self.net, self.loader.objective
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        # Seed dropout by seed, step and process, so that a resumed run equals an uninterrupted one; in 63 bits,
        # since torch takes signed numbers.
        seed = int(text_key(f"{self.settings.seed}|{step}|{self.loader.rank}")) >> 1
        if accelerator.device.type == "cpu":
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)  # of all devices; without one it formats a traceback, which takes 0.2 ms
        for micro in micros:
            # Processes exchange gradients only at the last micro-batch.
            with nullcontext() if micro is micros[-1] else accelerator.no_sync(self._net):
                total, parts = self._net(micro)
                accelerator.backward(total * self.loader.world)
            progress.add(total, parts)
        # Not `accelerator.clip_grad_norm_` and its optimizer, which look for packages in every step.
        progress.step(torch.nn.utils.clip_grad_norm_(self._weights, self.settings.clip), micros[0].counts)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            objective.after_step(net.model, net.state, step)


class LossModule(torch.nn.Module):
    """A module whose forward pass is the loss, so that processes exchange its gradients.

    lm: a language model of `transformers`. seed: of the objective's own layers. compile: whether torch compiles the
    encoder, and the head with its loss.
    """

    def __init__(
        self,
        lm: Any,
        objective: Objective,
        context: Context,
        *,
        language_ids: bool,
        seed: int,
        compile: bool = False,
    ):
        super().__init__()
        self.lm, self.objective = lm.train(), objective
        self.model = Encoder(lm, context.vocabulary.special_ids, language_ids=language_ids, compiled=compile)
        if compile:
            with self.model.without_gradient():  # the first pass sets hooks, which the compiler cannot follow
                one = torch.zeros((1, 2), dtype=torch.int64, device=self.model.device)
                self.model.layers(one, one == 0, 0)
            lm.base_model.compile()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.state = objective.state(self.model, context)

    def forward(self, micro: Step) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Return (the loss of a micro-batch, its parts without their weights and without gradient).

        A part that has no term in the step, e.g. of a language without rows, is not among the parts.
        A share is among the parts as its two counts, with the endings SOME and OF.
        """
        objective = self.objective
        with plug_in_errors("objective", objective, objective.loss), within_memory():
            terms = objective.loss(self.model, micro, self.state)
        check_parts(objective, terms, training=torch.is_grad_enabled())
        parts = {name: part for name, part in terms.items() if isinstance(part, LossPart)}
        means = {name: part.total / max(part.by, 1) for name, part in parts.items()}
        loss: Any = sum(means[name] if part.weight == 1 else part.weight * means[name] for name, part in parts.items())
        seen = {name: mean.detach() for name, mean in means.items() if parts[name].by}
        for name, share in terms.items():
            if isinstance(share, Share):
                seen |= {name + SOME: share.some.detach().float(), name + OF: share.of.detach().float()}
        return loss, seen


def optimizer_of(net: LossModule, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Return AdamW over the trainable weights, without weight decay for norms and biases."""
    learnt = [p for p in net.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in learnt if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in learnt if p.ndim <= 1], "weight_decay": 0.0},
    ]
    betas = settings.beta1, settings.beta2
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, fused=True)


def accelerator_of(precision: str, trackers: list[Any] | None = None) -> Any:
    """Return an `Accelerator` in fp32 or bf16."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    processes()
    AcceleratorState._reset_state()  # otherwise every run has the precision of the first one in this process
    mixed = "bf16" if precision == "bf16" else "no"
    return Accelerator(cpu=without_accelerators(), mixed_precision=mixed, log_with=trackers or None)


class Progress:
    """What has been trained on so far, and the losses since the last log entry, which stay on the device.

    last: the checkpoint that is resumed. masks: whether any sub-words are masked. log: the entries of the log. counts:
    of the whole run, up to the last entry (doses.py).
    """

    def __init__(self, last: Checkpoint | None, *, masks: bool = True):
        self.masks, self.log = masks, [] if last is None else list(last.log)
        self.subwords, self._before = (0, 0.0) if last is None else (last.subwords, last.seconds)
        self.counts: Counter[str] = Counter({} if last is None else last.counts)
        self._began = self._last = time.perf_counter()
        self._clear()

    def _clear(self) -> None:
        self._sums: dict[str, Any] = {}
        self._steps: Counter[str] = Counter()  # of each part: streams may be absent from some steps
        self._window: Counter[str] = Counter()
        self._here: set[str] = set()

    def state(self) -> dict[str, Any]:
        """Return the sub-words, seconds and counts of the run so far, earlier sessions included, and its log."""
        seconds = round(self._before + time.perf_counter() - self._began, 3)
        return {"subwords": self.subwords, "seconds": seconds, "counts": dict(self.counts), "log": self.log}

    def add(self, total: torch.Tensor, parts: dict[str, torch.Tensor]) -> None:
        """Add the losses of a micro-batch."""
        for name, value in {"loss": total.detach(), **parts}.items():
            self._sums[name] = self._sums[name] + value.float() if name in self._sums else value.float()
            self._here.add(name)

    def step(self, norm: Any, counts: Mapping[str, int]) -> None:
        """Add the gradient norm and the counts of a step."""
        self._window.update(counts)
        self.subwords += sum(tokens_of(counts).values())
        self._sums["norm"] = self._sums["norm"] + norm if "norm" in self._sums else norm
        self._steps.update({*self._here, "norm"})
        self._here.clear()

    def entry(self, step: int, rate: float, accelerator: Any) -> dict[str, Any]:
        """Return the log entry with the means since the last entry. Only this method synchronises the device."""
        names, n_steps = list(self._sums), self._steps["norm"]
        values = torch.stack([value.float() for value in self._sums.values()])
        norm = float(values[names.index("norm")])
        sums = accelerator.reduce(values, reduction="sum").cpu()  # each process has its part of the step's loss
        means = dict(zip(names, (sums / torch.tensor([float(self._steps[n]) for n in names])).tolist(), strict=True))
        shares = {name for name in names if name.endswith((SOME, OF))}
        self._window.update(
            {name: round(total) for name, total in zip(names, sums.tolist(), strict=True) if name in shares}
        )
        self.counts.update(self._window)
        now, seen = time.perf_counter(), tokens_of(self._window)
        entry = {
            "step": step,
            "tokens": self.subwords,
            "seconds": self.state()["seconds"],
            "lr": rate,
            "loss": means["loss"],
            "parts": {name: mean for name, mean in means.items() if name not in {"loss", "norm", *shares}},
            "grad_norm": norm / n_steps,
            "tokens_per_second": round(sum(seen.values()) / max(now - self._last, 1e-9)),
            "tokens_per_step": {name: round(n / n_steps, 1) for name, n in seen.items()},
            **percentages(self._window, masks=self.masks),
        }
        self._last = now
        self._clear()
        return entry


def trackers_of(asked: Sequence[str], run: Path) -> list[Any]:
    """Return the trackers of `accelerate` of a run. asked: NAME=PROJECT each. Some write files, into RUN/PROJECT."""
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS as CLASSES

    trackers = []
    for name, _, project in (one.partition("=") for one in asked):
        folders = (run,) if CLASSES[name].requires_logging_directory else ()
        trackers.append(CLASSES[name](project, *folders))
    return trackers


@contextmanager
def _tracking() -> Iterator[None]:
    """Raise DataError if a tracker fails, as Weights & Biases does without a key."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 (packages raise many kinds)
        raise DataError(
            f"an experiment tracker failed: {' '.join(str(error).split())[:200]}",
            where="--tracker",
            fix="leave it out, or see the page of the tracker: wandb writes to a folder with WANDB_MODE=offline",
            id="tracker",
        ) from None


def figures_of(entry: dict[str, Any]) -> dict[str, float]:
    """Return the figures of a log entry that trackers show: loss, lr, tokens_per_second and loss/PART."""
    figures = {name: entry[name] for name in ("loss", "lr", "tokens_per_second")}
    return figures | {f"loss/{name}": value for name, value in entry["parts"].items()}


def _not_finite(entry: dict[str, Any], run: Path, objective: Objective) -> DataError:
    good = checkpoint.newest(run, lambda message: None)
    kept = f"the checkpoint of step {good.step:,} is the last good one" if good else "there is no checkpoint yet"
    return DataError(
        f"the loss or a weight became NaN or infinite by step {entry['step']:,} (loss {entry['loss']}, gradient "
        f"{entry['grad_norm']}); "
        f"{kept}",
        where=str(run),
        fix="lower --learning-rate, or raise --warmup" + ("" if is_own(objective) else _OF_NOTHING),
        id="not-finite",
    )
