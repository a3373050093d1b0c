"""What a GPU computes faster in another way: attention to rows with padding, and logits.

torch's Flash kernel takes no mask, and with one torch takes a slower kernel. But it takes sequences of any lengths, one
after the other. Rows and the padding at their ends are such sequences, so nothing has to be moved or counted:

    lengths 3 and 4 of 4 sub-words      a b c _ | d e f g
    begins [0, 3, 4, 8, 8]              `a b c`, `_`, `d e f g`, and an empty one

Padding sees padding, whose states nobody reads.

The matrix units load 16 bytes at once, 8 numbers in bfloat16. Where a row of logits has another length, such as 79,988,
slow kernels multiply, and torch's compiler first copies the logits to rows of a better length. `AlignedLinear` computes
some more logits, and returns its own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import linear, pad

FLASH = "derivlang"  # the name of the attention in the registries of `transformers`
# Models whose layers all see the whole row, or all that is before a position.
_TYPES = ("bert", "gpt2", "llama", "roberta", "xlm-roberta")
_ROUND = 64


def use_kernels(lm: Any, device: torch.device, precision: str, *, compile: bool) -> None:
    """Let a model of `transformers` take the kernels that suit it and the device. Its weights stay as they are.

    Rows must have their padding at the end, and be masked by bool[B, T].
    """
    if device.type == "cuda" and precision == "bf16":
        if _takes_flash(lm, device):
            _use_flash(lm)
        output = lm.get_output_embeddings()
        if compile and type(output) is torch.nn.Linear:  # without the compiler, the gradient would be copied
            output.__class__ = AlignedLinear


class AlignedLinear(torch.nn.Linear):
    """A linear layer that computes a round number of outputs, and returns its own.

    weight [79988, d]   ->   80,000 outputs, the last 12 by rows of zeros
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        spare = -self.out_features % _ROUND
        bias = None if self.bias is None else pad(self.bias, (0, spare))
        return linear(input, pad(self.weight, (0, 0, 0, spare)), bias)[..., : self.out_features]


def _takes_flash(lm: Any, device: torch.device) -> bool:
    config = lm.config
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return (
        config.model_type in _TYPES
        and config._attn_implementation == "sdpa"  # the default, which [model] attn_implementation changes
        and torch.backends.cuda.is_flash_attention_available()
        and torch.cuda.get_device_capability(device) >= (8, 0)
        and size % 8 == 0
        and size <= 192  # above, some GPUs cannot compute the gradient
    )


def _use_flash(lm: Any) -> None:
    may_be_set = getattr(lm, "_can_set_attn_implementation", None)
    if may_be_set is None or not may_be_set():  # of an earlier version of transformers
        return
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(FLASH, _attend)
    AttentionMaskInterface.register(FLASH, _begins)
    lm.set_attn_implementation(FLASH)


def _begins(*_: Any, attention_mask: torch.Tensor | None = None, **__: Any) -> torch.Tensor | None:
    """Return int32[2 B + 1]: where rows and their padding begin, and the end of all. attention_mask: bool[B, T].

    None: there is no padding.
    """
    if attention_mask is None:
        return None
    n_rows, length = attention_mask.shape
    row_begins = torch.arange(n_rows + 1, device=attention_mask.device) * length
    ends = row_begins[:-1] + attention_mask.sum(1)
    return torch.cat([torch.stack([row_begins[:-1], ends], 1).flatten(), row_begins[-1:]]).int()


def _attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Return (float[B, T, heads, d], None): attention within what `_begins` separates. query: float[B, heads, T, d]."""
    n_rows, heads, length, size = query.shape
    key, value = (t if t.shape[1] == heads else t.repeat_interleave(heads // t.shape[1], 1) for t in (key, value))
    # Llama's rotary positions make queries and keys 32-bit floats, and a caller may be outside of autocast.
    flat = [t.bfloat16().transpose(1, 2).reshape(n_rows * length, heads, size) for t in (query, key, value)]
    begins = attention_mask
    if begins is None:
        begins = torch.arange(n_rows + 1, device=query.device, dtype=torch.int32) * length
    states = torch.ops.aten._flash_attention_forward(
        *flat, begins, begins, length, length, dropout, module.is_causal, False, scale=scaling
    )[0]
    return states.to(value.dtype).view(n_rows, length, heads, size), None
