"""What a run begins from: another run, one of its checkpoints, or a checkpoint that was trained elsewhere.

    --init RUN | RUN@STEP    a finished run, or one of its checkpoints
    --init FOLDER            config.json, weights, and the files of a fast tokenizer
    --init hub:NAME          the same, from the Hugging Face hub or its cache

Of checkpoints from elsewhere, any model that `AutoModelForMaskedLM` loads is suitable if its head can be applied to
states by themselves, which is checked; of causal models GPT-2 and Llama. A checkpoint that needs code of its own is
refused (lexical/pretrained.py). The command line and studies look at folders before torch is loaded; the weights are
read by `init_weights.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError, UsageError, parse_errors
from derivlang.lexical.pretrained import from_pretrained, model_from_pretrained, quiet
from derivlang.sources.hub import offline_if_unreachable
from derivlang.store.record import short
from derivlang.training import checkpoint, run_folder
from derivlang.training.config import CAUSAL, ModelConfig, check_finite
from derivlang.training.languages import TOKENIZER
from derivlang.training.settings import RunPaths, TrainingSettings

INIT = "--init"


def with_tokenizer(paths: RunPaths, settings: TrainingSettings, before: Mapping[str, Any] | None) -> RunPaths:
    """Return the paths with the tokenizer of the run to begin from, whose embeddings belong to it.

    before: the record of a resumed run, which has a copy. Raise StoreError if there is no such run.
    """
    if paths.init is None or paths.tokenizer is not None or settings.embeddings == "new":
        return paths
    if before is not None:
        return replace(paths, tokenizer=paths.run / TOKENIZER)
    elsewhere = checkpoint_folder(paths.init)
    return replace(paths, tokenizer=elsewhere or model_of(paths.init)[0] / TOKENIZER)


def model_of(text: str) -> tuple[Path, Path]:
    """Return (folder of the run, folder of its model) for RUN or RUN@STEP.

    Raise StoreError if the run is not finished, if it has no such checkpoint, or if a file is not the one that was
    written.
    """
    run, step = checkpoint.run_and_step(Path(text))
    facts = run_folder.read(run)
    if step is not None:
        run_folder.check_files(run, facts, model=False)
        return run, checkpoint.of_step(run, step).folder / checkpoint.MODEL
    if facts["status"] == "done":
        run_folder.check_files(run, facts)
        return run, run / checkpoint.MODEL
    there = ", ".join(map(str, checkpoint.steps(run)))
    raise StoreError(
        "is not a finished run",
        where=f"{INIT} {text}",
        fix="finish it" + (f", or begin from a checkpoint: RUN@STEP, of {there}" if there else ""),
        id="no-model",
    )


def has_language_ids(text: str) -> bool:
    """Return whether the model of RUN or RUN@STEP gets the language of each position; False if it is not there.

    Raise StoreError if its record cannot be read.
    """
    run, _ = checkpoint.run_and_step(Path(text))
    there = (run / run_folder.RUN).exists()  # a study looks at the options of all cells before the first one runs
    return there and bool((run_folder.read(run).get("model") or {}).get("language_ids"))


HUB = "hub:"
_CONFIG, _RUN = "config.json", "run.json"
_TYPICAL = {"steps": 1000, "batch_size": 32, "learning_rate": 5e-5, "warmup": 0.1}  # of further pre-training
_SEQ_LEN = 128
_LIMITS = {
    "hidden_size": 1 << 16, "intermediate_size": 1 << 18, "num_hidden_layers": 1 << 10, "num_attention_heads": 1 << 10,
    "vocab_size": 1 << 24, "max_position_embeddings": 1 << 24, "type_vocab_size": 1 << 10, "embedding_size": 1 << 16,
}  # fmt: skip
_LEAST = {"type_vocab_size": 0}  # of DeBERTa, which has no token types; 1 of the others


def checkpoint_folder(text: str) -> Path | None:
    """Return the folder of a checkpoint that was trained elsewhere; None if the text names something else.

    Raise StoreError if a name on the hub cannot be found.
    """
    if not text.startswith(HUB):
        folder = Path(text)
        elsewhere = (folder / _CONFIG).is_file() and not (folder / _RUN).exists() and not (folder / TOKENIZER).exists()
        return folder if elsewhere else None
    offline_if_unreachable()
    from huggingface_hub import snapshot_download

    name = text.removeprefix(HUB)
    try:
        return Path(snapshot_download(name, allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model", "*.bin"]))
    except Exception as error:  # noqa: BLE001 (the hub's client raises many kinds)
        raise StoreError(
            f"cannot be fetched from the hub: {' '.join(str(error).split())[:200]}",
            where=text,
            fix="check the name and the connection, or give the folder of a checkpoint",
            id="hub",
        ) from None


def config_of(folder: Path, name: str) -> ModelConfig:
    """Return the config of a checkpoint, with typical settings of training, and `tie` as it is.

    Raise StoreError if the folder has no readable config, UsageError for a type of model that is not suitable.
    """
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES as MASKED

    with quiet(), parse_errors(str(folder / _CONFIG), "config of a model", error=StoreError, id="model"):
        config = from_pretrained(AutoConfig, folder)
        check_finite(config.to_dict())
        for field, limit in _LIMITS.items():  # a damaged config would ask for any amount of memory
            value = getattr(config, field, None)
            if value is not None and not (isinstance(value, int) and _LEAST.get(field, 1) <= value <= limit):
                raise ValueError(f"{field} is {short(value)}")
    if config.model_type not in (*CAUSAL, *MASKED) or config.is_encoder_decoder:
        raise UsageError(
            f"a model of the type {config.model_type!r} can neither be trained nor evaluated here",
            where=str(folder),
            fix="give a masked language model (BERT, RoBERTa, XLM-R, DistilBERT, ModernBERT …) or a causal one of the "
            f"types {' and '.join(CAUSAL)}",
            id="model",
        )
    from derivlang.training.encoder import longest_row  # loads torch, which studies do without

    most = longest_row(folder)
    tie, seq_len = bool(getattr(config, "tie_word_embeddings", True)), min(_SEQ_LEN, most or _SEQ_LEN)
    fields = {"hidden_size": config.hidden_size, "num_hidden_layers": config.num_hidden_layers}
    return ModelConfig(name, config.model_type, fields, {**_TYPICAL, "seq_len": seq_len, "tie": tie})


def load_model(folder: Path, *, causal: bool) -> Any:
    """Return the language model of a checkpoint.

    Raise StoreError if it cannot be read or has no head of a language model, UsageError if the head does not suit.
    """
    import transformers

    from derivlang.training.encoder import check_head

    kind: Any = transformers.AutoModelForCausalLM if causal else transformers.AutoModelForMaskedLM
    with quiet(), parse_errors(str(folder), "model", error=StoreError, id="model"):
        lm, loading_info = model_from_pretrained(kind, folder, output_loading_info=True, dtype="float32")
    missing = sorted(name for name in map(str, loading_info["missing_keys"]) if "pooler." not in name)
    if missing or loading_info["mismatched_keys"]:
        raise StoreError(
            f"lacks {len(missing)} weights of a {'causal' if causal else 'masked'} language model, e.g. "
            f"{(missing or sorted(map(str, loading_info['mismatched_keys'])))[0]}",
            where=str(folder),
            fix="give a checkpoint with the head that it was pre-trained with",
            id="no-head",
        )
    with parse_errors(str(folder), "model", error=StoreError, id="model"):
        check_head(lm, str(folder))
    return lm


def check_vocabulary(lm: Any, size: int, where: str) -> None:
    """Raise UsageError if a model has fewer embeddings than its tokenizer has entries."""
    rows = lm.get_input_embeddings().weight.shape[0]
    if rows < size:
        raise UsageError(
            f"the model has {rows:,} embeddings, but its tokenizer {size:,} entries",
            where=where,
            fix="give the tokenizer that belongs to the model",
            id="vocabulary",
        )
