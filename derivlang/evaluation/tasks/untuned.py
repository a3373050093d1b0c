"""UntunedTask: a set on which a pre-trained model is scored as it is, without fine-tuning. Each task is one file."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from derivlang.evaluation.tasks.named import NamedTask

if TYPE_CHECKING:
    from derivlang.engine.batches import Source
    from derivlang.evaluation.scores import Score
    from derivlang.sources.corpus import Corpus
    from derivlang.training.encoder import Encoder
    from derivlang.training.languages import Languages


@dataclass(frozen=True)
class UntunedTask(NamedTask):
    """A task of a language model, on one set that a path names.

    texts: the columns of the set that hold text. items: what is scored, for lists.
    """

    texts: ClassVar[tuple[str, ...]]
    items: ClassVar[str]

    @property
    def source(self) -> str:
        """The path of the set, with a slash, so that it is never the name of a source."""
        (path,) = self.sets
        return path if "/" in path else f"./{path}"

    @abstractmethod
    def check(self, corpus: Corpus) -> None:
        """Raise DataError, with file and line, for a set that cannot be scored."""

    @abstractmethod
    def score(
        self, model: Encoder, languages: Languages, source: Source, longest: int
    ) -> tuple[dict[str, Any], list[Score]]:
        """Return (settings, scores of the regimes `source`, `derived` and `chance`).

        model: with its head. longest: the maximum number of sub-words in a row. The same model and set give the same.
        settings: {"score": how items are compared, "items", "left_out": their numbers}.
        """
