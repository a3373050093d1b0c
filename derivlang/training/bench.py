"""The training speed of a model, compared with the speed of matrix products: `derivlang bench train`.

    tokens per second * operations per token / (operations per second of a large matrix product) = matrix_rate_fraction

The benchmark uses the loader, objective, network and optimiser of a run, on made-up sub-words. Operations a token of a
training step are 6 for each weight of the encoder's matrices, 12 * layers * H * d for attention, and 6 for each weight
of the head times the share of masked positions, or of all if the model is causal. As usual, the backward pass counts
twice as much as the forward pass.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from derivlang.core.arrays import offsets_of
from derivlang.core.errors import UsageError
from derivlang.core.keys import mix
from derivlang.training.config import ModelConfig
from derivlang.training.devices import device_of, within_memory
from derivlang.training.kernels import use_kernels
from derivlang.training.languages import SpecialIds
from derivlang.training.loader import Loader, OpenStream
from derivlang.training.masking import LanguageIds
from derivlang.training.memory import PROBE, SMALLER, available, rows_that_fit, too_large
from derivlang.training.model import build_model
from derivlang.training.objectives.base import Context
from derivlang.training.objectives.registry import read_objective
from derivlang.training.settings import TrainingSettings
from derivlang.training.streams.packed import Packed, PackedRows
from derivlang.training.trainer import LossModule, optimizer_of
from derivlang.training.twin_data import TwinData

_SPECIALS = 12


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of a benchmark.

    seconds: minimum duration of the measurement. warm_up: number of steps before it, fewer if they take as long.
    shrink: use fewer rows per step if the settings' do not fit into a CPU's memory, instead of raising an error.
    """

    seconds: float = 10.0
    warm_up: int = 5
    compile: bool = False
    shrink: bool = False


@within_memory()
def bench(settings: TrainingSettings, model_config: ModelConfig, plan: Plan = Plan()) -> dict[str, Any]:
    """Train on made-up rows for some seconds. Raise UsageError `memory` if the memory is too small.

    Return {"tokens_per_second", "matrix_rate_fraction", "matrix_tflops", "gflop_per_token", "parameters", "steps",
    "loader_tokens_per_second", "peak_memory_mb", "device", "precision", "threads", "batch_size"}. Tokens are positions
    of the rows.
    """
    if settings.vocab_size <= _SPECIALS:
        raise UsageError(
            f"the {_SPECIALS} special tokens leave no sub-word of {settings.vocab_size}",
            where="--vocab-size",
            fix=f"give {_SPECIALS + 1} or more",
            id="vocab-size",
        )
    device = device_of(None)
    bf16 = settings.precision == "bf16"
    data = made_up(settings.vocab_size, settings.seq_len, rows=max(64, 4 * settings.batch_size))
    context = Context(vocabulary_of(settings.vocab_size, data.special_ids), settings.mask)
    objective = read_objective("clm" if model_config.causal else "mlm")

    def loader_of(rows: int) -> Loader:
        return Loader((OpenStream(Packed(), PackedRows(data), rows, 0),), objective, context, settings.seed)

    joint = 2 * settings.vocab_size - _SPECIALS
    lm = build_model(
        model_config,
        joint,
        settings.seq_len,
        data.special_ids,
        tie=settings.tie,
        language_ids=settings.language_ids,
        seed=settings.seed,
    ).to(device)
    use_kernels(lm, device, settings.precision, compile=plan.compile)
    net = LossModule(lm, objective, context, language_ids=settings.language_ids, seed=1, compile=plan.compile).to(
        device
    )
    n_rows = settings.batch_size
    if device.type == "cpu":
        n_rows = _rows(net, loader_of, settings, shrink=plan.shrink)
    loader = loader_of(n_rows)
    optimizer = optimizer_of(net, settings)
    if device.type == "cuda":  # torch raises if this is called before anything is on the device
        torch.cuda.reset_peak_memory_stats()

    done, seconds = _train(net, optimizer, loader, settings, plan, device)
    # Read the peak before `matrix_rate`, whose matrices may be larger than a small model.
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else _resident()
    tokens = done * n_rows * settings.seq_len / seconds
    flop = flop_per_token(lm, settings.seq_len, 1.0 if model_config.causal else settings.mask)
    rate = matrix_rate(device, bf16=bf16)
    began = time.perf_counter()
    made = sum(1 for _ in zip(range(20), loader.steps(0, 20), strict=False))
    loaded = made * n_rows * settings.seq_len / (time.perf_counter() - began)
    return {
        "tokens_per_second": round(tokens),
        "matrix_rate_fraction": float(f"{tokens * flop / rate:.3g}"),
        "matrix_tflops": round(rate / 1e12, 3),
        "gflop_per_token": round(flop / 1e9, 6),
        "parameters": sum(p.numel() for p in lm.parameters()),
        "steps": done,
        "loader_tokens_per_second": round(loaded),
        "peak_memory_mb": round(peak / 1e6),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "precision": settings.precision,
        "threads": torch.get_num_threads(),
        "batch_size": n_rows,
    }


