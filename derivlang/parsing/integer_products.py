"""Products of whole numbers in 8-bit integers, by ONNX Runtime (`pip install 'derivlang[fast]'`).

A processor with instructions for 8-bit integers (VNNI) multiplies four of them in the time of one float32. Activations
have more than 8 bits, so each is written as two digits, and their products are added:

    x + largest = low + 256 · high        x @ W = low @ W + 256 · (high @ W) - largest · (sum of each column of W)

Sums of integers are exact. Only old processors round: their instruction adds two products in 16 bits, 255 · 127 twice,
which is too much. `are_exact` finds out.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import onnxruntime

from derivlang.core.arrays import Float32, Int8

_OPSET, _IR = 13, 8  # of 2021: read by each version of ONNX Runtime since 1.10


class IntegerProduct:
    """A product in 8-bit integers. largest: the largest absolute value of an activation, below 2^14."""

    rows = 96  # two digits and their products need more memory than one float

    def __init__(self, stored: Int8, largest: int) -> None:
        self.n_inputs = stored.shape[1]
        self._largest = np.int16(largest)
        self._shift = (stored.astype(np.int32).sum(1) * largest).astype(np.int32)
        self._session = _session(np.ascontiguousarray(stored.T))

    def __call__(self, x: Float32, out: Float32) -> None:
        n = len(x)
        if not n:
            return
        whole = x.astype(np.int16)
        whole += self._largest
        digits = np.empty((2 * n, self.n_inputs), np.uint8)
        np.copyto(digits[:n], whole, casting="unsafe")  # the low byte
        whole >>= 8
        np.copyto(digits[n:], whole, casting="unsafe")
        products = self._session.run(None, {"digits": digits})[0]
        total = products[n:]
        total <<= 8
        total += products[:n]
        total -= self._shift
        np.copyto(out, total, casting="unsafe")


@cache
def are_exact() -> bool:
    """Return whether the products of the largest digits and weights are exact on this processor."""
    weights = np.full((32, 64), 127, np.int8)
    weights[::2] = -127
    x = np.full((9, 64), 255, np.float32)
    out = np.empty((9, 32), np.float32)
    IntegerProduct(weights, 0)(x, out)
    return bool(np.array_equal(out, x @ weights.T.astype(np.float32)))


def _session(weights: Int8) -> onnxruntime.InferenceSession:
    """Return a session that multiplies uint8[n, K] by the weights int8[K, R], on one thread."""
    n_inputs, n_outputs = weights.shape
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMulInteger", ["digits", "weights"], ["products"])],
        "product",
        [onnx.helper.make_tensor_value_info("digits", onnx.TensorProto.UINT8, ["n", n_inputs])],
        [onnx.helper.make_tensor_value_info("products", onnx.TensorProto.INT32, ["n", n_outputs])],
        [onnx.numpy_helper.from_array(weights, "weights")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", _OPSET)], ir_version=_IR)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
