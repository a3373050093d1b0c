"""The machine of a run: devices, processes, threads, abilities of accelerators, transfer of arrays, full memory."""

from __future__ import annotations

import os
import shutil
import sysconfig
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from derivlang.core.arrays import offsets_of
from derivlang.core.errors import UsageError
from derivlang.core.messages import DerivlangWarning

if TYPE_CHECKING:
    import torch

Key = TypeVar("Key")
_NARROW = 256
# The other processes wait while the first encodes the data. By default they give up after ten minutes on GPUs.
_PATIENCE = timedelta(days=1)


def processes() -> Any:
    """Return `accelerate`'s state of this process: the only one, or one of several that `torchrun` started.

    It has the rank and barriers. Several processes are on accelerators or on CPUs (gloo).
    """
    from accelerate import PartialState

    return PartialState(cpu=without_accelerators(), timeout=_PATIENCE)


def is_main() -> bool:
    """Return whether this is the first or only process."""
    return bool(processes().is_main_process)


@contextmanager
def only_main_warns() -> Iterator[None]:
    """Let only the first of several processes warn."""
    with warnings.catch_warnings():
        if not is_main():
            warnings.simplefilter("ignore", DerivlangWarning)
        yield


def without_accelerators() -> bool:
    """Return whether there are several processes and no accelerator, which `accelerate` does not detect itself."""
    import torch

    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and not torch.cuda.is_available()


def use_threads(asked: int | None, width: int) -> None:
    """Set the number of CPU threads of torch. None: one for a narrow model, else torch's default.

    width: of the model's states. The products of a narrow model cost less than the synchronisation of threads, which
    wait for each other on a loaded machine. Two threads train `tiny` 1.3 times as fast as one on an idle machine, but
    3 to 4.5 times as slowly beside one busy process.
    """
    import torch

    if asked or width < _NARROW:
        torch.set_num_threads(asked or 1)


def device_of(name: str | None) -> torch.device:
    """Return a device such as cpu, cuda, cuda:1 or mps. None: the first GPU, else the CPU.

    Raises UsageError device if torch has no such device.
    """
    import torch

    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0]
        raise UsageError(
            f"there is no device {name!r}: {reason}", where="--device", fix="give another one, e.g. cpu", id="device"
        ) from None
    return device


def to_device(array: Any, device: torch.device) -> torch.Tensor:
    """Return an array as a tensor on a device, without synchronising the device."""
    return arrays_to_device({"": array}, device)[""]


def arrays_to_device(arrays: Mapping[Key, Any], device: torch.device) -> dict[Key, torch.Tensor]:
    """Return arrays as tensors on a device, without synchronising the device.

    They go there in one piece of page-locked memory, since each such piece takes time: 9 of them took 51 ms of a step
    of 80 ms on one machine with an H100. Each array begins at a multiple of 8 bytes, as torch's views need it:

    bool[5], int64[2]  ->  bytes 0 … 4 and 8 … 23
    """
    import torch

    if device.type == "cpu":
        return {key: torch.from_numpy(np.ascontiguousarray(array)) for key, array in arrays.items()}
    begins = offsets_of(np.array([-(-array.nbytes // 8) * 8 for array in arrays.values()], np.int64)).tolist()
    block = np.empty(max(begins[-1], 8), np.uint8)  # torch gives an empty array no stride, and then no view
    for begin, array in zip(begins, arrays.values(), strict=False):
        block[begin : begin + array.nbytes].view(array.dtype)[:] = array.ravel()
    there = torch.from_numpy(block).pin_memory().to(device, non_blocking=True)
    tensors = {}
    for (key, array), begin in zip(arrays.items(), begins, strict=False):
        dtype = torch.from_numpy(np.empty(0, array.dtype)).dtype
        tensors[key] = there[begin : begin + array.nbytes].view(dtype).view(array.shape)
    return tensors


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
    """Raise UsageError if the memory of an accelerator is full, or a CPU's system refuses more.

    Mostly a system does not refuse it, but ends the process.
    """
    import torch

    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.cuda.OutOfMemoryError) and "DefaultCPUAllocator" not in str(error):
            raise
        raise UsageError(
            f"the memory is full: {str(error).partition('. ')[0]}",
            where="--batch-size",
            fix="lower it; with `derivlang pretrain`, --accumulate processes fewer rows at once, but as many a step",
            id="memory",
        ) from None