def _rows(net: LossModule, loader_of: Callable[[int], Loader], settings: TrainingSettings, *, shrink: bool) -> int:
    """Return the number of rows per step that fit into the CPU's memory: the settings', or fewer (a power of two)."""
    free = available()
    most = rows_that_fit(net, loader_of, free)
    if settings.batch_size <= most:
        return settings.batch_size
    if shrink and most >= PROBE:
        return 1 << (most.bit_length() - 1)
    fix = f"give --batch-size {most} or less" if most >= PROBE else SMALLER
    raise too_large(settings.batch_size, settings.seq_len, free, fix)


def _train(
    net: LossModule,
    optimizer: torch.optim.Optimizer,
    loader: Loader,
    settings: TrainingSettings,
    plan: Plan,
    device: torch.device,
) -> tuple[int, float]:
    """Train for the seconds of the plan, and return (number of steps, seconds), both without the warm-up."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    every = 5 if device.type == "cuda" else 1  # steps between looks at the clock, which wait for a GPU
    steps = before = 0
    started = began = time.perf_counter()
    for micros in loader.on_device(0, 1 << 40, device):
        if not before and (steps == plan.warm_up or (steps and time.perf_counter() - started >= plan.seconds)):
            wait()
            began, before = time.perf_counter(), steps
        with torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "bf16"):
            loss, _ = net(micros[0])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), settings.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        steps += 1
        if before and steps % every == 0:
            wait()
            if time.perf_counter() - began >= plan.seconds:
                break
    wait()
    seconds = time.perf_counter() - began
    return steps - before, seconds


def made_up(vocab_size: int, seq_len: int, rows: int) -> TwinData:
    """Return data of full rows: two sentences of uniformly drawn sub-words each, reversed in the derived language."""
    size = (seq_len - 3) // 2
    sizes = np.tile([size, seq_len - 3 - size], rows)
    offsets = offsets_of(sizes)
    n = int(offsets[-1])
    draws = mix(np.arange(n, dtype=np.uint64) + np.uint64(1 << 32))
    ids = (_SPECIALS + draws % np.uint64(vocab_size - _SPECIALS)).astype(np.int32)
    place = np.arange(n) - np.repeat(offsets[:-1], sizes)
    return TwinData(
        ids=ids,
        order=(np.repeat(sizes, sizes) - 1 - place).astype(np.uint16),
        begins=np.ones(n, np.uint8),
        sentences=offsets,
        keys=mix(np.arange(len(sizes), dtype=np.uint64)),
        pieces=offsets,
        instances=np.arange(0, len(sizes) + 1, 2),
        kept=None,
        table=np.arange(vocab_size, dtype=np.int32)
        + np.where(np.arange(vocab_size) >= _SPECIALS, vocab_size - _SPECIALS, 0).astype(np.int32),
        special_ids=SpecialIds(0, 1, 2, 4),
        seq_len=seq_len,
        recipe={},
        stream=offsets_of(sizes + 2),
    )


def vocabulary_of(vocab_size: int, special_ids: SpecialIds) -> LanguageIds:
    """Return the vocabulary of made-up data."""
    own = np.arange(_SPECIALS, vocab_size, dtype=np.int32)
    return LanguageIds((own, own + vocab_size - _SPECIALS), special_ids, 2 * vocab_size - _SPECIALS)


def flop_per_token(lm: Any, seq_len: int, mask: float) -> float:
    """Return the number of operations of a training step for each position of a row.

    mask: share of the positions to predict.
    """
    from transformers.pytorch_utils import Conv1D  # GPT-2's linear layers

    config = lm.config
    encoder, everywhere = (
        sum(m.weight.numel() for m in part.modules() if isinstance(m, torch.nn.Linear | Conv1D))
        for part in (lm.base_model, lm)
    )
    attention = 12 * config.num_hidden_layers * seq_len * config.hidden_size
    return float(6.0 * encoder + attention + 6.0 * mask * (everywhere - encoder))


def matrix_rate(device: Any, *, bf16: bool) -> float:
    """Return the operations per second of a square matrix product: the best within one second."""
    n = 8192 if device.type == "cuda" else 1024
    dtype = torch.bfloat16 if bf16 else torch.float32
    a, b = torch.randn(n, n, device=device, dtype=dtype), torch.randn(n, n, device=device, dtype=dtype)
    best, began = 0.0, time.perf_counter()
    for _ in range(3):
        a @ b
    while time.perf_counter() - began < 1.0 or best == 0.0:
        if device.type == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(5):
            a @ b
        if device.type == "cuda":
            torch.cuda.synchronize()
        best = max(best, 5 * 2 * n**3 / (time.perf_counter() - start))
    return best


def _resident() -> int:
    """Return the peak memory of the process in bytes, 0 where the system does not say (Windows)."""
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
