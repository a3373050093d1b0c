"""A pretended accelerator, for machines without one: what a device would refuse is refused, what it would wait for is
noted, and the numbers are the processor's.

with Elsewhere() as device:
    model.to(HERE)                 # tensors that say they are on HERE, and mix with no others
    model(ids.to(HERE)).sum().item()
device.waits                       # ["loop.py:120 train: _local_scalar_dense"]
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

HERE = torch.device("meta")  # a device that needs no driver, and whose tensors torch never computes itself
_ATEN = torch.ops.aten
_READ = {_ATEN._local_scalar_dense.default, _ATEN.equal.default}
# Their results' sizes depend on numbers.
_SIZES = {_ATEN.nonzero.default, _ATEN.masked_select.default, _ATEN.bincount.default, _ATEN._unique2.default}
_COPIES = {_ATEN._to_copy.default, _ATEN.copy_.default}
_CODE = ("derivlang", "transformers")


class Held(torch.Tensor):
    """A tensor of the device. held: its numbers, on the processor."""

    held: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Held:
        made: Held = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype, device=HERE
        )
        made.held = held
        return made

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["held"], None

    @staticmethod
    def __tensor_unflatten__(parts: dict[str, torch.Tensor], *_: Any) -> Held:
        return Held(parts["held"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func}: a tensor of the device outside `with Elsewhere()`")


class Elsewhere(TorchDispatchMode):
    """waits: where the device was waited for: numbers that were read, sizes that depend on numbers, blocking copies."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if torch.is_inference_mode_enabled():  # where torch leaves that to whoever listens
            with self:
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
        if func is _ATEN._pin_memory.default:
            out = args[0].clone()
            out.pinned = True
            return out
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        there = [isinstance(t, Held) for t in tensors]
        target = kwargs.get("device")
        if func in _COPIES:
            came, to = there[-1], there[0] if func is _ATEN.copy_.default else any(there)
            if target is not None:
                to = torch.device(target) == HERE
            pinned = getattr(tensors[-1], "pinned", False)
            blocking = not (pinned and (args[2:3] == (True,) or kwargs.get("non_blocking")))
            if came != to and (came or blocking):
                self._wait(func)
        else:
            if any(there) and any(t.ndim for t, on in zip(tensors, there, strict=True) if not on):
                raise RuntimeError(f"{func}: tensors on two devices, at {_place()}")
            to = any(there) if target is None else torch.device(target) == HERE
            if any(there) and (func in _READ | _SIZES or (func is _ATEN.index.Tensor and _by_mask(args[1]))):
                self._wait(func)
        if target is not None and torch.device(target) == HERE:
            kwargs["device"] = torch.device("cpu")
        out = func(*_bare(args), **_bare(kwargs))
        if func._schema.is_mutable:  # in place
            return args[0] if func._schema.returns else None
        return tree_map(lambda t: Held(t) if isinstance(t, torch.Tensor) else t, out) if to else out

    def _wait(self, func: Any) -> None:
        self.waits.append(f"{_place()}: {func.__name__.split('.')[0]}")


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fused optimiser takes the device for one that it knows."""
    module = sys.modules[torch.optim.Optimizer.__module__]
    monkeypatch.setattr(module, "_get_fused_kernels_supported_devices", lambda: ["cpu", HERE.type])


def _bare(values: Any) -> Any:
    return tree_map(lambda t: t.held if isinstance(t, Held) else t, values)


def _by_mask(indices: Any) -> bool:
    return any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in indices)


def _place() -> str:
    """The innermost line of this package's or the library's code."""
    for frame in reversed(traceback.extract_stack()):
        path = Path(frame.filename)
        if any(part in _CODE for part in path.parts) and "tests" not in path.parts:
            return f"{path.name}:{frame.lineno} {frame.name}"
    return "the test"
