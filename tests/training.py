"""What the tests of training share: encoded pairs made once, models of width 16, runs of some steps.

pair("trans,inv").data            the demo source and its derived language, encoded
trained(tmp_path / "run", steps=6, objective="xlm")      a run of six steps in this process; gives its result
"""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from derivlang.core.batch import Batch
from derivlang.engine.batches import Source
from derivlang.pipeline import Pipeline
from derivlang.sources.find import SourceRequest
from derivlang.training.data import SpecialIds, SubwordRows
from derivlang.training.inputs import Inputs, TokenBatch
from derivlang.training.loader import Loader
from derivlang.training.loop import inputs_of as loop_inputs
from derivlang.training.masking import LanguageIds, Masked
from derivlang.training.model import LanguageModel, ModelConfig
from derivlang.training.objectives.base import Context, Objective
from derivlang.training.objectives.registry import read_objective
from derivlang.training.pairs import PairData
from derivlang.training.prepare import Prepared, prepare_data
from derivlang.training.run import Callbacks, pretrain
from derivlang.training.settings import Duration, LogSettings, TrainingSettings, Where

torch.set_num_threads(1)  # models this small: a second one only waits
_HOME = Path(tempfile.mkdtemp(prefix="derivlang-training-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)

SEQ_LEN = 32
KINDS = ("modernbert", "roberta", "bert")
_FIELDS = {
    "modernbert": "global_attn_every_n_layers = 1\ntheta = 100.0\nembedding_std = 0.1",
    "roberta": "hidden_dropout_prob = {dropout}\nattention_probs_dropout_prob = {dropout}",
    "bert": "hidden_dropout_prob = {dropout}\nattention_probs_dropout_prob = {dropout}",
}


def toml(kind: str = "modernbert", dropout: float = 0.0, more: str = "", training: str = "") -> str:
    """A model of width 16 with one layer, as a file describes it."""
    return f"""
[model]
type = "{kind}"
hidden_size = 16
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 32
initializer_range = 0.07
{_FIELDS[kind].format(dropout=dropout)}
{more}
[training]
vocab_size = 300
seq_len = {SEQ_LEN}
batch_size = 8
steps = 6
learning_rate = 3e-3
warmup = 0.1
mask = 0.3
{training}
"""


@cache
def model_file(kind: str = "modernbert", dropout: float = 0.0) -> str:
    """The path of such a file."""
    path = _HOME / f"{kind}-{dropout}.toml"
    path.write_text(toml(kind, dropout), "utf-8")
    return str(path)


def settings(objective: str = "mlm", spec: str = "trans,inv", **changes: Any) -> TrainingSettings:
    """Of a run on the demo source; language ids as the objective wants them, where the model can be told."""
    kind = changes.pop("kind", "modernbert")
    found = read_objective(objective)
    given: dict[str, Any] = {
        "source": "demo",
        "spec": spec,
        "objective": str(found),
        "model": model_file(kind, changes.pop("dropout", 0.0)),
        "language_ids": found.language_ids and kind != "modernbert",
        "steps": 6,
        "batch_size": 8,
        "seq_len": SEQ_LEN,
        "learning_rate": 3e-3,
        "warmup": 0.1,
        "mask": 0.3,
        "vocab_size": 300,
    }
    return TrainingSettings(**{**given, **changes})


def data_folder(spec: str = "trans,inv") -> Path:
    """Where a pair's tokenizer, twin, dictionaries and encoded data are kept for all tests."""
    return _HOME / re.sub(r"\W", "-", spec)


@cache
def pair(spec: str = "trans,inv", seq_len: int = SEQ_LEN, coverage: str = "25") -> Prepared:
    """The demo source and its derived language, encoded."""
    wanted = settings(spec=spec, seq_len=seq_len, coverage=coverage)
    return prepare_data(wanted, SourceRequest("demo"), Where(_HOME / "none", data_folder(spec)), Callbacks())


def batches(spec: str, split: str = "train") -> list[Batch]:
    """The demo's batches as a trainer reads them."""
    return list(Source.open(Pipeline.parse(spec), SourceRequest("demo"), splits=(split,)).batches(split))


def context(found: Prepared, rate: float = 0.15) -> Context:
    return Context(LanguageIds.of(found.languages), rate, found.pairs)


def loader(objective: str | Objective = "mlm", *, spec: str = "trans,inv", **options: Any) -> Loader:
    """A loader of the shared pair; options as of `Loader`, and rate, the share that is hidden."""
    found = pair(spec)
    made = read_objective(objective) if isinstance(objective, str) else objective
    pairs = None
    if "pairs" in made.requires:
        pairs = PairData.of(found.data, 50, reset=bool(getattr(made, "reset", False)))
    given = {"seed": 1, "batch_size": 8, "pairs": pairs}
    return Loader(found.data, made, context(found, options.pop("rate", 0.3)), **{**given, **options})


def trained(run: Path, objective: str = "mlm", spec: str = "trans,inv", **changes: Any) -> dict[str, Any]:
    """The result of a run in this process, on the shared data. changes: of settings, `Where`, `Watch` or `pretrain`."""
    where = {name: changes.pop(name) for name in ("data", "tokenizer", "dictionary") if name in changes}
    watch = {f.name: changes.pop(f.name) for f in fields(LogSettings) if f.name in changes}
    talk = Callbacks(
        warn=changes.pop("warn", lambda message: None), watch=LogSettings(**{"log_every": 2, "save_every": 3, **watch})
    )
    options = {name: changes.pop(name) for name in ("resume", "force", "duration", "design") if name in changes}
    return pretrain(
        settings(objective, spec, **changes),
        SourceRequest("demo"),
        Where(run, **{"data": data_folder(spec), **where}),
        talk=talk,
        **{"duration": Duration(), **options},
    )


def log(run: Path) -> list[dict[str, Any]]:
    """The entries of a log."""
    return [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """The tensors of a saved model."""
    from safetensors.torch import load_file

    found: dict[str, torch.Tensor] = load_file(folder / "model.safetensors")
    return found


# Models and inputs of an objective


def built(kind: str = "modernbert", *, tie: bool = True, language_ids: bool = False, **options: Any) -> Any:
    """A new masked language model for the shared pair's vocabulary, in training mode, without dropout."""
    found = pair()
    design = ModelConfig.read(model_file(kind))
    made = design.build(
        found.languages.size,
        2 * SEQ_LEN,
        found.data.marks,
        tie=tie,
        language_ids=language_ids,
        **{"seed": 1, **options},
    )
    return made.train()


def model_of(kind: str = "modernbert", *, tie: bool = True, language_ids: bool = False) -> LanguageModel:
    return LanguageModel(built(kind, tie=tie, language_ids=language_ids), language_ids=language_ids)


def inputs_of(made: Loader, step: int = 0, part: int = 0) -> Inputs:
    (micros,) = made.steps(step, step + 1)
    return loop_inputs(micros[part], torch.device("cpu"))


def padded(part: TokenBatch, more: int, pad: int) -> TokenBatch:
    """The same rows with `more` columns of padding after them."""
    rows, width = part.ids.shape

    def wider(tensor: torch.Tensor, value: int) -> torch.Tensor:
        return torch.cat([tensor, torch.full((rows, more), value, dtype=tensor.dtype)], dim=1)

    return replace(
        part,
        ids=wider(part.ids, pad),
        attention=wider(part.attention, 0),
        language=wider(part.language, 0),
        positions=None if part.positions is None else wider(part.positions, 0),
        targets=part.targets // width * (width + more) + part.targets % width,
    )


def rows_of(ids: list[list[int]], groups: list[list[int]], language: list[int], pad: int = 1) -> SubwordRows:
    """Rows by hand, padded to the longest."""
    width = max(map(len, ids))
    full = np.full((len(ids), width), pad, np.int64)
    words = np.full((len(ids), width), -1, np.int32)
    for i, (row, group) in enumerate(zip(ids, groups, strict=True)):
        full[i, : len(row)], words[i, : len(group)] = row, group
    spoken = np.repeat(np.array(language, np.int8)[:, None], width, axis=1)
    positions = np.repeat(np.arange(width, dtype=np.int32)[None], len(ids), axis=0)
    shared = np.zeros(full.shape, bool)
    return SubwordRows(full, words, spoken, positions, np.array([len(row) for row in ids]), shared)


def same_rows(left: SubwordRows, right: SubwordRows) -> bool:
    names = [field.name for field in fields(SubwordRows)]
    return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in names)


def same_masked(left: Masked, right: Masked) -> bool:
    names = [field.name for field in fields(Masked)]
    return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in names)


def marks() -> SpecialIds:
    return pair().data.marks


def every_step(made: Loader, first: int, last: int) -> Iterator[Any]:
    """The arrays of each micro-batch, to be compared."""
    for micros in made.steps(first, last):
        for micro in micros:
            for rows in (micro.rows, micro.pairs):
                if rows is None:
                    continue
                masked = rows.masked
                yield from (masked.inputs, masked.language, masked.targets, masked.labels, masked.label_language)
                yield rows.attention
                yield rows.total
