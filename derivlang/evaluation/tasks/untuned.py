"""UntunedTask: a set on which a pre-trained model is scored as it is, without fine-tuning. Each task is one file."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from derivlang.core.errors import DataError, UsageError
from derivlang.evaluation.tasks.named import NamedTask

if TYPE_CHECKING:
    from derivlang.engine.batches import Source
    from derivlang.evaluation.scores import Score
    from derivlang.sources.corpus import Corpus
    from derivlang.sources.request import SourceRequest
    from derivlang.training.encoder import Encoder
    from derivlang.training.languages import Languages


@dataclass(frozen=True)
class UntunedTask(NamedTask):
    """A task of a language model, on one set that a path names.

    texts: the columns of the set that hold text. items: what is scored, for lists. demo: the source that the set
    `demo` means, "" for none.
    """

    texts: ClassVar[tuple[str, ...]]
    items: ClassVar[str]
    demo: ClassVar[str] = ""

    @property
    def source(self) -> str:
        """The path of the set, with a slash, so that it is never the name of a source; or the built-in set."""
        (path,) = self.sets
        if path == "demo" and self.demo:
            return self.demo
        return path if "/" in path else f"./{path}"

    def find(self, request: SourceRequest) -> tuple[SourceRequest, Corpus]:
        """Return the set, and the request to read it. Raise DataError for one that has neither such columns nor, as
        CoNLL-U, comments."""
        from derivlang.sources.find import find

        by_columns = replace(request, text_column=self.texts)
        try:
            return by_columns, find(by_columns)
        except UsageError as error:
            if error.id not in ("unused-option", "no-columns"):
                raise
            if error.id == "unused-option":  # a format that has no such columns
                corpus = find(request)
                if corpus.format == "conllu":
                    return request, corpus
        raise DataError(
            f"has no columns {' and '.join(self.texts)}",
            where=self.source,
            fix="give JSON lines with these fields, a TSV file with a header that names them, or CoNLL-U",
            id="unknown-column",
        )

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
