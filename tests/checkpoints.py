"""Small random checkpoints of several types, as `transformers` saves them, with fast tokenizers of their own."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

_HOME = Path(tempfile.mkdtemp(prefix="derivlang-checkpoints-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)

SPECIALS = {"wordpiece": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
            "bytes": ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
            "unigram": ("<s>", "<pad>", "</s>", "<unk>", "<mask>")}  # fmt: skip
TEXT = [
    "The old dog did not see the small cat under the table.",
    "A student reads three books about the history of the town.",
    "They were lower than it, and we lowered it again.",
    "ⴰⴱⴳ ⴷⴻⴼ ⴳⵀⵉ кот спит на столе, а собака ждёт.",
]
_TOKENIZERS = {"roberta": "bytes", "modernbert": "bytes", "xlm-roberta": "unigram"}
_SIZES: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48,
    "max_position_embeddings": 140,
}  # fmt: skip
# DistilBERT's names of sizes; ELECTRA's embeddings are narrower than its states unless told.
_OWN_SIZES: dict[str, dict[str, Any]] = {
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48},
    "electra": {"embedding_size": 32},
}
TYPES = ("bert", "roberta", "xlm-roberta", "distilbert", "modernbert", "electra")


def tokenizer_of(kind: str) -> Any:
    """A fast tokenizer of about 300 entries: word pieces, bytes with a space before words, or pieces of a unigram."""
    from transformers import PreTrainedTokenizerFast

    specials = SPECIALS[kind]
    if kind == "wordpiece":
        made: Any = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer(lowercase=True)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer: Any = trainers.WordPieceTrainer(vocab_size=300, special_tokens=list(specials), show_progress=False)
    elif kind == "bytes":
        made = Tokenizer(models.BPE(unk_token="<unk>"))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        made.post_processor = processors.ByteLevel(trim_offsets=True)
        trainer = trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=list(specials),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
    else:
        made = Tokenizer(models.Unigram())
        made.normalizer = normalizers.NFKC()
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        made.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=200, special_tokens=list(specials), unk_token="<unk>", show_progress=False
        )
    made.train_from_iterator(TEXT, trainer)
    names = ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token")
    by_role = dict(zip(names, specials, strict=True))
    if kind == "wordpiece":
        by_role = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), specials, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=made, **by_role)


@cache
def checkpoint(kind: str = "bert", seed: int = 1) -> Path:
    """The folder of a random checkpoint: 2 layers of width 32."""
    from transformers import AutoConfig, AutoModelForMaskedLM

    tokenizer = tokenizer_of(_TOKENIZERS.get(kind, "wordpiece"))
    ids = {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
    }
    if kind == "modernbert":
        ids |= {"cls_token_id": tokenizer.cls_token_id, "sep_token_id": tokenizer.sep_token_id}
    config = AutoConfig.for_model(
        kind, vocab_size=len(tokenizer), initializer_range=0.1, **(_SIZES | _OWN_SIZES.get(kind, {})), **ids
    )
    torch.manual_seed(seed)
    folder: Path = _HOME / f"{kind}-{seed}"
    AutoModelForMaskedLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
