"""CPU memory: the free bytes for this process, and the number of rows of a training step that fit into them."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from derivlang.core.errors import UsageError
from derivlang.training.batch import Step
from derivlang.training.loader import Loader
from derivlang.training.settings import TrainingSettings
from derivlang.training.trainer import LossModule

_PROBE = 2  # rows, one of each language, whose forward pass shows what a row takes
_MOST = 8  # rows of a probe, which must itself fit into the memory
SMALLER = "lower --seq-len or --vocab-size, or change --model"
_CGROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
_SHARE = 0.8  # share of the free memory that a step may take
# Upper bounds of a step's memory, from measurements of roberta-8 (1.3 and 7) and tiny (2.5 and 5), as multiples of
_BACKWARD = 2.5  # the tensors that the forward pass keeps, for which the backward pass makes gradients
_WEIGHTS = 8  # the weights, with gradients, the two moments of AdamW and temporaries


def available(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int:
    """Return the free bytes for this process: the minimum over machine, container (cgroups 1 and 2) and `ulimit -v`."""
    free = [_of_machine(proc), *_of_containers(proc, cgroups)]
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)  # `ulimit -v`
    if limit != resource.RLIM_INFINITY:
        free.append(limit - 1024 * _kilobytes(proc / "self" / "status", "VmSize"))
    return max(0, min(free))


def check_step(
    settings: TrainingSettings,
    lm: Any,
    loader: Loader,
    *,
    world: int = 1,
    goes_on: bool = False,
) -> None:
    """Raise UsageError `memory` if a micro-batch does not fit into the CPU's memory.

    Without this check, the system would kill the process, and perhaps others, when memory runs out. loader: of the
    whole step. world: number of processes that share the memory. goes_on: whether the run is resumed, so that its
    settings cannot change.
    """
    free = available() // world
    net = LossModule(lm, loader.objective, loader.context, language_ids=settings.language_ids, seed=settings.seed)

    def loader_of(rows: int) -> Loader:
        return loader.with_rows(rows, settings.batch_size)

    # at least one row of every stream, so that twice as many rows have twice as many of each
    few = -(-settings.batch_size // min(int(one.size) for one in loader.streams))
    most = rows_that_fit(net, loader_of, free, min(max(_PROBE, few), _MOST))
    rows = settings.batch_size // (settings.accumulate * world)
    if rows <= most:
        return
    parts = next((n for n in range(1, rows + 1) if rows % n == 0 and rows // n <= most), None)
    if goes_on:
        fix = "free some memory: a run that goes on keeps its settings"
    elif parts is None:
        fix = SMALLER
    else:
        fix = f"--accumulate {settings.accumulate * parts}: as many rows per step, {rows // parts} at once"
    raise UsageError(
        f"{rows} rows of {settings.seq_len} sub-words do not fit into the {free / 1e9:.1f} GB of free memory",
        where="--batch-size",
        fix=fix,
        id="memory",
    )


def rows_that_fit(net: LossModule, loader_of: Callable[[int], Loader], free: int, probe: int = _PROBE) -> int:
    """How many rows a forward and backward pass of `net` may have in `free` bytes; 0 where not one fits.

    loader_of: a loader of so many rows per step, in one micro-batch. Two passes show what each row takes from what a
    step takes besides its rows, the dictionary of align-mlm for example.
    """

    def kept(rows: int) -> int:
        return kept_bytes(net, next(iter(loader_of(rows).steps(0, 1)))[0].to(torch.device("cpu")))

    weights = sum(parameter.numel() * parameter.element_size() for parameter in net.parameters())
    few, more = kept(probe), kept(2 * probe)
    each = max(1.0, (more - few) / probe)
    beside = max(0.0, few - probe * each)
    return max(0, int((_SHARE * free - _WEIGHTS * weights - _BACKWARD * beside) / (_BACKWARD * each)))


def kept_bytes(net: LossModule, micro: Step) -> int:
    """Return the number of bytes, without weights, that a forward pass keeps for the backward pass."""
    own = {parameter.untyped_storage().data_ptr() for parameter in net.parameters()}
    kept: dict[int, Any] = {}  # storages by address; they are held so that no address is used twice

    def keep(tensor: Any) -> None:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage

    # No backward pass follows, so nothing is saved: a saved output would refer to its own graph and never be freed.
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda nothing: nothing):
        net(micro)
    return sum(storage.nbytes() for storage in kept.values())


def _of_machine(proc: Path) -> int:
    free = _kilobytes(proc / "meminfo", "MemAvailable")
    if free:
        return 1024 * free
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # not Linux


def _of_containers(proc: Path, cgroups: Path) -> list[int]:
    """Return the free bytes in each control group of this process, from its own to the root."""
    left = []
    for line in _text(proc / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top, names = (cgroups / "memory", _NAMES[1]) if controllers else (cgroups, _NAMES[2])
        own = top / path.lstrip("/")
        # Inside a container the path may be the host's. The container's own group is then at the top.
        for folder in (own, *own.parents):
            limit, used = (_text(folder / name).strip() for name in names)
            if limit.isdigit() and used.isdigit():
                left.append(int(limit) - int(used) + _reclaimable(folder / "memory.stat"))
            if folder == top:
                break
    return left


def _reclaimable(path: Path) -> int:
    """Return the bytes of cached files, which count as used but are released when needed."""
    fields = dict(line.split(" ", 1) for line in _text(path).splitlines() if " " in line)
    return int(fields.get("total_inactive_file", fields.get("inactive_file", "0")))


def _kilobytes(path: Path, name: str) -> int:
    for line in _text(path).splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


_NAMES = {1: ("memory.limit_in_bytes", "memory.usage_in_bytes"), 2: ("memory.max", "memory.current")}
