"""The training speed of a model on this machine, measured on made-up sub-words.

The measured steps have the loader, objective, network and optimiser of a run. `study --dry-run` estimates times with
it; `tools/bench_train.py` compares it with the rate of matrix products.
"""

from __future__ import annotations

import time
from itertools import islice

import numpy as np
import torch

from derivlang.core.arrays import offsets_of, owners
from derivlang.core.keys import mix
from derivlang.training.config import ModelConfig
from derivlang.training.data import Data
from derivlang.training.devices import within_memory
from derivlang.training.languages import SpecialIds
from derivlang.training.loader import Loader, OpenStream
from derivlang.training.masking import LanguageIds
from derivlang.training.model import build_model
from derivlang.training.objectives.base import Context
from derivlang.training.objectives.registry import read_objective
from derivlang.training.settings import TrainingSettings
from derivlang.training.streams.packed import Packed, PackedRows
from derivlang.training.trainer import Progress, Trainer

_SPECIALS = 12


def made_up_run(settings: TrainingSettings, model_config: ModelConfig, *, compile: bool) -> tuple[Trainer, Loader]:
    """Return (the trainer of a new model, on the device; the loader of made-up rows)."""
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
    return Trainer(settings, lm, loader, compile=compile), loader


@within_memory()
def steps_per_second(trainer: Trainer, loader: Loader, settings: TrainingSettings, seconds: float) -> float:
    """Train for some seconds after a warm-up, and return the number of steps per second."""
    device, progress = trainer.net.lm.device, Progress(None)
    every = 5 if device.type == "cuda" else 2  # steps between looks at the clock, which wait for a GPU
    steps = enumerate(loader.on_device(0, 1 << 40, device))

    def train() -> float:
        for step, micros in islice(steps, every):
            trainer.update(micros, step, settings.learning_rate, progress)
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    n, began = 0, train()
    while (now := train()) - began < seconds:
        n += every
    return (n + every) / (now - began)


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
