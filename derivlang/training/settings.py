"""What a training run can be told: settings that a model depends on, and those that it does not.

    TrainingSettings  what the model depends on
    SessionSettings   how long to train, on what of the machine; log, checkpoints
    RunPaths          where a run reads and writes

Each setting is declared once (core/settings.py). Help pages import this module, which therefore imports nothing heavy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from derivlang.core.errors import UsageError, unknown
from derivlang.core.settings import OPTIONS, Settings, declared, setting
from derivlang.core.takes import Names, Percent, Takes
from derivlang.engine.options import ParserNames
from derivlang.formats.places import OptionalPath, PathLike
from derivlang.lexical.settings import By, percent
from derivlang.training.language import UNREAD, Language, read_languages

if TYPE_CHECKING:
    from fractions import Fraction

    _READ: Any = None  # a field is declared again where mypy would take a path of a base class for what a user may give

LONGEST = 1 << 15  # sub-words in an instance: positions are kept in 16 bits
Packing = Literal["sentences", "single", "stream"]
Precision = Literal["fp32", "bf16"]
Sides = Literal["both", "source", "derived"]
TokenizerFor = Literal["each", "both"]
Budget = Literal["steps", "tokens", "predictions"]
Replacements = Literal["own", "both", "none"]
Embeddings = Literal["keep", "copy", "new", "permute"]

_MODELS = "the model's"
_OWN = ("positions", "special-ids")

_FREEZE = re.compile(r"embeddings|encoder|layers=[0-9]{1,4}(-[0-9]{1,4})?")  # a part of --freeze


def _check_own(value: Any, option: str) -> None:
    for part in filter(None, value.split(",")):
        if part not in _OWN:
            raise unknown("part", part, _OWN, where=option, id="bad-value")


def _check_parallel(value: Any, option: str) -> None:
    if percent(value, option, zero=True) == 0:
        raise UsageError(
            "0 % of the sentences are pairs, so an objective with sentence pairs has none",
            where=option,
            fix="raise it, or leave it out and give an objective without pairs: mlm with --language-ids is xlm without",
            id="no-pairs",
        )


def _check_factors(value: Any, option: str) -> None:
    for one in value:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*=.*", one, re.DOTALL):
            raise UsageError(f"{one!r} is not NAME=LEVEL", where=option, fix="write e.g. overlap=25", id="bad-value")
    names = [one.partition("=")[0] for one in value]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{name} is given twice", where=option, fix="give each factor one level", id="bad-value")


def _check_trackers(value: Any, option: str) -> None:
    for one in value:
        if not re.fullmatch("[a-z_]+=.+", one):
            raise UsageError(
                f"{one!r} is not NAME=PROJECT", where=option, fix="write e.g. mlflow=words", id="bad-value"
            )


def layers_of(part: str) -> tuple[int, int]:
    """Return the first and the last layer of `layers=2` or `layers=0-3`."""
    first, _, last = part.removeprefix("layers=").partition("-")
    return int(first), int(last or first)


def check_layers(parts: str, n_layers: int) -> None:
    """Raise UsageError if parts to freeze name a layer that a model does not have."""
    for part in parts.split(","):
        if part.startswith("layers=") and layers_of(part)[1] >= n_layers:
            raise UsageError(f"{part}: the model has the layers 0 to {n_layers - 1}", where="--freeze", id="bad-value")


def check_freeze(value: Any, option: str) -> None:
    """Raise UsageError unless a text lists parts of a model, with commas. option: its name."""
    for part in filter(None, value.split(",")):
        if not _FREEZE.fullmatch(part):
            raise unknown("part to freeze", part, ("embeddings", "encoder", "layers=0-3"), where=option, id="freeze")
        if part.startswith("layers=") and layers_of(part)[0] > layers_of(part)[1]:
            raise UsageError(f"{part} names no layer", where=option, fix="write e.g. layers=0-3", id="bad-value")


# A setting that [training] of a model's file may give, too.
_shared = partial(setting, in_file=True)
_choice = partial(setting, heading=OPTIONS)
_optimiser = partial(_shared, heading="Optimiser")
_data = partial(setting, heading="Tokenizer, dictionary and data")
_data_in_file = partial(_data, in_file=True)
_duration = partial(setting, heading="Training")


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Settings):
    """What a model depends on, besides its text. Rates and shares are from 0 to 1, unless given in percent.

    A step is one update of the weights.
    """

    heading: ClassVar[str] = "Training"
    objective: str = _choice("mlm", "Training objective, e.g. align-mlm:alpha=10; `derivlang ls` lists all.")
    model: str = _choice("tiny", "Model: tiny, tiny-gpt, bert-12, modernbert-4, roberta-8, gpt-8, or a FILE.toml.")
    seed: int = _shared(1, "Seed of weights, masks and the order of rows.", minimum=0, maximum=2**63 - 1)
    steps: int | None = _shared(
        None, "Number of updates of the weights; 0 gives the untrained model.", minimum=0, unset=_MODELS
    )
    batch_size: int = _shared(128, "Number of rows in a step, of both languages together.", minimum=1, unset=_MODELS)
    seq_len: int = _shared(512, "Number of sub-words in a row.", minimum=8, maximum=LONGEST, unset=_MODELS)
    pair_length: int = _shared(
        128,
        "Number of sub-words in a row of sentence pairs, of both sides together.",
        minimum=8,
        maximum=LONGEST,
        subject="rows of only sentence pairs",
    )
    accumulate: int = _shared(1, "Number of micro-batches in a step, on each process.", minimum=1)
    learning_rate: float = _optimiser(1e-4, "Peak learning rate.", also="--lr", above=0, unset=_MODELS)
    warmup: float = _optimiser(
        0.02, "Share of the steps in which the learning rate rises.", minimum=0, below=1, unset=_MODELS
    )
    weight_decay: float = _optimiser(0.0, "AdamW weight decay (matrices only).", minimum=0)
    beta1: float = _optimiser(0.9, "AdamW beta1.", minimum=0, below=1)
    beta2: float = _optimiser(0.999, "AdamW beta2.", minimum=0, below=1)
    epsilon: float = _optimiser(1e-8, "AdamW epsilon.", above=0)
    clip: float = _optimiser(1.0, "Maximum norm of the gradient.", above=0)
    mask: float = _shared(
        0.15, "Share of the sub-words that are masked.", above=0, below=1, unset=_MODELS, subject="masked words"
    )
    replacements: Replacements = _shared(
        "own",
        "Random words in a tenth of the masked places: of their own language, of both, or none (masks).",
        subject="masked words",
    )
    tie: bool = _shared(True, "Tie input and output embeddings.")
    language_ids: bool = setting(False, "Give the model the language of each position.", unset="as the objective needs")
    own: str = _shared(
        "",
        "Parts of the model that each language has of its own: positions, special-ids, with commas.",
        check=_check_own,
        excludes="--init",
        unset="none",
        commas=True,
    )
    vocab_size: int = _data_in_file(40_000, "Number of entries of the tokenizer.", minimum=1, unset=_MODELS)
    dict_coverage: Percent = _data_in_file(
        "25",
        "Percentage of the dictionary's entries.",
        check=percent,
        excludes="--dictionary",
        subject="dictionary",
    )
    dict_by: By = _data_in_file("random", "Choice of these entries.", excludes="--dictionary", subject="dictionary")
    dict_seed: int = _data_in_file(
        1,
        "Seed of dictionary entries and sentence pairs.",
        minimum=0,
        maximum=2**63 - 1,
        subject="dictionary or sentence pairs",
    )
    parallel: Percent = _data_in_file(
        "25",
        "Percentage of the sentences that are pairs, for objectives with pairs.",
        check=_check_parallel,
        excludes="--pairs",
        subject="sentence pairs to choose from",
    )
    embeddings: Embeddings = setting(
        "keep",
        "Embeddings to begin with: keep, or copy (each word of the derived language gets its source's); of a run that "
        "--init names also new or permute.",
    )
    freeze: str = setting(
        "",
        "Parts that are not trained: embeddings, encoder, layers=0-3, with commas.",
        check=check_freeze,
        unset="none",
        commas=True,
    )
    packing: Packing = _data_in_file(
        "sentences",
        "Content of a row: whole sentences, a single one, or a stream cut every --seq-len.",
        subject="rows of only the corpus",
    )
    tokenizer_for: TokenizerFor | None = setting(
        None,
        "Tokenizers without a twin: one for each language, or one that is trained on the text of both.",
        unset="a twin where the words stay or change only their script, else each",
    )
    languages: Sides = setting("both", "Languages to train on: both, or one of them, with as many rows per step.")
    language: Takes[Names, Names | Mapping[str, Any]] = _data(
        (),
        "Language of the run, NAME=KEY:VALUE …, in place of --source and --t; may be repeated. Keys: text, lang, t, "
        "ids, tokenizer, share, part.",
        excludes="--source, --t, --halves, --languages, --derived-source, --tokenizer-for, --init, --own",
        unset="of --source and --t",
    )
    halves: bool = setting(
        False, "Train on the first half of the text in the source and on the second half in the derived language."
    )
    derived_source: str = _data(
        "",
        "Name or path of another text for the derived language; without --tokenizer-for, the tokenizer is trained on "
        "SOURCE.",
        requires="--source",
        excludes="--halves, --languages",
        unset="SOURCE",
    )
    limit: int | None = _data_in_file(None, "Maximum number of rows; of running text, paragraphs.", minimum=1)


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(TrainingOptions):
    """The settings of a run. The constructor raises UsageError, with the option's name, for impossible values.

    Once the data is there, vocab_size is the number of entries of the tokenizer, which may have been given, and steps
    is what follows from a number of sub-words or epochs (`SessionOptions`).
    """

    if TYPE_CHECKING:
        language: Names = _READ
    source: str
    spec: str
    precision: Precision = setting("fp32", "Precision of the arithmetic.", option=False)  # of --precision, resolved

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size % self.accumulate:
            raise UsageError(
                f"{self.batch_size} rows cannot be divided into {self.accumulate} equal micro-batches",
                where="--accumulate",
                id="bad-value",
            )

    @property
    def asked(self) -> tuple[Language, ...]:
        """The languages of the run, the source first."""
        if self.language:
            return read_languages(self.language)
        parts = ["1/2", "2/2"] if self.halves else ["", ""]
        if self.languages != "both":
            parts[self.languages == "source"] = UNREAD
        source = Language(name="source", text=self.source, part=parts[0])
        return source, Language(name="derived", text=self.derived_source, t=self.spec, part=parts[1])

    @property
    def own_parts(self) -> tuple[str, ...]:
        """The parts that each language has of its own, as `own_parts.py` names them."""
        return tuple(filter(None, self.own.split(",")))

    @property
    def parallel_rate(self) -> Fraction:
        return percent(str(self.parallel), "--parallel")

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of a step, from 0. It rises linearly in the warm-up, then falls linearly to 0."""
        steps = self.steps or 0
        warm = round(self.warmup * steps)
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        return self.learning_rate * (steps - step) / max(steps - warm, 1)


