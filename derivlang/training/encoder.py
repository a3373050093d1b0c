"""The encoder: the one place that calls a model of `transformers`, for objectives, measures and tasks.

    ids, mask, language, positions ──▶ states [B, T, d] ──at the positions that predict──▶ head ──▶ logits [n, V]

It gives each type of model what it expects: its own id for padding, token types, where positions begin.

How a model numbers the positions of a row is asked of it by small forward passes, not looked up by its type:

    BERT       rows 0 1 2 3 …    of a table of positions
    RoBERTa    rows 2 3 4 5 …    counted from the id of padding + 1, without padding: XLM-R, CamemBERT, ESM …
    Llama      no table          rotary or relative positions

Some models, such as DeBERTa, take `position_ids` and ignore them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from inspect import signature
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from derivlang.core.errors import StoreError, UsageError, parse_errors
from derivlang.lexical.pretrained import model_from_pretrained, quiet
from derivlang.training.batch import SubwordRows
from derivlang.training.checkpoint import hash_of_weights
from derivlang.training.config import CAUSAL
from derivlang.training.languages import SpecialIds
from derivlang.training.own_parts import has_own, ids_by_language, own_parts, table_of

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


# The heads of models, from states to logits, by the module that only models with such a head have.
_HEADS: dict[str, Callable[[Any, Any], Any]] = {
    "lm_head": lambda lm, states: lm.lm_head(states),  # RoBERTa, XLM-R, GPT-2, Llama
    "cls": lambda lm, states: lm.cls(states),  # BERT
    "decoder": lambda lm, states: lm.decoder(lm.head(states)),  # ModernBERT
    "vocab_projector": lambda lm, states: lm.vocab_projector(  # DistilBERT
        lm.vocab_layer_norm(lm.activation(lm.vocab_transform(states)))
    ),
    "generator_lm_head": lambda lm, states: lm.generator_lm_head(lm.generator_predictions(states)),  # ELECTRA
    "predictions": lambda lm, states: lm.predictions(states),  # ALBERT
}


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """A masked or causal language model of `transformers`, or one without a head, on any device.

    special_ids: of its languages. language_ids: whether it gets the language numbers, as token types. numbers: which
    languages of the model the caller's are, () if they are the same. bf16: whether it computes in bfloat16; if not, in
    the caller's precision. compiled: whether `cross_entropy` is compiled, so that the logits are never in memory as
    32-bit floats.
    """

    module: Any
    special_ids: SpecialIds
    language_ids: bool = field(default=False, kw_only=True)
    numbers: tuple[int, ...] = field(default=(), kw_only=True)
    bf16: bool = field(default=False, kw_only=True)
    compiled: bool = field(default=False, kw_only=True)

    @property
    def causal(self) -> bool:
        """Whether each position sees only those before it."""
        return self.module.config.model_type in CAUSAL

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.module.parameters()).device  # type: ignore[no-any-return]

    @property
    def n_layers(self) -> int:
        """The number of layers above the embeddings."""
        return int(self.module.config.num_hidden_layers)

    @property
    def embeddings(self) -> torch.Tensor:
        """float[V, d]: the input embedding matrix."""
        return self.module.get_input_embeddings().weight  # type: ignore[no-any-return]

    @property
    def language_embeddings(self) -> torch.Tensor:
        """float[L, d]: the language embeddings or token types. Raises UsageError if the model has none."""
        return self._table[list(self.numbers)] if self.numbers else self._table

    @property
    def _table(self) -> torch.Tensor:
        table = table_of(self.module.base_model)
        if table is None:
            raise UsageError("the model has no language embeddings", where="--model", id="no-token-types")
        return table.weight

    def base(self) -> Encoder:
        """Return the encoder without its head."""
        return replace(self, module=self.module.base_model)

    def states(self, batch: SubwordRows, layer: int | None = None) -> torch.Tensor:
        """Return float[B, H, d]: the states of a batch at a layer. 0: the embeddings; None: the last layer."""
        return self(batch.input_ids, batch.attention, batch.language, batch.positions, layer)  # type: ignore[no-any-return]

    def states_and_layer(self, batch: SubwordRows, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the states of the last layer and of another one, float[B, H, d] each, from a single pass."""
        output = self._output(
            batch.input_ids, batch.attention, batch.language, batch.positions, output_hidden_states=True
        )
        return output.last_hidden_state, output.hidden_states[layer]

    def __call__(self, ids: Any, mask: Any, language: Any, positions: Any = None, layer: int | None = None) -> Any:
        """Return float[B, T, d]: the states of ids, int64[B, T], at a layer. 0: the embeddings; None: the last layer.

        mask: bool[B, T], False for padding, at the end of a row. language: a number for all positions, or int64[B, T].
        positions: int64[B, T], from 0; None: 0 … T - 1. Raise UsageError for positions if the model numbers them
        itself.
        """
        if layer is not None:
            return self.layers(ids, mask, language, positions)[layer]
        return self._output(ids, mask, language, positions).last_hidden_state

    def layers(self, ids: Any, mask: Any, language: Any, positions: Any = None) -> tuple[torch.Tensor, ...]:
        """Return the states of every layer, float[B, T, d] each, from the embeddings to the last layer."""
        output = self._output(ids, mask, language, positions, output_hidden_states=True)
        return output.hidden_states  # type: ignore[no-any-return]

    def predict(self, states: torch.Tensor) -> torch.Tensor:
        """Return float[n, V]: the logits of states float[n, d]. Raise UsageError for an unknown type of model."""
        with self._precision():
            return _head(self.module)(states)

    def cross_entropy(self, states: torch.Tensor, labels: torch.Tensor, reduction: str = "sum") -> torch.Tensor:
        """Return the cross-entropy in nats of labels int64[n], predicted from states float[n, d], as float32.

        reduction: `sum`, a scalar, or `none`, float32[n].
        """
        with self._precision():
            if not self.compiled:
                return _cross_entropy(self.module, states, labels, reduction)
            for tensor in (states, labels):  # n differs from step to step: compile once for all
                torch._dynamo.maybe_mark_dynamic(tensor, 0)
            return _compiled_cross_entropy()(self.module, states, labels, reduction)  # type: ignore[no-any-return]

    @contextmanager
    def without_gradient(self) -> Iterator[None]:
        """Compute states in the block without gradient and without dropout, e.g. for labels of the model's own."""
        training = self.module.training
        self.module.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.module.train(training)

    def _output(self, ids: Any, mask: Any, language: Any, positions: Any, **options: Any) -> Any:
        config, base = self.module.config, self.module.base_model
        if self.numbers:
            every = torch.tensor(self.numbers, device=ids.device)
            language = every[torch.as_tensor(language, device=ids.device).long()]
        padding = config.pad_token_id
        # Attention needs no mask for rows without padding. Only a CPU can be asked without waiting for it.
        is_full = ids.device.type == "cpu" and bool(mask.all())
        if padding is not None and not is_full:  # RoBERTa numbers positions by it
            ids = ids.masked_fill(~mask, padding)
        own = own_parts(config)
        if "special-ids" in own:
            ids = ids_by_language(ids, language, self.special_ids, len(self.embeddings))
        if "positions" in own:
            places = torch.arange(ids.shape[1], device=ids.device) if positions is None else positions
            positions = places + positions_of(self.module).longest * (torch.zeros_like(ids) + language)
        given = {"input_ids": ids}
        if self.language_ids:
            spoken = torch.zeros_like(ids) + language
            if not has_own(self.module):
                options["token_type_ids"] = spoken
            else:
                given = {"inputs_embeds": self.module.get_input_embeddings()(ids) + self._table[spoken]}
        if positions is not None:
            check_reset(self.module)
            options["position_ids"] = positions + positions_of(self.module).shift
        if self.causal:
            options["use_cache"] = False  # keys and values of earlier positions are for generation
        with self._precision():
            return base(**given, attention_mask=None if is_full else mask.long(), **options)

    def _precision(self) -> AbstractContextManager[Any]:
        return torch.autocast("cuda", torch.bfloat16) if self.bf16 else nullcontext()


