"""What the tests of training share: encoded pairs made once, models of width 16, runs of some steps.

pair("trans,inv").data            the demo source and its derived language, encoded
trained(tmp_path / "run", steps=6, objective="xlm")      a run of six steps in this process; gives its result
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from derivlang.core.batch import Batch
from derivlang.core.messages import DerivlangWarning
from derivlang.engine.batches import Source
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.training.batch import Step, SubwordRows
from derivlang.training.config import ModelConfig
from derivlang.training.encoder import Encoder, check_reset
from derivlang.training.languages import SpecialIds
from derivlang.training.loader import Loader, open_streams
from derivlang.training.masking import Keys, LanguageIds
from derivlang.training.model import build_model
from derivlang.training.objectives.base import Context, Objective
from derivlang.training.objectives.registry import read_objective
from derivlang.training.plan import RunPlan
from derivlang.training.prepare import Prepared, prepare_data
from derivlang.training.run import pretrain
from derivlang.training.settings import RECORDED, RunPaths, SessionSettings, TrainingSettings
from derivlang.training.streams.base import RowSource, Stream
from derivlang.training.trainer import LossModule

torch.set_num_threads(1)  # models this small: a second one only waits
_HOME = Path(tempfile.mkdtemp(prefix="derivlang-training-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)

SEQ_LEN = 32
PAIR_LENGTH = 32
ENCODERS = ("modernbert", "roberta", "bert")
CAUSAL = ("gpt2", "llama")
KINDS = (*ENCODERS, *CAUSAL)
_FIELDS = {
    "modernbert": "global_attn_every_n_layers = 1\ntheta = 100.0\nembedding_std = 0.1",
    "roberta": "hidden_dropout_prob = {dropout}\nattention_probs_dropout_prob = {dropout}",
    "bert": "hidden_dropout_prob = {dropout}\nattention_probs_dropout_prob = {dropout}",
    "gpt2": "embd_pdrop = {dropout}\nresid_pdrop = {dropout}\nattn_pdrop = {dropout}\nembedding_std = 0.1",
    "llama": "attention_dropout = {dropout}\ntheta = 100.0\nembedding_std = 0.1",
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
pair_length = {PAIR_LENGTH}
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
    names = {name: one for one, name in RECORDED.items()}
    changes = {names.get(name, name): value for name, value in changes.items()}
    found = read_objective(objective)
    kind = changes.pop("kind", "gpt2" if found.causal else "modernbert")
    given: dict[str, Any] = {
        "source": "demo",
        "spec": spec,
        "objective": str(found),
        "model": model_file(kind, changes.pop("dropout", 0.0)),
        "language_ids": found.language_ids and kind != "modernbert",
        "steps": 6,
        "batch_size": 8,
        "seq_len": SEQ_LEN,
        "pair_length": PAIR_LENGTH,
        "learning_rate": 3e-3,
        "warmup": 0.1,
        "mask": 0.3,
        "vocab_size": 300,
    }
    return TrainingSettings(**{**given, **changes})


def data_folder() -> Path:
    """Where tokenizers, twins, dictionaries and encoded data are kept for all tests."""
    return _HOME / "data"


@cache
def pair(spec: str = "trans,inv", seq_len: int = SEQ_LEN, coverage: str = "25") -> Prepared:
    """The demo source and its derived language, encoded for rows of every length that an objective reads."""
    wanted = settings("mlm", spec=spec, seq_len=seq_len, coverage=coverage)
    lengths = set().union(*(read_objective(name).row_lengths(wanted) for name in ("xlm", "tlm")))
    return prepare_data(
        wanted, SourceRequest("demo"), RunPaths(run=_HOME / "none", data=data_folder()), lengths=lengths
    )


def batches(spec: str, split: str = "train") -> list[Batch]:
    """The demo's batches as a trainer reads them."""
    return list(Source.open(Pipeline.parse(spec), SourceRequest("demo"), splits=(split,)).batches(split))


