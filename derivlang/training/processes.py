"""The processes of a run: one, or those that `torchrun` started, on accelerators or without any (gloo)."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

_NARROW = 256
# The others wait while the first process encodes the data; on GPUs they would give up after ten minutes.
PATIENCE = timedelta(days=1)


def processes() -> Any:
    """`accelerate`'s state of this process: its rank, and barriers."""
    from accelerate import PartialState

    return PartialState(cpu=_without_accelerators(), timeout=PATIENCE)


def accelerator(precision: str) -> Any:
    """An `Accelerator` in fp32 or bf16."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state()  # else the precision of a process's first run is that of all
    return Accelerator(cpu=_without_accelerators(), mixed_precision="bf16" if precision == "bf16" else "no")


def is_main() -> bool:
    """Is this the first process, or the only one?"""
    return bool(processes().is_main_process)


def use_threads(asked: int | None, width: int) -> None:
    """Let torch compute on so many threads of the processor; None: one for a narrow model, else as many as it likes.

    width: of the model's states. A narrow model's products are over before threads have met, and where another process
    wants a core they wait for each other: a tiny model was 8 to 50 times slower on two threads of a busy machine.
    """
    import torch

    if asked or width < _NARROW:
        torch.set_num_threads(asked or 1)


def _without_accelerators() -> bool:
    """Several processes, and no accelerator: `accelerate` wants to be told."""
    import torch

    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and not torch.cuda.is_available()
