"""How a model numbers the positions of a row: asked of the model by small forward passes, not looked up by its type.

    BERT       rows 0 1 2 3 …    of a table of positions
    RoBERTa    rows 2 3 4 5 …    counted from the id of padding + 1, without padding: XLM-R, CamemBERT, ESM …
    Llama      no table          rotary or relative positions

Some models, such as DeBERTa, take `position_ids` and ignore them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from derivlang.core.errors import StoreError, UsageError, parse_errors
from derivlang.lexical.pretrained import model_from_pretrained, quiet
from derivlang.training.checkpoint import hash_of_weights
from derivlang.training.own_parts import own_parts

_ASKED = 8  # sub-words of the rows that are asked with


@dataclass(frozen=True, slots=True)
class Positions:
    """The positions of a model.

    longest: maximum number of sub-words in a row, with special ids, of each language where it has its own positions;
    None without a limit. shift: what is added to positions from 0 to give them to the model, which is not 0 if it
    counts them from the id of padding. can_reset: whether the states change if positions begin again within a row.
    """

    longest: int | None
    shift: int
    can_reset: bool


def longest_row(folder: Path) -> int | None:
    """Return `longest` of the model in a folder. Raise StoreError if it cannot be read, or not be asked."""
    return _longest_row(str(folder), hash_of_weights(folder))


@lru_cache(maxsize=64)
def _longest_row(folder: str, weights: str) -> int | None:
    from transformers import AutoModel

    with quiet(), parse_errors(folder, "model", error=StoreError, id="model"):
        return positions_of(model_from_pretrained(AutoModel, Path(folder), dtype="float32")).longest


_known: WeakKeyDictionary[Any, Positions] = WeakKeyDictionary()


def positions_of(lm: Any) -> Positions:
    """Return the positions of a model of `transformers`, which is asked once."""
    base = lm.base_model
    if base not in _known:
        training = base.training
        base.eval()
        try:
            with torch.no_grad():
                _known[base] = _ask(base)
        finally:
            base.train(training)
    return _known[base]


def check_reset(lm: Any) -> None:
    """Raise UsageError if positions cannot begin again within the rows of a model."""
    if not positions_of(lm).can_reset:
        raise UsageError(
            f"a model of the type {lm.config.model_type!r} numbers its positions itself, so they cannot begin again in "
            "the second half of a pair",
            where="--objective",
            fix="give an objective that does not reset positions, e.g. tlm:reset=no",
            id="positions",
        )


def _ask(base: Any) -> Positions:
    config = base.config
    device = base.get_input_embeddings().weight.device
    # Descending ids: only positions ascend.
    ids = (config.vocab_size - 1 - torch.arange(_ASKED, device=device)) % config.vocab_size
    places = torch.arange(_ASKED, device=device)
    states, tables = _run(base, ids)
    table = next((key for key, rows in tables.items() if torch.equal(rows - rows[0], places)), None)
    first = 0 if table is None else int(tables[table][0])
    most = getattr(config, "max_position_embeddings", None) if table is None else table[1]
    longest = None if most is None else (int(most) - first) // (2 if "positions" in own_parts(config) else 1)
    if "position_ids" not in signature(base.forward).parameters:
        return Positions(longest, 0, can_reset=False)
    shift = 0 if table is None else first - int(_run(base, ids, position_ids=places[None])[1][table][0])
    again = places % (_ASKED // 2) + shift
    can_reset = not torch.equal(states, _run(base, ids, position_ids=again[None])[0])
    return Positions(longest, shift, can_reset)


def _run(base: Any, ids: torch.Tensor, **options: Any) -> tuple[torch.Tensor, Mapping[tuple[int, int], torch.Tensor]]:
    """Return the states of a row, and of each table that was read: (its number, its rows) -> the rows read first."""
    with _Reads() as reads:
        states = base(input_ids=ids[None], attention_mask=torch.ones_like(ids[None]), **options)[0]
    return states, {(i, size): rows for i, (size, rows) in enumerate(reads.tables)}


class _Reads(TorchDispatchMode):
    """Notes which rows of tables of embeddings are read."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[tuple[int, torch.Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.embedding.default and args[1].numel() >= _ASKED:
            self.tables.append((len(args[0]), args[1].flatten()[:_ASKED]))
        return func(*args, **(kwargs or {}))
