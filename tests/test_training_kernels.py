"""The kernels of a GPU, as far as a processor can show it: what they are given, and what is made of their results."""

from __future__ import annotations

import copy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from derivlang.training import kernels
from derivlang.training.config import ModelConfig
from derivlang.training.encoder import Encoder
from derivlang.training.kernels import FLASH, AlignedLinear, use_kernels
from derivlang.training.languages import SpecialIds
from derivlang.training.model import build_model

IDS = SpecialIds(0, 1, 2, 4)
KINDS: dict[str, dict[str, Any]] = {"roberta": {}, "bert": {}, "gpt2": {}, "llama": {"num_key_value_heads": 2}}


def model(kind: str, **more: Any) -> Any:
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = ModelConfig("made-up", kind, {**size, "max_position_embeddings": 40, **more}, {})
    return build_model(config, 60, 12, IDS, tie=True, language_ids=False, seed=1).eval()


def plainly(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, begins: torch.Tensor, of_keys: torch.Tensor,
    longest: int, longest_key: int, dropout: float, causal: bool, debug: bool, *, scale: float | None = None,
) -> tuple[torch.Tensor]:  # fmt: skip
    """What the Flash kernel computes for sequences, one after the other: float[N, heads, d]."""
    assert begins.dtype == torch.int32
    assert begins is of_keys
    assert dropout == 0
    parts = []
    for begin, end in pairwise(begins.tolist()):
        assert 0 <= end - begin <= longest
        scores = torch.einsum("qhd,khd->hqk", q[begin:end], k[begin:end]) * (scale or q.shape[-1] ** -0.5)
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
        parts.append(torch.einsum("hqk,khd->qhd", scores.softmax(-1), v[begin:end]))
    return (torch.cat(parts),)


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_has_the_states_that_it_has_with_a_mask(
    kind: str, padded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lm = model(kind, **KINDS[kind])
    encoder = Encoder(lm, IDS)
    lengths = torch.tensor([12, 1, 2, 11, 7, 12] if padded else [12, 12])
    attention = torch.arange(12) < lengths[:, None]
    ids = torch.randint(5, 60, attention.shape, generator=torch.Generator().manual_seed(1))

    def states_and_gradient() -> tuple[torch.Tensor, torch.Tensor]:
        lm.zero_grad()
        states = encoder(ids, attention, 0)[attention]
        (states * torch.arange(states.numel()).view_as(states).sin()).sum().backward()
        return states.detach(), lm.get_input_embeddings().weight.grad.clone()

    masked = states_and_gradient()
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.float)  # rounding would hide small differences
    monkeypatch.setattr(torch.ops.aten, "_flash_attention_forward", plainly)
    kernels._use_flash(lm)
    assert lm.config._attn_implementation == FLASH
    for ours, theirs in zip(states_and_gradient(), masked, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5))
def test_rows_and_their_padding_are_sequences(lengths: list[int]) -> None:
    begins = kernels._begins(attention_mask=torch.arange(9) < torch.tensor(lengths)[:, None]).tolist()
    sizes = [end - begin for begin, end in pairwise(begins)]
    assert kernels._begins(attention_mask=None) is None
    assert begins[0] == 0
    assert sizes == [size for length in lengths for size in (length, 9 - length)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("size", [1, 63, 64, 65])
def test_an_aligned_layer_is_the_layer(size: int, bias: bool) -> None:
    layer, states = torch.nn.Linear(8, size, bias=bias), torch.randn(5, 8)
    other = copy.deepcopy(layer)
    other.__class__ = AlignedLinear
    for one in (layer, other):
        torch.nn.functional.cross_entropy(one(states), torch.arange(5) % size).backward()
    torch.testing.assert_close(other(states), layer(states))
    for ours, theirs in zip(other.parameters(), layer.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("kind", ["roberta", "modernbert"])
def test_a_saved_model_names_no_kernel(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_takes_flash", lambda lm, device: True)
    lm = model(kind)
    before = {name: type(module) for name, module in lm.named_modules()}
    use_kernels(lm, torch.device("cuda"), "bf16", compile=True)
    assert lm.config._attn_implementation == FLASH
    assert type(lm.get_output_embeddings()) is AlignedLinear
    lm.save_pretrained(tmp_path)
    assert FLASH not in (tmp_path / "config.json").read_text("utf-8")
    again = type(lm).from_pretrained(tmp_path)
    assert {name: type(module) for name, module in again.named_modules()} == before


@pytest.mark.parametrize(("device", "precision"), [("cpu", "bf16"), ("cuda", "fp32")])
def test_elsewhere_a_model_stays_as_it_is(device: str, precision: str) -> None:
    lm = model("roberta")
    use_kernels(lm, torch.device(device), precision, compile=True)
    assert lm.config._attn_implementation == "sdpa"
    assert type(lm.get_output_embeddings()) is torch.nn.Linear
