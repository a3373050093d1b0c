"""The network on every backend: the bits of numpy's float32, and so the same trees. A new backend is a row here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.batch import split_sentences
from derivlang.core.errors import DerivlangError
from derivlang.formats.file_piece import Piece
from derivlang.formats.text import read
from derivlang.formats.words import Splitter
from derivlang.parsing.backend import Backend, NumpyBackend, tanh
from derivlang.parsing.base import Parses
from derivlang.parsing.bundled import ModelParser, bundled_model
from derivlang.parsing.inference import Network
from derivlang.parsing.on_device import on_device, same_scores
from derivlang.parsing.packed import PackedSentences
from derivlang.parsing.products import FloatProduct
from derivlang.parsing.quantised import SCORE_GRID
from derivlang.parsing.registry import BUNDLED
from derivlang.parsing.tanh_table import SPAN
from tests.strategies import laws
from tests.test_parsing import SHARED, bundled, english, ewt, needs_data, parse
from tests.test_parsing_products import integer_product

torch = pytest.importorskip("torch")

from derivlang.parsing.torch_backend import TorchBackend  # noqa: E402
from tests.elsewhere import HERE, Elsewhere  # noqa: E402


def on_gpu() -> Backend:
    if not torch.cuda.is_available():
        pytest.skip("there is no accelerator")
    return TorchBackend(torch.device("cuda"))


BACKENDS: dict[str, Callable[[], Backend]] = {
    "integer": lambda: NumpyBackend(integer_product()),
    "torch": lambda: TorchBackend(torch.device("cpu")),
    "gpu": on_gpu,
}
every_backend = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.gpu if name == "gpu" else ()) for name in BACKENDS]
)
LIGHT = "english-light"  # the quicker one, where any network shows the rule
every_model = pytest.mark.parametrize("model", BUNDLED["en"])  # one with LSTMs, one with light cells


@cache
def parser_of(name: str, model: str = "english") -> ModelParser:
    """A bundled parser on a backend; `float` is the one that the others are compared with."""
    stored = bundled_model(model)
    backend = NumpyBackend(FloatProduct) if name == "float" else BACKENDS[name]()
    return ModelParser(model, stored, Network(stored, backend))


def same(one: Parses, other: Parses) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("upos", "head", "deprel"))


@every_backend
@laws
@given(data=st.data())
def test_products(name: str, data: st.DataObject) -> None:
    backend = BACKENDS[name]()
    n, k, r = (data.draw(st.integers(1, most)) for most in (40, 70, 70))
    draws = np.random.default_rng(data.draw(st.integers(0, 999)))
    weights = draws.integers(-127, 128, (r, k)).astype(np.int8)
    largest = min(1024, ((1 << 24) - 1) // max(int(np.abs(weights.astype(int)).sum(1).max()), 1))
    x = draws.integers(-largest, largest + 1, (n, k)).astype(np.float32)
    x[0] = np.sign(weights[0]) * np.float32(largest)
    out = backend.empty(n, r)
    backend.product(weights, largest)(backend.own(x), out)
    assert np.array_equal(backend.numpy(out), x.astype(np.int64) @ weights.T.astype(np.int64))


@every_backend
def test_single_operations(name: str) -> None:
    ours, theirs = NumpyBackend(), BACKENDS[name]()
    z = np.random.default_rng(3).normal(0, SPAN, (300, 200)).astype(np.float32)
    z[0, :5] = [0, -0.0, 1e5, -1e5, 1e-40]
    assert np.array_equal(theirs.numpy(tanh(theirs.own(z), theirs)), tanh(z, ours))
    halves = np.arange(-500, 500, dtype=np.float32).reshape(10, 100) / 2
    for backend in (ours, theirs):
        out = backend.own(halves.copy())
        backend.round(out, out)
        assert np.array_equal(backend.numpy(out), np.rint(halves))
        backend.clip(out, -9.0, 7.0)
        assert np.array_equal(backend.numpy(out), np.clip(np.rint(halves), -9, 7))


class Kept:
    """A network that computes the same scores once."""

    def __init__(self, network: Network) -> None:
        self.backend, self.vectors, self._network = network.backend, network.vectors, network
        self._scores: dict[bytes, Any] = {}
        self._labels: dict[bytes, Any] = {}

    def scores(self, vectors: Any, *rest: Any) -> Any:
        key = vectors.tobytes()
        return self._scores.get(key) or self._scores.setdefault(key, self._network.scores(vectors, *rest))

    def labels(self, scores: Any, head_row: Any) -> Any:
        key = head_row.tobytes()
        if key not in self._labels:
            self._labels[key] = self._network.labels(scores, head_row)
        return self._labels[key]


@cache
def expected(model: str) -> Any:
    return Kept(parser_of("float", model).network)


@every_backend
@every_model
def test_scores_are_the_same_to_the_last_bit(name: str, model: str) -> None:
    one, other = expected(model), parser_of(name, model).network
    assert same_scores(one, other)
    words = "The old man the boat that nobody has seen since the war ended in 1945 .".split()
    packed = PackedSentences.of(np.array([len(words)]))
    vectors = one.vectors(words)
    first, second = (network.scores(vectors, np.arange(len(words)), packed) for network in (one, other))
    for array in first.__slots__:
        assert np.array_equal(getattr(first, array), other.backend.numpy(getattr(second, array)))


def test_scores_that_differ_in_one_bit_are_seen() -> None:
    one, other = (Network(bundled_model(LIGHT), BACKENDS["integer"]()) for _ in range(2))
    other._label.bias[7] = np.nextafter(other._label.bias[7], np.float32(9))
    assert not same_scores(one, other)


@every_backend
@needs_data
@every_model
def test_trees_of_a_treebank(name: str, model: str) -> None:
    bank = ewt("dev")
    given_words = bank.words[: bank.sentences[600]], bank.types, bank.sentences[:601]
    assert same(parser_of("float", model).parse(*given_words), parser_of(name, model).parse(*given_words))


@every_backend
@needs_data
def test_trees_of_plain_text(name: str) -> None:
    path = SHARED / "text" / "wikitext-2" / "wiki.valid.tokens"
    for batch in read([(path, Piece(0, 60_000), None)], Splitter("space", "en")):
        cut = split_sentences(batch)
        assert cut.n_words > 10_000
        found = [parser_of(one).parse(cut.words, cut.types, cut.sentences) for one in ("float", name)]
        assert same(*found)


def test_a_reciprocal_gives_the_same_labels() -> None:
    """torch may multiply by 1 / 255 on a GPU, where numpy divides: no quotient is that near to a half."""
    products = np.arange(-SCORE_GRID * SCORE_GRID, SCORE_GRID * SCORE_GRID + 1).astype(np.float32)
    one = np.rint(products / np.float32(SCORE_GRID))
    assert np.array_equal(one, np.rint(products * (np.float32(1) / np.float32(SCORE_GRID))))


# a device


def test_all_arrays_are_on_the_device() -> None:
    """A pretended accelerator raises where a real one would: arrays of the CPU and of the device do not mix."""
    sentences = [
        ["She", "reads", "."],
        ["The", "man", "that", "we", "saw", "left", "the", "old", "house", "."],
        ["Yes"],
    ]
    with Elsewhere() as device:
        parser = on_device(english(), str(HERE))
        assert parser.is_exact
        device.waits.clear()
        found = parse(sentences, parser)
    assert same(found, parse(sentences))
    assert len(device.waits) <= 12  # copies to and from the device: some for a batch, none for a step


def test_another_fingerprint_where_scores_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    light = bundled(LIGHT)
    assert on_device(light, "cpu").fingerprint == light.fingerprint
    monkeypatch.setattr("derivlang.parsing.on_device.same_scores", lambda one, other: False)
    parser = on_device(light, "cpu")
    assert not parser.is_exact
    assert parser.fingerprint != light.fingerprint
    assert on_device(light, "cpu").fingerprint == parser.fingerprint
    monkeypatch.setattr("derivlang.parsing.on_device.record", lambda name: {"device": "cpu", "torch": "0.1"})
    assert on_device(light, "cpu").fingerprint != parser.fingerprint


class Little(TorchBackend):
    """A device with room for a product of some rows only. sizes: rows of the products that were too large."""

    def __init__(self, rows: int) -> None:
        self.rows, self.refused = rows, 0
        super().__init__(torch.device("cpu"))

    def empty(self, *shape: int) -> Any:
        if shape[0] > self.rows:
            self.refused += 1
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return super().empty(*shape)


def test_batches_are_halved_where_memory_is_short() -> None:
    sentences = [["She", "reads", *["old"] * (i % 9), "books", f"of{i}", "."] for i in range(300)]
    backend = Little(100)
    parser = replace(english(), network=Network(english().model, backend))
    assert same(parse(sentences, parser), parse(sentences))
    assert 0 < backend.refused < 9  # what fits once is kept to


def test_one_sentence_that_does_not_fit() -> None:
    parser = replace(english(), network=Network(english().model, Little(20)))
    with pytest.raises(DerivlangError, match=r"too little memory to parse one sentence of 30 words \[memory\]"):
        parse([["She"] * 30, ["Yes"]], parser)


def test_other_errors_of_a_device_are_not_taken_for_full_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = on_device(bundled(LIGHT), "cpu")

    def broken(*arguments: Any) -> Any:
        raise RuntimeError("device-side assert")

    monkeypatch.setattr(Network, "scores", broken)
    with pytest.raises(RuntimeError, match="device-side assert"):
        parse([["She", "reads"]], parser)


def test_tf32_is_off_while_a_parser_computes() -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with TorchBackend(torch.device("cpu")).computing():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
