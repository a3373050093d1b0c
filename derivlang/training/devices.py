"""Accelerators: what one can do, how arrays get there, and what is said where its memory is full."""

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


def sent(array: Any, device: torch.device) -> torch.Tensor:
    """An array as a tensor on a device, without waiting for what the device is doing."""
    import torch

    found = torch.from_numpy(np.ascontiguousarray(array))
    return found if device.type == "cpu" else found.pin_memory().to(device, non_blocking=True)


def device_of(name: str | None) -> torch.device:
    """cpu, cuda or cuda:1; None: the first GPU where there is one. UsageError where torch has no such device."""
    import torch

    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        what = str(error).partition("\n")[0]
        raise UsageError(
            f"there is no device {name!r}: {what}", where="--device", fix="e.g. cpu", id="device"
        ) from None
    return device


def has_bf16() -> bool:
    """Is there a GPU that computes in bfloat16 itself? torch says yes of older ones, too, which emulate it slowly."""
    import torch

    return torch.cuda.is_available() and bool(torch.cuda.is_bf16_supported(including_emulation=False))


def can_compile() -> bool:
    """Is there a GPU that torch.compile can write for? Triton is needed, with a C compiler and Python's headers."""
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
    """UsageError where an accelerator's memory is full."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise UsageError(
            f"the accelerator's memory is full: {str(error).partition('. ')[0]}",
            where="--batch-size",
            fix="a smaller one; `derivlang pretrain` has --accumulate: as many rows a step, fewer at once",
            id="memory",
        ) from None