def _cross_entropy(lm: Any, states: torch.Tensor, labels: torch.Tensor, reduction: str) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(_head(lm)(states).float(), labels, reduction=reduction)


@cache
def _compiled_cross_entropy() -> Any:
    return torch.compile(_cross_entropy)


def check_head(lm: Any, where: str) -> None:
    """Raise UsageError if the head, applied to states, does not give the logits of the whole model."""
    head, ids, training = _head(lm, where), torch.arange(4)[None] + 5, lm.training
    lm.eval()
    try:
        with torch.no_grad():
            logits = head(lm.base_model(input_ids=ids).last_hidden_state)
            fits = torch.allclose(logits, lm(input_ids=ids).logits, atol=1e-4)
    finally:
        lm.train(training)
    if not fits:
        raise _unsuitable(lm, where)


def _head(lm: Any, where: str | None = None) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the function from states float[n, d] to logits float[n, V]. Raise UsageError if it is not known."""
    head = next((head for name, head in _HEADS.items() if hasattr(lm, name)), None)
    if head is None:
        raise _unsuitable(lm, where)
    return partial(head, lm)


def _unsuitable(lm: Any, where: str | None) -> UsageError:
    return UsageError(
        f"a model of the type {lm.config.model_type!r} is not suitable: it has no head that is a known function of the "
        "last layer's states",
        where=where,
        fix="give a checkpoint of BERT, RoBERTa, XLM-R, DistilBERT, ModernBERT, GPT-2 or a similar type",
        id="model",
    )
