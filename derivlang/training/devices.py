"""Accelerators: their abilities, transfer of arrays, and the error for full memory."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.core.errors import UsageError

if TYPE_CHECKING:
    import torch


def to_device(array: Any, device: torch.device) -> torch.Tensor:
    """Return an array as a tensor on a device, without synchronising the device."""
    import torch

    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def has_bf16() -> bool:
    """Return whether there is a GPU with native bfloat16. Older GPUs only emulate it, slowly."""
    import torch

    return torch.cuda.is_available() and bool(torch.cuda.is_bf16_supported(including_emulation=False))


def can_compile() -> bool:
    """Return whether torch.compile works for the GPU, which takes Triton, a C compiler and Python's headers."""
    import torch

    return (
        torch.cuda.is_available()
        and torch.cuda.get_device_capability() >= (7, 0)
        and find_spec("triton") is not None
        and any(shutil.which(name) for name in (os.environ.get("CC", "gcc"), "gcc", "clang"))
        and Path(sysconfig.get_config_h_filename()).with_name("Python.h").exists()
    )


@contextmanager
def within_memory() -> Iterator[None]:
    """Raise UsageError if an accelerator's memory is full."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise UsageError(
            f"the accelerator's memory is full: {str(error).partition('. ')[0]}",
            where="--batch-size",
            fix="lower it; with `derivlang pretrain`, --accumulate processes fewer rows at once, but as many a step",
            id="memory",
        ) from None
