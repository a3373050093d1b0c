"""The processes of a run: one, or those that `torchrun` started, on accelerators or on CPUs (gloo)."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any

import torch

_NARROW = 256
# The other processes wait while the first encodes the data. By default they give up after ten minutes on GPUs.
PATIENCE = timedelta(days=1)


def processes() -> Any:
    """Return `accelerate`'s state of this process, with its rank and barriers."""
    from accelerate import PartialState

    return PartialState(cpu=_without_accelerators(), timeout=PATIENCE)


def accelerator(precision: str) -> Any:
    """Return an `Accelerator` in fp32 or bf16."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state()  # otherwise every run has the precision of the first one in this process
    return Accelerator(cpu=_without_accelerators(), mixed_precision="bf16" if precision == "bf16" else "no")


class Exchange:
    """The calls of a step by which processes exchange gradients, by `accelerate`; one process calls torch itself.

    optimizer: as it is to be called. The calls of `accelerate` look for packages and walk through all modules in
    every step, 7 % of a step of `tiny`.
    """

    def __init__(self, accelerator: Any, net: torch.nn.Module, optimizer: torch.optim.Optimizer):
        self._accelerator = accelerator
        self._alone = accelerator.distributed_type == "NO" and accelerator.scaler is None
        self._casts = accelerator.mixed_precision != "no"
        self.net, wrapped = accelerator.prepare(net, optimizer)  # moves the state of a resumed optimizer, too
        self.optimizer: Any = wrapped.optimizer if self._alone else wrapped
        self._parameters = list(self.net.parameters())

    def autocast(self) -> AbstractContextManager[Any]:
        """Compute in the precision of the run."""
        return self._accelerator.autocast() if self._casts else nullcontext()

    def part_of_step(self, *, last: bool) -> AbstractContextManager[Any]:
        """Exchange gradients only at the last micro-batch of a step."""
        return nullcontext() if last or self._alone else self._accelerator.no_sync(self.net)

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradients of a micro-batch. Processes average their gradients, which are parts of a sum."""
        if self._alone:
            loss.backward()
        else:
            self._accelerator.backward(loss * self._accelerator.num_processes)

    def clip(self, largest: float) -> Any:
        """Scale the gradients to a norm of at most `largest`, and return the norm before."""
        if self._alone:
            return torch.nn.utils.clip_grad_norm_(self._parameters, largest)
        return self._accelerator.clip_grad_norm_(self._parameters, largest)


def is_main() -> bool:
    """Return whether this is the first or only process."""
    return bool(processes().is_main_process)


def gather(rows: torch.Tensor, total: int) -> torch.Tensor:
    """Return [total, d]: the rows of a step that all processes have, in their order in the step.

    rows: the rows of this process. Of w processes process r has the rows total * r // w …, as the loader divides a
    step. total 5, 2 processes: the rows 0 1 of the first and 2 3 4 of the second
    """
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return rows
    first = total * distributed.get_rank() // distributed.get_world_size()
    out = rows.new_zeros(total, *rows.shape[1:])
    out[first : first + len(rows)] = rows
    distributed.all_reduce(out)
    return out


def agreed(answer: bool) -> bool:
    """Return the answer of the first process, which every process asks for at the same point."""
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return answer
    told = [answer]
    distributed.broadcast_object_list(told, src=0)
    return told[0]


def use_threads(asked: int | None, width: int) -> None:
    """Set the number of CPU threads of torch. None: one for a narrow model, else torch's default.

    width: of the model's states. The products of a narrow model cost less than the synchronisation of threads, which
    wait for each other on a loaded machine. Two threads train `tiny` 1.3 times as fast as one on an idle machine, but
    3 to 4.5 times as slowly beside one busy process.
    """
    if asked or width < _NARROW:
        torch.set_num_threads(asked or 1)


def _without_accelerators() -> bool:
    """Return whether there are several processes and no accelerator, which `accelerate` does not detect itself."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and not torch.cuda.is_available()