RECORDED = {"dict_coverage": "coverage", "dict_by": "dictionary_by", "dict_seed": "dictionary_seed"}  # in run.json
# Settings that some objectives do not read: `Objective.reads` says which it does. Every run has a dictionary all the
# same, by which the measure `alignment` chooses its held-out rows: so these have no effect only on the training.
CHOSEN = {RECORDED.get(name, name): one for name, one in declared(TrainingOptions).items() if one.subject}


@dataclass(frozen=True, kw_only=True)
class SessionOptions(Settings):
    """How a run goes: how long, if not for `TrainingSettings.steps`; how it uses the machine; what goes on beside.

    tokens, epochs: a number of sub-words, or of passes over both corpora. budget: what the steps hold equal between
    objectives (doses.py).
    """

    heading: ClassVar[str] = "Machine and log"

    tokens: int | None = _duration(
        None, "Number of sub-words, of both languages together.", minimum=1, maximum=2**53, excludes="--steps, --epochs"
    )
    epochs: float | None = _duration(None, "Number of passes over both corpora.", above=0, excludes="--steps, --tokens")
    budget: Budget = _duration(
        "steps",
        "What --steps holds equal between objectives: updates, or the sub-words that mlm reads or predicts in as many.",
        excludes="--tokens, --epochs",
    )
    precision: Literal["auto", "fp32", "bf16"] = setting(
        "auto", "Precision of the arithmetic; auto is bf16 on an accelerator."
    )
    compile: bool | None = setting(None, "Use torch.compile.", unset="on an accelerator")
    threads: int | None = setting(None, "Number of CPU threads.", minimum=1, unset="1 for a narrow model, else all")
    log_every: int = setting(50, "Number of steps between log entries.", minimum=1)
    save_every: int | None = setting(
        None, "Number of steps between checkpoints.", minimum=1, unset="ten minutes, at a log entry"
    )
    keep: int = setting(2, "Number of checkpoints to keep.", minimum=1)
    tracker: Names = setting(
        (),
        "NAME=PROJECT of an experiment tracker of accelerate: tensorboard, mlflow, wandb (which sends figures over the "
        "network unless WANDB_MODE=offline) …; may be repeated.",
        check=_check_trackers,
    )
    factor: Names = setting((), "NAME=LEVEL of a study, kept in run.json; may be repeated.", check=_check_factors)


