"""The network on a device of torch: a GPU, or the CPU for a test.

Trees are the same as with numpy. Sums of products are of whole numbers below 2^24, which float32 adds exactly in any
order, and TF32, which cuts factors to 10 bits, is off in `computing`. tanh is looked up. All that remains are single
additions, multiplications and roundings, one operation after the other, which IEEE 754 defines to the last bit, and one
division: torch may multiply by the reciprocal of 255 on a GPU, but no quotient is so near to a half that the whole
number next to it changes (tested). A device that computes less exactly, such as one with "fast math", may find other
trees; `on_device.py` finds out before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from derivlang.core.arrays import Int8
from derivlang.parsing.backend import TanhTable
from derivlang.parsing.tanh_table import TANH


class TorchBackend:
    """A device of torch. A step of a layer is some twenty small operations, so that many sentences take part in it."""

    words_at_once = 1 << 14  # with more, sentences of one batch differ more in length, and padding grows
    fewest, most = 1, 1 << 14

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._tanh = self.own(TANH)

    def own(self, array: NDArray[Any]) -> torch.Tensor:
        return torch.tensor(array, device=self.device)

    def numpy(self, array: torch.Tensor) -> NDArray[Any]:
        return np.asarray(array.cpu())

    def product(self, stored: Int8, largest: int) -> TorchProduct:
        return TorchProduct(self.own(np.ascontiguousarray(stored.T, np.float32)))

    def empty(self, *shape: int) -> torch.Tensor:
        return torch.empty(shape, device=self.device)

    def zeros(self, *shape: int) -> torch.Tensor:
        return torch.zeros(shape, device=self.device)

    def join(self, parts: Sequence[torch.Tensor], axis: int) -> torch.Tensor:
        return torch.cat(list(parts), axis)

    def scale(self, x: torch.Tensor, factor: float, out: torch.Tensor) -> None:
        torch.mul(x, factor, out=out)

    def round(self, x: torch.Tensor, out: torch.Tensor) -> None:
        torch.round(x, out=out)

    def clip(self, x: torch.Tensor, low: float, high: float) -> None:
        x.clamp_(low, high)

    def tanh_table(self, rows: int, columns: int) -> TanhTable:
        return self._look_up

    def _look_up(self, place: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(self._tanh[place.clamp(0, len(TANH) - 1).to(torch.int32)])

    @contextmanager
    def computing(self) -> Iterator[None]:
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        try:
            yield
        except RuntimeError as error:
            if isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error):
                raise MemoryError from None
            raise
        finally:
            torch.set_float32_matmul_precision(before)


class TorchProduct:
    """A `Product` with weights float32[K, R] on a device."""

    rows = 1 << 30

    def __init__(self, weights: torch.Tensor) -> None:
        self.weights = weights
        self.n_inputs = len(weights)

    def __call__(self, x: torch.Tensor, out: torch.Tensor) -> None:
        torch.matmul(x, self.weights, out=out)