def context(found: Prepared, rate: float = 0.15) -> Context:
    ids = LanguageIds.of(found.languages, texts=dict.fromkeys((0, 1), found.data))
    return Context(ids, rate, found.dictionary)


def material(spec: str = "trans,inv", coverage: str = "25", **changes: Any) -> Prepared:
    """What streams of the shared pair are opened from. changes: of settings."""
    found = pair(spec, coverage=coverage)
    return replace(found, settings=settings("mlm", spec, coverage=coverage, **changes))


def opened(stream: Stream, spec: str = "trans,inv", **changes: Any) -> RowSource:
    """The rows of a stream of the shared pair. changes: of settings."""
    return stream.open(material(spec, **changes))


def loader(objective: str | Objective = "mlm", *, spec: str = "trans,inv", **options: Any) -> Loader:
    """A loader of the shared pair. options: of `Loader` and settings, and rate, the share that is masked."""
    made = read_objective(objective) if isinstance(objective, str) else objective
    own = {name: options.pop(name) for name in ("accumulate", "rank", "world") if name in options}
    rate, coverage = options.pop("rate", 0.3), options.pop("coverage", "25")
    read_from = material(spec, coverage, **{"seed": 1, "batch_size": 8, "parallel": "50", **options})
    streams = open_streams(made, read_from)
    return Loader(streams, made, context(pair(spec, coverage=coverage), rate), read_from.settings.seed, **own)


def stream_rows(made: Loader, name: str, begin: int, end: int) -> tuple[SubwordRows, Keys]:
    """The rows of a loader's stream in the steps begin … end - 1, before they are masked, and their keys."""
    (one,) = (one for one in made.streams if one.stream.name == name)
    return made._rows(one, range(begin, end))[:2]


def network(
    objective: str | Objective, kind: str | None = None, *, tie: bool = True, lm: Any = None, **options: Any
) -> tuple[LossModule, Loader]:
    """The module of the loop, without dropout, and its loader. kind: by default RoBERTa or, if it is causal, GPT-2."""
    made = loader(objective, **options)
    kind = kind or ("gpt2" if made.objective.causal else "roberta")
    ids = made.objective.language_ids and kind != "modernbert"
    lm = lm or built(kind, tie=tie, language_ids=ids)
    if any(one.stream.reset for one in made.streams):
        check_reset(lm)  # as a run does, before the model is moved to its device
    return LossModule(lm, made.objective, made.context, language_ids=ids, seed=1), made


def trained(run: Path, objective: str = "mlm", spec: str = "trans,inv", **changes: Any) -> dict[str, Any]:
    """The result of a run in this process, on the shared data. changes: of settings or `pretrain`."""
    where = {f.name: changes.pop(f.name) for f in fields(RunPaths) if f.name in changes}
    log = {f.name: changes.pop(f.name) for f in fields(SessionSettings) if f.name in changes and f.name != "precision"}
    warn, goes = changes.pop("warn", lambda message: None), SessionSettings(**{"log_every": 2, "save_every": 3, **log})
    more = {name: changes.pop(name) for name in ("resume", "force") if name in changes}
    config = changes.pop("model_config", None)
    asked = settings(objective, spec, **changes)
    paths = RunPaths(run=run, **{"data": data_folder(), **where})
    model = config or ModelConfig.read(asked.model)
    plan = RunPlan(asked, model, SourceRequest("demo"), paths, goes, **more)
    with warnings_to(warn):
        return pretrain(plan)


@contextmanager
def warnings_to(warn: Callable[[str], object]) -> Iterator[None]:
    """Call a function for each warning of the block."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DerivlangWarning)
        warnings.showwarning = lambda message, *_, **__: warn(str(message))
        yield


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
    """A new language model for the shared pair's vocabulary, in training mode, without dropout."""
    found = pair()
    model_config = ModelConfig.read(model_file(kind))
    made = build_model(
        model_config,
        found.languages.size,
        2 * SEQ_LEN,
        found.data.special_ids,
        tie=tie,
        language_ids=language_ids,
        **{"seed": 1, **options},
    )
    return made.train()


