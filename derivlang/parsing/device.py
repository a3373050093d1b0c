"""Devices of torch by name."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from derivlang.core.errors import DerivlangError, UsageError

if TYPE_CHECKING:
    import torch


def device_of(name: str | None) -> torch.device:
    """Return a device such as cpu, cuda, cuda:1 or mps. None: the first GPU, else the CPU.

    Raises UsageError device if torch has no such device, DerivlangError missing-package without torch.
    """
    try:
        import torch
    except ImportError:
        raise DerivlangError(
            f"the device {name!r} needs torch, which is not installed",
            where="--device",
            fix="pip install 'derivlang[train]', or leave --device out",
            id="missing-package",
        ) from None
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


def record(name: str) -> dict[str, str]:
    """Return the device of this name and the version of torch, for a manifest."""
    import torch

    device = device_of(name)
    model = f" ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else ""
    return {"device": f"{device}{model}", "torch": version("torch")}
