"""Task: a labelled set that a run is fine-tuned on, and how it is scored. Each task is one file.

    check      whether a corpus has the labels            loss      of the scores of a batch
    examples   labelled rows of both languages            decode    the most probable labels of a batch
    head       the layers on top of the encoder           labels    as the metrics take them; told: as people read them

    batch ──rows, examples──▶ Instances of both languages ──encoder, head──▶ scores ──decode──▶ labels ──metrics──▶ %

A name has the form KIND, KIND:SET or KIND:TRAIN+TEST. A set is the argument of a named source, as in `pos:French-GSD`,
or a path: a file or a folder, written with a slash; or the built-in set, `pos:demo` or `xnli:demo:nli`. TRAIN gives
train and dev, TEST gives test; of a set with one split this is the test set. `pos:fr=French-GSD`, also
`pos:SET+fr=SET+de=SET`, names sets that are in the targets fr and de themselves: what is derived for other targets.

    given                         label, in results and reports         file name
    pos:French-GSD                pos:French-GSD                        pos-French-GSD
    blimp:data/pairs.jsonl        blimp:data/pairs.jsonl                blimp-data-pairs.jsonl
    blimp:/home/me/pairs.jsonl    blimp:pairs.jsonl-5c1f0ba2            blimp-pairs.jsonl-5c1f0ba2

A label has no absolute path: of such a path, it has the last name and eight hex digits of its hash.

An UntunedTask is a set on which a pre-trained model is scored as it is, without fine-tuning.

Help pages and reports import tasks, so no task imports torch when it is imported.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from derivlang.core.errors import DataError, UsageError
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.set_names import file_name_of, short_name

if TYPE_CHECKING:
    import torch

    from derivlang.core.arrays import Int64
    from derivlang.core.batch import Batch
    from derivlang.engine.batches import Source
    from derivlang.evaluation.columns import Column
    from derivlang.evaluation.examples import Examples, Instances
    from derivlang.evaluation.metrics import Metric
    from derivlang.evaluation.predictions import RowWords
    from derivlang.evaluation.rows import ParallelRows
    from derivlang.evaluation.scores import Score
    from derivlang.sources.corpus import Corpus
    from derivlang.sources.request import SourceRequest
    from derivlang.training.encoder import Encoder
    from derivlang.training.languages import Languages


@dataclass(frozen=True)
class NamedTask(ABC):
    """A task on a set.

    kind: the name of the task. columns: its scores, one of which is the headline. name: as given, KIND or KIND:SET.
    """

    kind: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]

    name: str

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the docstring."""
        return (cls.__doc__ or "").partition("\n")[0]

    @classmethod
    def headline(cls) -> Column:
        """Return the main score: it chooses the epoch, and reports show it first."""
        return next(column for column in cls.columns if column.headline)

    @property
    def sets(self) -> tuple[str, ...]:
        """The sets that the name gives, as given; () without a colon."""
        _, colon, argument = self.name.partition(":")
        return (argument,) if colon else ()

    @property
    def label(self) -> str:
        """The name in results and reports."""
        return ":".join([self.kind, "+".join(map(short_name, self.sets))]) if self.sets else self.kind

    @property
    def file_name(self) -> str:
        """The name in file names."""
        return file_name_of(self.label)


OWN = re.compile(r"[A-Za-z]\w*=", re.ASCII)  # begins the set of a target