def model_of(kind: str = "modernbert", *, tie: bool = True, language_ids: bool = False) -> Encoder:
    return Encoder(built(kind, tie=tie, language_ids=language_ids), special_ids(), language_ids=language_ids)


def micro_of(made: Loader, step: int = 0, part: int = 0) -> Step:
    """The tensors of a micro-batch."""
    (micros,) = made.steps(step, step + 1)
    return micros[part].to(torch.device("cpu"))


def rows_batch(step: int = 0) -> SubwordRows:
    """The tensors of a step's rows of both corpora."""
    return micro_of(loader(), step)["rows"]


def padded(batch: SubwordRows, more: int, pad: int) -> SubwordRows:
    """The same rows with `more` columns of padding after them."""
    rows, width = batch.input_ids.shape
    fills = {
        "input_ids": pad, "clean_ids": pad, "language": 0, "side": 0, "positions": 0,
        "word_ids": -1, "sentence_ids": -1,
    }  # fmt: skip

    def moved(places: torch.Tensor) -> torch.Tensor:
        return places // width * (width + more) + places % width

    wider = {
        name: torch.cat([array, torch.full((rows, more), fill, dtype=array.dtype)], dim=1)
        for name, fill in fills.items()
        if (array := getattr(batch, name)) is not None
    }
    links = None if batch.links is None else moved(batch.links)
    return replace(batch, **wider, targets=moved(batch.targets), links=links)


def rows_of(ids: list[list[int]], word_ids: list[list[int]], language: list[int], pad: int = 1) -> SubwordRows:
    """Rows by hand, each of one sentence, padded to the longest."""
    width = max(map(len, ids))
    full = np.full((len(ids), width), pad, np.int64)
    words = np.full((len(ids), width), -1, np.int32)
    for i, (row, own) in enumerate(zip(ids, word_ids, strict=True)):
        full[i, : len(row)], words[i, : len(own)] = row, own
    spoken = np.repeat(np.array(language, np.int8)[:, None], width, axis=1)
    return SubwordRows(
        clean_ids=full,
        word_ids=words,
        sentence_ids=np.where(words >= 0, 0, -1).astype(np.int32),
        language=spoken,
        side=np.zeros(full.shape, np.int8),
        positions=None,
        lengths=np.array([len(row) for row in ids]),
        shared=np.zeros(full.shape, bool),
    )


def same_rows(left: SubwordRows, right: SubwordRows) -> bool:
    names = [field.name for field in fields(SubwordRows)]
    return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in names)


def links_of(rows: SubwordRows) -> list[tuple[int, int, int]]:
    """The links of rows: (row, from column, to column)."""
    width = rows.shape[1]
    assert (rows.links[0] // width == rows.links[1] // width).all()
    return [(a // width, a % width, b % width) for a, b in rows.links.T.tolist()]


def arrays(batch: SubwordRows, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The arrays of a batch that it has, by name, but those for masking alone."""
    without = ("totals", "shared", "translated", *without)
    names = [field.name for field in fields(SubwordRows) if field.name not in without]
    return {name: array for name in names if (array := getattr(batch, name)) is not None}


def same_batches(left: SubwordRows, right: SubwordRows, without: tuple[str, ...] = ()) -> bool:
    one, two = arrays(left, without), arrays(right, without)
    return one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)


def special_ids() -> SpecialIds:
    return pair().data.special_ids


def every_step(made: Loader, first: int, last: int) -> Iterator[Any]:
    """The arrays and numbers of each micro-batch, to be compared."""
    for micros in made.steps(first, last):
        for micro in micros:
            yield np.array([micro.step, *(micro.counts[name] for name in sorted(micro.counts))])
            for name, batch in micro.batches.items():
                yield np.array(name)
                yield from arrays(batch).values()
                totals = batch.totals
                yield np.array([totals.rows, totals.masked, *totals.by_language, totals.links, totals.linked])
