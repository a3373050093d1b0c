"""The base class of objectives: the streams that a step reads, their masks, and the loss. Each objective is one file.

    @dataclass(frozen=True, kw_only=True)
    class Mine(Objective):
        '''Masked words, and something else.'''
        name = "mine"
        weight: float = param(1.0, "weight of the second part")
        def loss(self, model, micro, state):
            extra = something_of(model) * micro.share
            return {"mlm": masked_part(model, micro["rows"]), "extra": LossPart(extra, weight=self.weight)}

    streams ──▶ rows ──mask──▶ SubwordRows ──loss──▶ LossPart by name ──▶ sum of weight * total / by

A part's total is a sum over a micro-batch, and `by` is the number of its terms in the whole step. So the sum over
micro-batches and processes is the mean of the step.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from derivlang.core.errors import UsageError
from derivlang.core.plugins import is_own
from derivlang.core.spec import Parameterised
from derivlang.training.batch import Step, SubwordRows
from derivlang.training.masking import Keys, LanguageIds, mask
from derivlang.training.streams.base import Stream
from derivlang.training.streams.packed import Packed

if TYPE_CHECKING:
    import torch

    from derivlang.training.config import ModelConfig
    from derivlang.training.encoder import Encoder
    from derivlang.training.settings import TrainingSettings


@dataclass(frozen=True, slots=True)
class Context:
    """The inputs of masking and of an objective's state. rate: share of sub-words to mask.

    dictionary: `Translations`, for an objective that reads one.
    """

    vocabulary: LanguageIds
    rate: float
    dictionary: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class LossPart:
    """A part of a loss. total: scalar, the sum of its terms in a micro-batch. by: number of terms in the whole step.

    For a part that does not depend on rows, total is its value times the micro-batch's share.
    """

    total: torch.Tensor
    by: int = 1
    weight: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """A number that is logged as NAME_percent and has no part in the loss: 100 * some / of, over steps and processes.

    some, of: scalars, counts of a micro-batch. Where `of` is 0 nothing is logged.
    """

    some: torch.Tensor
    of: torch.Tensor


Loss: TypeAlias = Mapping[str, LossPart | Share]


@dataclass(frozen=True, kw_only=True)
class Objective(Parameterised):
    """Base class of training objectives.

    language_ids: whether the model gets each position's language, if it can. causal: whether it trains
    causal language models, and not encoders. translates: whether it may replace sub-words, or their labels, by
    translations. dictionary: whether it reads the dictionary of the run: "entries", of a tokenizer and its twin; or
    "words", which will do where no entry has a twin.
    """

    language_ids: ClassVar[bool] = False
    causal: ClassVar[bool] = False
    translates: ClassVar[bool] = False
    dictionary: ClassVar[Literal["", "entries", "words"]] = ""
    rules: ClassVar[int] = 2  # raised when the same spec trains another model

    def streams(self) -> tuple[Stream, ...]:
        """Return the streams that a step reads. An epoch is counted in the rows of the first."""
        return (Packed(),)

    @property
    def of_one_language(self) -> bool:
        """Whether rows of one language are enough: for its streams, and without a dictionary."""
        return not self.dictionary and all(stream.of_one_language for stream in self.streams())

    def check(self, settings: TrainingSettings, model_config: ModelConfig) -> None:
        """Raise UsageError if the settings or the model exclude the objective; called before anything is made."""
        return None

    def reads(self, files: Collection[str] = ()) -> Set[str]:
        """Return which settings of CHOSEN it reads: of its streams and its dictionary; unless it is causal, `mask` and
        `replacements`.

        files: which of "dictionary" and "pairs" are given as files, and not made.
        """
        settings: set[str] = set() if self.causal else {"mask", "replacements"}
        if self.dictionary and "dictionary" not in files:
            settings |= {"coverage", "dictionary_by", "dictionary_seed"}
        return settings.union(*(stream.reads(files) for stream in self.streams()))

    def reads_text(self, files: Collection[str] = ()) -> bool:
        """Return whether it needs a source and its derived language, for a stream or the dictionary.

        An objective whose streams all read pairs needs none if these are given as a file. files: as of `reads`.
        """
        of_streams = any(stream.reads_text(files) for stream in self.streams())
        return of_streams or (self.dictionary != "" and "dictionary" not in files)

    def row_lengths(self, settings: TrainingSettings) -> set[int]:
        """Return the row lengths for which the streams read the encoded corpus."""
        return set().union(*(stream.piece_lengths(settings) for stream in self.streams()))

    def mask(self, stream: str, rows: SubwordRows, keys: Keys, context: Context) -> SubwordRows:
        """Return the rows [B, H] of a stream with masked positions and their labels; by default the usual masking."""
        return mask(rows, keys, context.vocabulary, context.rate)

    def entries_per_step(self, entries: int) -> int | None:
        """Return how many pairs of a dictionary with so many the loss reads in a step; None: none as pairs."""
        return None

    def first_step(self) -> int:
        """Return the step from which on the loss has all of its parts."""
        return 0

    def state(self, model: Encoder, context: Context) -> torch.nn.Module | None:
        """Return what the loss needs on the device and checkpoints keep: a dictionary, further layers, a queue."""
        return None

    def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:
        """Return the parts of the loss of a micro-batch, and shares for the log. state: what `state` returned."""
        raise NotImplementedError

    def after_step(self, model: Encoder, state: Any, step: int) -> None:
        """Follow the update of the weights, e.g. in a momentum encoder: called once per step, without gradient."""
        return None


def check_parts(objective: Objective, terms: Any, *, training: bool) -> None:
    """Raise UsageError plug-in for a loss that is not parts and shares by name, or in training depends on no weight."""
    if not isinstance(terms, Mapping):
        told = f"the loss of {objective.name} returned {type(terms).__name__}, not its parts by name"
        raise UsageError(told, fix='return {"mlm": LossPart(…)}', id="plug-in")
    for name, term in terms.items():
        if not isinstance(term, (LossPart, Share)):
            told = f"the loss of {objective.name} has a part {name!r} that is neither a LossPart nor a Share"
            raise UsageError(told, fix=f'return {{"{name}": LossPart(…)}}', id="plug-in")
    learns = any(isinstance(term, LossPart) and term.total.requires_grad for term in terms.values())
    if training and not learns and not is_own(objective):
        told = f"the loss of {objective.name} has no part that depends on the weights"
        raise UsageError(told, fix='return {"mlm": LossPart(…)} of states of the model', id="plug-in")


def masked_part(
    model: Encoder, batch: SubwordRows, states: torch.Tensor | None = None, *, weight: float = 1.0
) -> LossPart:
    """Return the cross-entropy at the masked positions, divided by their number in the whole step.

    states: float[n, d], the states to predict from; by default from the model's last layer. The projection onto the
    vocabulary is computed only at masked positions.
    """
    if states is None:
        states = _predicting(model, batch)
    return LossPart(model.cross_entropy(states, batch.labels), batch.totals.masked, weight)


def masked_part_by_language(model: Encoder, batch: SubwordRows) -> tuple[LossPart, LossPart]:
    """Return the cross-entropy at the masked positions of the source and of all other languages, each as a mean."""
    losses = model.cross_entropy(_predicting(model, batch), batch.labels, "none")
    source, derived = (
        LossPart((losses * ((batch.label_language > 0) == other)).sum(), batch.totals.by_language[other])
        for other in (False, True)
    )
    return source, derived


def _predicting(model: Encoder, batch: SubwordRows) -> torch.Tensor:
    """Return float[n, d]: the states of the last layer at the positions to predict."""
    return model.states(batch).flatten(0, 1)[batch.targets]