@dataclass(frozen=True, kw_only=True)
class SessionSettings(SessionOptions):
    """The same. logged: called with (step, entry of the log) when something is logged."""

    logged: Callable[[int, dict[str, Any]], None] = lambda step, entry: None


@dataclass(frozen=True, kw_only=True)
class DataPaths(Settings):
    """What a run reads."""

    heading: ClassVar[str] = "Tokenizer, dictionary and data"
    data: OptionalPath = setting(None, "Folder of tokenizers and encoded data, shared by runs.", unset="OUT/data")
    tokenizer: OptionalPath = setting(None, "Folder of a tokenizer.", unset="train one")
    dictionary: Takes[tuple[Path, ...], PathLike | Sequence[PathLike] | Mapping[str, PathLike]] = setting(
        (),
        "Dictionary of `dict --level token`, of words for a checkpoint, or en-fr=FILE of words of two languages.",
        unset="make one",
        file=True,
    )
    init: str | None = setting(
        None, "Model to begin from: RUN, RUN@STEP, FOLDER of a checkpoint, or hub:NAME.", unset="a new model"
    )
    pairs: Takes[tuple[Path, ...], PathLike | Sequence[PathLike] | Mapping[str, PathLike]] = setting(
        (),
        "Sentence pairs of `derivlang pair`: a Parquet file, or PREFIX of text files; with --language en-fr=FILE, "
        "which may be repeated.",
        unset="of the corpus",
        file=True,
    )


@dataclass(frozen=True, kw_only=True)
class RunPaths(DataPaths, ParserNames):
    """Where a run reads and writes. run: its folder."""

    if TYPE_CHECKING:
        data: OptionalPath = _READ
        tokenizer: OptionalPath = _READ
        parses: OptionalPath = _READ
        dictionary: tuple[Path, ...] = _READ
        pairs: tuple[Path, ...] = _READ
    run: Path

    @property
    def home(self) -> Path:
        """The folder of tokenizers and encoded data."""
        return self.data or self.run / "data"