@dataclass(frozen=True)
class Task(NamedTask):
    """A task on one set, or on two.

    source: the named source of its sets; default: the set of a name without a colon.
    needs: what a corpus must have, for messages. word: the sub-word that stands for a word in an encoder, "" if no
    sub-word does. causal: whether the task suits causal models. defaults: settings of fine-tuning.

    settings: of fine-tuning, the defaults if None is given. is_own: whether the set is in the language of a target, so
    that it needs no train and no dev. last: whether the model is causal, so that only the last
    state has seen all of a word, or of a row; labels are there.
    """

    source: ClassVar[str]
    default: ClassVar[str]
    needs: ClassVar[str]
    word: ClassVar[str] = ""
    causal: ClassVar[bool] = False
    columns: ClassVar[tuple[Metric, ...]]
    defaults: ClassVar[FinetuneSettings] = FinetuneSettings()

    given: FinetuneSettings | None = None
    last: bool = False
    is_own: bool = False

    @property
    def settings(self) -> FinetuneSettings:
        return self.given or self.defaults

    def with_settings(self, **changes: Any) -> Task:
        """Return the task with other settings. None leaves a setting unchanged."""
        changed = {name: value for name, value in changes.items() if value is not None}
        return replace(self, given=replace(self.settings, **changed))

    @property
    def sources(self) -> tuple[str, ...]:
        """The full names of its sources: one, or one for train and dev and another for test."""
        sets = [name for name in self.sets if not OWN.match(name)] or [self.default]
        return tuple(name if "/" in name or name.split(":")[0] == "demo" else f"{self.source}:{name}" for name in sets)

    @property
    def sets(self) -> tuple[str, ...]:
        """The sets that the name gives: none, one, or one for train and dev and one for test; and targets' own."""
        return tuple(name for given in super().sets for name in given.split("+"))

    @property
    def own(self) -> dict[str, Task]:
        """The task on each set that the name gives a target, by the target."""
        sets = (name.partition("=") for name in self.sets if OWN.match(name))
        return {target: replace(self, name=f"{self.kind}:{name}", is_own=True) for target, _, name in sets}

    def no_labels(self, name: str) -> DataError:
        """Return the error for a corpus, or a batch of it, without the labels of the task."""
        return DataError(
            f"{name} has no labels of the task {self.kind}, which needs {self.needs}",
            where="--task",
            fix=f"name a set that has them, as {self.kind}:{self.default} does",
            id="no-labels",
        )

    @abstractmethod
    def classes(self, corpus: Corpus) -> tuple[str, ...]:
        """Return the names of the labels, () if labels have no names.

        Raise DataError if the corpus has no such labels.
        """

    @abstractmethod
    def examples(self, rows: ParallelRows, classes: tuple[str, ...]) -> Examples:
        """Return the examples of the rows of a batch. Raise DataError if it has no such labels."""

    def rows(self, batch: Batch, languages: Languages) -> ParallelRows:
        """Return the rows of a batch that is split into sentences, for `examples`."""
        from derivlang.evaluation.rows import ParallelRows

        return ParallelRows(batch, languages, self.settings.max_length, last=self.last)

    @abstractmethod
    def head(self, config: Any, n_classes: int) -> torch.nn.Module:
        """Return new layers: (states float[B, T, d], LabelBatch) -> scores. config: of the encoder."""

    def loss(self, scores: Any, gold: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of G labels. scores: of the head, [G, C] by default. gold: int64[G, k]."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(scores, gold[:, 0])

    def decode(self, scores: Any) -> torch.Tensor:
        """Return int64[G, k]: the most probable labels (ties: the first), in the form of gold."""
        labels: torch.Tensor = scores.argmax(dim=1, keepdim=True)
        return labels

    def labels(self, instances: Instances, values: Int64, classes: tuple[str, ...]) -> list[list[Any]]:
        """Return int64[G, k] as the metrics take labels: one list per row, of names by default."""
        return instances.by_row([classes[i] for i in values[:, 0].tolist()])

    def told(self, words: RowWords, instances: Instances, values: Int64, classes: tuple[str, ...]) -> list[Any]:
        """Return int64[G, k] as files of predictions have labels: one value per row, of one Arrow type for all.

        words: of the rows. By default what `labels` returns.
        """
        return self.labels(instances, values, classes)

    def chance(self, train: Instances, test: Instances, classes: tuple[str, ...]) -> dict[str, Int64]:
        """Return the counts of a guess on the test set, int64[S, k], by the name of each column that has a chance."""
        return {}

    def score(self, gold: Sequence[list[Any]], predicted: Sequence[list[Any]]) -> dict[str, Int64]:
        """Return the counts of each metric by its name, int64[S, n]."""
        several = {metric.count: metric for metric in self.columns}  # some metrics share their counts
        by_count = {count: metric.counts(gold, predicted) for count, metric in several.items()}
        return {metric.name: by_count[metric.count] for metric in self.columns}


class PairTask(Task):
    """A task whose rows have two sides, so that each example has two mixed pairs: one side derived, the other not.

    Its examples of mixed rows (`ParallelRows.mixed`) are these pairs, in the places of both languages.
    """


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
