"""Labels of a fixed set of classes: one per word (pos, ner), or one per pair of sentences (xnli, pawsx).

    one a word    logits = W · dropout(h at the word's first sub-word)                     (RoBERTa's taggers)
    one a pair    logits = W2 · dropout(tanh(W1 · dropout(h at <s>)))                      (RoBERTa's classifiers)

For a causal model h is at the word's last sub-word, and at the last `</s>` of a pair (Radford et al. 2018, §3.2). A
word's label moves with it. Entities move as spans, as in a derived set; an entity that the order splits becomes
several. The chance level is the score of the most frequent training label.

Fine-tuning as published (ALIGN-MLM, appendix H): 10 epochs, of pairs 5, lr 2e-5, batch 32, length 128.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from derivlang.core.arrays import Int64, lengths_of, offsets_of, owners
from derivlang.core.layers.base import Realignment, read_classes
from derivlang.core.layers.spans import Spans
from derivlang.core.layers.words import Values, Words
from derivlang.core.order import Order
from derivlang.core.policies import Policies
from derivlang.core.schema import NLI, NO_LABEL, Field
from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.metrics import Metric, entity_counts, right_counts, run_counts, tag_counts
from derivlang.evaluation.rows import LanguageRows, ParallelRows
from derivlang.evaluation.tasks.base import PairTask, Task
from derivlang.parsing.base import UPOS
from derivlang.sources.corpus import Corpus

if TYPE_CHECKING:
    import torch

    from derivlang.evaluation.predictions import RowWords


class Labelling(Task):
    """A task whose labels are classes.

    layer: the column of the corpus that holds them. pooled: whether the head has one more layer, for labels at `<s>`.
    """

    layer: ClassVar[str]
    pooled: ClassVar[bool] = False

    def classes(self, corpus: Corpus) -> tuple[str, ...]:
        field = corpus.schema.field(self.layer)
        if field is None or field.classes is None:
            raise self.no_labels(corpus.name)
        return tuple(name for name in field.classes if name != "_")  # words without a tag are not predicted

    def head(self, config: Any, n_classes: int) -> torch.nn.Module:
        from derivlang.evaluation.heads import Classification

        return Classification(config, n_classes, pooled=self.pooled)

    def chance(self, train: Instances, test: Instances, classes: tuple[str, ...]) -> dict[str, Int64]:
        most_frequent = int(np.bincount(train.gold[:, 0]).argmax())
        gold, guessed = (
            self.labels(test, values, classes) for values in (test.gold, np.full_like(test.gold, most_frequent))
        )
        counts = self.score(gold, guessed)
        return {metric.name: counts[metric.name] for metric in self.columns if metric.chance}


class WordLabelling(Labelling):
    """A task with a label per word: tags, or entities as IOB2 tags. A word with the tag `_` has no label."""

    needs: ClassVar[str] = (
        "a label for each word, as in CoNLL-U, or as the lists `tokens` and `upos` (entities: `ner_tags`) in JSON lines"
    )
    word, causal = "first", True

    def examples(self, rows: ParallelRows, classes: tuple[str, ...]) -> Examples:
        batch = rows.batch
        layer = batch.layers.get(self.layer)
        if not isinstance(layer, Words | Spans):
            raise self.no_labels(self.name)
        sentence_of = owners(batch.sentences)
        known = {name: i for i, name in enumerate(classes)}
        numbers = np.zeros(0, np.int64)
        if isinstance(layer, Words):
            numbers = np.array([known.get(value, -1) for value in layer.values.to_pylist()] + [-1], np.int64)

        def instances(text: LanguageRows) -> Instances:
            counts = np.bincount(sentence_of[text.words], minlength=len(batch.tails))  # a row may lack words
            order = text.words.astype(np.int32), offsets_of(counts), np.zeros_like(batch.tails), batch.n_words
            moved = layer.realign(Realignment(batch, Order(*order), Policies()))
            if isinstance(moved, Spans):
                return text.word_labels(moved.tags(len(text.words)).astype(np.int64))
            return text.word_labels(numbers[moved.codes])

        labelled = batch.n_words if isinstance(layer, Spans) else int((numbers[layer.codes] >= 0).sum())
        return rows.examples(instances, classes, labelled)

    def told(self, words: RowWords, instances: Instances, values: Int64, classes: tuple[str, ...]) -> list[Any]:
        """Return one list per row: the label of each word, None for a word without one."""
        return words.labelled(instances, [classes[i] for i in values[:, 0].tolist()])


class PairLabelling(PairTask, Labelling):
    """A task with a label per pair of sentences. A pair without a label is left out.

    names: the labels of a set that does not list its labels, such as a TSV file.
    """

    needs: ClassVar[str] = "a label for each pair of sentences"
    names: ClassVar[tuple[str, ...]]
    pooled = causal = True

    def classes(self, corpus: Corpus) -> tuple[str, ...]:
        field = corpus.schema.field(self.layer)
        return super().classes(corpus) if field is None or field.kind != "value" else field.classes or self.names

    def examples(self, rows: ParallelRows, classes: tuple[str, ...]) -> Examples:
        batch = rows.batch
        layer = batch.layers.get(self.layer)
        if not isinstance(layer, Values) or batch.records.shape[1] != 2:
            raise self.no_labels(self.name)
        field = Field(self.layer, "value", classes)
        gold = read_classes(field, layer.values, lambda row: None, missing=NO_LABEL).astype(np.int64)
        some = np.flatnonzero(gold >= 0)

        def instances(text: LanguageRows) -> Instances:
            at = lengths_of(text.offsets)[some] - 1 if self.last else np.zeros_like(some)
            return text.instances(some, at, gold[some])

        return rows.examples(instances, classes).take(some)

    def told(self, words: RowWords, instances: Instances, values: Int64, classes: tuple[str, ...]) -> list[Any]:
        """Return the label of each pair."""
        return [classes[i] for i in values[:, 0].tolist()]


class PartsOfSpeech(WordLabelling):
    """Part-of-speech tags of Universal Dependencies.

    pos is English-EWT, pos:French-GSD another treebank.
    """

    kind = source = "pos"
    default = "English-EWT"
    layer = "upos"
    columns = (
        Metric("accuracy", count=right_counts, headline=True, chance=True),
        Metric("macro_f1", "macro F1", formula=f"macro_f1:{len(UPOS)}", count=tag_counts, chance=True),
        Metric("seqeval_f1", "seqeval F1", formula="f1", count=run_counts, chance=True),
    )


class NamedEntities(WordLabelling):
    """Named entities of WikiAnn.

    ner is English, ner:fr another language. There is no chance level: the most frequent tag, O, finds no entity.
    """

    kind = source = "ner"
    default = "en"
    layer = "ner_tags"
    columns = (
        Metric("f1", "F1", formula="f1", count=entity_counts, headline=True),
        Metric("precision", formula="precision", count=entity_counts),
        Metric("recall", formula="recall", count=entity_counts),
    )


class Inference(PairLabelling):
    """Natural language inference of XNLI.

    xnli is English, trained on MultiNLI; xnli:fr is another language.
    """

    kind = source = "xnli"
    default = "en"
    layer = "label"
    names = NLI
    columns = (Metric("accuracy", count=right_counts, headline=True, chance=True),)
    defaults = FinetuneSettings(epochs=5)


class Paraphrases(PairLabelling):
    """Paraphrases of PAWS-X.

    pawsx is English, pawsx:de another language (Yang et al. 2019). A field `NS` (its translation failed) is a sentence
    like any other.
    """

    kind = source = "pawsx"
    default = "en"
    layer = "label"
    names = ("0", "1")
    columns = (Metric("accuracy", count=right_counts, headline=True, chance=True),)
    defaults = FinetuneSettings(epochs=5)
