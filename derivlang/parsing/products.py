"""Products of whole numbers, the part of the network that takes most of the time.

    x [n, K], whole numbers  @  weights [K, R], whole numbers from -127 to 127   ->  whole numbers below 2^24

There are two ways to compute them with numpy, with the same result: float32 by its BLAS, and 8-bit integers by ONNX
Runtime (`integer_products.py`), which is used where it is installed and proves to be exact on the processor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeAlias

import numpy as np

from derivlang.core.arrays import Float32, Int8

Array: TypeAlias = Any  # an array of numpy, or a tensor of torch


class Product(Protocol):
    """The product with one matrix of weights [K, R]. n_inputs: K. rows: most rows to compute at once."""

    n_inputs: int
    rows: int

    def __call__(self, x: Array, out: Array) -> None:
        """Set out = x @ weights. x: float32[n, K], whole numbers; out: float32[n, R]."""
        ...


# (stored weights int8[R, K], largest absolute value of x) -> their product
MakeProduct: TypeAlias = Callable[[Int8, int], Product]


class FloatProduct:
    """A product in float32. The weights are kept as float32[K, R]."""

    rows = 256  # so that the result is still in the cache when it is used

    def __init__(self, stored: Int8, largest: int) -> None:
        self.weights = np.ascontiguousarray(stored.T, np.float32)
        self.n_inputs = len(self.weights)

    def __call__(self, x: Float32, out: Float32) -> None:
        np.matmul(x, self.weights, out=out)


@cache
def fastest_product() -> MakeProduct:
    """Return the faster way that works here."""
    try:
        from derivlang.parsing.integer_products import IntegerProduct, are_exact
    except ImportError:
        return FloatProduct
    return IntegerProduct if are_exact() else FloatProduct
