"""Backends: where the network's arrays are, and the operations on them that libraries name differently.

    NumpyBackend    numpy, on the CPU: the default                      (here)
    TorchBackend    torch, on the CPU, a GPU or another device          (`torch_backend.py`)

The network's formulas are written once (`inference.py`, `recurrent.py`, `quantised.py`). They use a backend for the
operations below, and for all others what numpy and torch have in common: `+=`, `*=`, `@`, slices, `argmax`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Float32
from derivlang.parsing.products import Array, MakeProduct, Product, fastest_product
from derivlang.parsing.tanh_table import MIDDLE, STEPS, TANH


class TanhTable(Protocol):
    """Looks up tanh in arrays of up to the rows and the columns that it was made for."""

    def __call__(self, place: Array, out: Array) -> None:
        """Set out = TANH[place], with places truncated to whole numbers. Both float32, of the same shape."""
        ...


class Backend(Protocol):
    """Arrays and their operations; each must give the bits that numpy gives.

    words_at_once: words that go through the network together, with padding up to the longest sentence. fewest, most:
    sentences that go together at least and at most.
    """

    words_at_once: int
    fewest: int
    most: int

    def own(self, array: NDArray[Any]) -> Array:
        """Return a numpy array as an array of the backend."""
        ...

    def numpy(self, array: Array) -> NDArray[Any]:
        """Return an array of the backend as one of numpy."""
        ...

    def product(self, stored: NDArray[np.int8], largest: int) -> Product:
        """Return the product with weights int8[R, K]. largest: the largest absolute value that they multiply."""
        ...

    def empty(self, *shape: int) -> Array:
        """Return a float32 array of this shape, whose values are not set."""
        ...

    def zeros(self, *shape: int) -> Array:
        """Return a float32 array of this shape, of zeros."""
        ...

    def join(self, parts: Sequence[Array], axis: int) -> Array:
        """Return arrays as one, along an axis."""
        ...

    def scale(self, x: Array, factor: float, out: Array) -> None:
        """Set out = x * factor."""
        ...

    def round(self, x: Array, out: Array) -> None:
        """Set out = x rounded to whole numbers, halves to the even one."""
        ...

    def clip(self, x: Array, low: float, high: float) -> None:
        """Set x to the nearest number from low to high."""
        ...

    def tanh_table(self, rows: int, columns: int) -> TanhTable:
        """Return a table for arrays of up to this shape."""
        ...

    def computing(self) -> AbstractContextManager[None]:
        """Return the context to compute in. MemoryError: there is too little memory for the arrays of the block."""
        ...


class NumpyBackend:
    """numpy. make: how products are computed; no result depends on it."""

    words_at_once = 3072  # more words take memory without a gain in speed
    fewest = 24  # with fewer sentences, products wait for the weights from memory
    most = 512  # with more, the gates of a step take most of the memory

    def __init__(self, make: MakeProduct | None = None) -> None:
        self.product = make or fastest_product()

    def own(self, array: NDArray[Any]) -> Array:
        return array

    def numpy(self, array: Array) -> NDArray[Any]:
        return np.asarray(array)

    def empty(self, *shape: int) -> Array:
        return np.empty(shape, np.float32)

    def zeros(self, *shape: int) -> Array:
        return np.zeros(shape, np.float32)

    def join(self, parts: Sequence[Array], axis: int) -> Array:
        return np.concatenate(parts, axis)

    def scale(self, x: Array, factor: float, out: Array) -> None:
        np.multiply(x, np.float32(factor), out=out)

    def round(self, x: Array, out: Array) -> None:
        np.rint(x, out=out)

    def clip(self, x: Array, low: float, high: float) -> None:
        np.clip(x, np.float32(low), np.float32(high), out=x)

    def tanh_table(self, rows: int, columns: int) -> TanhTable:
        return NumpyTanh(rows, columns)

    @contextmanager
    def computing(self) -> Iterator[None]:
        yield


class NumpyTanh:
    """A `TanhTable`. narrow, wide: buffers of places.

    The conversion goes through int32, because numpy converts float32 to int32 six times as fast as to the int64 that an
    index must be.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self._narrow, self._wide = np.empty((rows, columns), np.int32), np.empty((rows, columns), np.intp)

    def __call__(self, place: Float32, out: Float32) -> None:
        narrow, wide = self._narrow[: len(place)], self._wide[: len(place)]
        np.copyto(narrow, place, casting="unsafe")
        np.copyto(wide, narrow)
        np.take(TANH, wide, out=out, mode="clip")


def tanh(z: Array, backend: Backend) -> Array:
    """Return tanh of z, float32[n, K], from the table."""
    rows, columns = z.shape
    out = backend.empty(rows, columns)
    backend.scale(z, STEPS, out)
    out += MIDDLE
    backend.tanh_table(rows, columns)(out, out)
    return out
