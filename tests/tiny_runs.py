"""Folders of tiny runs, as `derivlang pretrain` leaves them, and task data made of the demo's sentences."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import torch
import transformers

from derivlang.core.batch import Batch
from derivlang.core.layers.spans import Spans
from derivlang.engine.batches import Source
from derivlang.lexical.settings import TokenizerOptions
from derivlang.lexical.train import train
from derivlang.lexical.twin import make_twin
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.training import run_folder
from derivlang.training.config import CAUSAL
from derivlang.training.languages import TOKENIZER, TWIN, Languages, SpecialIds, load
from derivlang.training.run_folder import with_hashes

torch.set_num_threads(1)  # models this small: a second one only waits
DEMO = Path(__file__).parents[1] / "derivlang" / "sources" / "demo"
MARKS = SpecialIds(0, 1, 2, 4)  # of every tokenizer of derivlang
SPLITS = {"train": "train", "dev": "validation", "test": "test"}


@cache
def tokenizer() -> Path:
    """Of the demo's words: 300 entries."""
    out = Path(mkdtemp(prefix="derivlang-tests-")) / TOKENIZER
    train(SourceRequest("demo"), out, TokenizerOptions(vocab_size=300, min_frequency=1))
    return out


@cache
def languages(spec: str) -> Languages:
    """The demo's languages under a pipeline."""
    folder = Path(mkdtemp(prefix="derivlang-tests-"))
    shutil.copytree(tokenizer(), folder / TOKENIZER)
    make_twin(folder / TOKENIZER, spec, folder / TWIN)
    return load(folder, Pipeline.parse(spec))


def batch(source: str = "demo", split: str = "train", spec: str = "identity") -> Batch:
    """All of a split of the demo, sentences split."""
    (found,) = Source.open(Pipeline.parse(spec), SourceRequest(source)).batches(split)
    return found


def data_folder(folder: Path) -> Path:
    """UD, WikiAnn, XNLI, PAWS-X and SQuAD, as far as the demo has them."""
    for place in ("ud/UD_English-EWT", "ner/wikiann/en", "xnli", "pawsx", "qa/squad", "qa/xquad"):
        (folder / place).mkdir(parents=True)
    for place in ("qa/squad/train-v1.1.json", "qa/squad/dev-v1.1.json", "qa/xquad/xquad.en.json"):
        shutil.copy(DEMO / "demo-qa-test.json", folder / place)
    for name, split in SPLITS.items():
        shutil.copy(DEMO / f"demo-ud-{name}.conllu", folder / "ud" / "UD_English-EWT" / f"en_ewt-ud-{name}.conllu")
        told = "multinli.train.en" if name == "train" else f"{name}.en"
        pairs = (DEMO / f"demo-nli-{name}.tsv").read_text("utf-8")
        (folder / "xnli" / f"{told}.tsv").write_text(f"premise\thypothesis\tlabel\n{pairs}", "utf-8")
        binary = pairs.replace("\tentailment\n", "\t1\n").replace("\tneutral\n", "\t0\n")
        (folder / "pawsx" / f"{name}.en.tsv").write_text(binary.replace("\tcontradiction\n", "\t0\n"), "utf-8")
        found = batch(split=split)
        spans = found.layers["ner_tags"]
        assert isinstance(spans, Spans)
        tags = [spans.classes[tag] for tag in spans.tags(found.n_words)]
        lines = [f"{word}\t{tag}\n" for word, tag in zip(found.strings().to_pylist(), tags, strict=True)]
        ends = {int(end) for end in found.unit_words[1:]}
        text = "".join(line + "\n" * (i + 1 in ends) for i, line in enumerate(lines))
        (folder / "ner" / "wikiann" / "en" / f"{name}.tsv").write_text(text, "utf-8")
    return folder


def write_run(
    folder: Path, spec: str = "trans,inv", *, kind: str = "modernbert", dictionary: int = 0, **facts: Any
) -> Path:
    """A run that has seen no text. dictionary: entries of it, the first of the vocabulary."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(tokenizer(), folder / TOKENIZER)
    make_twin(folder / TOKENIZER, spec, folder / TWIN)
    found = load(folder, Pipeline.parse(spec))
    language_ids = bool((facts.get("model") or {}).get("language_ids"))
    save_model(folder, model_of(kind, found.size, language_ids=language_ids))
    if dictionary:
        first = found.tokenizer.n_special
        sides = (found.tokenizer.tokenizer.bpe.entries, found.twin.tokenizer.bpe.entries)
        pairs = zip(*(side[first : first + dictionary] for side in sides), strict=True)
        text = "source\tderived\tcount\n" + "".join(f"{a}\t{b}\t1\n" for a, b in pairs)
        (folder / "dictionary.tsv").write_text(text, "utf-8")
    record = {
        "format": run_folder.FORMAT,
        "derivlang": "0",
        "status": "done",
        "source": "demo",
        "spec": Pipeline.parse(spec).stored,
        "objective": "mlm",
        "seed": 1,
        "steps": 0,
        "model": {"name": kind, "language_ids": False},
        "data": "0",
        "fingerprint": "0",
        "settings": {},
        "pipeline": found.fingerprint(),
    }
    (folder / "run.json").write_text(json.dumps(record | facts), "utf-8")
    return seal(folder)


def seal(folder: Path) -> Path:
    """Give the record of a run whose files were changed by hand its hashes again."""
    path = folder / "run.json"
    path.write_text(json.dumps(with_hashes(folder, json.loads(path.read_text("utf-8")))), "utf-8")
    return folder


def model_of(kind: str, size: int, *, language_ids: bool = False) -> Any:
    """A language model of 16 units with random weights, always the same."""
    common = {
        "vocab_size": size,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "pad_token_id": 1,
        "initializer_range": 0.2,
    }
    if kind == "modernbert":
        own: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2}
        config: Any = transformers.ModernBertConfig(**common, **own, reference_compile=False)
    elif kind == "roberta":
        own = {"max_position_embeddings": 66, "type_vocab_size": 2 if language_ids else 1}
        config = transformers.RobertaConfig(**common, **own)
    elif kind == "bert":
        config = transformers.BertConfig(**common, max_position_embeddings=64)
    else:
        common |= {"max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 2}
        if kind == "gpt2":
            common["n_inner"] = common.pop("intermediate_size")
        config = transformers.AutoConfig.for_model(kind, **common)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made: Any = transformers.AutoModelForCausalLM if kind in CAUSAL else transformers.AutoModelForMaskedLM
        return made.from_config(config)


def save_model(folder: Path, model: Any) -> None:
    """A model as the run's, with its hashes in the record that is there."""
    bars = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(folder / "model")
    if bars:
        transformers.utils.logging.enable_progress_bar()
    if (folder / "run.json").exists():
        seal(folder)


def rows_of_twins_equal(model: Any, found: Languages) -> Any:
    """The model, with the rows of the derived language like those of the source, in and out."""
    table = torch.from_numpy(found.twin.joint.table().astype("int64"))
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, weights in parameters.items():
            if weights.shape[0] == found.size:
                weights[table] = weights[: len(table)].clone()
                assert name
    return model
