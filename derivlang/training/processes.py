"""The processes of a run: one, or those that `torchrun` started, on accelerators or without any (gloo)."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

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


def _without_accelerators() -> bool:
    """Several processes, and no accelerator: `accelerate` wants to be told."""
    import torch

    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and not torch.cuda.is_available()
