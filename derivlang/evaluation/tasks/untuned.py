"""UntunedTask: a set on which a pre-trained model is scored as it is, without fine-tuning. Each task is one file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from derivlang.evaluation.tasks.named import NamedTask

if TYPE_CHECKING:
    from derivlang.engine.batches import Source
    from derivlang.sources.corpus import Corpus
    from derivlang.training.encoder import Encoder
    from derivlang.training.languages import Languages

SIDES = ("source", "derived")


@dataclass(frozen=True)
class UntunedTask(NamedTask):
    """A task of a language model, on one set that a path names.

    texts: the columns of the set that hold text. headline: the name of the score, a share in percent. items: what is
    scored, for lists.
    """

    texts: ClassVar[tuple[str, ...]]
    headline: ClassVar[str] = "accuracy"
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
    def score(self, model: Encoder, languages: Languages, source: Source, longest: int) -> dict[str, Any]:
        """Return the entry in `evaluation.json`: {"settings", "groups", "chance": {headline: percent}}.

        model: with its head. longest: the maximum number of sub-words in a row. The same model and set give the same.

        settings: {"score": how items are compared, "items", "left_out": their numbers}. groups: {"by", "name", "items",
        "source": SHARE, "derived": SHARE} with SHARE = {headline, "low", "high", "ties"}. The first is of all items,
        the others are of the items with one value (`name`) of a column (`by`).
        """


def shown_groups(entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the groups that lists and reports show: all items, and the values of the first column."""
    groups: list[dict[str, Any]] = entry["groups"]
    by = groups[1]["by"] if len(groups) > 1 else None
    for number, group in enumerate(groups):
        # Results of earlier versions have a group of the items with an empty value, which is no name.
        if number == 0 or (group["by"] == by and group["name"]):
            yield group
