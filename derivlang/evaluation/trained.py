"""The folder of a pre-trained run as evaluation takes it: what ran, its languages, and its model.

Any checkpoint that `transformers` loads as a masked language model will do (RoBERTa, ModernBERT, BERT); of one without
that head the encoder is taken, and there is no perplexity.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import derivlang
from derivlang.core.errors import DerivlangError, StoreError
from derivlang.evaluation.examples import PAD
from derivlang.training import folder as runs
from derivlang.training.checkpoint import MODEL
from derivlang.training.devices import has_bf16
from derivlang.training.folder import RUN
from derivlang.training.languages import TWIN, Languages
from derivlang.training.model import AFTER_PADDING, head_of
from derivlang.training.quiet import quiet

if TYPE_CHECKING:
    import torch

_WEIGHTS = ("*.safetensors", "*.bin", "config.json")


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """A model on its device. token_types: whether it takes the languages' numbers as token types."""

    module: Any
    token_types: bool
    device: torch.device

    def __call__(self, ids: torch.Tensor, mask: torch.Tensor, language: int, **options: Any) -> Any:
        """What the module gives for ids, int64[B, T], and mask, bool[B, T], of one language."""
        import torch

        types = {"token_type_ids": torch.full_like(ids, language)} if self.token_types else {}
        with self._precision():
            return self.module(input_ids=ids, attention_mask=mask.long(), **types, **options)

    def logits(self, ids: torch.Tensor, mask: torch.Tensor, language: int, at: torch.Tensor) -> torch.Tensor:
        """float[n, V]: of a masked language model, at n places, int64[n], counted through all rows of T."""
        head = head_of(self.module)
        if head is None:
            whole: torch.Tensor = self(ids, mask, language).logits
            return whole.flatten(0, 1)[at].float()
        states = replace(self, module=self.module.base_model)(ids, mask, language).last_hidden_state
        with self._precision():
            return head(states.flatten(0, 1)[at]).float()

    def _precision(self) -> Any:
        import torch

        return torch.autocast("cuda", torch.bfloat16, enabled=self.device.type == "cuda" and has_bf16())


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A run. facts: its `run.json`. config: the model's. weights: 16 hex digits of the model's files."""

    folder: Path
    facts: dict[str, Any]
    languages: Languages
    config: Any
    weights: str

    @classmethod
    def load(cls, folder: Path) -> Trained:
        """StoreError where the folder is no finished run, or its parts do not fit one another."""
        facts = _facts(folder)
        languages = Languages.load(folder, facts["spec"])
        _check_twin(folder, languages)
        path = folder / MODEL
        if not (path / "config.json").is_file():
            raise StoreError(
                f"there is no {MODEL}/config.json", where=str(folder), fix="train it to its end", id="no-model"
            )
        from transformers import AutoConfig

        with quiet(), _readable(path):
            config = AutoConfig.from_pretrained(path, local_files_only=True)
        if getattr(config, "vocab_size", None) != languages.size:
            raise StoreError(
                f"the model has {getattr(config, 'vocab_size', 0):,} rows of embeddings, but its two languages have "
                f"{languages.size:,} ids",
                where=str(path),
                fix="the folder holds the tokenizer or the twin of another run",
                id="vocabulary",
            )
        trained = cls(folder, facts, languages, config, _hash(path))
        if trained.language_ids and (getattr(config, "type_vocab_size", None) or 0) < 2:
            raise StoreError(
                "run.json says that the model has language ids, but it has no two token types",
                where=str(path),
                id="language-ids",
            )
        return trained

    @property
    def language_ids(self) -> bool:
        """Does the model see the languages' numbers?"""
        return bool((self.facts.get("model") or {}).get("language_ids"))

    @property
    def longest(self) -> int:
        """Sub-words in a row, at most, marks included."""
        most = getattr(self.config, "max_position_embeddings", None)
        if most is None:
            return 1 << 15
        # RoBERTa numbers positions from padding + 1.
        shifted = self.config.model_type in AFTER_PADDING
        return int(most) - (PAD + 1 if shifted else 0)

    @property
    def has_lm_head(self) -> bool:
        return any(name.endswith("ForMaskedLM") for name in getattr(self.config, "architectures", None) or ())

    def masked_lm(self, device: torch.device) -> Encoder:
        """The masked language model, or the encoder where there is no head; StoreError where it is damaged."""
        from transformers import AutoModel, AutoModelForMaskedLM

        kind: Any = AutoModelForMaskedLM if self.has_lm_head else AutoModel
        path = self.folder / MODEL
        with quiet(), _readable(path):
            module, found = kind.from_pretrained(
                path, local_files_only=True, output_loading_info=True, dtype="float32"
            )  # fmt: skip
        missing = {name for name in found["missing_keys"] if "pooler." not in name} | set(found["mismatched_keys"])
        if missing:
            raise StoreError(
                f"lacks {len(missing)} of the model's weights, e.g. {min(map(str, missing))}",
                where=str(path),
                fix="train it again, or put the right file back",
                id="model",
            )
        return Encoder(module.to(device), self.language_ids, device)

    def encoder(self, device: torch.device) -> Encoder:
        """The model without its head, fresh from the folder."""
        whole = self.masked_lm(device)
        return Encoder(whole.module.base_model, whole.token_types, device)

    @property
    def signature(self) -> dict[str, Any]:
        """What every number of this run depends on."""
        facts = self.facts
        return {
            "derivlang": derivlang.__version__,
            **{name: facts.get(name) for name in ("spec", "source", "objective", "model")},
            "steps": facts.get("step", facts.get("steps")),
            **{name: facts.get(name) for name in ("seed", "data", "fingerprint")},
            "weights": self.weights,
        }


def _facts(folder: Path) -> dict[str, Any]:
    facts = runs.read(folder)
    missing = [name for name in ("spec", "source") if not isinstance(facts.get(name), str)]
    if missing:
        raise StoreError(f"lacks {' and '.join(missing)}", where=str(folder / RUN), id="run")
    if facts["status"] != "done":
        raise StoreError(
            f"the run is not finished: its status is {facts['status']!r}",
            where=str(folder),
            fix="the same `derivlang pretrain` with --resume goes on",
            id="unfinished",
        )
    return facts


def _check_twin(folder: Path, languages: Languages) -> None:
    """Is the twin the source tokenizer's own?"""
    twin, tokenizer = languages.twin.tokenizer, languages.tokenizer
    if twin.recipe.get("of") != tokenizer.fingerprint() or twin.size != tokenizer.size:
        raise StoreError(
            f"is the twin of another tokenizer: it has {twin.size:,} entries, the run's tokenizer {tokenizer.size:,}",
            where=str(folder / TWIN),
            fix="put the run's own folder back",
            id="twin",
        )


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn whatever the library raises of a model's files into a StoreError."""
    try:
        yield
    except DerivlangError:
        raise
    except Exception as error:  # noqa: BLE001 (safetensors, json, pickle and torch raise errors of their own)
        what = (str(error).strip() or type(error).__name__).partition("\n")[0]
        raise StoreError(
            f"the model cannot be read: {what}", where=str(path), fix="train it again, or put it back", id="model"
        ) from None


def _hash(path: Path) -> str:
    digest = sha256()
    for pattern in _WEIGHTS:
        for file in sorted(path.glob(pattern)):
            digest.update(file.name.encode())
            with file.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()[:16]
