"""The training speed of a model, compared with the speed of matrix products.

    python tools/bench_train.py --model roberta-8

The steps have the loader, objective, network and optimiser of a run, on made-up sub-words.

    tokens per second * operations per token / (operations per second of a large matrix product) = matrix_rate_fraction

Operations a token of a training step are 6 for each weight of the encoder's matrices, 12 * layers * H * d for
attention, and 6 for each weight of the head times the share of masked positions, or of all if the model is causal. As
usual, the backward pass counts twice as much as the forward pass.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from typing import Any

import numpy as np
import torch

from derivlang.core.arrays import offsets_of, owners
from derivlang.core.keys import mix
from derivlang.training.config import ModelConfig
from derivlang.training.data import Data
from derivlang.training.devices import processes, within_memory
from derivlang.training.languages import SpecialIds
from derivlang.training.loader import Loader, OpenStream
from derivlang.training.masking import LanguageIds
from derivlang.training.memory import check_step
from derivlang.training.model import build_model
from derivlang.training.objectives.base import Context
from derivlang.training.objectives.registry import read_objective
from derivlang.training.plan import settings_of
from derivlang.training.settings import TrainingSettings
from derivlang.training.streams.packed import Packed, PackedRows
from derivlang.training.trainer import Progress, Trainer

_SPECIALS = 12


def bench(settings: TrainingSettings, model_config: ModelConfig, seconds: float, *, compile: bool) -> dict[str, Any]:
    """Train on made-up rows for some seconds. Tokens are positions of the rows, and memory is the peak in bytes."""
    trainer, loader = made_up_run(settings, model_config, compile=compile)
    lm = trainer.net.lm
    device, per_step = lm.device, settings.batch_size * settings.seq_len
    tokens = per_step * steps_per_second(trainer, loader, settings, seconds)
    # Read the peak before `matrix_rate`, whose matrices may be larger than a small model.
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated()
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    flop = flop_per_token(lm, settings.seq_len, 1.0 if model_config.causal else settings.mask)
    rate = matrix_rate(device, bf16=settings.precision == "bf16")
    began = time.perf_counter()
    made = sum(1 for _ in loader.steps(0, 20))
    return {
        "tokens_per_second": tokens,
        "matrix_rate_fraction": tokens * flop / rate,
        "matrix_rate": rate,
        "flop_per_token": flop,
        "parameters": sum(p.numel() for p in lm.parameters()),
        "loader_tokens_per_second": made * per_step / (time.perf_counter() - began),
        "peak_memory": peak,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
    }


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


def made_up_run(settings: TrainingSettings, model_config: ModelConfig, *, compile: bool) -> tuple[Trainer, Loader]:
    """Return (the trainer of a new model, on the device; the loader of made-up rows).

    Raise UsageError `memory` if a step does not fit into a CPU's memory.
    """
    data = made_up(settings.vocab_size, settings.seq_len, rows=max(64, 4 * settings.batch_size))
    context = Context(vocabulary_of(settings.vocab_size, data.special_ids), settings.mask)
    objective = read_objective("clm" if model_config.causal else "mlm")
    rows = OpenStream(Packed(), PackedRows((data, data)), settings.batch_size, 0)
    loader = Loader((rows,), objective, context, settings.seed)
    lm = build_model(
        model_config,
        context.vocabulary.size,
        settings.seq_len,
        data.special_ids,
        tie=settings.tie,
        language_ids=settings.language_ids,
        seed=settings.seed,
    )
    if processes().device.type == "cpu":
        check_step(settings, lm, loader)
    return Trainer(settings, lm, loader, compile=compile), loader


@within_memory()
def steps_per_second(trainer: Trainer, loader: Loader, settings: TrainingSettings, seconds: float) -> float:
    """Train for some seconds after a warm-up, and return the number of steps per second."""
    device, progress = trainer.net.lm.device, Progress(None)
    every = 5 if device.type == "cuda" else 2  # steps between looks at the clock, which wait for a GPU
    began = 0.0
    for step, micros in enumerate(loader.on_device(0, 1 << 40, device)):
        if step % every == 0 and step:
            if device.type == "cuda":
                torch.cuda.synchronize()
            now = time.perf_counter()
            if step == every:  # the end of the warm-up
                began = now
            elif now - began >= seconds:
                break
        trainer.update(micros, step, settings.learning_rate, progress)
    return (step - every) / (now - began)


def made_up(vocab_size: int, seq_len: int, rows: int) -> Data:
    """Return data of full rows: two sentences of uniformly drawn sub-words each, reversed in the derived language."""
    size = (seq_len - 3) // 2
    sizes = np.tile([size, seq_len - 3 - size], rows)
    offsets = offsets_of(sizes)
    n = int(offsets[-1])
    draws = mix(np.arange(n, dtype=np.uint64) + np.uint64(1 << 32))
    ids = (_SPECIALS + draws % np.uint64(vocab_size - _SPECIALS)).astype(np.int32)
    place = np.arange(n) - np.repeat(offsets[:-1], sizes)
    turned = np.repeat(sizes, sizes) - 1 - place
    derived = ids[np.repeat(offsets[:-1], sizes) + turned] + vocab_size - _SPECIALS
    order = np.argsort(np.tile(owners(offsets), 2), kind="stable")  # both languages of a piece together
    return Data(
        ids=np.concatenate([ids, derived])[order],
        slots=np.concatenate([place, turned])[order],
        shared=np.zeros(2 * n, np.uint8),
        starts=offsets_of(np.repeat(sizes, 2)),
        begins=np.ones(n, np.uint8),
        sentences=offsets,
        keys=mix(np.arange(len(sizes), dtype=np.uint64)),
        pieces=offsets,
        instances=(np.arange(0, len(sizes) + 1, 2),) * 2,
        special_ids=SpecialIds(0, 1, 2, 4),
        seq_len=seq_len,
        mapped=np.ones(2, bool),
        recipe={},
    )


def vocabulary_of(vocab_size: int, special_ids: SpecialIds) -> LanguageIds:
    """Return the vocabulary of made-up data."""
    own = np.arange(_SPECIALS, vocab_size, dtype=np.int32)
    return LanguageIds((own, own + vocab_size - _SPECIALS), special_ids, 2 * vocab_size - _SPECIALS)


def main() -> None:
    """Print the speed."""
    parser = argparse.ArgumentParser(description="Measure the training speed of a model on this machine.")
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--batch-size", type=int, help="rows per step; by default the model's")
    parser.add_argument("--threads", type=int, help="CPU threads; by default torch's")
    asked = vars(parser.parse_args())
    seconds = asked.pop("seconds")
    settings, model_config, machine = settings_of("made-up", {**asked, "spec": "trans,inv", "objective": "mlm"})
    figures = bench(settings, model_config, seconds, compile=machine.compile)
    print(
        f"{figures['tokens_per_second']:,.0f} sub-words per second ({figures['device']}, {settings.precision}, "
        f"{torch.get_num_threads()} threads): {figures['matrix_rate_fraction']:.1%} of the matrix rate, "
        f"{figures['matrix_rate'] / 1e12:,.3f} Tflop a second at {figures['flop_per_token'] / 1e9:.4f} Gflop a sub-word"
    )
    print(
        f"{figures['parameters']:,} parameters, {figures['peak_memory'] / 1e6:,.0f} MB; "
        f"the loader makes {figures['loader_tokens_per_second']:,.0f} sub-words per second"
    )


if __name__ == "__main__":
    main()
